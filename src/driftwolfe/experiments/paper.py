"""The paper's two experiments, and its claims about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from driftwolfe.experiments.figure import UNTUNED
from driftwolfe.experiments.summary import (
    Series,
    Summary,
    group,
    machines,
    preference,
    stored_minima,
)
from driftwolfe.experiments.sweep import Store, run_sweep
from driftwolfe.experiments.trial import DATA_SETS, DataSet, Option, Trial
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array
from driftwolfe.streams import DataUnavailable
from driftwolfe.terminal import counted, markdown_text, number, spread, write_table

#: {2^-4, ..., 2^4}, a grid of the paper.
TWOS = tuple(2.0**k for k in range(-4, 5))

Say = Callable[[str], None]


@dataclass(frozen=True)
class Contender:
    """A method, and the values of its c to choose from."""

    method: str
    label: str
    scales: tuple[float, ...]  # the values of c to choose from; none: the learner's default
    options: dict[str, Option] = field(default_factory=dict)
    seconds: float = 1.0  # about what a run takes: for the plan, and as long ones start first
    like: str = ""  # label of the contender whose c it takes: the same method at another price

    @property
    def untuned(self) -> Contender:
        """The same method with the learner's default for c."""
        return replace(self, label=f"{self.label}{UNTUNED}", scales=())


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
    tuning_seeds: tuple[int, ...] = (1000, 1001)  # orders on which c is chosen, and no others
    also: tuple[str, ...] = ()  # data sets on which tuned methods run with their c too

    def data(self, twin: bool, name: str = "") -> DataSet:
        return DataSet(name=(name or self.real) + ("-twin" if twin else ""), rounds=self.rounds)

    def tuning(self, contender: Contender, data: DataSet, c: float) -> list[Trial]:
        """The trials that try a value of c; they measure no windows, which takes longer than they do."""
        return [_trial(contender, data, c, seed) for seed in self.tuning_seeds]

    def finals(self, contender: Contender, data: DataSet, c: float | None) -> list[Trial]:
        """The trials with the chosen c, on every order; on further data sets too."""
        sets = [data]
        if not contender.label.endswith(UNTUNED):
            twin = data.name.endswith("-twin")
            sets += [self.data(twin, name) for name in self.also]
        runs = product(sets, range(self.seeds))
        return [_trial(contender, each, c, seed, self.taus) for each, seed in runs]


def _trial(
    contender: Contender, data: DataSet, c: float | None, seed: int, taus: tuple[int, ...] = ()
) -> Trial:
    method, label, options = contender.method, contender.label, contender.options
    return Trial(method=method, label=label, options=options, data=data, c=c, seed=seed, taus=taus)


#: The best c that is known of each method, between its neighbours in {1, 2, 5} x 10^k, and the processor
#: seconds that a run of 3,000 rounds took or would take on a core of 2020 (Neoverse-N1).
_TUNED = (
    Contender("MultiOCG", "Multi-OCG", (5e3, 1e4, 2e4), {"max_inner": 4}, seconds=2300),
    Contender("Ader", "Ader", (5e2, 1e3, 2e3), seconds=3000),
    Contender("OneProjectionAder", "one-projection Ader", (1e3, 2e3, 5e3), seconds=1400),
    Contender("POLA", "POLA", (1e3, 2e3, 5e3), seconds=700),
    Contender("MultiOCG", "Multi-OCG, K = 1", (5e3, 1e4, 2e4), {"max_inner": 1}, seconds=390),
    Contender("POLD", "POLD", (1e4, 2e4, 5e4), seconds=60),
    Contender("BOGDIP", "BOGD_IP", (1e4, 2e4, 5e4), seconds=10),
)
#: With the rate s/sqrt(T) of the weights that is best for them, as in the paper: s = 0.01 of 1e-4, ..., 1 on
#: the two orders that c is chosen on. That of `Hedge` is sqrt(8/T)/B, with B the `loss_scale`.
_RATE: dict[str, Option] = {"loss_scale": 8.0**0.5 / 0.01}
_RATED = tuple(
    replace(each, label=f"{each.label}, tuned rate", options=each.options | _RATE, like=each.label)
    for each in _TUNED
    if each.label in ("POLD", "Multi-OCG")
)
#: MovieLens 100K, three copies, the middle one negated: 3,000 rounds of 100 ratings, and with drifts at
#: random times. Every method is tuned, by the same rule and without limits, and untuned.
_MATRICES = Experiment(
    title="Online matrix completion: dynamic regret",
    real="movielens-100k",
    contenders=(
        *_TUNED,
        *_RATED,
        Contender("POLAR", "POLAR", (), seconds=30),
        *(each.untuned for each in _TUNED),
    ),
    also=("movielens-100k-random-drifts",),
)
#: Learners that project once per round, exactly or by the block oracle, beside POLD, with the values of c of
#: one-projection Ader, which lie around D/G: opt-in, as those with exact projections take half a second per round.
_BLOCK: dict[str, Option] = {"method": "block"}
_ONE_PROJECTION = (
    *(each for each in _TUNED if each.method == "POLD"),
    *(
        Contender(method, label + oracle, (1e3, 2e3, 5e3), options, seconds=1400)
        for method, label in (
            ("OneProjectionAder", "one-projection Ader"),
            ("OneProjectionSAOL", "one-projection SAOL"),
        )
        for oracle, options in (("", {}), (", block", _BLOCK))
    ),
)
#: Shuttle, the features negated every 1,000 rounds: 4,350 rounds of 10 rows.
_EXACT: dict[str, Option] = {"gauge": "exact"}
_GAUGED = "PAMO, exact gauge (reconstructed)"
_CLASSES = Experiment(
    title="Online multiclass classification: adaptive regret",
    real="shuttle",
    contenders=(
        Contender("POLA", "POLA", TWOS),
        Contender("POLA", "POLA, paper's oracle", TWOS, {"method": "paper"}, seconds=20),
        Contender("PAMO", "PAMO (reconstructed)", TWOS, seconds=30, like=_GAUGED),
        Contender("PAMO", _GAUGED, TWOS, _EXACT, seconds=8),
        Contender(
            "PAMO", "PAMO, lazy (reconstructed)", TWOS, {**_EXACT, "steps": "lazy"}, seconds=8
        ),
        Contender("POLAR", "POLAR", (), seconds=3),
        Contender("POLA", "POLA", ()).untuned,
        Contender("PAMO", _GAUGED, (), _EXACT, seconds=8).untuned,
        Contender("POLD", "POLD", ()).untuned,
        Contender("Ader", "Ader", ()).untuned,
    ),
    taus=(100, 1000),
)


def _classes(scales: tuple[float, ...], **fields: Any) -> Experiment:
    """Classification with other values of c for all methods that are tuned, and another size."""
    contenders = tuple(replace(c, scales=scales) if c.scales else c for c in _CLASSES.contenders)
    return replace(_CLASSES, contenders=contenders, **fields)


#: By experiment and preset.
EXPERIMENTS: dict[str, dict[str, Experiment]] = {
    "matrix-completion": {
        # With the best c of the full setting (POLA: 2e3, which takes too long here);
        "quick": replace(
            _MATRICES,
            contenders=(
                Contender("POLAR", "POLAR", ()),
                Contender("POLD", "POLD", (2e4,)),
                Contender("POLA", "POLA", (5e3,)),
                Contender("BOGDIP", "BOGD_IP", (2e4,)),
                Contender("MultiOCG", "Multi-OCG, K = 1", (1e4,), {"max_inner": 1}),
            ),
            also=(),
            rounds=600,
            seeds=2,
        ),
        "paper": _MATRICES,
        "one-projection": replace(_MATRICES, contenders=_ONE_PROJECTION, also=(), widest=0),
    },
    "classification": {
        # With the best c of the full setting.
        "quick": _classes((64.0,), rounds=435, seeds=2, taus=(10, 100)),
        "paper": _CLASSES,
        # D/G is 28 there: the same grid from its middle, widened as often as it takes.
        "small-radius": _classes((16.0, 32.0, 64.0), real="shuttle-small-radius", widest=8),
    },
}


def experiment(
    name: str, preset: str = "quick", seeds: int | None = None, only: Sequence[str] = ()
) -> Experiment:
    """The experiment of that name at that size, or the part of it with `only` some methods."""
    checks.one_of(name, "experiment", EXPERIMENTS)
    checks.one_of(preset, f"preset of {name}", EXPERIMENTS[name])
    found = EXPERIMENTS[name][preset]
    if only:
        known = {each.label: each for each in found.contenders}
        for label in only:
            checks.one_of(label, "method", known)
        asked = {*only, *(known[label].like for label in only)}
        found = replace(found, contenders=tuple(known[label] for label in known if label in asked))
    if seeds is None:
        return found
    return replace(found, seeds=checks.count(seeds, "seeds", most=1000))


def reproduce(
    experiment: Experiment,
    store: Store,
    make_executor: Callable[[], Executor],
    folder: str | None,
    say: Say,
    device: str = "cpu",
) -> int:
    """Run what is missing of an experiment, `say` each step, and return how many trials failed.

    Trials that choose c are kept in a store of their own, the folder ``tuning`` inside the other.
    """
    data = find_data(experiment, folder, say)
    tuning = store.tuning
    say(plan(experiment, data, store))
    said, missing = set[str](), set[str]()
    while True:
        tried, finals, before = list[Trial](), list[Trial](), missing
        for contender in sorted(experiment.contenders, key=lambda each: -each.seconds):
            choice = choose(experiment, contender, data, tuning)
            tried += choice.trials
            if choice.settled:
                finals += experiment.finals(contender, data, choice.c)
                if choice.c is not None and contender.label not in said:
                    say(f"{contender.label}: c = {choice.c:g}")
                    said.add(contender.label)
        finals.sort(key=lambda trial: trial.data != data)  # further data come last
        stores = {each: found for each, found in ((tuning, tried), (store, finals)) if found}
        for each, found in stores.items():
            each.add(experiment.title, found)
        missing = {trial.identity for each in stores for trial in each.missing}
        if missing <= before:  # those that are left have failed
            break
        *first, last = stores
        run_sweep(last, make_executor, folder, device, first)
    say("solving for the best fixed points between drifts")
    for seed in range(experiment.seeds):
        stored_minima(store.folder, data, seed, folder)
    return len(missing)


class Choice(NamedTuple):
    """The trials that choose c, as far as they are known, and c if they have."""

    trials: list[Trial]
    c: float | None = None
    settled: bool = False


def choose(experiment: Experiment, contender: Contender, data: DataSet, tuning: Store) -> Choice:
    """Choose c by the results so far, that with the least loss; the grid grows where it is on the edge."""
    if contender.like:
        (contender,) = [each for each in experiment.contenders if each.label == contender.like]
    grid = sorted(contender.scales)
    if len(grid) < 2:
        return Choice([], grid[0] if grid else None, True)
    while True:
        trials = [trial for c in grid for trial in experiment.tuning(contender, data, c)]
        if not all(map(tuning.done, trials)):
            return Choice(trials)
        best = min(group(map(tuning.read, trials)), key=preference).c
        assert best is not None  # all of them have one
        wider = _widened(grid, best)
        if wider == grid or len(grid) - len(contender.scales) == experiment.widest:
            return Choice(trials, best, True)
        grid = wider


def plan(experiment: Experiment, data: DataSet, store: Store) -> str:
    """How many trials there are, how many are still to run, and how long that takes."""
    total, missing, seconds, tuning = 0, 0, 0.0, store.tuning
    for each in experiment.contenders:
        choice = choose(experiment, each, data, tuning)
        # Before c is known, any value counts the trials.
        finals = experiment.finals(each, data, choice.c or (each.scales or (None,))[0])
        left = sum(not tuning.done(trial) for trial in choice.trials)
        left += sum(not (choice.settled and store.done(trial)) for trial in finals)
        total += len(choice.trials) + len(finals)
        missing += left
        seconds += left * each.seconds
    hours = f"{seconds / 3600:.1f} hours" if seconds > 3600 else f"{seconds / 60:.0f} minutes"
    return (
        f"plan: {total} trials, {missing} to run, about {hours} of processor time in all; more where "
        "the best c lies on the edge of its grid. The same command resumes."
    )


def find_data(experiment: Experiment, folder: str | None, say: Say) -> DataSet:
    """The real data where they can be had, else their synthetic twin, and say which."""
    try:
        if file := DATA_SETS[experiment.real].file:
            file.read(folder)
    except DataUnavailable as problem:
        say(f"{problem}")
        say(f"using the synthetic twin of {experiment.real}: the numbers are of made-up data")
        return experiment.data(twin=True)
    return experiment.data(twin=False)


def _widened(grid: list[float], best: float) -> list[float]:
    """The grid with a value of c beyond the edge that the best one lies on, if it does."""
    if best not in (grid[0], grid[-1]):
        return grid
    up = best == grid[-1]
    digits = {f"{c:e}"[0] for c in grid}
    if len(digits) > 1 and digits <= set("125"):  # {1, 2, 5} x 10^k
        factor = {"1": (0.5, 2.0), "2": (0.5, 2.5), "5": (0.4, 2.0)}[f"{best:e}"[0]][up]
        new = float(f"{best * factor:.0e}")
    else:
        new = best * (grid[1] / grid[0]) ** (1 if up else -1)
    return [*grid, new] if up else [new, *grid]


# -- claims ----------------------------------------------------------------------------------------

#: Times quicker that count as significantly faster, the part of a loss that counts as slight, the
#: standard errors beyond which a difference counts, and the seeds that a verdict needs.
MUCH_FASTER, SLIGHT, ERRORS, SEEDS = 5.0, 0.10, 2.0, 3
#: By experiment: number and words of each claim, and whom it compares with whom.
_CLAIMS: dict[str, list[tuple[str, str, tuple[str, ...], str]]] = {
    "matrix-completion": [
        (
            "i",
            "projection-free methods are significantly more efficient compared to the "
            "projection-based approach (i.e. Ader), albeit with a slight compromise on cumulative loss",
            ("BOGDIP", "POLD", "POLA", "MultiOCG"),
            "Ader",
        ),
        (
            "ii",
            "our methods yield a lower cumulative loss compared to the projection-free contender "
            "Multi-OCG",
            ("BOGDIP", "POLD", "POLA"),
            "MultiOCG",
        ),
    ],
    "classification": [
        (
            "iii",
            "POLA is significantly faster than PAMO, despite a slight sacrifice of cumulative loss",
            ("POLA",),
            "PAMO",
        )
    ],
}
#: The figures of the paper, by experiment.
FIGURES: dict[str | None, str] = {"matrix-completion": "Figure 1", "classification": "Figure 2"}


class Paired(NamedTuple):
    """What two methods came to at the end, by seed."""

    rounds: int
    ours: Array
    theirs: Array

    @property
    def means(self) -> tuple[float, float]:
        return float(self.ours.mean()), float(self.theirs.mean())

    @property
    def difference(self) -> tuple[float, float]:
        """The mean over seeds of ours less theirs, and its standard error; 0 for a single seed."""
        found = spread(self.ours - self.theirs)
        return found.mean, found.deviation / len(self.ours) ** 0.5


def paired(one: Series, other: Series, name: str) -> Paired | None:
    """Both over the seeds that both have."""
    ends = [{r.trial.seed: getattr(r, name)[-1] for r in s.results} for s in (one, other)]
    if not (shared := sorted(ends[0].keys() & ends[1].keys())):
        return None
    return Paired(one.played, *(np.array([end[seed] for seed in shared]) for end in ends))


class Claim(NamedTuple):
    """A part of a claim about two methods, what was measured, and what follows."""

    number: str  # i, ii, iii: in the order in which the paper makes them
    words: str  # the paper's, of the whole claim
    text: str
    measured: str
    held: bool | None  # None where that cannot be said
    found: str  # what was found where it did not hold, or why nothing can be said

    @property
    def verdict(self) -> str:
        if self.held is None:
            return f"not decided: {self.found}"
        return "held" if self.held else f"not held: {self.found}"

    def __str__(self) -> str:
        return f"({self.number}) {self.text}: {self.verdict}; {self.measured}"


def quotes(found: list[Claim]) -> dict[str, str]:
    """The words of the paper, by the numbers of claims."""
    return {claim.number: claim.words for claim in found}


def as_markdown(found: list[Claim]) -> str:
    """The words of the paper, and a table of what became of them."""
    words = "\n".join(f'- ({numeral}) "{text}."' for numeral, text in quotes(found).items())
    rows = ([f"({c.number})", markdown_text(c.text), c.measured, c.verdict] for c in found)
    return f"{words}\n\n{write_table(['', 'claim', 'measured', 'verdict'], rows, left=4)}"


def experiment_of(title: str) -> str | None:
    """The experiment of the paper that has the title; None for a sweep of your own."""
    presets = ((name, found.title) for name in EXPERIMENTS for found in EXPERIMENTS[name].values())
    return next((name for name, known in presets if known == title), None)


def claims(summary: Summary, title: str) -> tuple[list[Claim], str]:
    """What became of the claims; or why nothing is said about those that there are, in a line."""
    found, seeds = list[Claim](), 0
    for numeral, words, ours, theirs in _CLAIMS.get(experiment_of(title) or "", ()):
        for one, other in product(_tuned(summary, *ours), _tuned(summary, theirs)):
            losses, times = paired(one, other, "loss"), paired(one, other, "seconds")
            if losses is None or times is None:
                continue
            seeds = max(seeds, len(losses.ours))
            if summary.notice or len(losses.ours) < SEEDS:
                continue
            speed = _faster(times, machines(one), machines(other))
            parts: dict[str, tuple[str, bool | None, str]] = {
                "is significantly faster than": speed,
                "loses slightly more than": _loses(losses, slightly=True),
            }
            if numeral == "ii":
                parts = {"loses less than": _loses(losses, slightly=False)}
            found += [
                Claim(numeral, words, f"{one.title} {verb} {other.title}", *part)
                for verb, part in parts.items()
            ]
    if found or not seeds:
        return found, ""
    needed = f"{SEEDS} orders of the data or more; this is {counted(seeds, 'order')}."
    if summary.notice:
        needed = "the real data: a synthetic twin says nothing about them."
    return [], f"The paper's claims need {needed}"


def _tuned(summary: Summary, *methods: str) -> list[Series]:
    """The methods with their chosen c."""
    chosen = [each for each in summary.chosen.values() if not each.untuned]
    return [each for method in methods for each in chosen if each.trial.method == method]


def _faster(times: Paired, ours: list[str], theirs: list[str]) -> tuple[str, bool | None, str]:
    """At least `MUCH_FASTER` times, if both ran on one machine; theirs may have had a GPU on top."""
    own, other = times.means
    ratio = other / own if own else float("inf")
    both = f"{number(own, 3)} s against {number(other, 3)} s for {times.rounds:,} rounds"
    measured = f"{both}: {number(ratio, 3)} times as fast"
    if ours != theirs or len(ours) > 1:
        gpu = theirs[0].removesuffix(f", {ours[0]}")
        handicap = len(ours) == len(theirs) == 1 and gpu != theirs[0]
        if handicap and ratio >= MUCH_FASTER:
            return f"{measured}, without the {gpu} that the other had", True, ""
        where = " and ".join(dict.fromkeys([*ours, *theirs]))
        return f"on {where}", None, "times of different machines are not comparable"
    if ratio >= MUCH_FASTER:
        return measured, True, ""
    found = "slower" if ratio < 1.0 else f"faster, but less than {MUCH_FASTER:g} times"
    return measured, False, found


def _loses(losses: Paired, slightly: bool) -> tuple[str, bool, str]:
    """Less, or more and by at most `SLIGHT`; in both cases by more than `ERRORS` standard errors."""
    (ours, theirs), (difference, error) = losses.means, losses.difference
    both = f"{number(ours, 6)} against {number(theirs, 6)} after {losses.rounds:,} rounds"
    change = f"{difference / theirs:+.1%} ± {error / abs(theirs):.1%}"
    found = ""
    if abs(difference) <= ERRORS * error:
        found = f"no difference beyond {ERRORS:g} standard errors"
    elif difference > 0.0 and not slightly:
        found = "higher, not lower"
    elif difference > SLIGHT * theirs:
        found = f"higher by more than {SLIGHT:.0%}"
    elif difference < 0.0 and slightly:
        found = "lower, not slightly higher"
    measured = f"{both}: {change}, mean and standard error over {len(losses.ours)} seeds"
    return measured, not found, found
