"""The paper's two experiments."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from driftwolfe.experiments.summary import Series, group, preference
from driftwolfe.experiments.sweep import Store, run_sweep
from driftwolfe.experiments.tables import stored_minima
from driftwolfe.experiments.trial import DATA_SETS, DataSet, Option, Trial
from driftwolfe.points import checks
from driftwolfe.streams import DataUnavailable

#: {10^-1, ..., 10^6} and {2^-4, ..., 2^4}, the grids of the paper.
TENS = tuple(10.0**k for k in range(-1, 7))
TWOS = tuple(2.0**k for k in range(-4, 5))
#: Orders of the data on which c is chosen, and nothing else is measured.
TUNING_SEEDS = (1000, 1001)

Say = Callable[[str], None]


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


@dataclass(frozen=True)
class Experiment:
    """Contenders on a stream."""

    title: str  # of the report
    real: str  # the data set; its synthetic twin has "-twin" in its name
    contenders: tuple[Contender, ...]
    rounds: int | None = None  # length of the stream; None: all of it
    seeds: int = 5  # orders of the data on which each runs with its chosen c
    taus: tuple[int, ...] = ()  # lengths of windows whose adaptive regret the trials measure
    widest: int = 4  # how often a grid of c is widened whose best value lies on its edge

    def data(self, twin: bool) -> DataSet:
        return DataSet(name=self.real + ("-twin" if twin else ""), rounds=self.rounds)

    def tuning(self, contender: Contender, data: DataSet, c: float) -> Trial:
        """The trial that tries a value of c, on the first order of the data."""
        shared = {name: getattr(contender, name) for name in ("method", "label", "options")}
        first, limit = contender.tuning_first, contender.tuning_limit
        return Trial(**shared, data=data, c=c, first=first, limit=limit, taus=self.taus)

    def finals(self, contender: Contender, data: DataSet, c: float) -> list[Trial]:
        """The trials with the chosen c, on every order."""
        tried, spent = self.tuning(contender, data, c), {"first": None, "limit": contender.limit}
        return [msgspec.structs.replace(tried, seed=n, **spent) for n in range(self.seeds)]


#: MovieLens 100K, three copies, the middle one negated: 3,000 rounds of 100 ratings. Small steps keep
#: large matrices at full rank, and each projection then costs a decomposition: hence the limits while
#: c is chosen. Ader projects every expert in every round: it runs for twenty minutes on each order.
_MATRICES = Experiment(
    title="Online matrix completion: dynamic regret",
    real="movielens-100k",
    contenders=(
        Contender("BOGDIP", "BOGD_IP", TENS, tuning_limit=300.0),
        Contender("POLD", "POLD", TENS, tuning_limit=300.0),
        Contender("POLA", "POLA", TENS, tuning_limit=300.0),
        Contender("MultiOCG", "Multi-OCG", TENS, {"max_inner": 1}, tuning_limit=600.0),
        Contender("Ader", "Ader", TENS, tuning_first=50, tuning_limit=300.0, limit=1200.0),
    ),
)
#: Learners that project once per round, exactly or by the block oracle, beside POLD: opt-in, as those
#: with exact projections take half a second per round.
_BLOCK: dict[str, Option] = {"method": "block"}
_ONE_PROJECTION = tuple(
    replace(each, tuning_first=50, tuning_limit=300.0, limit=1200.0)
    for each in (
        Contender("POLD", "POLD", TENS),
        Contender("OneProjectionAder", "one-projection Ader", TENS),
        Contender("OneProjectionAder", "one-projection Ader, block", TENS, _BLOCK),
        Contender("OneProjectionSAOL", "one-projection SAOL", TENS),
        Contender("OneProjectionSAOL", "one-projection SAOL, block", TENS, _BLOCK),
    )
)
#: Shuttle, the features negated every 1,000 rounds: 4,350 rounds of 10 rows.
_CLASSES = Experiment(
    title="Online multiclass classification: adaptive regret",
    real="shuttle",
    contenders=(
        Contender("POLA", "POLA", TWOS),
        Contender("POLA", "POLA, paper's oracle", TWOS, {"method": "paper"}),
        Contender("PAMO", "PAMO", TWOS),
        Contender("PAMO", "PAMO, exact gauge", TWOS, {"gauge": "exact"}),
    ),
    taus=(100, 1000),
)


def _matrices(changes: dict[str, Any], **fields: Any) -> Experiment:
    """Matrix completion with other limits, the same for all contenders, and another size."""
    contenders = tuple(replace(each, **changes) for each in _MATRICES.contenders)
    return replace(_MATRICES, contenders=contenders, **fields)


#: By experiment and preset.
EXPERIMENTS: dict[str, dict[str, Experiment]] = {
    "matrix-completion": {
        # With the best c of the full setting for all but Ader, which would be slower with its own.
        "quick": _matrices(
            {"scales": (1e4,), "tuning_first": None, "tuning_limit": 20.0, "limit": 20.0},
            rounds=900,
            seeds=2,
            widest=0,
        ),
        # 10,000 ratings, so that Ader can play all rounds, with c around the best of the full setting.
        "short": _matrices(
            {"scales": TENS[3:7], "tuning_limit": 90.0, "limit": None}, rounds=300, widest=1
        ),
        "paper": _MATRICES,
        "one-projection": replace(_MATRICES, contenders=_ONE_PROJECTION),
    },
    "classification": {
        "quick": replace(_CLASSES, rounds=435, seeds=2, taus=(10, 100)),
        "paper": _CLASSES,
    },
}


def experiment(name: str, preset: str = "quick", seeds: int | None = None) -> Experiment:
    """The experiment of that name at that size."""
    if name not in EXPERIMENTS:
        raise ValueError(f"unknown experiment {name!r}; there are {', '.join(EXPERIMENTS)}")
    presets = EXPERIMENTS[name]
    if preset not in presets:
        raise ValueError(f"{name} has no preset {preset!r}; there are {', '.join(presets)}")
    if seeds is None:
        return presets[preset]
    return replace(presets[preset], seeds=checks.count(seeds, "seeds", most=1000))


def reproduce(
    experiment: Experiment,
    store: Store,
    make_executor: Callable[[], Executor],
    folder: str | None,
    say: Say,
) -> int:
    """Run what is missing of an experiment, `say` each step, and return how many trials failed."""
    data = find_data(experiment, folder, say)
    grids = [list(contender.scales) for contender in experiment.contenders]
    for _ in range(experiment.widest + 1):
        pairs = list(zip(experiment.contenders, grids, strict=True))
        tuning = [experiment.tuning(each, data, c) for each, grid in pairs for c in grid]
        store.add(experiment.title, tuning)
        failed = run_sweep(store, make_executor, folder)
        results = store.results
        best, wider = list[Series | None](), list[list[float]]()
        for each, grid in pairs:
            # Of its values of c, the one with most rounds and then least loss.
            own = (r for r in results if r.trial == experiment.tuning(each, data, r.trial.c or 1.0))
            best.append(min(group(own), key=preference, default=None))
            wider.append(_widened(grid, best[-1]))
        if wider == grids:
            break
        grids = wider
    finals: list[Trial] = []
    for contender, found in zip(experiment.contenders, best, strict=True):
        if found is not None and found.c is not None:
            say(f"{contender.label}: c = {found.c:g}")
            runs = experiment.finals(contender, data, found.c)
            finals += runs[1:] if found.complete else runs
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


def _widened(grid: list[float], best: Series | None) -> list[float]:
    """The grid with a value of c beyond the edge that the best one lies on, if it does."""
    if best is None or len(grid) < 2 or best.c not in (grid[0], grid[-1]):
        return grid
    ratio = grid[1] / grid[0]
    return [*grid, grid[-1] * ratio] if best.c == grid[-1] else [grid[0] / ratio, *grid]
