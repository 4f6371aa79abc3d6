"""Running one of the paper's experiments: choose c, then play every order of the data."""

from __future__ import annotations

from collections.abc import Callable

from driftwolfe.experiments.comparators import stored_minima
from driftwolfe.experiments.data_set import DATA_SETS, DataSet
from driftwolfe.experiments.paper.experiment import Contender, Experiment
from driftwolfe.experiments.series import Series, group
from driftwolfe.experiments.store import Store
from driftwolfe.experiments.sweep import run_sweep
from driftwolfe.experiments.trial import Trial
from driftwolfe.experiments.workers import Workers
from driftwolfe.streams import DataUnavailable

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
