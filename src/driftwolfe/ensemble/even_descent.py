"""Descent experts that spread their linear minimisations evenly over the rounds."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.domains.saved_points import require_feasible, require_kind
from driftwolfe.ensemble.descent import Projections
from driftwolfe.ensemble.gradient_sum import GradientSum
from driftwolfe.ensemble.list_descent import ListDescent
from driftwolfe.ensemble.plan import Oracle
from driftwolfe.ensemble.purse import Purse, granted
from driftwolfe.losses import Loss
from driftwolfe.oracles.halfspace import HalfspaceRun
from driftwolfe.oracles.infeasible_projection import in_hull
from driftwolfe.oracles.stopping import Stopping
from driftwolfe.points import clip_to_ball, distance
from driftwolfe.points.kinds import Indices, Point
from driftwolfe.points.ops import trimmed
from driftwolfe.storage.state import require


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


class _Round(NamedTuple):
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

    def __init__(self, domain: Domain, oracle: Oracle, step_scale: float | None) -> None:
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
        return _Round(x, y, sums, jobs, largest, farthest, missed, calls)

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
        left = cast(Purse, self.purse).arriving()
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
        answer = run.ask()
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
