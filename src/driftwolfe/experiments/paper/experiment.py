"""`Experiment`: one of the paper's comparisons, at some size."""

from __future__ import annotations

from dataclasses import dataclass, field

from driftwolfe.experiments.data_set import DataSet
from driftwolfe.experiments.trial import Option, Trial


@dataclass(frozen=True)
class Contender:
    """A method, and what may be spent on it.

    Attributes
    ----------
    method, label, options
        As in `Trial`.
    scales
        The values of c to choose from.
    tuning_first
        Rounds on which c is chosen; None: all.
    tuning_limit
        Processor seconds that each c may take while it is chosen; None: no limit.
    limit
        Processor seconds of a run with the chosen c; None: no limit.
    seeds
        At most so many seeds with the chosen c; None: as many as the experiment has.
    """

    method: str
    label: str
    scales: tuple[float, ...]
    options: dict[str, Option] = field(default_factory=dict)
    tuning_first: int | None = None
    tuning_limit: float | None = None
    limit: float | None = None
    seeds: int | None = None


@dataclass(frozen=True)
class Experiment:
    """Contenders on a stream.

    Attributes
    ----------
    name, title
        How the command line and the report call it.
    real, twin
        Names of the data set and of its synthetic twin.
    contenders
        The methods.
    rounds
        Length of the stream; None: all of it.
    seeds
        Orders of the data on which each runs with its chosen c.
    taus
        Lengths of the windows whose adaptive regret the trials measure.
    widest
        How often the grid of c may be widened where the best value lies on its edge.
    """

    name: str
    title: str
    real: str
    twin: str
    contenders: tuple[Contender, ...]
    rounds: int | None = None
    seeds: int = 5
    taus: tuple[int, ...] = ()
    widest: int = 4

    def data(self, twin: bool) -> DataSet:
        """The stream, or its twin."""
        return DataSet(name=self.twin if twin else self.real, rounds=self.rounds)

    def tuning(self, contender: Contender, data: DataSet, c: float) -> Trial:
        """The trial that tries a value of c, on the first order of the data."""
        return self._trial(contender, data, c, 0, contender.tuning_first, contender.tuning_limit)

    def finals(self, contender: Contender, data: DataSet, c: float) -> list[Trial]:
        """The trials with the chosen c, on every order."""
        seeds = min(self.seeds, contender.seeds or self.seeds)
        return [
            self._trial(contender, data, c, seed, None, contender.limit) for seed in range(seeds)
        ]

    def _trial(
        self,
        contender: Contender,
        data: DataSet,
        c: float,
        seed: int,
        first: int | None,
        limit: float | None,
    ) -> Trial:
        return Trial(
            method=contender.method,
            label=contender.label,
            options=contender.options,
            data=data,
            c=c,
            seed=seed,
            first=first,
            limit=limit,
            taus=self.taus,
        )
