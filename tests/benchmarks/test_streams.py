"""Models on streams: the short mode, the tables, and the settings of the models played."""

import json
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from river import datasets, ensemble

from benchmarks import nonlinear, regressor, streams

LIKES = "MovieLens 100K, likes"


def filled(*given):
    """What was found, with nothing in the fields not given."""
    return streams.Played(*given, *[{}] * (len(streams.Played._fields) - len(given)))


@pytest.mark.slow
def test_the_short_mode_writes_tables(tmp_path, capsys):
    earlier = [
        filled("likes", LIKES, 9, {"ours": 0.5, "popularity": 0.25}, {"ours": 1.0}),
        filled("numbers", "TrumpApproval", 9, {"ours": 77.0}, {"ours": 1.0}),
    ]
    (tmp_path / "results.json").write_text(json.dumps([each._asdict() for each in earlier]))
    assert streams.main(["--short", "--only", "numbers", "--out", str(tmp_path)]) == 0
    summary = (tmp_path / "summary.md").read_text()
    assert capsys.readouterr().out.strip() == summary.strip()
    *played, kept = json.loads((tmp_path / "results.json").read_text())
    assert streams.Played(**kept) == earlier[0]  # numbers are new, others as they were
    assert f"| {LIKES} | 9 | 0.500 | 0.250 | ours |" in summary
    assert played[0]["scores"]["ours"] < 77.0
    assert [each["stream"] for each in played if each["stream"] != streams.PRICES] == list(
        streams.NUMBERS
    )
    for each in played:
        assert set(streams.REGRESSORS) - {"tuned SNARIMAX"} <= each["scores"].keys()
        if each["stream"] == streams.PRICES:
            continue  # where it was downloaded before
        assert each["rows"] == streams.SHORT and min(each["seconds"].values()) > 0.0
        rows = regressor.STREAMS[each["stream"]][1]()[: streams.SHORT]
        linear = dict(regressor.contestants(False))["linear"][0]
        assert each["scores"]["tuned linear"] == pytest.approx(regressor.play(linear(), rows))
    assert "SNARIMAX" not in str(played[1]["scores"])  # chicks are in no order of time


def test_some_models_are_played_and_others_stay_as_they_were(tmp_path, monkeypatch):
    # Another process takes seconds to start; the test above has one.
    monkeypatch.setattr(streams, "ProcessPoolExecutor", lambda jobs, **_: ThreadPoolExecutor(jobs))
    earlier = filled(
        "numbers", "TrumpApproval", 80, {"ours": 77.0, "ARF": 5.0}, {"ours": 9.0, "ARF": 3.0}
    )
    (tmp_path / "results.json").write_text(json.dumps([earlier._asdict()]))
    options = ["--short", "--models", "ours", "--jobs", "1", "--out", str(tmp_path)]
    assert streams.main([*options, "--only", "Trump", "ChickWeights"]) == 0
    first, second = json.loads((tmp_path / "results.json").read_text())
    assert first["scores"].keys() == {"ours", "ARF"} and second["scores"].keys() == {"ours"}
    assert first["scores"]["ARF"] == 5.0 and first["scores"]["ours"] < 77.0
    # To resume is to play what is missing: one stream more.
    first["scores"]["ours"] = 1.5
    (tmp_path / "results.json").write_text(json.dumps([first, second]))
    assert streams.main([*options, "--only", "Trump", "ChickWeights", "WaterFlow", "--resume"]) == 0
    again = json.loads((tmp_path / "results.json").read_text())
    assert again[:2] == [first, second] and again[2]["stream"] == "WaterFlow"
    # Times alone leave scores as they are.
    assert streams.main([*options[1:], "--only", "Trump", "--times"]) == 0
    timed, *_ = json.loads((tmp_path / "results.json").read_text())
    assert (
        timed["scores"] == first["scores"] and timed["seconds"]["ours"] != first["seconds"]["ours"]
    )


@pytest.mark.parametrize("bad", [["--only", "nothing"], ["--models", "nobody"]])
def test_names_that_are_not_known_are_refused(bad, tmp_path, capsys):
    with pytest.raises(SystemExit):
        streams.main([*bad, "--out", str(tmp_path)])
    assert "--only: labels, known, numbers" in capsys.readouterr().err


@pytest.mark.parametrize("model", streams.CLASSIFIERS)
def test_one_stream_of_labels(model):
    played = streams.measure("labels", "Phishing", model, "short")
    if isinstance(played, str):
        pytest.skip(played)
    assert played.scores.keys() == played.kappas.keys() == played.seconds.keys() == {model}
    assert 0.4 < played.scores[model] < 1.0 and played.rows == streams.SHORT


def test_models_that_draw_have_three_seeds(monkeypatch):
    rows = list(datasets.Phishing())[:120]
    monkeypatch.setitem(streams.KINDS["labels"].streams, "few", lambda _: [rows])
    played = streams.measure("labels", "few", "SRP")
    models = [ensemble.SRPClassifier(n_models=10, seed=seed) for seed in range(3)]
    shares = [streams.play_labels(model, rows)[0] for model in models]
    assert played.scores["SRP"] == pytest.approx(np.mean(shares))
    assert played.spreads["SRP"] == pytest.approx(np.std(shares, ddof=1)) and np.ptp(shares) > 0.0
    assert not streams.measure("labels", "few", "kNN").spreads


def played(kind, scores, seconds):
    names = ("ours", "ARF", "AMF")
    pairs = (dict(zip(names, each, strict=True)) for each in (scores, seconds))
    return filled(kind, "a stream", 1000, *pairs)


def test_wins_ratios_kappas_and_spreads():
    more = {"kappas": {"ARF": [0.25, -0.5]}, "spreads": {"ARF": 0.01}}
    won, scores, times, kappa, temporal, spread, *_ = streams.tables(
        [
            played("labels", (0.9, 0.9001, 0.8), (1.0, 2.0, 0.5))._replace(**more),
            played("labels", (0.7, 0.6, 0.8), (2.0, 2.0, 1.0))._replace(stream="another"),
            played("numbers", (0.7, 0.6, 0.8), (2.0, 2.0, 1.0)),
        ]
    )
    assert won.splitlines()[2:] == ["| labels | 2 | 1 | 1 |", "| numbers | 1 | 0 | 0 |"]
    assert scores.splitlines()[2:] == [
        "| a stream | 1,000 | 0.900 | 0.900 | 0.800 | ours, ARF |",
        "| another | 1,000 | 0.700 | 0.600 | 0.800 | AMF |",
    ]
    assert times.splitlines()[2:] == ["| a stream | 2 | 0.5 |", "| another | 1 | 0.5 |"]
    assert kappa.splitlines()[::2] == ["| Cohen's kappa: labels | ARF |", "| a stream | 0.250 |"]
    assert temporal.splitlines()[2:] == ["| a stream | -0.500 |"]
    assert spread.splitlines()[2:] == ["| a stream | 0.01 |"]


def test_a_page_is_renewed_where_its_tables_are_known():
    page = f"a\n\n{streams.SOURCE}| x | y |\n| 1 | 2 |\n\nb\n\n{streams.SOURCE}| z |\n| 3 |\n"
    renewed = streams.refreshed(page, ["| x | new |\n| --- | ---: |\n| 4 | 5 |"])
    assert renewed == page.replace("| x | y |\n| 1 | 2 |", "| x | new |\n| --- | ---: |\n| 4 | 5 |")


def test_other_models_have_the_settings_of_the_page_on_which_model():
    # AMF once had 0.7045 on one page and 0.889 on another, for want of one of its settings.
    rows = [({"a": 1.0}, True), ({"a": 2.0}, False)]
    ours = dict(nonlinear.contestants(rows, seed=3))
    theirs = dict(streams.classifiers("", rows))
    assert [make().seed for make in ours[nonlinear.OURS]] == [3]
    assert ours.keys() == {nonlinear.OURS, nonlinear.LINEAR, *nonlinear.OTHERS}
    for who in nonlinear.OTHERS:
        assert [repr(make()) for make in ours[who]] == [repr(make()) for make in theirs[who]]


def test_the_setting_with_the_best_mean_over_seeds_is_chosen():
    several = [{"a": [(0.9, 5.0), (0.5, 1.0)], "b": [(0.4, 2.0)]}]
    several.append({"a": [(0.1, 7.0), (0.7, 3.0)], "b": [(0.6, 4.0)]})
    best = {"a": (pytest.approx(0.6), 2.0), "b": (pytest.approx(0.5), 3.0)}
    assert nonlinear.best_means(several) == best


def test_models_left_out_are_not_played(monkeypatch):
    monkeypatch.setitem(nonlinear.STREAMS, "few", (lambda seed: nonlinear.moons(seed)[:60], 1))
    without = ("ARF", "AMF", nonlinear.LINEAR)
    found = nonlinear.played(("few", 0), without=without, random_features=1)
    assert found.keys() == {nonlinear.OURS, "tuned logistic", nonlinear.BATCH}
    assert len(found["tuned logistic"]) == 6
    shares, times = np.array([pair for each in found.values() for pair in each]).T
    assert shares.min() >= 0.0 and shares.max() <= 1.0 and times.min() > 0.0
