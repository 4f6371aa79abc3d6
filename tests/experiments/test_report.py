"""The report: one file that needs nothing else, says all, and lets no text become code."""

from __future__ import annotations

import json
from dataclasses import asdict
from html.parser import HTMLParser

import msgspec
import pytest

from driftwolfe.experiments.figure import Axis, Figure, Panel, brief, line_styles
from driftwolfe.experiments.paper import experiment
from driftwolfe.experiments.report import in_brief, overview, write_report
from driftwolfe.experiments.sweep import Store
from driftwolfe.experiments.trial import DataSet
from driftwolfe.terminal import spread_text
from experiments.small import TWIN, made, played, regrets, summary_of

ATTACKS = ("<script>alert(1)</script>", "</script><script>alert(2)</script>", "<!--<script>")
ATTACKS += ("a&b\u2028c",)


class Page(HTMLParser):
    """Elements of a page, and the text of each script."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.words: list[str] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self._inside = tag
        if tag == "script":
            self.scripts.append((dict(attributes), ""))

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside == "script":
            attributes, text = self.scripts[-1]
            self.scripts[-1] = attributes, text + data
        elif self._inside != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    @property
    def charts(self) -> dict[str, dict]:
        return {
            str(attributes["id"]): json.loads(text)
            for attributes, text in self.scripts
            if attributes.get("type") == "application/json"
        }


def lines(page: Page, name: str) -> list[dict]:
    return [line for panel in page.charts[f"source-{name}-1"]["panels"] for line in panel["lines"]]


def report_on(summaries, path, title="A title", regrets=None, command=None) -> Page:
    write_report(path, title, summaries, regrets or [()] * len(summaries), command)
    return Page(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Page:
    path = tmp_path_factory.mktemp("report") / "report.html"
    options = {"regrets": [regrets(played())], "command": "make it --again"}
    return report_on([played()], path, **options)


def test_it_has_all_charts_and_says_what_each_shows(page):
    kinds = ("panels", "regret-over-rounds", "prices", "weights", "sensitivity")
    assert list(page.charts) == [f"source-{kind}-1" for kind in kinds]
    shown = [attributes for _, attributes in page.elements if attributes.get("class") == "chart"]
    assert [each["data-source"] for each in shown] == list(page.charts)
    assert all(each["role"] == "img" and len(each["aria-label"]) > 60 for each in shown)


def test_it_tells_the_numbers(page):
    for series in played().chosen.values():
        assert spread_text(series.mean_loss) in page.text
    assert "10.0 ± 1.0" not in page.text
    assert "11.0 ± 1.0" in page.text
    for words in ("A title", "make it --again", "Parameters of all trials"):
        assert words in page.text


def test_each_machine_is_told_once(tmp_path):
    results = [made("POLD", seed=seed) for seed in range(3)]
    other = made("POLA")
    other.environment["cpu"] = "a slide rule"
    page = report_on([summary_of([*results, other])], tmp_path / "r.html")
    for machine in ("an abacus", "a slide rule"):
        assert page.text.count(machine) == 2  # and beside the times, as they are not comparable


def test_a_twin_is_told_in_a_box_and_at_every_chart(tmp_path, page):
    twin = report_on([summary_of([made("POLD", experts=4)])], tmp_path / "r.html")
    sentence = "Synthetic twin of MovieLens 100K: made-up data, not the real ones."
    assert twin.text.count(sentence) == 1 + len(twin.charts)
    assert any(attributes.get("class") == "warning" for _, attributes in twin.elements)
    assert "made-up" not in page.text


def test_real_data_are_named_with_their_licence(tmp_path):
    summaries = []
    for name in ("movielens-100k", "shuttle"):
        result = made("POLD", stream=name)
        trial = msgspec.structs.replace(result.trial, data=DataSet(name=name))
        summaries.append(summary_of([msgspec.structs.replace(result, trial=trial)]))
    page = report_on(summaries, tmp_path / "r.html")
    words = ("GroupLens", "ml-100k/u.data", "research use", "UCI", "CC BY 4.0", "shuttle.scale")
    assert all(word in page.text for word in words)


def test_nothing_is_fetched(page):
    for tag, attributes in page.elements:
        assert not attributes.get("src"), tag
        link = attributes.get("href") or "#"
        assert link.startswith(("#", "data:,")), link
    (policy,) = [a["content"] for _, a in page.elements if a.get("http-equiv")]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-inline" not in policy.split("script-src")[1].split(";")[0]


def test_texts_stay_texts(tmp_path):
    attack = summary_of([made(title, experts=2, stream=title) for title in ATTACKS])
    options = {"title": ATTACKS[0], "command": ATTACKS[1]}
    path = tmp_path / "r.html"
    page = report_on([attack], path, regrets=[regrets(attack)], **options)
    code = [text for attributes, text in page.scripts if not attributes]
    assert len(code) == 2
    assert len(page.scripts) == 2 + len(page.charts)
    assert not any("alert(" in text for text in code[1:])
    outside = path.read_text(encoding="utf-8").replace(code[0], "")
    assert "<script>alert" not in outside
    assert "<!--" not in outside
    assert {line["label"] for line in lines(page, "panels")} == set(ATTACKS)


@pytest.mark.parametrize("text", ATTACKS)
def test_data_can_neither_end_nor_leave_their_script(text):
    panel = Panel(text, Axis(text), Axis(text))
    written = Figure("", [], [panel]).page_json(1)
    assert not set("<>&\u2028") & set(written)
    assert json.loads(written)["panels"][0]["x"]["title"] == text


def test_numbers_are_brief():
    assert brief([1 / 3, 2.0, float("nan")]) == [0.333333, 2, None]


def test_methods_look_as_in_the_figures_in_all_panels(page):
    styles = line_styles(played().titles)
    for line in lines(page, "panels"):
        assert line["style"] == {**asdict(styles[line["method"]]), "dash": line["style"]["dash"]}
        assert tuple(line["style"]["dash"]) == styles[line["method"]].dash
    for panel in page.charts["source-panels-1"]["panels"]:
        assert [line["method"] for line in panel["lines"]] == played().titles
    series = played().chosen["POLA"]
    panel = page.charts["source-panels-1"]["panels"][1]
    (found,) = [line["band"] for line in panel["lines"] if line["label"] == "POLA"]
    assert found["x"][-1] == 120
    assert found["mean"][-1] == pytest.approx(series.total("loss").mean, rel=1e-5)


def test_much_data_are_thinned(tmp_path):
    options = {"rounds": 8_000, "every": 2, "experts": 13}
    results = [made(f"method {i}", **options) for i in range(13)]
    page = report_on([summary_of(results)], tmp_path / "r.html")
    assert sum(len(text) for a, text in page.scripts if a) < 1_500_000
    x = lines(page, "panels")[-1]["band"]["x"]
    assert (x[0], x[-1]) == (2, 8_000)
    assert len(x) >= 60


def test_several_streams_have_sections_of_their_own(tmp_path):
    page = report_on([played(), summary_of([made("POLD", stream=TWIN)])], tmp_path / "r.html")
    places = [attributes["id"] for tag, attributes in page.elements if tag == "section"]
    assert places == ["data-1", "data-2", "environment"]
    identities = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(identities) == len(set(identities))


def test_a_report_always_has_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        report_on([played()], tmp_path / name, regrets=[regrets(played())])
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_what_a_terminal_shows(tmp_path):
    store = Store(tmp_path / "a")
    results = [made(title, stream=f"{TWIN[:-17]}, a {TWIN}") for title in ("POLAR", "OGD")]
    for each in results:
        each.projection[:] = each.gauge[:] = each.lmo
    store.add(experiment("matrix-completion").title, [each.trial for each in results])
    for each in results:
        store.write(each)
    told = in_brief(store)
    assert max(map(len, told)) <= 100 and any("  POLAR " in line for line in told)
    assert any("Synthetic twin" in line for line in told)
    assert overview([tmp_path / "a"]) == told


def test_the_report_of_a_twin_has_no_verdict(tmp_path):
    title, path = experiment("matrix-completion").title, tmp_path / "report.html"
    results = [made(name, seed=seed) for name in ("POLD", "Ader") for seed in range(3)]
    named = [
        msgspec.structs.replace(r, trial=msgspec.structs.replace(r.trial, method=r.trial.label))
        for r in results
    ]
    text = report_on([summary_of(named)], path, title=title).text
    assert "need the real data" in text and "not held" not in text
    real = [msgspec.structs.replace(each, stream="MovieLens 100K") for each in named]
    text = report_on([summary_of(real)], path, title=title).text
    assert "need the real data" not in text and "Verdict" in text


def test_of_more_than_six_methods_six_are_shown_and_all_are_listed(tmp_path):
    summary = summary_of([made(f"method {i}") for i in range(8)])
    found = lines(report_on([summary], tmp_path / "r.html"), "panels")
    assert len(found) == 3 * 8
    assert sum(line["hidden"] for line in found) == 3 * 2
