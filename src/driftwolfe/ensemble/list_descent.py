"""Descent experts whose points are factored matrices or products, one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from itertools import chain
from typing import Any, ClassVar, NamedTuple

import numpy as np

from driftwolfe.domains import CountedDomain, Domain, OracleCalls
from driftwolfe.domains.saved_points import require_feasible, require_kind
from driftwolfe.ensemble import threads
from driftwolfe.ensemble.descent import Descent, Projections
from driftwolfe.ensemble.gradient_sum import GradientSum
from driftwolfe.ensemble.plan import Oracle
from driftwolfe.ensemble.scores import Scores, stack, weighted_sum
from driftwolfe.losses import Loss
from driftwolfe.losses.entries import EntryLoss
from driftwolfe.oracles import InfeasibleProjection, infeasible_projections
from driftwolfe.points import FactoredMatrix
from driftwolfe.points.devices import HOST, is_array
from driftwolfe.points.kinds import Array, Indices, Point
from driftwolfe.storage.state import require

#: Bytes of an expert's factors up to which a device waits for calls, so that several share them.
_NARROW = 1 << 28


class _Round(NamedTuple):
    x: list[Point]
    y: list[Point]
    sums: list[GradientSum]
    largest_gradient: float
    projections: Projections


class Path(NamedTuple):
    """One expert's way through several rounds.

    Attributes
    ----------
    scores, values, slopes, calls
        Of each round: what the loss saw of the expert, its loss, the slope there, and the calls that
        the set had counted by its end.
    x, y, total
        Where it ended.
    gradient, distance
        The largest gradient norm, but for gradients of entries, and the largest distance a
        projection was cut off at.
    """

    scores: list[Any]
    values: list[Any]
    slopes: list[Any]
    calls: list[OracleCalls]
    x: Point
    y: Point
    total: GradientSum
    gradient: float
    distance: float


class ListDescent(Descent):
    """Experts in a list: their points do not stack, and their mean is formed only when asked for."""

    STATE: ClassVar[tuple[str, ...]] = ("x", "y", "sums")

    def __init__(self, domain: Domain, oracle: Oracle, step_scale: float | None) -> None:
        super().__init__(domain, oracle, step_scale)
        self.x: list[Point] = []  # feasible, played
        self.y: list[Point] = []  # infeasible
        self.sums: list[GradientSum] = []  # gradients of the current block

    def check_state(self) -> None:
        """As `Descent.check_state`; a point of the set's kind for each expert."""
        super().check_state()
        for points in (self.x, self.y):
            require(len(points) == self.size, "points of experts")
            require_kind(self.domain, points, "points of experts")
        like = self.domain.origin()
        kinds = [type(each) is GradientSum for each in self.sums]
        require(len(kinds) == self.size and all(kinds), "sums of gradients")
        require(all(each.fits(like) for each in self.sums), "sums of gradients")
        require_feasible(self.domain, self.x)

    def point(self, i: int) -> Point:
        """What expert i plays."""
        return self.x[i]

    def mean(self, weights: Array) -> Point:
        """The weighted mean of what the experts play: factors side by side, never dense."""
        return weighted_sum(weights, self.x)

    def look(self, loss: Loss) -> Scores:
        """What the loss sees of every expert."""
        return stack([loss.scores(x) for x in self.x])

    def prepare(self, loss: Loss, slopes: Any, shared: bool, skip: Any = None) -> _Round:
        """Work out the coming round."""
        x, y = list(self.x), list(self.y)
        sums, largest = self._longer_sums(loss, slopes, shared)
        due = self.due(skip)
        projections = self._project_due(due, sums, self.scale_for(largest), skip)
        for i, result in zip(due, projections.results, strict=True):
            x[i], y[i], sums[i] = result.feasible, result.infeasible, GradientSum()
        return _Round(x, y, sums, largest, projections)

    def _longer_sums(
        self, loss: Loss, slopes: Any, shared: bool
    ) -> tuple[list[GradientSum], float]:
        """The blocks' gradients with those of this round, and the largest norm so far."""
        each = [slopes] * self.size if shared else slopes
        grown = [s.plus(loss, g, x) for s, g, x in zip(self.sums, each, self.x, strict=True)]
        norms = [size for _, size in grown if size is not None]
        if not norms:  # all at once: one look at a device
            table = slopes[None] if shared else slopes if is_array(slopes) else stack(slopes)
            norms = loss.gradient_norms(table).tolist()  # type: ignore[attr-defined]
        return [longer for longer, _ in grown], max(self.largest_gradient, *norms)

    def _project_due(
        self, due: Indices, sums: list[GradientSum], scale: float, skip: Any
    ) -> Projections:
        """Step and project the experts whose blocks end, in parallel where nothing is shared."""
        if not self.side_by_side:
            targets = (self._target(i, sums[i], scale) for i in due.tolist())
            return self.project_in_turn(due, targets, skip)

        def job(numbers: list[int]) -> list[InfeasibleProjection]:
            experts = [int(due[number]) for number in numbers]
            targets = [self._target(i, sums[i], scale) for i in experts]
            return self._project_together(experts, targets, numbers)

        groups = self._together(due)
        jobs = self._beside([partial(job, numbers) for numbers in groups])
        found = threads.run(jobs, self.domain.device.workers)
        results = dict(zip(chain(*groups), chain(*found), strict=True))
        return Projections([results[number] for number in range(due.size)])

    def _together(self, due: Indices) -> list[list[int]]:
        """Which projections make one call: each its own, but for those of low rank on a device."""
        numbers = range(due.size)
        if self.domain.device is HOST:
            return [[number] for number in numbers]
        narrow = [number for number in numbers if not self._wide(due[number])]
        wide = [[number] for number in numbers if self._wide(due[number])]
        return [narrow, *wide] if narrow else wide

    def _wide(self, i: int) -> bool:
        """Whether an expert keeps a device busy by itself."""
        x = self.x[i]
        return not isinstance(x, FactoredMatrix) or x.rank * sum(x.shape) * 8 > _NARROW

    def _project_together(
        self, experts: list[int], targets: list[Point], numbers: list[int]
    ) -> list[InfeasibleProjection]:
        """Project some experts in one call, as `project` does one."""
        return infeasible_projections(
            self.domain,
            [self.x[i] for i in experts],
            targets,
            [float(self.tolerances[i]) for i in experts],
            self.oracle.method,
            self.oracle.accuracy,
            [self.limit(i) for i in experts],
            [(self.oracle.seed, self.projections + number) for number in numbers],
        )

    def _beside(self, jobs: Sequence[Callable[[], Any]]) -> list[Callable[[], Any]]:
        """The same jobs, each where its device lets it run beside the others."""

        def beside(job: Callable[[], Any], context: Any) -> Any:
            with context:
                return job()

        device = self.domain.device
        if device is HOST or len(jobs) < 2 or threads.threads() == 1:
            return list(jobs)
        for point in (*self.x, *self.y):
            getattr(point, "scale", None)  # what several may need is brought there first
        return [partial(beside, job, device.beside()) for job in jobs]

    def _target(self, i: int, total: GradientSum, scale: float) -> Point:
        """Where the gradient step of expert i ends, feasible or not."""
        return self.y[i] + (-scale * self.steps[i]) * total.total(self.x[i])

    def commit(self, prepared: _Round) -> None:
        """Carry out what `prepare` worked out."""
        self.x, self.y, self.sums = prepared.x, prepared.y, prepared.sums
        self.largest_gradient = prepared.largest_gradient
        self.largest_distance = max(self.largest_distance, prepared.projections.farthest)
        self.projections += len(prepared.projections.results)
        self.settle(prepared.projections)
        self.clocks = self.clocks + 1

    # -- running ahead -----------------------------------------------------------------------

    @property
    def independent(self) -> bool:
        """Whether each expert moves by itself: its steps do not wait for the others' gradients."""
        return self.step_scale is not None and self.side_by_side

    @property
    def ahead_pays(self) -> bool:
        """Whether experts are quicker each by itself: on a device, once one keeps it busy."""
        return self.domain.device is HOST or any(map(self._wide, range(self.size)))

    def run_ahead(self, losses: Sequence[Loss]) -> list[Path]:
        """Follow every expert through several rounds on its own gradients, changing nothing.

        Experts of high rank spend their time in matrix products and those of low rank in Python,
        so threads take them from both ends, which keeps them out of each other's way.
        """
        rounds = np.arange(1, len(losses) + 1)
        ends = (self.clocks[:, None] + rounds) % self.blocks[:, None] == 0
        numbers = np.cumsum(ends.T.ravel()).reshape(ends.T.shape).T - 1  # as if round by round
        jobs = [partial(self._follow, i, losses, ends[i], numbers[i]) for i in range(self.size)]
        if isinstance(self.x[0], FactoredMatrix):
            for loss in losses:
                if isinstance(loss, EntryLoss):
                    loss.places(self.domain.device)  # before threads ask for it
        ranks = [getattr(x, "rank", 0) for x in self.x]
        return threads.run_from_both_ends(self._beside(jobs), ranks, self.domain.device.workers)

    def _follow(self, i: int, losses: Sequence[Loss], ends: Any, numbers: Indices) -> Path:
        domain = CountedDomain(self.domain.unwrapped)
        x, y, total = self.x[i], self.y[i], self.sums[i]
        path = Path([], [], [], [], x, y, total, 0.0, 0.0)
        for loss, end, number in zip(losses, ends, numbers, strict=True):
            score = loss.scores(x)
            value, slope = loss.value_and_slope_at(score)
            total, size = total.plus(loss, slope, x)
            path.scores.append(score)
            path.values.append(value)
            path.slopes.append(slope)
            path = path._replace(gradient=max(path.gradient, size or 0.0))
            if end:
                step = -self.scale_for(path.gradient) * self.steps[i]
                target = y + step * total.total(x)
                result = self.project(i, x, target, int(number), self.limit(i), domain)
                x, y, total = result.feasible, result.infeasible, GradientSum()
                if not result.converged:
                    path = path._replace(distance=max(path.distance, result.distance))
            path.calls.append(copy(domain.calls))
        return path._replace(x=x, y=y, total=total)

    def arrive(self, paths: Sequence[Path], losses: Sequence[Loss]) -> None:
        """Carry out what `run_ahead` worked out for these losses."""
        largest = [path.gradient for path in paths]
        for t, loss in enumerate(losses):
            if isinstance(loss, EntryLoss):  # of all experts at once, as `GradientSum.plus` says
                largest += loss.gradient_norms(stack([path.slopes[t] for path in paths])).tolist()
        self.x, self.y = [path.x for path in paths], [path.y for path in paths]
        self.sums = [path.total for path in paths]
        self.largest_gradient = max(self.largest_gradient, *largest)
        self.largest_distance = max(self.largest_distance, *(path.distance for path in paths))
        later = self.clocks + len(paths[0].values)
        self.projections += int((later // self.blocks - self.clocks // self.blocks).sum())
        self.clocks = later

    def _add_points(self, start: Point, number: int) -> None:
        self.x = self.x + [start] * number
        self.y = self.y + [start] * number
        self.sums = self.sums + [GradientSum() for _ in range(number)]

    def _keep_points(self, stay: Any) -> None:
        kept = np.flatnonzero(stay)
        self.x = [self.x[i] for i in kept]
        self.y = [self.y[i] for i in kept]
        self.sums = [self.sums[i] for i in kept]

    def _restart_points(self, number: int, start: Point) -> None:
        self.x[:number] = [start] * number
        self.y[:number] = [start] * number
        self.sums[:number] = [GradientSum() for _ in range(number)]
