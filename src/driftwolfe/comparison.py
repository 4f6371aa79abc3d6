"""`compare`: learners, your own among them, on the same streams."""

from __future__ import annotations

import copy
import html
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe import regret
from driftwolfe.domains import Domain
from driftwolfe.game import History, play
from driftwolfe.learners import Learner
from driftwolfe.losses import Loss
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array, Point
from driftwolfe.streams import Stream
from driftwolfe.streams.drift import reordered
from driftwolfe.terminal import Spread, counted, spread, spread_text, table

__all__ = ["Comparison", "compare"]

#: A stream or just its losses.
Losses = Stream | Sequence[Loss]
#: What tables and figures call the calls of an oracle.
CALL_NAMES = {
    "lmo": "LMO calls",
    "projection": "projections",
    "gauge": "gauge calls",
    "membership": "membership tests",
}
#: How LaTeX spells what it would not print as it is.
_LATEX = str.maketrans({letter: rf"\{letter}" for letter in "&%$#_{}"} | {"±": r"$\pm$"})
_LATEX |= str.maketrans({"\\": r"\textbackslash{}", "~": r"\~{}", "^": r"\^{}"})


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
    seeds
        That of each stream.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> ball = dw.L1Ball(2)
    >>> stream = dw.streams.synthetic.linear_signs(ball, rounds=64, changes=4, seed=0)
    >>> result = dw.compare({"stays": dw.learners.Constant(ball), "follows": dw.POLA(ball)}, stream)
    >>> result.histories["stays"][0].losses.sum() > result.histories["follows"][0].losses.sum()
    np.True_
    """

    histories: dict[str, list[History]]
    comparators: list[Sequence[Point] | None]
    drifts: tuple[int, ...]
    measures: dict[str, dict[str, list[float]]]
    seeds: list[int] = field(default_factory=list)

    def spread(self, learner: str, measure: str = "loss per round") -> Spread:
        """The mean and the standard deviation of a measure over the streams."""
        return spread(self._values(learner, measure))

    def difference(self, first: str, second: str, measure: str = "loss per round") -> Spread:
        """The mean of first less second, stream by stream, and its standard error (nan for one stream)."""
        apart = np.subtract(self._values(first, measure), self._values(second, measure))
        error = apart.std(ddof=1) / math.sqrt(apart.size) if apart.size > 1 else math.nan
        return Spread(float(apart.mean()), float(error))

    def interval(
        self, first: str, second: str, measure: str = "loss per round", confidence: float = 0.95
    ) -> tuple[float, float]:
        """The ends of the confidence interval of `difference`, of a paired t test over the streams."""
        if not 0.0 < checks.positive(confidence, "confidence") < 1.0:
            raise ValueError(f"confidence must lie between 0 and 1, got {confidence!r}")
        mean, error = self.difference(first, second, measure)
        reach = error * float(scipy.special.stdtrit(len(self.seeds) - 1, 0.5 + 0.5 * confidence))
        return mean - reach, mean + reach

    def to_frame(self) -> Any:
        """A pandas frame with a row for each game: learner, seed, and what was measured."""
        try:
            import pandas
        except ImportError:
            raise ImportError("to_frame needs pandas: pip install pandas") from None
        return pandas.DataFrame(
            {"learner": name, "seed": seed} | {head: values[i] for head, values in found.items()}
            for name, found in self.measures.items()
            for i, seed in enumerate(self.seeds)
        )

    def to_latex(self) -> str:
        """The table in LaTeX, with the lines of its package booktabs."""
        heads, rows = self._cells
        cells = [[cell.translate(_LATEX) for cell in row] for row in (heads, *rows)]
        head, *lines = (" & ".join(row) + r" \\" for row in cells)
        body = re.sub(r"(?<= )-(?=\d)", "$-$", "\n".join([head, r"\midrule", *lines]))
        begin = rf"\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}"
        return "\n".join([begin, r"\toprule", body, r"\bottomrule", r"\end{tabular}"])

    def _values(self, learner: str, measure: str) -> list[float]:
        checks.one_of(learner, "learner", self.measures)
        checks.one_of(measure, "measure", self.measures[learner])
        return self.measures[learner][measure]

    @property
    def _cells(self) -> tuple[list[str], list[list[str]]]:
        heads = list(dict.fromkeys(name for found in self.measures.values() for name in found))
        rows = []
        for learner, found in self.measures.items():
            spreads = (spread(found[head]) if head in found else None for head in heads)
            rows.append([learner, *map(spread_text, spreads)])
        return ["learner", *heads], rows

    def __str__(self) -> str:
        return "\n".join(table(*self._cells))

    def __repr__(self) -> str:
        rounds = counted(len(next(iter(self.histories.values()))[0]), "round")
        streams = counted(len(self.comparators), "stream")
        return f"Comparison({', '.join(self.histories)}: {streams} of {rounds})"

    def _repr_html_(self) -> str:
        heads, rows = self._cells
        body = ""
        for tag, cells in [("th", heads), *(("td", row) for row in rows)]:
            line = "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells)
            body += f"<tr>{line}</tr>"
        return f"<table>{body}</table>"


def compare(
    learners: Mapping[str, Any],
    stream: Losses | Callable[[int], Losses],
    seeds: int | Sequence[int] = 1,
    *,
    comparators: Sequence[Point] | Array | None = None,
    tau: int | None = None,
) -> Comparison:
    """Play learners, your own among them, on the same streams, and measure them.

    Print the result to see a table: loss per round, dynamic regret where the stream knows its
    comparators, oracle calls, seconds. `driftwolfe.plot` draws it.

    Parameters
    ----------
    learners
        By name: a learner that has played nothing yet, of which every game takes a copy; or a class,
        such as ``dw.POLA``, or a function that makes one of the set, or of nothing. Learners of your own
        need no more than ``decision`` and ``update(loss)``; see `play`.
    stream
        A function of the seed that returns a stream, or a list of losses. Or one stream: for seed 0 it
        is played as it is, for others its rounds change places between its drifts. The set is that of
        the stream, or else of the first learner that has one.
    seeds
        How many (0, 1, ...), or a list of them.
    comparators
        One point per round, to measure dynamic regret against, in place of those of the stream.
    tau
        Measure the adaptive regret over windows of so many rounds too.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> ball = dw.L2Ball(3)
    >>> def stream(seed):
    ...     return dw.streams.synthetic.piecewise_constant(ball, rounds=200, pieces=4, seed=seed)
    >>> result = dw.compare({"POLAR": dw.POLAR(ball), "fixed": dw.learners.Constant}, stream, seeds=3)
    >>> result
    Comparison(POLAR, fixed: 3 streams of 200 rounds)
    >>> result.difference("POLAR", "fixed").mean < 0
    True
    """
    from tqdm import tqdm  # slow to import

    if not isinstance(learners, Mapping) or not learners:
        raise ValueError(
            f'give at least one learner, by its name, as {{"POLAR": dw.POLAR}}; got {learners!r:.80}'
        )
    for name, learner in learners.items():
        if isinstance(learner, Learner) and learner.t:
            raise ValueError(
                f"{name!r} has played {learner.t:,} rounds already; give one made anew"
            )
    chosen = [*range(checks.count(seeds, "seeds"))] if isinstance(seeds, int) else list(seeds)
    streams = [_stream(stream, seed, len(chosen) > 1) for seed in chosen]
    if comparators is not None:
        streams = [replace(each, comparators=list(comparators)) for each in streams]
    for domain in (getattr(learner, "domain", None) for learner in learners.values()):
        if isinstance(domain, Domain):
            streams = [replace(each, domain=each.domain or domain.unwrapped) for each in streams]
    games = [(name, place) for place in range(len(streams)) for name in learners]
    histories: dict[str, list[History]] = {name: [] for name in learners}
    for name, place in tqdm(games, unit="game", leave=False, disable=None):  # only on a terminal
        given, losses = learners[name], streams[place]
        try:
            learner = given.clone() if isinstance(given, Learner) else copy.deepcopy(given)
            played = play(learner, losses, progress=False)
        except Exception as problem:
            problem.add_note(f"raised in the game of {name!r}, seed {chosen[place]}")
            raise
        histories[name].append(played)
    points = [each.comparators for each in streams]
    measures = {name: _measures(games, points, tau) for name, games in histories.items()}
    return Comparison(histories, points, streams[0].drifts, measures, chosen)


def _stream(given: Losses | Callable[[int], Losses], seed: int, several: bool) -> Stream:
    made = given(seed) if callable(given) else given
    stream = made if isinstance(made, Stream) else Stream(list(made))
    if callable(given) or seed == 0:
        return stream
    if several and not isinstance(made, Stream):
        raise ValueError(
            "with several seeds, stream must be a function of the seed or a Stream, got losses, which "
            "do not say where they may change places"
        )
    return reordered(stream, seed)


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
        made = [game.oracle_calls[oracle] for game in games]
        calls = [float(each.mean()) for each in made if each.size]
        if any(calls) or (calls and oracle == "lmo"):
            found[f"{name} per round"] = calls
    found["seconds"] = [float(game.seconds.sum()) for game in games]
    return found


def regret_so_far(history: History, comparators: Sequence[Point] | None) -> Array:
    """Return the regret up to each round against comparators; None for the best fixed point."""
    if comparators is None:
        comparators = regret.static_regret(history).comparators * len(history)
    comparators = regret.dynamic_regret(history, comparators).comparators  # checked
    pairs = zip(history.functions, comparators, strict=True)
    return np.cumsum(history.losses - np.array([loss.value(point) for loss, point in pairs]))
