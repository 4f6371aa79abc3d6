"""What figures show, in numbers and words: the lines, maps, frames, axes and texts of each panel."""

import json
from itertools import chain
from zlib import crc32

import numpy as np


def pictures():
    """How figures are made, by name."""
    sweeps = ("two", "rest", "regret-over-rounds", "prices", "weights", "sensitivity")
    games = ("losses", "regret", "weights")
    found = {f"figure of a sweep, {kind}": (of_sweep, kind) for kind in sweeps}
    found |= {f"figure of a game, {kind}": (of_game, kind) for kind in games}
    return found | {"figure of the demo": (of_demo,), "figures in a report": (of_report,)}


def summaries():
    from experiments.small import made, summary_of

    titles = {"POLAR": 0, "POLA": 3, "POLD": 0, "BOGD_IP": 2, "mine": 0, "Ader": 0, "POLA, cold": 0}
    results = [made(title, seed=1, experts=experts) for title, experts in titles.items()]
    results += [made("POLA", level=1.1), made("POLAR", level=1.2)]
    results += [made("POLA, untuned", level=3.0, c=2.0)]
    other = {"experts": 15, "speed": 0.5, "level": 70.0, "c": 40.0}
    results += [made("POLA, untuned", seed=1, **other), made("POLA, untuned", seed=2, **other)]
    return summary_of(results), summary_of([made("mine", stream="x", every=7)])


def sweep():
    from driftwolfe.experiments import figures
    from experiments.small import regrets

    first, second = summaries()
    found = {each.name: each for each in figures.all_figures(first, regrets(first))}
    for name, rest in (("two", False), ("rest", True)):
        found[name] = figures.panels(first, second, name="Figure 1", rest=rest)
    return found


def of_sweep(kind):
    from driftwolfe.experiments import figure

    yield from seen(figure.draw(sweep()[kind]))


def of_report():
    for name, figure in sweep().items():
        text = figure.page_json(7)
        yield f"{name}, report", *leaves(json.loads(text)), float(len(text))
        yield f"{name}, described", "_".join(figure.description.split())


def of_game(kind):
    import matplotlib as mpl
    from matplotlib import pyplot

    import driftwolfe as dw

    mpl.use("Agg")
    stream = dw.streams.synthetic.linear_signs(dw.L1Ball(3), rounds=60, changes=2, seed=0)
    learners = dw.POLA(stream.domain), dw.OGD(stream.domain, 60, 1.0)
    how = {"record_weights": True, "progress": False}
    first, second = (dw.play(learner, stream, **how) for learner in learners)
    given = first if kind == "weights" else {"POLA": [first, second], "POLD, untuned": first}
    yield from seen(sheet := getattr(dw.plot, kind)(given, drifts=stream.drifts).figure)
    pyplot.close(sheet)


def of_demo():
    from driftwolfe import demo

    yield from seen(demo.picture(demo.play_both(demo.hunt(rounds=420))))


def leaves(content):
    """A sum of the words of plain content, and one number of all numbers."""
    found, waiting = [], [content]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict | list):
            waiting += part.values() if isinstance(part, dict) else part
        else:
            found.append(part)
    is_word = [isinstance(each, str) for each in found]
    told = "".join(part for part, word in zip(found, is_word, strict=True) if word)
    rest = [0.5 if x is None else x for x, word in zip(found, is_word, strict=True) if not word]
    return f"x{crc32(told.encode()):08x}", numbers(rest)


def seen(sheet):
    """Lines of a figure: its size, words and legends, then each panel."""
    size = [*sheet.get_size_inches(), sheet.get_layout_engine() is not None]
    yield "size", *map(float, size)
    yield "words", *words(*sheet.texts)
    for legend in sheet.legends:
        yield "legend", *words(*legend.get_texts()), numbers(map(pen, legend.get_lines()))
    for place, axis in enumerate(sheet.axes):
        name = f"panel {place}"
        yield name, *words(axis.title, axis._left_title, axis.xaxis.label, axis.yaxis.label)
        for each, limits in ((axis.xaxis, axis.get_xlim()), (axis.yaxis, axis.get_ylim())):
            shown = [at for at in each.get_majorticklocs() if limits[0] < at < limits[1]]
            marks = each.get_major_formatter().format_ticks(shown)
            grid = any(line.get_visible() for line in each.get_gridlines())
            ticks = "_".join([each.get_scale(), *marks, *(["grid"] if grid else [])])
            yield f"{name}, {each.axis_name} axis", *map(float, limits), ticks.replace(" ", "_")
        if axis.get_legend() is not None:
            yield f"{name}, legend", *words(*axis.get_legend().get_texts())
        lines = [numbers([numbers(each.get_xydata()), pen(each)]) for each in axis.lines]
        yield f"{name}, lines", *lines
        yield f"{name}, shapes", *map(shape, (*axis.collections, *axis.patches))


def words(*texts):
    """Texts without spaces, and how they look."""
    found = [each for each in texts if each.get_text().strip()]
    yield from ("_".join(each.get_text().split()) for each in found)
    yield numbers([(t.get_fontsize(), *rgb(t.get_color()), *t.get_position()) for t in found])


def pen(line):
    """How a line is drawn, as one number."""
    marks, dash = line.get_markevery(), f"{line.get_linestyle()}"
    every = [marks.start, marks.step] if isinstance(marks, slice) else []
    letters = [sum(map(ord, text)) for text in (f"{line.get_marker()}", dash)]
    sizes = [line.get_linewidth(), line.get_markersize(), line.get_markeredgewidth()]
    colours = rgb(line.get_color()), rgb(line.get_markerfacecolor())
    return numbers([every, letters, sizes, *colours, line.get_alpha() or 1.0, line.get_zorder()])


def shape(part):
    """A band, a map, error bars or a frame, as one number."""
    parts = [part.get_facecolor(), part.get_edgecolor(), part.get_zorder()]
    if hasattr(part, "get_bbox"):
        parts += [part.get_bbox().bounds]
    else:
        parts += [path.vertices for path in part.get_paths()]
    if getattr(part, "get_array", lambda: None)() is not None:
        parts += [np.ma.filled(part.get_array(), -1.0), part.get_clim()]
    return numbers(parts)


def rgb(colour):
    from matplotlib.colors import to_rgba

    return to_rgba(colour)


def numbers(values):
    """One number that nearly every change of one of them changes."""
    flat = np.fromiter(chain(*(np.ravel(each) for each in values)), float)
    return float(np.cos(1.0 + np.arange(flat.size)) @ flat)
