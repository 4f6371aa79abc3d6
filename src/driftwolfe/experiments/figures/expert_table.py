"""`ExpertTable`: the weights of a method's experts over rounds, ready to be drawn."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from driftwolfe.experiments.figures.band import evenly
from driftwolfe.experiments.series import Series
from driftwolfe.points.kinds import Array


@dataclass(frozen=True, slots=True, eq=False)
class ExpertTable:
    """Weights of the first seed.

    Attributes
    ----------
    seed
        Which that is.
    rounds
        When the weights were looked at.
    experts
        Names by rising step size, epoch or length.
    values
        A row an expert, a column for each of `rounds`; nan where it was not awake.
    """

    seed: int
    rounds: list[int]
    experts: list[str]
    values: Array

    def thinned(self, most: int) -> ExpertTable:
        """The same at `most` rounds at the most, the first and the last among them."""
        kept = evenly(len(self.rounds), most)
        rounds = [self.rounds[place] for place in kept]
        return ExpertTable(self.seed, rounds, self.experts, self.values[:, kept])

    @property
    def edges(self) -> Array:
        """Borders between the looks, half-way, one more than there are looks."""
        at = np.array(self.rounds, dtype=float)
        if len(at) == 1:
            return np.array([at[0] - 0.5, at[0] + 0.5])
        return np.concatenate([at[:1], (at[1:] + at[:-1]) / 2.0, at[-1:]])


def expert_table(series: Series) -> ExpertTable | None:
    """The experts' weights in the first result; None where there are none."""
    result = series.results[0]
    weights = result.weights
    if weights is None or not weights.experts or not weights.rounds:
        return None
    order = sorted(range(len(weights.experts)), key=lambda place: size(weights.experts[place]))
    values = np.array(weights.values, dtype=float).T[order]
    names = [weights.experts[place] for place in order]
    return ExpertTable(result.trial.seed, weights.rounds, names, values)


def largest(tables: Iterable[ExpertTable]) -> float:
    """The largest weight where several experts are awake: a lone one always has weight 1."""
    contested = [table.values[:, (~np.isnan(table.values)).sum(axis=0) > 1] for table in tables]
    return max((float(np.nanmax(values)) for values in contested if values.size), default=1.0)


def size(expert: str) -> float:
    """The number in an expert's name; 0 where there is none.

    >>> size("η = 0.0145"), size("γ = 1,024"), size("64 rounds"), size("η = 2e-05")
    (0.0145, 1024.0, 64.0, 2e-05)
    """
    number = re.search(r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?", expert)
    return float(number.group().replace(",", "")) if number else 0.0
