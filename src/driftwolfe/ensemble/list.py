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
from driftwolfe.ensemble.dense import DenseDescent
from driftwolfe.ensemble.descent import Descent, GradientSum
from driftwolfe.ensemble.evaluate import Evaluation, Scores, stack, weighted_sum
from driftwolfe.ensemble.plan import LMOBudget, ProjectionConfig, granted
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


def descent(domain: Domain, oracle: ProjectionConfig, step_scale: float | None) -> Descent:
    """Return experts, none yet, as suits the set's points: stacked arrays, or a list."""
    if oracle.even:
        return EvenDescent(domain, oracle, step_scale)
    if isinstance(domain.origin(), np.ndarray):
        return DenseDescent(domain, oracle, step_scale)
    return ListDescent(domain, oracle, step_scale)


class Path(NamedTuple):
    """One expert's way through several rounds.

    Attributes
    ----------
    scores, values, slopes, calls
        Of each round: the expert's scores, its loss, the slope there, and the set's calls so far.
    x, y, total
        Where it ended.
    gradient, distance
        The largest gradient norm, except of entry losses, and the largest distance at which a
        projection was cut off.
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

    def calls_in(self, t: int) -> list[int]:
        """Return the calls made in one round, as `OracleCalls.numbers` orders them."""
        before = (self.calls[t - 1] if t else OracleCalls()).numbers()
        return [now - then for now, then in zip(self.calls[t].numbers(), before, strict=True)]


class ListDescent(Descent):
    """Experts in a list: their points do not stack, and their mean is formed only when asked for."""

    STATE: ClassVar[tuple[str, ...]] = ("x", "y", "sums")

    def __init__(self, domain: Domain, oracle: ProjectionConfig, step_scale: float | None) -> None:
        super().__init__(domain, oracle, step_scale)
        self.x: list[Point] = []  # feasible, played
        self.y: list[Point] = []  # infeasible
        self.sums: list[GradientSum] = []  # gradients of the current block

    def check_state(self) -> None:
        super().check_state()
        for points in (self.x, self.y):
            require(len(points) == self.size, "points of experts")
            require_kind(self.domain, points, "points of experts")
        like = self.domain.origin()
        fits = [type(each) is GradientSum and each.fits(like) for each in self.sums]
        require(len(fits) == self.size and all(fits), "sums of gradients")
        require_feasible(self.domain, self.x)

    def point(self, i: int) -> Point:
        """Return what expert i plays."""
        return self.x[i]

    def mean(self, weights: Array) -> Point:
        """Return the weighted mean of what the experts play: factors side by side, never dense."""
        return weighted_sum(weights, self.x)

    def scores(self, loss: Loss) -> Scores:
        """Return the scores of every expert under a loss."""
        return stack([loss.scores(x) for x in self.x])

    def step(self, loss: Loss, evaluation: Evaluation, leaving: Any = None) -> None:
        """Add each expert's gradient; where its block ends, take a step and project."""
        sums, largest = self._longer_sums(loss, evaluation)
        due = self.due(leaving)
        results = self._project(due, sums, self.scale_for(largest), leaving)
        x, y = list(self.x), list(self.y)
        for i, result in zip(due, results, strict=True):
            x[i], y[i], sums[i] = result.feasible, result.infeasible, GradientSum()
        self.x, self.y, self.sums = x, y, sums
        self.largest_gradient = largest
        self.clocks = self.clocks + 1

    def _longer_sums(self, loss: Loss, evaluation: Evaluation) -> tuple[list[GradientSum], float]:
        """The blocks' gradients with those of this round, and the largest norm so far."""
        slopes, shared = evaluation.slopes, evaluation.shared
        each = [slopes] * self.size if shared else slopes
        grown = [s.plus(loss, g, x) for s, g, x in zip(self.sums, each, self.x, strict=True)]
        norms = [size for _, size in grown if size is not None]
        if not norms:  # all at once: one transfer from a device
            table = slopes[None] if shared else slopes if is_array(slopes) else stack(slopes)
            norms = loss.gradient_norms(table).tolist()  # type: ignore[attr-defined]
        return [longer for longer, _ in grown], max(self.largest_gradient, *norms)

    def _target(self, i: int, total: GradientSum, scale: float) -> Point:
        """Where the gradient step of expert i ends, feasible or not."""
        return self.y[i] + (-scale * self.steps[i]) * total.total(self.x[i])

    def _project(
        self, due: Indices, sums: list[GradientSum], scale: float, leaving: Any
    ) -> list[InfeasibleProjection]:
        """Take the steps of the experts whose blocks end and project, in parallel where possible."""
        if not self.independent:
            targets = (self._target(i, sums[i], scale) for i in due.tolist())
            return self.project_in_turn(due, targets, leaving)

        def project(numbers: list[int]) -> list[InfeasibleProjection]:
            experts = [int(due[number]) for number in numbers]
            return infeasible_projections(
                self.domain,
                [self.x[i] for i in experts],
                [self._target(i, sums[i], scale) for i in experts],
                [float(self.tolerances[i]) for i in experts],
                self.oracle.method,
                self.oracle.accuracy,
                [self.limit(i) for i in experts],
                [(self.oracle.seed, self.projections + number) for number in numbers],
            )

        # On a device, experts of low rank share one call; the others, and all on the host, have
        # their own.
        on_host = self.domain.device is HOST
        narrow = [n for n, i in enumerate(due) if not on_host and not self._wide(i)]
        alone = [[n] for n in range(due.size) if n not in narrow]
        groups = [narrow, *alone] if narrow else alone
        jobs = self._on_streams([partial(project, numbers) for numbers in groups])
        found = threads.run(jobs, self.domain.device.workers)
        results = dict(zip(chain(*groups), chain(*found), strict=True))
        ordered = [results[number] for number in range(due.size)]
        self._count(ordered)
        return ordered

    def _wide(self, i: int) -> bool:
        """Whether an expert keeps a device busy by itself."""
        x = self.x[i]
        return not isinstance(x, FactoredMatrix) or x.rank * sum(x.shape) * 8 > _NARROW

    def _on_streams(self, jobs: Sequence[Callable[[], Any]]) -> list[Callable[[], Any]]:
        """The same jobs, each on a stream of its own where they run on a device in parallel."""

        def on_stream(job: Callable[[], Any], stream: Any) -> Any:
            with stream:
                return job()

        device = self.domain.device
        if device is HOST or len(jobs) < 2 or threads.threads() == 1:
            return list(jobs)
        for point in (*self.x, *self.y):
            getattr(point, "scale", None)  # computed once, before several threads need it
        return [partial(on_stream, job, device.beside()) for job in jobs]

    # -- running ahead -----------------------------------------------------------------------

    @property
    def can_run_ahead(self) -> bool:
        """Whether each expert moves by itself: its steps do not wait for others' gradients."""
        return self.step_scale is not None and self.independent

    @property
    def ahead_pays(self) -> bool:
        """Whether experts are quicker one by one: on a device, once one keeps it busy."""
        return self.domain.device is HOST or any(map(self._wide, range(self.size)))

    def run_ahead(self, losses: Sequence[Loss]) -> list[Path]:
        """Follow every expert through several rounds on its own gradients, changing nothing.

        Experts of high rank spend their time in matrix products and those of low rank in Python,
        so threads take them from both ends.
        """
        rounds = np.arange(1, len(losses) + 1)
        ends = (self.clocks[:, None] + rounds) % self.blocks[:, None] == 0
        numbers = np.cumsum(ends.T.ravel()).reshape(ends.T.shape).T - 1  # as if round by round
        jobs = [partial(self._follow, i, losses, ends[i], numbers[i]) for i in range(self.size)]
        if isinstance(self.x[0], FactoredMatrix):
            for loss in losses:
                if isinstance(loss, EntryLoss):
                    loss.places(self.domain.device)  # cached before threads need it
        ranks = [getattr(x, "rank", 0) for x in self.x]
        return threads.run_from_both_ends(self._on_streams(jobs), ranks, self.domain.device.workers)

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
                target = y + (-self.scale_for(path.gradient) * self.steps[i]) * total.total(x)
                result = self.project(i, x, target, int(number), self.limit(i), domain)
                x, y, total = result.feasible, result.infeasible, GradientSum()
                if not result.converged:
                    path = path._replace(distance=max(path.distance, result.distance))
            path.calls.append(copy(domain.calls))
        return path._replace(x=x, y=y, total=total)

    def arrive(self, paths: Sequence[Path], losses: Sequence[Loss]) -> None:
        """Move every expert to the end of its path through these losses."""
        largest = [path.gradient for path in paths]
        for t, loss in enumerate(losses):
            if isinstance(loss, EntryLoss):  # of all experts at once, see `GradientSum.plus`
                largest += loss.gradient_norms(stack([path.slopes[t] for path in paths])).tolist()
        self.x, self.y = [path.x for path in paths], [path.y for path in paths]
        self.sums = [path.total for path in paths]
        self.largest_gradient = max(self.largest_gradient, *largest)
        self.largest_distance = max(self.largest_distance, *(path.distance for path in paths))
        later = self.clocks + len(losses)
        self.projections += int((later // self.blocks - self.clocks // self.blocks).sum())
        self.clocks = later

    # -- which experts there are -------------------------------------------------------------

    def _add_points(self, start: Point, number: int) -> None:
        self.x = self.x + [start] * number
        self.y = self.y + [start] * number
        self.sums = self.sums + [GradientSum() for _ in range(number)]

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
        LMO calls made.
    running
        Whether it is not done yet.
    """

    x: Point
    y: Point
    calls: int = 0
    running: bool = False


class EvenDescent(ListDescent):
    r"""Experts that work on the gradients of one block during the next.

    At the start of block n an expert launches
    :math:`(x_{n+1}, y_{n+1}) = IP(x_n,\ y_n - c h \sum_{n-1} g)`, and plays its result from block n+1
    on. The calls that a round brings (one, for a budget of 1) go to the run whose block ends first.
    As expert i has :math:`\lfloor b_i K_i\rfloor` calls for every :math:`K_i` rounds and the
    :math:`b_i` sum to the budget, no run is late; a call that is not reserved goes to any run that is
    not done.

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
        super().check_state()
        require(len(self.jobs) == self.size and self.missed >= 0, "projections under way")
        require(all(type(job) is Job for job in self.jobs), "projections under way")
        points = [point for job in self.jobs for point in (job.x, job.y)]
        require_kind(self.domain, points, "projections under way")
        require_feasible(self.domain, [job.x for job in self.jobs])

    @property
    def can_run_ahead(self) -> bool:
        """No: a round's calls go to one expert or another."""
        return False

    def step(self, loss: Loss, evaluation: Evaluation, leaving: Any = None) -> None:
        """Add gradients, spend the round's calls, and at the end of a block launch the next run."""
        sums, largest = self._longer_sums(loss, evaluation)
        jobs, calls = self._spend()
        x, y = list(self.x), list(self.y)
        for i in self.due(leaving).tolist():
            x[i], y[i] = jobs[i].x, jobs[i].y
            if jobs[i].running and (apart := distance(x[i], y[i])) ** 2 > self.tolerances[i]:
                self.largest_distance = max(self.largest_distance, apart)
                self.missed += 1
            jobs[i] = self._launch(i, x[i], y[i], sums[i], self.scale_for(largest))
            sums[i] = GradientSum()
        self.x, self.y, self.sums, self.jobs = x, y, sums, jobs
        self.largest_gradient = largest
        self.clocks = self.clocks + 1
        self.pooled_budget = cast(LMOBudget, self.pooled_budget).after(calls)

    def _spend(self) -> tuple[list[Job], int]:
        """The jobs after the calls of this round, and the number of calls."""
        jobs, calls = list(self.jobs), 0
        left = cast(LMOBudget, self.pooled_budget).arriving()
        deadlines = self.blocks - self.clocks % self.blocks  # rounds until the block ends
        while calls < left and (running := [i for i, job in enumerate(jobs) if job.running]):
            reserved = [
                i
                for i in running
                if jobs[i].calls < granted(float(self.shares[i]), int(self.blocks[i]))
            ]
            i = min(reserved or running, key=lambda i: deadlines[i])
            before = jobs[i].calls
            jobs[i] = self._advance(i, jobs[i])
            calls += jobs[i].calls - before
        return jobs, calls

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
        """The projection of the block's gradient step; none where the expert will leave before."""
        if self.clocks[i] + 1 + self.blocks[i] >= self.lifetimes[i]:
            return Job(x, y)
        target = in_hull(self.domain, y + (-scale * self.steps[i]) * total.total(x))
        inside = clip_to_ball(target, self.domain.center, self.domain.radius)
        return Job(x, inside, running=True)

    def _add_points(self, start: Point, number: int) -> None:
        super()._add_points(start, number)
        self.jobs = self.jobs + [Job(start, start)] * number

    def _restart_points(self, number: int, start: Point) -> None:
        super()._restart_points(number, start)
        self.jobs[:number] = [Job(start, start)] * number
