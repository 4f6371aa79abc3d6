"""Figures: what they show, how methods are told apart, and files that are always the same."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

from driftwolfe import plot
from driftwolfe.experiments import figure as model
from driftwolfe.experiments import figures
from driftwolfe.experiments.figure import WARNING, draw, evenly, expert_size, settled_range
from driftwolfe.experiments.figures import band, rows
from experiments.small import made, played, regrets, summary_of
from reliability.children import python

NAMES = ("sensitivity", "weights", "prices", "regret-over-rounds")


def all_figures(summary, rows) -> dict[str, Figure]:
    _, *others = figures.all_figures(summary, rows)
    return {each.name: draw(each) for each in (figures.panels(summary), *others)}


def panels(*summaries, **options) -> Figure:
    return draw(figures.panels(*summaries, **options))


def texts(figure: Figure) -> list[str]:
    figure.draw_without_rendering()
    found = figure.findobj(Text)
    return [each.get_text() for each in found if each.get_visible() and each.get_text().strip()]


@pytest.fixture(scope="module")
def drawn() -> dict[str, Figure]:
    return all_figures(played(), regrets(played()))


@pytest.fixture(scope="module")
def unequal():
    """Made-up data, and methods with a single seed, one of them slow."""
    results = [made("POLD", seed=seed, experts=9) for seed in range(3)]
    results += [made("Ader"), made("PAMO", level=0.5, speed=1.0)]
    return summary_of(results)


def test_panels_draw_the_mean_over_seeds(drawn):
    average, total, time = drawn["panels"].axes
    series = played().chosen["OGD"]
    place = played().titles.index("OGD")
    by_panel = ((average, "loss", series.rounds), (total, "loss", 1), (time, "seconds", 1))
    for axis, name, by in by_panel:
        line = [each for each in axis.lines if len(each.get_xdata()) == len(series.rounds)][place]
        np.testing.assert_allclose(line.get_ydata(), series.curve(name).mean(axis=0) / by)


def test_what_axes_and_panels_say(drawn):
    said = [axis.get_ylabel() for axis in drawn["panels"].axes]
    assert said == ["loss per round", "loss", "processor time (s)"]
    assert drawn["sensitivity"].axes[0].get_xscale() == "log"
    axis = drawn["sensitivity"].axes[0]
    (rings,) = [line for line in axis.lines if line.get_markersize() == 8.5]
    assert list(rings.get_xdata()) == [1.0]


def test_nothing_is_drawn_of_what_is_not_known():
    bare = summary_of([made("POLD")])
    (panels,) = figures.all_figures(bare, [])
    assert panels.name == "panels" and panels.heading[-1] == "one seed"


def test_twins_say_so_and_other_data_do_not(unequal, drawn):
    for figure in all_figures(unequal, regrets(unequal)).values():
        notes = [each for each in figure.findobj(Text) if each.get_color() == WARNING]
        assert "Synthetic twin of MovieLens 100K" in " ".join(n.get_text() for n in notes)
    for figure in drawn.values():
        assert not any("twin" in text for text in texts(figure))


def test_texts_lie_inside_the_figure_and_are_large_enough(drawn):
    for figure in drawn.values():
        figure.draw_without_rendering()
        page = figure.bbox.padded(2)
        for text in written(figure):
            box = text.get_window_extent()
            assert page.x0 <= box.x0 and box.x1 <= page.x1, text.get_text()
            assert page.y0 <= box.y0 and box.y1 <= page.y1, text.get_text()
            assert text.get_fontsize() >= 7.0


def written(figure: Figure) -> list[Text]:
    """All texts that are drawn: of ticks those within their axis."""
    ticks = []
    for axis in figure.axes:
        for each in (axis.xaxis, axis.yaxis):
            ticks += [*each.get_major_ticks(), *each.get_minor_ticks()]
    hidden = set()
    for tick in ticks:
        across = "X" in type(tick).__name__
        low, high = sorted(tick.axes.get_xlim() if across else tick.axes.get_ylim())
        if not low <= tick.get_loc() <= high:
            hidden |= {tick.label1, tick.label2}
    found = figure.findobj(Text)
    return [t for t in found if t.get_visible() and t.get_text().strip() and t not in hidden]


def test_times_that_differ_much_have_a_logarithmic_axis(unequal):
    assert panels(unequal).axes[2].get_yscale() == "log"
    alike = summary_of([made("POLD", speed=0.01), made("POLA", speed=0.1)])
    assert panels(alike).axes[2].get_yscale() == "linear"


def test_untuned_methods_have_thin_lines_and_a_row_of_their_own():
    titles = ["POLD", "POLA", "POLD, untuned"]
    other = [made(title, stream="other") for title in titles]
    both = summary_of([made(t) for t in titles]), summary_of(other)
    figure = panels(*both, name="Figure 9")
    assert [len(found) for found in curves(figure)] == [2] * 2 * 3
    assert any(text.startswith("Figure 9 · ") for text in texts(figure))
    rest = panels(*both, name="Figure 9", rest=True)
    assert [len(found) for found in curves(rest)] == [1] * 2 * 3
    (thin,), (thick, _) = curves(rest)[0], curves(figure)[0]
    assert thin.get_linewidth() < 0.7 * thick.get_linewidth()
    assert thin.get_color() == thick.get_color()
    told = texts(rest)
    assert any(text.startswith("Figure 9, continued · ") for text in told)
    assert any("other: untuned, c = D/G" in text for text in told)


def curves(figure: Figure) -> list[list]:
    """The lines of each panel but those at drifts."""
    return [[line for line in axis.lines if len(line.get_xdata()) > 2] for axis in figure.axes]


def test_a_panel_has_at_most_six_methods_the_papers_without_variants_first():
    first = ["POLAR", "POLA", "POLD", "BOGD_IP", "Multi-OCG", "Ader"]
    variants = ["Multi-OCG, K = 1", "POLD, tuned rate", "one-projection Ader"]
    untuned = [f"{title}, untuned" for title in [*first, *variants[:1]]]
    summary = summary_of([made(title) for title in [*untuned, *variants, *first]])
    shown, *others = rows(summary)
    assert set(shown) == set(first)
    assert set(others[0]) == set(untuned[:6])
    assert set(others[1]) == {*variants, untuned[6]}
    for rest in (False, True):
        drawn = curves(panels(summary, rest=rest))
        assert {len(lines) for lines in drawn} <= {4, 6} and len(drawn) == (6 if rest else 3)
    few = summary_of([made(title) for title in [*first[:2], untuned[0]]])
    assert rows(few) == [[t for t in few.titles if t in first], [untuned[0]]]
    alone = summary_of([made(title) for title in untuned[:3]])
    assert [set(row) for row in rows(alone)] == [set(untuned[:3])]
    assert figures.panels(alone, rest=True) is None


def test_early_noise_does_not_squash_the_averages():
    noisy = made("POLD", rounds=1000)
    noisy.loss[:] = [value + 5000.0 for value in noisy.loss]
    bands = [band(summary_of([noisy]).chosen["POLD"], "loss", average=True)]
    low, high = settled_range(bands)
    assert low < bands[0].mean[-1] < high < 110.0 < 500.0 < bands[0].mean[0]


def test_experts_are_in_order_and_curves_are_thinned_evenly():
    (panel,) = figures.weights(summary_of([made("POLA", experts=5)])).panels
    assert panel.y.names == ["1 rounds", "2 rounds", "4 rounds", "8 rounds", "16 rounds"]
    assert np.isnan(panel.weights.values[4, 0])
    assert np.isnan(panel.weights.values).sum() == 1
    names = ["η = 0.0145", "γ = 1,024", "η = 2e-05", "alone"]
    assert [expert_size(name) for name in names] == [0.0145, 1024.0, 2e-05, 0.0]
    assert evenly(10, 4).tolist() == [0, 3, 6, 9]
    assert evenly(3, 4).tolist() == [0, 1, 2]


def test_titles_are_shown_as_they_stand():
    odd = ["$x_1$ & co", "_hidden", "100 % {braces}"]
    shown = texts(panels(summary_of([made(title) for title in odd])))
    assert r"\$x_1\$ & co" in shown
    assert "\u200a_hidden" in shown
    assert "100 % {braces}" in shown


def test_methods_keep_their_looks_whatever_else_is_drawn():
    assert model.line_styles(["OGD", "SAOL"]) == model.line_styles(["SAOL", "OGD"])
    assert model.line_styles(["BOGDIP"])["BOGDIP"].colour == model.METHODS["BOGD_IP"]
    for name, colour in model.METHODS.items():
        variants = [name, f"{name}, untuned", f"{name} (first 9 rounds)"]
        for others in ([], ["mine", "yours"], model.METHODS):
            found = model.line_styles([*others, *variants])
            assert {found[title].colour for title in variants} == {colour}
        assert plot.colours([name, "mine"])[name] == colour


@pytest.mark.parametrize("extra_titles", [0, 5, 25])
def test_no_two_methods_look_the_same(extra_titles):
    titles = [*model.METHODS, *(f"method {i}" for i in range(extra_titles))]
    found = model.line_styles(titles)
    assert len(set(found.values())) == len(titles)


#: POLAR, and the methods of the paper.
FIRST = list(model.METHODS)[:7]


def test_the_papers_methods_differ_in_colour_in_dash_and_in_marker():
    styles = model.line_styles(FIRST).values()
    for part in ("colour", "dash", "marker"):
        assert len({getattr(style, part) for style in styles}) == 7


#: Machado, Oliveira and Fernandes (2009), full severity, on linear RGB: row by row.
SEVERE = {
    "none": "1 0 0  0 1 0  0 0 1",
    "protanopia": """0.152286 1.052583 -0.204868  0.114503 0.786281 0.099216
        -0.003882 -0.048116 1.051998""",
    "deuteranopia": """0.367322 0.860646 -0.227968  0.280085 0.672501 0.047413
        -0.011820 0.042940 0.968881""",
    "tritanopia": """1.255528 -0.076749 -0.178779  -0.078411 0.930809 0.147602
        0.004733 0.691367 0.303900""",
}
DEFICIENCIES = {
    name: np.reshape(text.split(), (3, 3)).astype(float) for name, text in SEVERE.items()
}


def lab(colour: str, deficiency: np.ndarray) -> np.ndarray:
    """CIELAB coordinates of a colour as it is seen."""
    encoded = np.array(to_rgb(colour))
    linear = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    seen = np.clip(deficiency @ linear, 0.0, 1.0)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(xyz @ seen / np.array([0.9505, 1.0, 1.089]) + 1e-9)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("eyes", DEFICIENCIES)
def test_colours_are_told_apart_by_all_eyes(eyes):
    seen = {colour: lab(colour, DEFICIENCIES[eyes]) for colour in model.COLOURS}
    for first, second in combinations(model.COLOURS, 2):
        assert np.linalg.norm(seen[first] - seen[second]) > 8.0, (first, second)


@pytest.mark.parametrize("page", ["#ffffff", "#14171c"])
def test_colours_are_seen_on_a_light_and_on_a_dark_page(page):
    paper = lab(page, DEFICIENCIES["none"])[0]
    for colour in model.COLOURS:
        assert abs(lab(colour, DEFICIENCIES["none"])[0] - paper) > 25.0, colour


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """All figures in one format: three take seconds, and are written by the tests below."""
    folder = tmp_path_factory.mktemp("figures")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "FORMATS", ["svg"])
        _, *others = figures.all_figures(played(), regrets(played()))
        return folder, [path for each in others for path in figures.save(each, folder)]


def test_files_are_all_written_and_always_the_same(files, tmp_path, monkeypatch):
    folder, paths = files
    assert {path.name for path in paths} == {f"{name}.svg" for name in NAMES}
    assert set(folder.iterdir()) == set(paths)
    monkeypatch.setattr(figures, "FORMATS", ["svg"])
    (again,) = figures.save(figures.weights(played()), tmp_path)
    assert again.read_bytes() == (files[0] / "weights.svg").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("make", [figures.panels, figures.weights])
def test_files_of_all_formats_are_always_the_same(tmp_path, make):
    once = figures.save(make(played()), tmp_path / "one")
    again = figures.save(make(played()), tmp_path / "two")
    for first, second in zip(once, again, strict=True):
        assert first.read_bytes() == second.read_bytes(), first.name


def test_fonts_are_embedded_and_pictures_are_fine_enough(tmp_path):
    png, pdf, _ = figures.save(figures.panels(played()), tmp_path)
    width = int.from_bytes(png.read_bytes()[16:20], "big")
    assert width == 1400
    assert b"/FontFile2" in pdf.read_bytes()
    assert b"/Type3" not in pdf.read_bytes()
    assert b"CreationDate" not in pdf.read_bytes()


def test_a_figure_that_cannot_be_written_leaves_the_old_one(tmp_path):
    (tmp_path / "panels.png").write_text("old")
    figure = panels(played())
    figure.savefig = lambda part, **_: (part.write_text("half"), 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.save(figure, tmp_path / "panels.png")
    assert [path.name for path in tmp_path.iterdir()] == ["panels.png"]
    assert (tmp_path / "panels.png").read_text() == "old"


def test_without_matplotlib_one_sentence_says_what_to_do():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from driftwolfe.experiments.figure import draw\n"
        "draw(None)"
    )
    last = python("-c", code, status=1).stderr.strip().splitlines()[-1]
    assert last == "ImportError: this needs matplotlib: pip install 'driftwolfe[experiments]'"
