"""`compare`: learners, your own among them, on the same streams."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftwolfe import regret
from driftwolfe.domains import Domain
from driftwolfe.game import History, play
from driftwolfe.learners import Learner
from driftwolfe.losses import Loss
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array, Point
from driftwolfe.streams import Stream
from driftwolfe.streams.drift import reordered
from driftwolfe.terminal import Spread, counted, number, spread, spread_text, table

__all__ = ["Comparison", "compare"]

#: A learner that has played nothing yet, or a function of the set that makes one.
Contender = Learner | Callable[[Domain], Learner]
#: A stream or just its losses.
Losses = Stream | Sequence[Loss]
#: What tables and figures call the calls of an oracle.
CALL_NAMES = {
    "lmo": "LMO calls",
    "projection": "projections",
    "gauge": "gauge calls",
    "membership": "membership tests",
}


@dataclass(eq=False, repr=False)
class Comparison:
    """The games of several learners on the same streams; as text, a table.

    Attributes
    ----------
    histories
        The games of each learner by its name, one for each stream.
    comparators
        The true comparators of each stream; None where they are not known.
    drifts
        Rounds at which the first stream changes abruptly.
    measures
        By learner, then by the name of the measure: its value in each game.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> ball = dw.L1Ball(2)
    >>> stream = dw.streams.synthetic.linear_signs(ball, rounds=64, changes=4, seed=0)
    >>> result = dw.compare({"stays": dw.Constant(ball), "follows": dw.POLA(ball)}, stream)
    >>> result.histories["stays"][0].losses.sum() > result.histories["follows"][0].losses.sum()
    np.True_
    """

    histories: dict[str, list[History]]
    comparators: list[Sequence[Point] | None]
    drifts: tuple[int, ...]
    measures: dict[str, dict[str, list[float]]]

    def spread(self, learner: str, measure: str = "loss per round") -> Spread:
        """The mean and the standard deviation of a measure over the streams."""
        return spread(self.measures[learner][measure])

    def difference(self, first: str, second: str, measure: str = "loss per round") -> Spread:
        """The mean of first less second, stream by stream, and its standard error (nan for one stream)."""
        ours, theirs = (np.array(self.measures[name][measure]) for name in (first, second))
        apart = ours - theirs
        error = apart.std(ddof=1) / math.sqrt(apart.size) if apart.size > 1 else math.nan
        return Spread(float(apart.mean()), float(error))

    @property
    def _cells(self) -> tuple[list[str], list[list[str]]]:
        heads = list(dict.fromkeys(name for found in self.measures.values() for name in found))
        rows = [
            [learner, *(_text(found[head]) if head in found else "–" for head in heads)]
            for learner, found in self.measures.items()
        ]
        return ["learner", *heads], rows

    def __str__(self) -> str:
        return "\n".join(table(*self._cells))

    def __repr__(self) -> str:
        rounds = len(next(iter(self.histories.values()))[0])
        names = ", ".join(self.histories)
        streams = counted(len(self.comparators), "stream")
        return f"Comparison({names}: {streams} of {counted(rounds, 'round')})"

    def _repr_html_(self) -> str:
        heads, rows = self._cells
        lines = [("th", heads), *(("td", row) for row in rows)]
        told = "".join(
            f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"
            for tag, cells in lines
        )
        return f"<table>{told}</table>"


def compare(
    learners: Mapping[str, Contender],
    stream: Losses | Callable[[int], Losses],
    seeds: int | Sequence[int] = 1,
    *,
    tau: int | None = None,
    record_weights: bool = False,
    progress: bool | None = None,
) -> Comparison:
    """Play learners, your own among them, on the same streams, and measure them.

    Print the result to see a table: loss per round, dynamic regret where the stream knows its
    comparators, oracle calls, seconds. `driftwolfe.plot` draws it.

    Parameters
    ----------
    learners
        By name: a learner that has played nothing yet, of which every game takes a copy; or a function
        that makes one for a set, such as ``dw.POLA``.
    stream
        A function of the seed that returns a stream, or a list of losses. Or one stream: for seed 0 it
        is played as it is, for others its rounds change places between its drifts.
    seeds
        How many (0, 1, ...), or a list of them.
    tau
        Measure the adaptive regret over windows of so many rounds too.
    record_weights
        Keep expert weights, for `driftwolfe.plot.weights`.
    progress
        Show a progress bar; by default only on a terminal.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> ball = dw.L2Ball(3)
    >>> def stream(seed):
    ...     return dw.streams.synthetic.piecewise_constant(ball, rounds=200, pieces=4, seed=seed)
    >>> result = dw.compare({"POLAR": dw.POLAR(ball), "fixed": dw.Constant}, stream, seeds=3)
    >>> result
    Comparison(POLAR, fixed: 3 streams of 200 rounds)
    >>> result.difference("POLAR", "fixed").mean < 0
    True
    """
    if not learners:
        raise ValueError("give at least one learner, by its name")
    for name, learner in learners.items():
        if isinstance(learner, Learner) and learner.t:
            raise ValueError(
                f"{name!r} has played {learner.t:,} rounds already; give one made anew"
            )
        if not (isinstance(learner, Learner) or callable(learner)):
            raise TypeError(f"{name!r} must be a Learner or a function that makes one for a set")
    chosen = range(checks.count(seeds, "seeds")) if isinstance(seeds, int) else list(seeds)
    streams = [_stream(stream, seed, len(chosen) > 1) for seed in chosen]
    games = [(name, place) for place in range(len(streams)) for name in learners]
    histories: dict[str, list[History]] = {name: [] for name in learners}
    for name, place in _shown(games, progress):
        losses = streams[place]
        try:
            learner = _fresh(learners[name], losses)
            played = play(learner, losses, record_weights=record_weights, progress=False)
        except Exception as problem:
            problem.add_note(f"raised in the game of {name!r}, seed {list(chosen)[place]}")
            raise
        histories[name].append(played)
    comparators = [each.comparators for each in streams]
    measures = {name: _measures(games, comparators, tau) for name, games in histories.items()}
    return Comparison(histories, comparators, streams[0].drifts, measures)


def _stream(given: Losses | Callable[[int], Losses], seed: int, several: bool) -> Stream:
    made = given(seed) if callable(given) else given
    stream = made if isinstance(made, Stream) else Stream(list(made), "losses", math.inf)
    if callable(given) or seed == 0:
        return stream
    if several and not isinstance(made, Stream):
        raise ValueError(
            "with several seeds, stream must be a function of the seed or a Stream, got losses, which "
            "do not say where they may change places"
        )
    return reordered(stream, seed)


def _fresh(contender: Contender, stream: Stream) -> Learner:
    if isinstance(contender, Learner):
        return contender.clone()
    if stream.domain is None:
        raise ValueError("these losses name no set to make a learner for; give the learner itself")
    return contender(stream.domain)


def _shown(games: Sequence[Any], progress: bool | None) -> Any:
    from tqdm import tqdm  # slow to import

    return tqdm(games, unit="game", leave=False, disable=None if progress is None else not progress)


def _measures(
    games: Sequence[History], comparators: Sequence[Sequence[Point] | None], tau: int | None
) -> dict[str, list[float]]:
    found = {"loss per round": [float(game.losses.mean()) for game in games]}
    if all(points is not None for points in comparators):
        pairs = zip(games, comparators, strict=True)
        found["dynamic regret"] = [float(regret.dynamic_regret(g, u)) for g, u in pairs]  # type: ignore[arg-type]
    if tau is not None:
        name = f"regret, worst {counted(tau, 'round')}"
        found[name] = [float(regret.adaptive_regret(game, tau)) for game in games]
    for oracle, name in CALL_NAMES.items():
        calls = [float(game.oracle_calls[oracle].mean()) for game in games]
        if any(calls) or oracle == "lmo":
            found[f"{name} per round"] = calls
    found["seconds"] = [float(game.seconds.sum()) for game in games]
    return found


def regret_so_far(history: History, comparators: Sequence[Point] | None) -> Array:
    """Return the regret up to each round against comparators; None for the best fixed point."""
    if comparators is None:
        best = regret.offline_minimum(history.domain, history.functions)
        comparators = [best.point] * len(history)
    if not len(comparators) == len(history.functions) == len(history):
        raise ValueError(
            f"there must be a comparator and a loss for each of {len(history)} rounds, got "
            f"{len(comparators)} and {len(history.functions)}; play with keep_losses=True"
        )
    pairs = zip(history.functions, comparators, strict=True)
    return np.cumsum(history.losses - np.array([loss.value(point) for loss, point in pairs]))


def _text(values: Sequence[float]) -> str:
    return spread_text(spread(values)) if len(values) > 1 else number(values[0])
