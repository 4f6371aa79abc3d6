"""Pictures of games: losses, regret, expert weights, oracle calls; needs matplotlib."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from driftwolfe.comparison import Comparison, regret_so_far
from driftwolfe.experiments import figure
from driftwolfe.experiments.figure import Axis, Band, Line, Panel
from driftwolfe.game import History
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array, Point

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["calls", "changes", "colours", "losses", "regret", "weights"]

#: A game; games by the names of their learners, of several streams each perhaps; or a comparison.
Games = History | Comparison | Mapping[str, History | Sequence[History]]
_ROUND, _ROW = Axis("round", "rounds"), Axis("row", "rounds")


def losses(histories: Games, *, drifts: Iterable[int] = (), ax: Axes | None = None) -> Axes:
    """Draw the average loss up to each round, with a band of one standard deviation over games.

    The vertical axis has room for all but the first twentieth of the rounds.

    Parameters
    ----------
    histories
        What `driftwolfe.compare` returns; or games by name, one or a list for each; or one game.
    drifts
        Rounds to mark; those of a comparison's stream are marked anyway.
    ax
        The axes to draw on; by default those of a new figure.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> ball = dw.L1Ball(2)
    >>> stream = dw.streams.synthetic.linear_signs(ball, rounds=50, changes=2, seed=0)
    >>> axes = dw.plot.losses({"POLA": dw.play(dw.POLA(ball), stream)}, drifts=stream.drifts)
    >>> axes.get_ylabel()
    'loss per round'
    """
    return _lines(
        histories, lambda game, _: game.average_loss, "loss per round", drifts, ax, settled=True
    )


def regret(
    histories: Games,
    comparators: Sequence[Point] | Array | None = None,
    *,
    drifts: Iterable[int] = (),
    ax: Axes | None = None,
) -> Axes:
    """Draw the dynamic regret up to each round, with a band of one standard deviation over games.

    Parameters
    ----------
    histories, drifts, ax
        As for `losses`; the games must have kept their losses.
    comparators
        One point per round. By default those that the streams of a comparison know; where none are
        known, the best fixed point in hindsight.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> ball = dw.L1Ball(2)
    >>> stream = dw.streams.synthetic.linear_signs(ball, rounds=50, changes=2, seed=0)
    >>> history = dw.play(dw.POLA(ball), stream)
    >>> dw.plot.regret(history, stream.comparators).get_ylabel()
    'dynamic regret so far'
    """
    known: Sequence[Any] = [comparators]
    if comparators is None and isinstance(histories, Comparison):
        known = histories.comparators
    fixed = any(points is None for points in known)
    unit = "regret against the best fixed point" if fixed else "dynamic regret so far"

    def measure(game: History, place: int) -> Array:
        return regret_so_far(game, known[place % len(known)])

    axis = _lines(histories, measure, unit, drifts, ax)
    axis.axhline(0.0, color=figure.FAINT, linewidth=0.7, zorder=0.5)
    return axis


def calls(histories: Games, *, drifts: Iterable[int] = (), ax: Axes | None = None) -> Axes:
    """Draw the calls of the linear minimisation oracle up to each round.

    Parameters
    ----------
    histories, drifts, ax
        As for `losses`.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> ball = dw.L1Ball(2)
    >>> history = dw.play(dw.OnlineFrankWolfe(ball), [dw.losses.LinearLoss([1.0, 0.0])] * 9)
    >>> dw.plot.calls({"OFW": history}).get_ylabel()
    'LMO calls so far'
    """

    def measure(game: History, _: int) -> Array:
        return np.cumsum(game.lmo, dtype=float)

    return _lines(histories, measure, "LMO calls so far", drifts, ax)


def weights(history: History, *, drifts: Iterable[int] = (), ax: Axes | None = None) -> Axes:
    """Draw the weight of each expert in each round as a map; beige where an expert is not active.

    Parameters
    ----------
    history
        A game that was played with ``record_weights=True``.
    drifts, ax
        As for `losses`.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> ball = dw.L1Ball(2)
    >>> stream = dw.streams.synthetic.linear_signs(ball, rounds=50, changes=2, seed=0)
    >>> history = dw.play(dw.POLD(ball, horizon=50), stream, record_weights=True)
    >>> axes = dw.plot.weights(history, drifts=stream.drifts)
    >>> axes.get_xlabel()
    'round'
    """
    if not isinstance(history, History):
        raise TypeError(f"history must be one game, as play returns it, got {history!r:.80}")
    if not history.weights:
        raise ValueError(
            "there are no expert weights in this game; play it with record_weights=True"
        )
    pairs = zip(history.experts, history.weights, strict=True)
    held = [dict(zip(*each, strict=True)) for each in pairs]
    panel = figure.weights_panel("", _ROUND, np.arange(1, len(held) + 1), held, list(drifts))
    with _axes(ax, 0.125 * figure.expert_rows(panel) + 1.0) as axis:
        figure.draw_colour_bar(figure.draw_panel(axis, panel), [axis])
    return axis


def changes(losses: Any, alarm: Any, weights: Sequence[Mapping[str, float]] = ()) -> list[Axes]:
    """Draw means of the latest losses, the weights of experts by memory, and what an alarm found.

    Lines mark alarms, dotted ones when losses changed, as far as the alarm can tell.

    Parameters
    ----------
    losses
        A number for each row.
    alarm
        A `DriftAlarm` that has seen these rows, or an estimator that has learned them.
    weights
        Weights by expert, as River's estimators have them (`expert_weights`), at times evenly spaced up to the
        last row. Those of one memory ("10 rows") are added up.

    Examples
    --------
    >>> import driftwolfe as dw, numpy as np
    >>> losses = np.random.default_rng(0).normal(np.repeat([0.0, 1.0], 300))
    >>> alarm = dw.DriftAlarm()
    >>> alarm.update_many(losses), [axis.get_ylabel() for axis in dw.plot.changes(losses, alarm)]
    (array([323]), ['loss, mean of 12 rows'])
    """
    values, found = checks.finite_array(losses, "losses"), getattr(alarm, "alarm_", alarm)
    width = max(1, values.size // 50)
    means = np.convolve(values, np.ones(width) / width, "valid")
    band = Band.of(np.arange(width, values.size + 1), means[None])
    line = Line("", "", figure.LineStyle(figure.COLOURS[0], (), ""), band)
    y = Axis(f"loss, mean of {width:,} rows")
    panels = [Panel("", _ROW, y, [line], drifts=found.starts_)]
    if weights:
        shares = []
        for each in weights:
            shares.append(defaultdict[str, float](float))
            for name, weight in each.items():
                memory = re.search(r"([\d,]+|all) rows", name)
                shares[-1][memory[0] if memory else name] += weight
        times = np.linspace(0, values.size, len(weights) + 1)[1:].astype(int)
        panels.append(figure.weights_panel("", _ROW, times, shares, found.starts_, missing=0.0))
    with figure.print_style():
        options: dict[str, Any] = {"sharex": True, "squeeze": False, "layout": "constrained"}
        options |= {"figsize": (figure.WIDTH, 2.0 * len(panels))}
        _, grid = figure.extra("matplotlib.pyplot").subplots(len(panels), **options)
        for axis, panel in zip(grid[:, 0], panels, strict=True):
            if image := figure.draw_panel(axis, panel):
                figure.draw_colour_bar(image, [axis])
            for t in found.changes_:
                axis.axvline(t, color=figure.COLOURS[1], linewidth=0.9)
            axis.label_outer()
    return list(grid[:, 0])


def colours(names: Iterable[str]) -> dict[str, str]:
    """Return a colour for each name; a method of the library has the same one in all figures.

    Parameters
    ----------
    names
        Of learners, estimators and whatever else is drawn, which takes the colours that are left.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> dw.plot.colours(["POLAR", "mine"])
    {'POLAR': '#0072B2', 'mine': '#D55E00'}
    """
    return {name: style.colour for name, style in figure.line_styles(names).items()}


def _by_name(given: Games) -> dict[str, Sequence[History]]:
    """The games of each learner; the name of a single game is empty."""
    if isinstance(given, Comparison):
        return dict(given.histories)
    if isinstance(given, History):
        return {"": [given]}
    if not isinstance(given, Mapping) or not given:
        raise TypeError(
            "histories must be a game, games by name, or what driftwolfe.compare returns"
        )
    found = {name: [each] if isinstance(each, History) else each for name, each in given.items()}
    for name, games in found.items():
        if not games or not all(isinstance(game, History) for game in games):
            raise TypeError(f"{name!r} must be a History or a list of them")
    return found


@contextmanager
def _axes(given: Axes | None, height: float = 2.7) -> Iterator[Axes]:
    """Axes that are given, in their own style; else those of a new figure, in that of the experiments."""
    if given is not None:
        yield given
        return
    with figure.print_style():
        pyplot, size = figure.extra("matplotlib.pyplot"), (0.75 * figure.WIDTH, height)
        yield pyplot.subplots(figsize=size, layout="constrained")[1]


def _lines(
    given: Games,
    measure: Callable[[History, int], Array],
    unit: str,
    drifts: Iterable[int],
    ax: Axes | None,
    *,
    settled: bool = False,
) -> Axes:
    """Draw the mean of a measure of each learner's games and a band around it, as far as all of them go."""
    named = _by_name(given)
    styles = figure.line_styles(named)
    marked = given.drifts if isinstance(given, Comparison) else ()
    lines = []
    for name, games in named.items():
        curves = [measure(game, place) for place, game in enumerate(games)]
        length = min(map(len, curves))
        sample = np.array([each[:length] for each in curves])
        lines.append(Line(name, name, styles[name], Band.of(np.arange(1, length + 1), sample)))
    low, high = figure.settled_range([line.band for line in lines]) if settled else (None, None)
    y = Axis(unit, low=low, high=high)
    panel = Panel("", _ROUND, y, lines, drifts=sorted({*marked, *drifts}))
    with _axes(ax) as axis:
        figure.draw_panel(axis, panel, markersize=4)
        if any(named):
            axis.legend()
    return axis
