"""Regret of whole series: dynamic and adaptive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from driftwolfe.experiments.comparators import Minimum
from driftwolfe.experiments.result import Result
from driftwolfe.experiments.series import Series, Spread, spread
from driftwolfe.experiments.summary import Summary

#: Offline minima of the stretches between drifts, by seed.
Minima = Mapping[int, Sequence[Minimum]]


@dataclass(frozen=True)
class RegretRow:
    """The regrets of a method.

    Attributes
    ----------
    title
        The method.
    dynamic
        Against the best fixed point of each stretch between drifts; None where that is not known
        or the method did not play all rounds.
    adaptive
        The largest regret over windows, by their length.
    """

    title: str
    dynamic: Spread | None
    adaptive: dict[int, Spread] = field(default_factory=dict)


def regret_rows(summary: Summary, minima: Minima, taus: Sequence[int] = ()) -> list[RegretRow]:
    """The regrets of the series that stand for the methods.

    Adaptive regret is that measured in the trials, over all windows; where they did not measure it,
    a lower bound for each of `taus`, see `window_regret`.
    """
    return [
        RegretRow(title, _dynamic(series, minima), _adaptive(series, minima, taus))
        for title, series in summary.chosen.items()
    ]


def stretch_regrets(result: Result, minima: Sequence[Minimum]) -> list[float]:
    """What a result suffered in each stretch beyond its best fixed point.

    The curves are read every few rounds: where a drift lies between readings, the loss is
    interpolated.
    """
    loss = np.interp(
        [edge for m in minima for edge in (m.start, m.end)],
        [0, *result.rounds],
        [0.0, *result.loss],
    ).reshape(-1, 2)
    return [float(end - start - m.value) for m, (start, end) in zip(minima, loss, strict=True)]


def window_regret(result: Result, minima: Sequence[Minimum], tau: int) -> float | None:
    """A lower bound on the regret of the worst window of tau rounds.

    Over windows inside stretches whose ends the curves were read at, against the best fixed point of
    the whole stretch, which suffers no more in a part of it than in all of it if losses are never
    negative. None where there is no such window.
    """
    read = dict(zip([0, *result.rounds], [0.0, *result.loss], strict=True))
    found = [
        read[t + tau] - read[t] - m.value
        for m in minima
        for t in read
        if m.start <= t and t + tau <= m.end and t + tau in read
    ]
    return max(found, default=None)


def _dynamic(series: Series, minima: Minima) -> Spread | None:
    if not series.complete or any(r.trial.seed not in minima for r in series.results):
        return None
    return spread(sum(stretch_regrets(r, minima[r.trial.seed])) for r in series.results)


def _adaptive(series: Series, minima: Minima, taus: Sequence[int]) -> dict[int, Spread]:
    measured: dict[int, list[float]] = {}
    for result in series.results:
        for regret in result.adaptive:
            measured.setdefault(regret.tau, []).append(regret.value)
        if not result.adaptive and series.complete and result.trial.seed in minima:
            for tau in taus:
                if (bound := window_regret(result, minima[result.trial.seed], tau)) is not None:
                    measured.setdefault(tau, []).append(bound)
    everywhere = len(series.results)
    return {tau: spread(found) for tau, found in measured.items() if len(found) == everywhere}
