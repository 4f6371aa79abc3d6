"""Experts whose points are kept in a list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from itertools import chain
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from driftwolfe.domains import CountedDomain, Domain, OracleCalls
from driftwolfe.domains.base import require_feasible, require_kind
from driftwolfe.ensemble import threads
from driftwolfe.ensemble.budget import LMOBudget, granted
from driftwolfe.ensemble.descent import Descent, GradientSum, Projections
from driftwolfe.ensemble.evaluate import Scores, stack, weighted_sum
from driftwolfe.ensemble.plan import ProjectionConfig
from driftwolfe.losses import Loss
from driftwolfe.losses.entries import EntryLoss
from driftwolfe.oracles import InfeasibleProjection, infeasible_projections
from driftwolfe.oracles.frank_wolfe import HalfspaceRun, Stopping
from driftwolfe.oracles.infeasible_projection import in_hull
from driftwolfe.points import FactoredMatrix, clip_to_ball, distance
from driftwolfe.points.devices import HOST, is_array
from driftwolfe.points.kinds import Array, Indices, Point
from driftwolfe.points.ops import trimmed
from driftwolfe.storage import require

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

    def __init__(self, domain: Domain, oracle: ProjectionConfig, step_scale: float | None) -> None:
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

    def evaluate(self, loss: Loss) -> Scores:
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


class Job(NamedTuple):
    """A projection under way, or done: what the expert will have when its block ends.

    Attributes
    ----------
    x, y
        The feasible point and the target; once done, the answer.
    calls
        Linear minimisations made.
    running
        Whether it is not done yet.
    """

    x: Point
    y: Point
    calls: int = 0
    running: bool = False


class _EvenRound(NamedTuple):
    x: list[Point]
    y: list[Point]
    sums: list[GradientSum]
    jobs: list[Job]
    largest_gradient: float
    largest_distance: float
    missed: int
    calls: int


class EvenDescent(ListDescent):
    r"""Experts that work on the gradients of one block during the next.

    At the start of block n an expert launches
    :math:`(x_{n+1}, y_{n+1}) = IP(x_n,\ y_n - c h \sum_{n-1} g)`, and plays its result from block n+1
    on. The calls that a round brings (one, for a budget of 1) go to the run whose block ends first.
    As expert i has :math:`\lfloor b_i K_i\rfloor` calls for every :math:`K_i` rounds and the
    :math:`b_i` sum to the budget, no run comes too late; a call that no such claim is left for goes to
    any run that is not done.

    Attributes
    ----------
    missed
        Runs that ended with their block, before they had reached their tolerance.
    """

    STATE: ClassVar[tuple[str, ...]] = ("jobs", "missed")

    def __init__(self, domain: Domain, oracle: ProjectionConfig, step_scale: float | None) -> None:
        super().__init__(domain, oracle, step_scale)
        self.jobs: list[Job] = []
        self.missed = 0

    def check_state(self) -> None:
        """As `ListDescent.check_state`; a job for each expert, with points of the set's kind."""
        super().check_state()
        require(len(self.jobs) == self.size and self.missed >= 0, "projections under way")
        require(all(type(job) is Job for job in self.jobs), "projections under way")
        points = [point for job in self.jobs for point in (job.x, job.y)]
        require_kind(self.domain, points, "projections under way")
        require_feasible(self.domain, [job.x for job in self.jobs])

    @property
    def independent(self) -> bool:
        """No: a round's calls go to one expert or another."""
        return False

    def prepare(self, loss: Loss, slopes: Any, shared: bool, skip: Any = None) -> Any:
        """Work out the coming round."""
        x, y = list(self.x), list(self.y)
        sums, largest = self._longer_sums(loss, slopes, shared)
        jobs, calls = self._serve()
        due, farthest, missed = self.due(skip), self.largest_distance, self.missed
        for i in due.tolist():
            x[i], y[i] = jobs[i].x, jobs[i].y
            if jobs[i].running and (apart := distance(x[i], y[i])) ** 2 > self.tolerances[i]:
                farthest, missed = max(farthest, apart), missed + 1
            jobs[i] = self._launch(i, x[i], y[i], sums[i], self.scale_for(largest))
            sums[i] = GradientSum()
        return _EvenRound(x, y, sums, jobs, largest, farthest, missed, calls)

    def commit(self, prepared: Any) -> None:
        """Carry out what `prepare` worked out."""
        self.x, self.y, self.sums, self.jobs = prepared[:4]
        self.largest_gradient = prepared.largest_gradient
        self.largest_distance = prepared.largest_distance
        self.missed = prepared.missed
        self.clocks = self.clocks + 1
        self.settle(Projections([], None, prepared.calls))

    def _serve(self) -> tuple[list[Job], int]:
        """The jobs after the calls of this round, and the number of calls."""
        jobs, calls = list(self.jobs), 0
        left = cast(LMOBudget, self.purse).arriving()
        deadlines = self.blocks - self.clocks % self.blocks  # rounds until the block ends
        while calls < left and (i := self._next(jobs, deadlines)) is not None:
            before = jobs[i].calls
            jobs[i] = self._advance(i, jobs[i])
            calls += jobs[i].calls - before
        return jobs, calls

    def _next(self, jobs: list[Job], deadlines: Indices) -> int | None:
        """The job that the next call goes to: among those with a claim, else among all."""
        running = [i for i, job in enumerate(jobs) if job.running]
        claims = [
            i
            for i in running
            if jobs[i].calls < granted(float(self.shares[i]), int(self.blocks[i]))
        ]
        return min(claims or running, key=lambda i: deadlines[i], default=None)

    def _advance(self, i: int, job: Job) -> Job:
        """The job after one call, or after none where it turns out to be done."""
        # A share surely affords the tolerance, and no more.
        accuracy = self.oracle.accuracy if self.oracle.pooled else None
        stop = Stopping(float(self.tolerances[i]), accuracy, None)
        run = HalfspaceRun(self.domain, job.x, job.y, stop)
        answer = run.advance()
        calls = job.calls + run.calls
        if answer is None:
            return Job(run.pair.snapshot(), job.y, calls, running=True)
        return Job(trimmed(answer.feasible), trimmed(answer.infeasible), calls)

    def _launch(self, i: int, x: Point, y: Point, total: GradientSum, scale: float) -> Job:
        """The projection of the block's gradient step; none where the expert would not live on."""
        if self.clocks[i] + 1 + self.blocks[i] >= self.lifetimes[i]:
            return Job(x, y)
        target = y + (-scale * self.steps[i]) * total.total(x)
        target = in_hull(self.domain, target)
        inside = clip_to_ball(target, self.domain.center, self.domain.radius)
        return Job(x, inside, running=True)

    def _add_points(self, start: Point, number: int) -> None:
        super()._add_points(start, number)
        self.jobs = self.jobs + [Job(start, start)] * number

    def _keep_points(self, stay: Any) -> None:
        super()._keep_points(stay)
        self.jobs = [self.jobs[i] for i in np.flatnonzero(stay)]

    def _restart_points(self, number: int, start: Point) -> None:
        super()._restart_points(number, start)
        self.jobs[:number] = [Job(start, start)] * number
