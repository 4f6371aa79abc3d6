"""The report in a real browser: it draws, answers to the mouse, and fits dark and narrow screens."""

from __future__ import annotations

import os
import shutil

import pytest

from driftwolfe.experiments.figure import line_styles
from driftwolfe.experiments.report import write_report
from experiments.small import made, played, regrets, summary_of

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="needs Chromium; on Debian or Ubuntu: apt install chromium"
)

ATTACK = "<script>window.broken=1</script><img src=x onerror='window.broken=1'></script>"
#: Charts of the two sections.
PLAYED, MADE = 5, 2
#: What a chart's axes and traces are now.
STATE = """
    (id) => {
        const chart = document.querySelector(`#${id} .chart`);
        return {
            range: [...chart._fullLayout.xaxis.range],
            seen: chart._fullData.map((trace) => [trace.legendgroup, trace.visible]),
            lines: chart.querySelectorAll(".scatterlayer .trace").length,
        };
    }
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """A page with real results, and with titles that try to become code."""
    path = tmp_path_factory.mktemp("browser") / "report.html"
    spoilt = summary_of([made(ATTACK, seed=seed, experts=5) for seed in (0, 1)])
    known = [regrets(played()), regrets(spoilt)]
    write_report(path, ATTACK, [played(), spoilt], known, ATTACK)
    return path


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    # Chromium will not keep its sandbox as root, as in a container.
    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=BROWSER, args=options)
        yield running
        running.close()


@pytest.fixture(scope="module")
def problems():
    """What went wrong in a page."""
    return []


@pytest.fixture(scope="module")
def visit(browser, report, problems):
    """Opens the report in a page of its own."""
    contexts = []

    def visit(width=1400, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(f"error: {error}"))
        page.on("console", lambda message: problems.append(f"{message.type}: {message.text}"))
        page.on("request", lambda request: problems.append(f"request: {request.url}"))
        page.goto(report.as_uri())
        page.wait_for_function(
            "count => document.querySelectorAll('.chart .main-svg .xtick').length > count"
            " && [...document.querySelectorAll('.chart')].every(c => c._fullLayout)",
            arg=PLAYED + MADE,
        )
        assert problems.pop(0) == f"request: {report.as_uri()}"
        return page

    yield visit
    for context in contexts:
        context.close()


@pytest.fixture
def opened(visit, problems):
    """Opens the report; whatever goes wrong in the page fails the test."""
    yield visit
    assert problems == []


@pytest.fixture(scope="module")
def first_page(visit):
    return visit()


@pytest.fixture
def page(first_page, problems):
    """The report, in a page that no test changes; whatever goes wrong in it fails the test."""
    yield first_page
    assert problems == []


def rectangle(page, selector):
    """The middle and the size of an element that is in view."""
    found = page.locator(selector).first
    found.scroll_into_view_if_needed()
    box = found.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, box["width"], box["height"]


def overflow(page) -> int:
    return page.evaluate("document.documentElement.scrollWidth - window.innerWidth")


def test_every_chart_is_drawn(page):
    sizes = page.eval_on_selector_all(
        ".chart",
        """charts => charts.map((chart) => {
            const drawn = [...chart.querySelectorAll(".scatterlayer .trace, .heatmaplayer image")];
            const box = chart.querySelector(".main-svg").getBoundingClientRect();
            const seen = drawn.filter((each) => {
                const its = each.getBoundingClientRect();
                return its.width > 0 && its.height + its.width > 10;
            });
            return [box.width, box.height, seen.length];
        })""",
    )
    assert len(sizes) == PLAYED + MADE
    for width, height, seen in sizes:
        assert width > 1000 and height > 120 and seen >= 1, sizes
    # Four methods in three panels, each at least a line.
    assert sizes[0][2] >= 12


def test_lines_are_those_of_the_figures(page):
    traces = page.evaluate("document.querySelector('#panels-1 .chart').data")
    styles = line_styles(played().titles)
    for title in played().titles:
        group = [trace for trace in traces if trace["legendgroup"] == title]
        assert sum(trace["showlegend"] for trace in group) == 1
        assert {trace["xaxis"] for trace in group} == {"x", "x2", "x3"}
        dash = ",".join(f"{2 * part:g}px" for part in styles[title].dash) or "solid"
        for line in (trace["line"] for trace in group if "name" in trace):
            assert (line["color"], line["dash"]) == (styles[title].colour, dash)


def test_no_button_sends_anything_away(page):
    buttons = page.eval_on_selector_all(
        "#panels-1 .modebar-btn", "all => all.map((each) => each.dataset.title)"
    )
    assert set(buttons) == {
        "Download plot as a PNG",
        "Zoom",
        "Pan",
        "Zoom in",
        "Zoom out",
        "Reset axes",
    }


def test_titles_do_not_become_code(page):
    assert page.evaluate("window.broken") is None
    assert page.title() == ATTACK
    shown = page.locator("#panels-2 .legendtext").first.text_content()
    assert shown == ATTACK
    assert page.locator("body img").count() == 0


def test_hovering_tells_the_numbers(page):
    x, y, *_ = rectangle(page, "#panels-1 .nsewdrag")
    page.mouse.move(x - 20, y)
    page.mouse.move(x, y)
    page.wait_for_selector("#panels-1 .hoverlayer .legendtext")
    told = page.locator("#panels-1 .hoverlayer").text_content()
    assert "round" in told
    assert all(title in told for title in played().titles)
    assert "±" in told


@pytest.mark.slow
def test_hovering_over_a_weight_tells_it(page):
    x, y, *_ = rectangle(page, "#weights-1 .nsewdrag")
    page.mouse.move(x - 20, y)
    page.mouse.move(x, y)
    page.wait_for_selector("#weights-1 .hoverlayer .hovertext")
    assert "weight" in page.locator("#weights-1 .hoverlayer").text_content()


def test_a_click_in_the_legend_hides_a_method_in_all_panels(opened):
    page = opened()
    before = page.evaluate(STATE, "panels-1")
    assert all(seen is True for _, seen in before["seen"])
    entry = page.locator("#panels-1 .legend .traces").filter(has_text="POLA")
    entry.locator(".legendtoggle").click()
    page.wait_for_function(
        "count => document.querySelectorAll('#panels-1 .scatterlayer .trace').length < count",
        arg=before["lines"],
    )
    after = page.evaluate(STATE, "panels-1")
    hidden = {group for group, seen in after["seen"] if seen == "legendonly"}
    shown = {group for group, seen in after["seen"] if seen is True}
    assert hidden == {"POLA"}
    assert shown == set(played().titles) - {"POLA"}
    assert {group for group, _ in page.evaluate(STATE, "prices-1")["seen"]} >= {"POLA"}


@pytest.mark.slow
def test_dragging_zooms_and_a_double_click_goes_back(opened):
    page = opened()
    x, y, width, height = rectangle(page, "#panels-1 .nsewdrag")
    before = page.evaluate(STATE, "panels-1")["range"]
    page.mouse.move(x - width / 4, y - height / 4)
    page.mouse.down()
    page.mouse.move(x, y, steps=4)
    page.mouse.move(x + width / 4, y + height / 4, steps=4)
    page.mouse.up()
    page.wait_for_function(
        "before => document.querySelector('#panels-1 .chart')._fullLayout.xaxis.range[0] > before",
        arg=before[0],
    )
    low, high = page.evaluate(STATE, "panels-1")["range"]
    assert before[0] + 20 < low < high < before[1] - 20
    page.wait_for_timeout(500)
    page.mouse.dblclick(x, y)
    page.wait_for_function(
        "low => document.querySelector('#panels-1 .chart')._fullLayout.xaxis.range[0] < low",
        arg=low,
    )
    assert page.evaluate(STATE, "panels-1")["range"] == pytest.approx(before)


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (400, "dark"),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in ((400, "light"), (1200, "dark"))),
        pytest.param(1200, "light", marks=pytest.mark.slow),
    ],
)
def test_it_fits_the_screen(opened, width, scheme):
    page = opened(width, scheme)
    page.eval_on_selector_all("details", "all => all.forEach((each) => { each.open = true; })")
    assert overflow(page) <= 0
    widest = page.eval_on_selector_all(
        ".chart .main-svg", "all => Math.max(...all.map((each) => each.clientWidth))"
    )
    assert 0.8 * width < widest <= width


def test_at_1400_pixels_no_column_is_cut_off_and_toolbars_cover_no_title(page):
    page.mouse.move(0, 0)
    hidden = page.eval_on_selector_all(
        "table.scores",
        "all => all.map((each) => each.scrollWidth - each.parentElement.clientWidth)",
    )
    assert len(hidden) == 4 and max(hidden) <= 0
    covered = page.eval_on_selector_all(
        ".chart",
        """charts => charts.map((chart) => {
            const bar = chart.querySelector(".modebar").getBoundingClientRect();
            const texts = [...chart.querySelectorAll(".annotation, .legend, .xtick, .xtitle")];
            return texts.filter((each) => {
                const box = each.getBoundingClientRect();
                const apart = box.bottom <= bar.top || box.top >= bar.bottom;
                return box.width > 0 && !apart && box.right > bar.left && box.left < bar.right;
            }).length;
        })""",
    )
    assert covered == [0] * (PLAYED + MADE)


@pytest.mark.slow
def test_panels_stand_below_each_other_on_a_narrow_screen(opened):
    page = opened(400)
    tops = page.eval_on_selector_all(
        "#panels-1 .nsewdrag", "all => all.map((each) => each.getBoundingClientRect().top)"
    )
    assert len(tops) == 3
    assert tops[0] + 100 < tops[1] < tops[2] - 100
    page.set_viewport_size({"width": 1200, "height": 900})
    page.wait_for_function(
        """() => {
            const all = [...document.querySelectorAll("#panels-1 .nsewdrag")];
            return new Set(all.map((each) => Math.round(each.getBoundingClientRect().top))).size == 1;
        }"""
    )


@pytest.mark.slow
def test_texts_are_read_on_a_dark_page(opened):
    page = opened(scheme="dark")
    paper, text, tick = page.evaluate(
        """() => {
            const style = (found) => getComputedStyle(document.querySelector(found));
            const tick = style("#panels-1 .xtick text").fill;
            return [style("body").backgroundColor, style("body").color, tick];
        }"""
    )
    assert brightness(paper) < 40
    assert brightness(text) > 200
    assert brightness(tick) > 200


def brightness(colour: str) -> float:
    red, green, blue = (float(part) for part in colour.strip("rgb()").split(",")[:3])
    return (red + green + blue) / 3
