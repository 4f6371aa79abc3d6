"""The paper's two experiments and its claims."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from driftwolfe.experiments import tables
from driftwolfe.experiments.store import Store
from driftwolfe.experiments.summary import Curve, Series, Summary, group
from driftwolfe.experiments.sweep import run_sweep
from driftwolfe.experiments.tables import stored_minima
from driftwolfe.experiments.trial import DATA_SETS, DataSet, Option, Trial
from driftwolfe.experiments.workers import Workers
from driftwolfe.points import checks
from driftwolfe.streams import DataUnavailable


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


#: Every one is a trial of hours.
MOST_SEEDS = 1000

#: {10^-1, ..., 10^6} and {2^-4, ..., 2^4}, the grids of the paper.
TENS = tuple(10.0**k for k in range(-1, 7))
TWOS = tuple(2.0**k for k in range(-4, 5))


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

    Values of c around the best of the full setting; those of Ader are held against each other on 50
    rounds.
    """
    whole = matrix_completion_paper()
    contenders = tuple(
        replace(
            contender,
            scales=tuple(c for c in TENS if 1e2 <= c <= 1e5),
            tuning_first=50 if contender.method == "Ader" else None,
            tuning_limit=90.0,
            limit=None,
            seeds=None,
        )
        for contender in whole.contenders
    )
    return replace(whole, rounds=300, contenders=contenders, widest=1)


def matrix_completion_quick() -> Experiment:
    """The same in minutes: 900 rounds, two orders, and what is slow as far as it comes.

    c = 1e4, the best of the full setting for all but Ader, which would be slower still with its own.
    """
    whole = matrix_completion_paper()
    contenders = tuple(
        replace(
            contender,
            scales=(1e4,),
            tuning_first=None,
            tuning_limit=20.0,
            limit=20.0,
            seeds=None,
        )
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
    if preset not in EXPERIMENTS[name]:
        raise ValueError(
            f"{name} has no preset {preset!r}; there are {', '.join(EXPERIMENTS[name])}"
        )
    made = EXPERIMENTS[name][preset]()
    if seeds is None:
        return made
    return replace(made, seeds=checks.count(seeds, "seeds", most=MOST_SEEDS))


#: Times quicker that count as much faster, and the share of loss that counts as slight.
MUCH_FASTER, SLIGHT = 5.0, 0.10
PROJECTION_FREE = ("BOGD_IP", "POLD", "POLA")


@dataclass(frozen=True)
class Claim:
    """A claim, what was measured, and whether it held.

    Attributes
    ----------
    number
        As they are told: (i), (ii), (iii).
    text
        The claim, as we understand it.
    measured
        The numbers.
    held
        Whether they bear it out.
    """

    number: str
    text: str
    measured: str
    held: bool

    def __str__(self) -> str:
        verdict = "held" if self.held else "DID NOT HOLD"
        return f"({self.number}) {self.text}\n     {self.measured}\n     {verdict}"


def claims(summary: Summary) -> list[Claim]:
    """The claims that the methods of a summary allow to check."""
    return [*_against_ader(summary), *_against_multi_ocg(summary), *_against_pamo(summary)]


def as_markdown(found: list[Claim]) -> str:
    """The claims as a table."""
    lines = ["| claim | | measured | held |", "| --- | --- | --- | --- |"]
    lines += [
        f"| ({c.number}) | {c.text} | {c.measured} | {'yes' if c.held else '**no**'} |"
        for c in found
    ]
    return "\n".join(lines)


def _against_ader(summary: Summary) -> Iterator[Claim]:
    for name in PROJECTION_FREE:
        yield from _quicker_at_slight_cost("i", summary, name, "Ader")


def _against_pamo(summary: Summary) -> Iterator[Claim]:
    for ours in ("POLA", "POLA, paper's oracle"):
        for theirs in ("PAMO", "PAMO, exact gauge"):
            yield from _quicker_at_slight_cost("iii", summary, ours, theirs)


def _against_multi_ocg(summary: Summary) -> Iterator[Claim]:
    for name in PROJECTION_FREE:
        if pair := _pair(summary, name, "Multi-OCG"):
            ours, theirs, rounds = _at_end(*pair, "loss")
            yield Claim(
                "ii",
                f"{name} has a lower cumulative loss than Multi-OCG",
                f"{ours:,.0f} against {theirs:,.0f} after {rounds:,} rounds",
                ours < theirs,
            )


def _quicker_at_slight_cost(
    number: str, summary: Summary, name: str, against: str
) -> Iterator[Claim]:
    pair = _pair(summary, name, against)
    if pair is None:
        return
    ours, theirs, rounds = _at_end(*pair, "seconds")
    yield Claim(
        number,
        f"{name} is much faster than {against} (at least {MUCH_FASTER:g} times)",
        f"{tables.number(ours, 3)} s against {tables.number(theirs, 3)} s for {rounds:,} rounds: "
        f"{tables.number(theirs / ours, 3)} times",
        theirs >= MUCH_FASTER * ours,
    )
    ours, theirs, rounds = _at_end(*pair, "loss")
    more = ours / theirs - 1.0
    yield Claim(
        number,
        f"{name} pays for it with a slightly higher loss than {against} (at most {SLIGHT:.0%})",
        f"{tables.number(ours, 6)} against {tables.number(theirs, 6)} after {rounds:,} rounds: "
        f"{more:+.1%}",
        more <= SLIGHT,
    )


def _pair(summary: Summary, one: str, other: str) -> tuple[Series, Series] | None:
    chosen = summary.chosen
    return (chosen[one], chosen[other]) if one in chosen and other in chosen else None


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


Say = Callable[[str], None]


def reproduce(
    experiment: Experiment, store: Store, workers: Workers, folder: str | None, say: Say
) -> int:
    """Run what is still missing of an experiment; return how many trials failed.

    Parameters
    ----------
    experiment
        What to run.
    store
        Where results are kept; what is there is not run again.
    workers
        Where to run.
    folder
        Holds the real data.
    say
        Told what happens, a sentence at a time.
    """
    data = find_data(experiment, folder, say)
    failed = _tune(experiment, data, store, workers, folder)
    finals: list[Trial] = []
    for contender in experiment.contenders:
        best = best_series(_tuned(experiment, contender, data, store))
        if best is not None and best.c is not None:
            say(f"{contender.label}: c = {best.c:g}")
            runs = experiment.finals(contender, data, best.c)
            finals += runs[1:] if best.complete else runs
    store.add(experiment.title, finals)
    failed += run_sweep(store, workers, folder)
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


def best_series(tuned: list[Series]) -> Series | None:
    """The one with the least loss among those that played the most rounds; None without any."""
    order = ((-int(series.rounds[-1]), series.mean_loss.mean) for series in tuned)
    return min(zip(order, tuned, strict=True), default=(None, None), key=lambda pair: pair[0])[1]


def _tune(
    experiment: Experiment, data: DataSet, store: Store, workers: Workers, folder: str | None
) -> int:
    """Try every c; where the best lies on the edge of the grid, go on beyond it."""
    grids = {contender.label: list(contender.scales) for contender in experiment.contenders}
    failed = 0
    for widening in range(experiment.widest + 1):
        trials = [
            experiment.tuning(contender, data, c)
            for contender in experiment.contenders
            for c in grids[contender.label]
        ]
        store.add(experiment.title, trials)
        failed = run_sweep(store, workers, folder)
        if widening == experiment.widest:
            break
        wider = [_widen(experiment, each, data, store, grids) for each in experiment.contenders]
        if not any(wider):
            break
    return failed


def _widen(
    experiment: Experiment,
    contender: Contender,
    data: DataSet,
    store: Store,
    grids: dict[str, list[float]],
) -> bool:
    """Add a value of c beyond the edge that the best one lies on; say whether there was need."""
    grid = grids[contender.label]
    best = best_series(_tuned(experiment, contender, data, store))
    ratio = grid[1] / grid[0]
    if best is None:
        return False
    if best.c == grid[-1]:
        grid.append(grid[-1] * ratio)
    elif best.c == grid[0]:
        grid.insert(0, grid[0] / ratio)
    else:
        return False
    return True


def _tuned(
    experiment: Experiment, contender: Contender, data: DataSet, store: Store
) -> list[Series]:
    """The contender's series of the tuning."""
    like = experiment.tuning(contender, data, 1.0)
    wanted = (like.data, like.first, like.limit, like.options, like.title)
    return group(
        result
        for result in store.results
        if (t := result.trial).seed == 0
        and (t.data, t.first, t.limit, t.options, t.title) == wanted
    )
