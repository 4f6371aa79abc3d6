"""Results to draw: short runs, and made-up ones of any size and name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from driftwolfe.experiments.running import run_trial
from driftwolfe.experiments.summary import RegretRow, Summary, summarise
from driftwolfe.experiments.trial import DataSet, Result, StoredWeights, Trial
from driftwolfe.terminal import Spread

DATA = DataSet(name="jumping-target", rounds=120)
TWIN = "MovieLens 100K (synthetic twin)"


@cache
def played() -> Summary:
    """Four methods on 120 rounds, one of them with three values of c that were tried on half."""
    trials = [
        Trial(method=method, data=DATA, seed=seed, label=label)
        for method, label in (("OGD", ""), ("POLA", ""), ("BOGDIP", "BOGD_IP"))
        for seed in (0, 1)
    ]
    trials += [Trial(method="POLD", data=DATA, c=c, first=60) for c in (0.1, 1.0, 10.0)]
    trials += [Trial(method="POLD", data=DATA, c=1.0, seed=seed) for seed in (0, 1)]
    (summary,) = summarise([run_trial(trial) for trial in trials])
    return summary


def regrets(summary: Summary) -> list[RegretRow]:
    """Numbers in place of regrets; of one method less is known."""
    rows = [
        RegretRow(
            title,
            Spread(10.0 + i, 1.0),
            {20: Spread(3.0 + i, 0.5), 60: Spread(6.0 + i, 0.0)},
            summary.chosen[title].curve("loss") / 2.0,
        )
        for i, title in enumerate(summary.titles)
    ]
    return [RegretRow(rows[0].title, None, {20: Spread(2.0, 0.25)}), *rows[1:]]


def made(
    title: str,
    *,
    seed: int = 0,
    rounds: int = 300,
    every: int = 10,
    level: float = 1.0,
    speed: float = 0.01,
    cut: bool = False,
    experts: int = 0,
    stream: str = TWIN,
) -> Result:
    """A result that nothing was run for."""
    rng = np.random.default_rng(seed)
    at = np.arange(every, rounds + 1, every)
    noise = 1.0 + 0.1 * rng.standard_normal(at.size)
    weights = rng.dirichlet(np.ones(max(1, experts)), size=at.size)
    return Result(
        trial=Trial(method="POLD", data=DATA, seed=seed, label=title, limit=9.0 if cut else None),
        rounds=at.tolist(),
        loss=np.cumsum(level * every * noise).tolist(),
        seconds=(speed * at * noise).tolist(),
        lmo=(3 * at).tolist(),
        projection=(0 * at).tolist(),
        gauge=(0 * at).tolist(),
        drifts=[rounds // 3, 2 * rounds // 3],
        stream=stream,
        cut=cut,
        weights=_weights(at, weights) if experts else None,
        wall=1.0,
        environment={"cpu": "an abacus", "python": "3", "date": f"2026-01-0{seed + 1}T00:00:00"},
    )


def _weights(at: np.ndarray, values: np.ndarray) -> StoredWeights:
    """Experts in falling order; the largest asleep in the first line_style."""
    names = [f"{2**i:,} rounds" for i in reversed(range(values.shape[1]))]
    rows: list[list[float | None]] = values.round(5).tolist()
    rows[0][0] = None
    return StoredWeights(at.tolist(), names, rows)


def summary_of(results: Sequence[Result]) -> Summary:
    (summary,) = summarise(results)
    return summary
