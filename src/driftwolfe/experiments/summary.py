"""Results over seeds, the methods of a sweep on one stream, and their regrets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np

from driftwolfe import storage
from driftwolfe.comparison import CALL_NAMES
from driftwolfe.experiments.figure import UNTUNED, line_styles
from driftwolfe.experiments.sweep import Store
from driftwolfe.experiments.trial import DataSet, Result, canonical, read_file
from driftwolfe.points.kinds import Array, Indices
from driftwolfe.regret.offline import offline_minimum
from driftwolfe.terminal import Spread, spread

TWIN = "(synthetic twin)"
#: What tables and figures call the calls of an oracle, by the names of their curves.
CALLS = CALL_NAMES | {"products": "matrix-vector products"}


class Series:
    """Results of one method with one setting, at least one, by rising seed."""

    def __init__(self, results: tuple[Result, ...]) -> None:
        self.results = results
        self.trial = results[0].trial  # the first: what all have in common
        self.title, self.c = self.trial.title, self.trial.c
        # Rounds after which all of them were read; the least number played where there are none.
        common = set(results[0].rounds).intersection(*(result.rounds for result in results))
        least = min(result.rounds[-1] for result in results)
        self.rounds: Indices = np.array(sorted(common) or [least], dtype=np.int64)
        self.played = int(self.rounds[-1])  # by all of them, as far as the curves were read
        self.untuned = self.title.endswith(UNTUNED)

    def curve(self, name: str) -> Array:
        """Cumulative numbers: one row per seed, one column for each of `rounds`."""
        curves = ((r.rounds, getattr(r, name) or [0] * len(r.rounds)) for r in self.results)
        return np.array([np.interp(self.rounds, [0, *x], [0, *values]) for x, values in curves])

    def total(self, name: str) -> Spread:
        return spread(self.curve(name)[:, -1])

    def per_round(self, name: str) -> float:
        return self.total(name).mean / self.played

    @property
    def mean_loss(self) -> Spread:
        return spread(self.curve("loss")[:, -1] / self.played)


def preference(series: Series) -> tuple[int, float]:
    """The least of these stands for a method: most seeds, then least loss."""
    return -len(series.results), series.mean_loss.mean


def machines(*series: Series) -> list[str]:
    """The machines that they ran on, in a few words, from the facts that are stored with results."""
    found = []
    for facts in (result.environment for each in series for result in each.results):
        cores = f"{facts['cores']} cores" if facts.get("cores") else None
        parts = filter(None, [*map(facts.get, ("gpu", "cpu", "system")), cores])
        found.append(", ".join(map(str, parts)) or "unknown")
    return list(dict.fromkeys(found))


def group(results: Iterable[Result]) -> list[Series]:
    """Join results that differ only in their seed, in the order in which they came."""
    groups: dict[bytes, dict[int, Result]] = {}
    for result in results:
        trial = result.trial
        alike = msgspec.structs.replace(trial, seed=0, taus=(), label=trial.title)
        groups.setdefault(canonical(alike), {})[trial.seed] = result
    return [Series(tuple(found[seed] for seed in sorted(found))) for found in groups.values()]


class Summary:
    """The series of a sweep on one stream, the best first."""

    def __init__(self, series: Sequence[Series], tuning: Sequence[Series] = ()) -> None:
        self.series = series
        self._tuning = tuning  # runs on other orders, which only chose c
        self.stream = series[0].results[0].stream
        titles = dict.fromkeys(each.title for each in series)
        # The series that stands for each method, see `preference`: where there are several, so c is
        # chosen. Untuned ones last, and the least loss first.
        stands = {title: min(self.of(title), key=preference) for title in titles}
        self.titles = sorted(stands, key=lambda t: (t.endswith(UNTUNED), preference(stands[t])))
        self.styles = line_styles(self.titles)
        self.chosen = {title: stands[title] for title in self.titles}
        self.length = max(each.played for each in self.chosen.values())
        self.name = f"{self.stream}, {self.length:,} rounds"
        # Rounds at which the truth changed abruptly, as far as anything was played; none where those
        # are other ones for each seed.
        drifts = [r.drifts for each in self.chosen.values() for r in each.results]
        longest = max(drifts, key=len)
        self.drifts = longest if all(d == longest[: len(d)] for d in drifts) else []
        # The name of the data; of a twin, the name of the real data, and a warning.
        self.data_name = self.stream.removesuffix(TWIN).strip()
        twin = f"Synthetic twin of {self.data_name}: made-up data, not the real ones."
        self.notice = twin if self.stream.endswith(TWIN) else None

    def of(self, title: str) -> list[Series]:
        return [series for series in self.series if series.title == title]

    def tuning(self, title: str) -> list[Series]:
        """The series that its c was chosen from, by rising c."""
        tried: dict[float, Series] = {}
        for series in [each for each in self._tuning if each.title == title] or self.of(title):
            if series.c is not None:
                tried[series.c] = min(tried.get(series.c, series), series, key=preference)
        return [tried[c] for c in sorted(tried)]


def summarise(results: Iterable[Result], tuning: Iterable[Result] = ()) -> list[Summary]:
    """One summary for each data set among the results; `tuning` are runs that only chose c."""
    by_data: dict[DataSet, tuple[list[Result], list[Result]]] = {}
    for part, given in enumerate((results, tuning)):
        for result in given:
            by_data.setdefault(result.trial.data, ([], []))[part].append(result)
    made = [Summary(*map(group, found)) for found in by_data.values() if found[0]]
    styles = line_styles(title for summary in made for title in summary.titles)
    for summary in made:  # the same in all of them
        summary.styles = styles
    return made


def summaries(store: Store) -> list[Summary]:
    """The summaries of a folder of results; trials that chose c are in its folder ``tuning``."""
    tuning = store.tuning
    return summarise(store.results, tuning.results if tuning.folder.exists() else ())


# -- regret ----------------------------------------------------------------------------------------


class StretchMinimum(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The least loss of a fixed point over ``losses[start:end]``: between value - gap and value."""

    start: int
    end: int
    value: float  # the loss of a point that was found
    gap: float


def minima(data: DataSet, seed: int, folder: str | Path | None = None) -> list[StretchMinimum]:
    """Solve for the best fixed point of every stretch between drifts."""
    stream = data.load(seed, folder)
    assert stream.domain is not None  # every data set has one
    # Relative to the loss of the origin.
    tolerance = 1e-6 if math.prod(stream.domain.shape) <= 10_000 else 1e-2
    found = []
    for start, end in pairwise([0, *stream.drifts, len(stream)]):
        best = offline_minimum(stream.domain, stream.losses[start:end], tolerance=tolerance)
        found.append(StretchMinimum(start, end, best.value, best.gap))
    return found


def stored_minima(
    place: Path, data: DataSet, seed: int, folder: str | Path | None = None, *, solve: bool = True
) -> list[StretchMinimum]:
    """The result of `minima`, kept in the folder of a sweep; empty if not there and not to `solve`."""
    # Where a seed only changes the order of rounds within stretches, all seeds have one file.
    used = 0 if data.source.order_within_stretches else seed
    rounds = "" if data.rounds is None else f"-{data.rounds}"
    path = place / "minima" / f"{data.name}{rounds}-seed{used}.json"
    if not path.exists():
        if not solve:
            return []
        storage.write_bytes(path, msgspec.json.encode(minima(data, seed, folder)) + b"\n")
    remedy = "; delete it, and it is made again"
    return read_file(path, list[StretchMinimum], "a list of offline minima", remedy)


@dataclass(frozen=True)
class RegretRow:
    """The regrets of a method."""

    title: str
    dynamic: Spread | None  # against the best fixed point of each stretch; None where unknown
    adaptive: dict[int, Spread] = field(default_factory=dict)  # the largest over windows, by length
    # Dynamic regret so far: a row for each seed, a column for each of the series' rounds.
    so_far: Array | None = None


def stored_regrets(place: Path, summary: Summary) -> list[RegretRow]:
    """Regrets, as far as offline minima are kept in the folder of a sweep."""
    data = summary.series[0].trial.data
    seeds = {result.trial.seed for series in summary.series for result in series.results}
    known = {seed: stored_minima(place, data, seed, solve=False) for seed in seeds}
    # Windows as long as the shortest stretch, and a tenth of it.
    shortest = min((m.end - m.start for found in known.values() for m in found), default=0)
    return regret_rows(summary, known, (max(1, shortest // 10), shortest) if shortest else ())


def regret_rows(
    summary: Summary, minima: Mapping[int, Sequence[StretchMinimum]], taus: Sequence[int] = ()
) -> list[RegretRow]:
    """Regrets of the methods; where trials did not measure adaptive regret, bounds for `taus`."""
    rows = []
    for title, series in summary.chosen.items():
        adaptive, so_far = dict[int, list[float]](), list[Array]()
        for result in series.results:
            found: dict[int, float | None] = {each.tau: each.value for each in result.adaptive}
            if best := minima.get(result.trial.seed):
                so_far.append(regret_so_far(result, best, series.rounds))
                found = found or {tau: window_regret(result, best, tau) for tau in taus}
            for tau, value in found.items():
                adaptive.setdefault(tau, []).extend([] if value is None else [value])
        # Only what is known of every seed is a mean over seeds.
        seeds = len(series.results)
        whole = {tau: spread(each) for tau, each in adaptive.items() if len(each) == seeds}
        regrets = np.array(so_far) if len(so_far) == seeds else None
        dynamic = None if regrets is None else spread(regrets[:, -1])
        rows.append(RegretRow(title, dynamic, whole, regrets))
    return rows


def regret_so_far(result: Result, minima: Sequence[StretchMinimum], rounds: Indices) -> Array:
    """The loss beyond that of the best fixed points, which is spread evenly over each stretch."""
    edges = [0, *(m.end for m in minima)]
    best = np.cumsum([0.0, *(m.value for m in minima)])
    played = np.interp(rounds, [0, *result.rounds], [0.0, *result.loss])
    return np.asarray(played - np.interp(rounds, edges, best))


def window_regret(result: Result, minima: Sequence[StretchMinimum], tau: int) -> float | None:
    """A lower bound on the regret of the worst window of tau rounds; None if no window was read."""
    # The best fixed point of a stretch loses no more in a window inside it: losses are not negative.
    read = dict(zip([0, *result.rounds], [0.0, *result.loss], strict=True))
    found = [
        read[t + tau] - read[t] - m.value
        for m in minima
        for t in read
        if m.start <= t and t + tau <= m.end and t + tau in read
    ]
    return max(found, default=None)
