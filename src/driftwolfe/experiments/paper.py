"""The paper's two experiments and its claims."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from driftwolfe.experiments.store import Store
from driftwolfe.experiments.summary import Curve, Series, Summary, group
from driftwolfe.experiments.sweep import run_sweep
from driftwolfe.experiments.tables import number, stored_minima, write_table
from driftwolfe.experiments.trial import DATA_SETS, DataSet, Option, Trial
from driftwolfe.points import checks
from driftwolfe.streams import DataUnavailable

#: Every one is a trial of hours.
MOST_SEEDS = 1000
#: {10^-1, ..., 10^6} and {2^-4, ..., 2^4}, the grids of the paper.
TENS = tuple(10.0**k for k in range(-1, 7))
TWOS = tuple(2.0**k for k in range(-4, 5))
#: Times quicker that count as much faster, and the share of loss that counts as slight.
MUCH_FASTER, SLIGHT = 5.0, 0.10
PROJECTION_FREE = ("BOGD_IP", "POLD", "POLA")

Say = Callable[[str], None]


# -- what is run -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Contender:
    """A method, and what may be spent on it; limits are processor seconds, None for none."""

    method: str
    label: str
    scales: tuple[float, ...]  # the values of c to choose from
    options: dict[str, Option] = field(default_factory=dict)
    tuning_first: int | None = None  # rounds on which c is chosen; None: all
    tuning_limit: float | None = None  # of each c while it is chosen
    limit: float | None = None  # of a run with the chosen c
    seeds: int | None = None  # at most so many with the chosen c; None: those of the experiment


@dataclass(frozen=True)
class Experiment:
    """Contenders on a stream."""

    name: str  # on the command line
    title: str  # of the report
    real: str  # the data set
    twin: str  # its synthetic twin
    contenders: tuple[Contender, ...]
    rounds: int | None = None  # length of the stream; None: all of it
    seeds: int = 5  # orders of the data on which each runs with its chosen c
    taus: tuple[int, ...] = ()  # lengths of windows whose adaptive regret the trials measure
    widest: int = 4  # how often a grid of c is widened whose best value lies on its edge

    def data(self, twin: bool) -> DataSet:
        """The stream, or its twin."""
        return DataSet(name=self.twin if twin else self.real, rounds=self.rounds)

    def tuning(self, contender: Contender, data: DataSet, c: float) -> Trial:
        """The trial that tries a value of c, on the first order of the data."""
        first, limit = contender.tuning_first, contender.tuning_limit
        return self._trial(contender, data, c, first=first, limit=limit)

    def finals(self, contender: Contender, data: DataSet, c: float) -> list[Trial]:
        """The trials with the chosen c, on every order."""
        seeds = range(min(self.seeds, contender.seeds or self.seeds))
        return [self._trial(contender, data, c, seed=seed, limit=contender.limit) for seed in seeds]

    def _trial(self, contender: Contender, data: DataSet, c: float, **fields: Any) -> Trial:
        return Trial(
            method=contender.method,
            label=contender.label,
            options=contender.options,
            data=data,
            c=c,
            taus=self.taus,
            **fields,
        )


def matrix_completion_paper() -> Experiment:
    """MovieLens 100K, three copies, the middle one negated: 3,000 rounds of 100 ratings.

    On large matrices small steps keep the decision at full rank, and each projection then costs a
    decomposition: while c is chosen, a run ends after five minutes of processor time, one of
    Multi-OCG after ten. Ader projects every expert in every round: its c is chosen on 50 rounds, and
    it then runs for twenty minutes on each order of the data.
    """
    return Experiment(
        name="matrix-completion",
        title="Online matrix completion: dynamic regret",
        real="movielens-100k",
        twin="movielens-100k-twin",
        contenders=(
            Contender("BOGDIP", "BOGD_IP", TENS, tuning_limit=300.0),
            Contender("POLD", "POLD", TENS, tuning_limit=300.0),
            Contender("POLA", "POLA", TENS, tuning_limit=300.0),
            Contender("MultiOCG", "Multi-OCG", TENS, {"max_inner": 1}, tuning_limit=600.0),
            Contender("Ader", "Ader", TENS, tuning_first=50, tuning_limit=300.0, limit=1200.0),
        ),
    )


def matrix_completion_short() -> Experiment:
    """The same on the first 10,000 ratings, 300 rounds, where Ader can play all of them.

    Values of c around the best of the full setting; those of Ader are compared on 50 rounds.
    """
    whole = matrix_completion_paper()
    scales = tuple(c for c in TENS if 1e2 <= c <= 1e5)
    contenders = tuple(
        replace(contender, scales=scales, tuning_limit=90.0, limit=None)
        for contender in whole.contenders
    )
    return replace(whole, rounds=300, contenders=contenders, widest=1)


def matrix_completion_quick() -> Experiment:
    """The same in minutes: 900 rounds, two orders, and slow methods as far as they come.

    c = 1e4, the best of the full setting for all but Ader, which would be slower still with its own.
    """
    whole = matrix_completion_paper()
    contenders = tuple(
        replace(contender, scales=(1e4,), tuning_first=None, tuning_limit=20.0, limit=20.0)
        for contender in whole.contenders
    )
    return replace(whole, rounds=900, contenders=contenders, seeds=2, widest=0)


def classification_paper() -> Experiment:
    """Shuttle, the features negated every 1,000 rounds: 4,350 rounds of 10 rows."""
    return Experiment(
        name="classification",
        title="Online multiclass classification: adaptive regret",
        real="shuttle",
        twin="shuttle-twin",
        contenders=(
            Contender("POLA", "POLA", TWOS),
            Contender("POLA", "POLA, paper's oracle", TWOS, {"method": "paper"}),
            Contender("PAMO", "PAMO", TWOS),
            Contender("PAMO", "PAMO, exact gauge", TWOS, {"gauge": "exact"}),
        ),
        taus=(100, 1000),
    )


def classification_quick() -> Experiment:
    """The same on a tenth of the rows, with two orders."""
    return replace(classification_paper(), rounds=435, seeds=2, taus=(10, 100))


#: By experiment and preset.
EXPERIMENTS: dict[str, dict[str, Callable[[], Experiment]]] = {
    "matrix-completion": {
        "quick": matrix_completion_quick,
        "short": matrix_completion_short,
        "paper": matrix_completion_paper,
    },
    "classification": {"quick": classification_quick, "paper": classification_paper},
}


def experiment(name: str, preset: str = "quick", seeds: int | None = None) -> Experiment:
    """The experiment of that name at that size.

    >>> experiment("classification", "paper").contenders[2].label
    'PAMO'
    """
    if name not in EXPERIMENTS:
        raise ValueError(f"unknown experiment {name!r}; there are {', '.join(EXPERIMENTS)}")
    presets = EXPERIMENTS[name]
    if preset not in presets:
        raise ValueError(f"{name} has no preset {preset!r}; there are {', '.join(presets)}")
    made = presets[preset]()
    if seeds is None:
        return made
    return replace(made, seeds=checks.count(seeds, "seeds", most=MOST_SEEDS))


# -- running it ------------------------------------------------------------------------------------


def reproduce(
    experiment: Experiment,
    store: Store,
    make_executor: Callable[[], Executor],
    folder: str | None,
    say: Say,
) -> int:
    """Run what is still missing of an experiment; return how many trials failed.

    `folder` holds the real data; `say` is called with a sentence for each step. For the other
    arguments see `run_sweep`.
    """
    data = find_data(experiment, folder, say)
    failed = _tune(experiment, data, store, make_executor, folder)
    finals: list[Trial] = []
    for contender in experiment.contenders:
        best = _best(experiment, contender, data, store)
        if best is not None and best.c is not None:
            say(f"{contender.label}: c = {best.c:g}")
            runs = experiment.finals(contender, data, best.c)
            finals += runs[1:] if best.complete else runs
    store.add(experiment.title, finals)
    failed += run_sweep(store, make_executor, folder)
    say("solving for the best fixed points between drifts")
    for seed in range(experiment.seeds):
        stored_minima(store.folder, data, seed, folder)
    return failed


def find_data(experiment: Experiment, folder: str | None, say: Say) -> DataSet:
    """The real data where they can be had, else their synthetic twin, and say which."""
    file = DATA_SETS[experiment.real].file
    try:
        if file is not None:
            file.read(folder)
    except DataUnavailable as problem:
        say(f"{problem}")
        say(f"using the synthetic twin of {experiment.real}: the numbers are of made-up data")
        return experiment.data(twin=True)
    return experiment.data(twin=False)


def _tune(
    experiment: Experiment,
    data: DataSet,
    store: Store,
    make_executor: Callable[[], Executor],
    folder: str | None,
) -> int:
    """Try every c; where the best lies on the edge of the grid, continue beyond it."""
    grids = {contender.label: list(contender.scales) for contender in experiment.contenders}
    for widening in range(experiment.widest + 1):
        trials = [
            experiment.tuning(contender, data, c)
            for contender in experiment.contenders
            for c in grids[contender.label]
        ]
        store.add(experiment.title, trials)
        failed = run_sweep(store, make_executor, folder)
        if widening == experiment.widest:
            break
        widened = [
            _widen(grids[contender.label], _best(experiment, contender, data, store))
            for contender in experiment.contenders
        ]
        if not any(widened):
            break
    return failed


def _widen(grid: list[float], best: Series | None) -> bool:
    """Add a value of c beyond the edge that the best one lies on; say whether there was need."""
    ratio = grid[1] / grid[0]
    if best is not None and best.c == grid[-1]:
        grid.append(grid[-1] * ratio)
    elif best is not None and best.c == grid[0]:
        grid.insert(0, grid[0] / ratio)
    else:
        return False
    return True


def _best(
    experiment: Experiment, contender: Contender, data: DataSet, store: Store
) -> Series | None:
    """Of the contender's values of c, the one with most rounds and then least loss."""
    like = experiment.tuning(contender, data, 1.0)
    wanted = (like.data, like.first, like.limit, like.options, like.title)
    tuned = group(
        result
        for result in store.results
        if (t := result.trial).seed == 0
        and (t.data, t.first, t.limit, t.options, t.title) == wanted
    )
    return min(tuned, key=lambda series: series.preference, default=None)


# -- its claims ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Claim:
    """A claim, what was measured, and whether it held."""

    number: str  # as the paper counts them: i, ii, iii
    text: str  # as we understand it
    measured: str
    held: bool

    def __str__(self) -> str:
        verdict = "held" if self.held else "DID NOT HOLD"
        return f"({self.number}) {self.text}\n     {self.measured}\n     {verdict}"


def as_markdown(found: list[Claim]) -> str:
    """The claims as a table."""
    rows = [[f"({c.number})", c.text, c.measured, "yes" if c.held else "**no**"] for c in found]
    return write_table(["", "claim", "measured", "held"], rows, left=4)


def claims(summary: Summary) -> list[Claim]:
    """The claims that the methods of a summary allow to check."""
    chosen, found = summary.chosen, list[Claim]()
    for ours in PROJECTION_FREE:
        if ours in chosen and "Ader" in chosen:
            found += _faster_at_slight_cost("i", chosen[ours], chosen["Ader"])
    for ours in PROJECTION_FREE:
        if ours in chosen and "Multi-OCG" in chosen:
            loss, other, rounds = _at_end(chosen[ours], chosen["Multi-OCG"], "loss")
            text = f"{ours} has a lower cumulative loss than Multi-OCG"
            measured = f"{loss:,.0f} against {other:,.0f} after {rounds:,} rounds"
            found.append(Claim("ii", text, measured, loss < other))
    for ours in ("POLA", "POLA, paper's oracle"):
        for theirs in ("PAMO", "PAMO, exact gauge"):
            if ours in chosen and theirs in chosen:
                found += _faster_at_slight_cost("iii", chosen[ours], chosen[theirs])
    return found


def _faster_at_slight_cost(numeral: str, ours: Series, theirs: Series) -> Iterator[Claim]:
    seconds, other, rounds = _at_end(ours, theirs, "seconds")
    yield Claim(
        numeral,
        f"{ours.title} is much faster than {theirs.title} (at least {MUCH_FASTER:g} times)",
        f"{number(seconds, 3)} s against {number(other, 3)} s for {rounds:,} rounds: "
        f"{number(other / seconds, 3)} times",
        other >= MUCH_FASTER * seconds,
    )
    loss, other, rounds = _at_end(ours, theirs, "loss")
    more = loss / other - 1.0
    yield Claim(
        numeral,
        f"{ours.title} pays for it with a slightly higher loss than {theirs.title} "
        f"(at most {SLIGHT:.0%})",
        f"{number(loss, 6)} against {number(other, 6)} after {rounds:,} rounds: {more:+.1%}",
        more <= SLIGHT,
    )


def _at_end(one: Series, other: Series, name: Curve) -> tuple[float, float, int]:
    """Both means after the last round that both were read at, over the seeds that both have."""
    rounds = int(np.intersect1d(one.rounds, other.rounds)[-1])
    shared = {r.trial.seed for r in one.results} & {r.trial.seed for r in other.results}
    means = []
    for series in (one, other):
        kept = Series(tuple(r for r in series.results if r.trial.seed in shared))
        at = int(np.searchsorted(kept.rounds, rounds))
        means.append(float(kept.curve(name)[:, at].mean()))
    return means[0], means[1], rounds
