"""Experts whose points are kept in a list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Annotated, Any, NamedTuple, TypeGuard, cast

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.domains.base import require_feasible, require_kind
from driftwolfe.ensemble import threads
from driftwolfe.ensemble.dense import DenseDescent, PoolDescent
from driftwolfe.ensemble.descent import Descent, GradientSum, scaled_totals
from driftwolfe.ensemble.experts import Scores, require_in_range, stack
from driftwolfe.ensemble.plan import LMOBudget, ProjectionConfig
from driftwolfe.losses import Loss
from driftwolfe.losses.entries import EntryLoss
from driftwolfe.oracles import InfeasibleProjection
from driftwolfe.oracles.frank_wolfe import HalfspaceRun, Stopping
from driftwolfe.oracles.methods import in_hull, infeasible_projections
from driftwolfe.points import FactoredMatrix, distance
from driftwolfe.points.devices import HOST, is_array
from driftwolfe.points.kinds import Indices, Point
from driftwolfe.points.ops import POINTS, clip_to_ball, trimmed
from driftwolfe.state import POINT, Count, Field
from driftwolfe.storage import require

#: Bytes of an expert's factors up to which a device waits for calls, so that several share them.
_NARROW = 1 << 28


def descent(
    domain: Domain, oracle: ProjectionConfig, step_scale: float | None, several: bool = False
) -> Descent:
    """Return experts, none yet, as suits the set's points: stacked arrays, of `several` rules, or a list."""
    if oracle.even:
        return EvenDescent(domain, oracle, step_scale)
    if isinstance(domain.origin(), np.ndarray):
        return (PoolDescent if several else DenseDescent)(domain, oracle, step_scale)
    return ListDescent(domain, oracle, step_scale)


EACH = Field(list, ("experts",), items=POINT)


class ListDescent(Descent):
    """Experts in a list: their points do not stack, and their mean is formed only when asked for."""

    x: Annotated[list[Point], EACH]  # feasible, played
    y: Annotated[list[Point], EACH]  # infeasible
    sums: Annotated[list[GradientSum], Field(list, ("experts",), items=Field(GradientSum))]

    def __init__(self, domain: Domain, oracle: ProjectionConfig, step_scale: float | None) -> None:
        super().__init__(domain, oracle, step_scale)
        self.x, self.y, self.sums = [], [], []  # these are gradients of the current block

    def _new_expert(self, start: Point) -> dict[str, Any]:
        return {"clocks": 0, "x": start, "y": start, "sums": GradientSum()}

    def check(self) -> None:
        super().check()
        like = self.domain.origin()
        require(all(each.fits(like) for each in self.sums), "sums of gradients")
        require_feasible(self.domain, self.x)

    def point(self, i: int) -> Point:
        return self.x[i]

    def scores(self, loss: Loss) -> Scores:
        """The scores of every expert: entries of all, on a device of those of low rank in a few calls."""
        if not self._by_entries(loss):
            return super().scores(loss)
        loss.check_shape(self.domain.shape)
        places = loss.places(self.domain.device)
        narrow = sum(x.rank for x in self.x) * sum(self.domain.shape) * 8 <= _NARROW
        if narrow and self.size > 1 and self.domain.device is not HOST:
            return FactoredMatrix.entries_of_each(self.x, *places)
        return stack([x.entries_at(*places) for x in self.x])

    def _by_entries(self, loss: Loss) -> TypeGuard[EntryLoss]:
        return isinstance(loss, EntryLoss) and all(isinstance(x, FactoredMatrix) for x in self.x)

    def step(self, loss: Loss, slopes: Any, shared: bool = False) -> None:
        """Add each expert's gradient; where its block ends, take a step and project."""
        sums, largest = self._longer_sums(loss, slopes, shared)
        due, scale = self.due(), self.scale_for(largest)

        def targets(experts: list[int]) -> list[Point]:
            given = [sums[i] for i in experts]
            for number, i in enumerate(experts):
                if self.lazy[i]:
                    total = sums[i].total(self.x[i])
                    given[number], sums[i] = GradientSum(rest=total), GradientSum.of(total)
            likes, factors = [self.x[i] for i in experts], -scale * self.steps[experts]
            moves = scaled_totals(given, factors.tolist(), likes)
            ends = [self.y[i] + move for i, move in zip(experts, moves, strict=True)]
            return ends if self.cut is None else [self.cut.into(end) for end in ends]

        results = self._project(due, targets)
        x, y = list(self.x), list(self.y)
        for i, result in zip(due, results, strict=True):
            x[i] = result.feasible
            if not self.lazy[i]:
                y[i], sums[i] = result.infeasible, GradientSum()
        self.x, self.y, self.sums = x, y, sums
        self.largest_gradient = largest
        self.clocks = self.clocks + 1

    def _longer_sums(
        self, loss: Loss, slopes: Any, shared: bool
    ) -> tuple[list[GradientSum], float]:
        """The blocks' gradients with those of this round, and the largest norm so far."""
        each = [slopes] * self.size if shared else slopes
        if self._by_entries(loss):
            places = loss.places(self.domain.device)
            longer = [s.with_entries(*places, g) for s, g in zip(self.sums, each, strict=True)]
            # All at once: one transfer from a device.
            table = slopes[None] if shared else slopes if is_array(slopes) else stack(slopes)
            norms = loss.gradient_norms(table).tolist()
        else:
            given = zip(self.sums, each, self.x, strict=True)
            grown = [s.plus(loss, g, x, self.domain) for s, g, x in given]
            longer, norms = map(list, zip(*grown, strict=True))
        require_in_range(max(norms), self.diameter)
        return longer, max(self.largest_gradient, *norms)

    def _project(
        self, due: Indices, targets: Callable[[list[int]], list[Point]]
    ) -> list[InfeasibleProjection]:
        """Project the targets of the experts that are due, in parallel where possible."""
        if not self.independent:
            return self.project_in_turn(due, (targets([i])[0] for i in due.tolist()))
        if not due.size:
            return []

        def project(numbers: list[int]) -> list[InfeasibleProjection]:
            experts = due[numbers].tolist()
            asked = zip(experts, targets(experts), numbers, map(self.limit, experts), strict=True)
            return infeasible_projections(self.domain, [self.request(*each) for each in asked])

        # On a device, experts of low rank share one call; the others, and all on the host, have their own.
        on_host = self.domain.device is HOST
        narrow = [n for n, i in enumerate(due) if not on_host and not self.wide(i)]
        alone = [[n] for n in range(due.size) if n not in narrow]
        groups = [narrow, *alone] if narrow else alone
        jobs: Any = [partial(project, numbers) for numbers in groups]
        jobs = jobs if on_host else self.on_streams(jobs)
        found = threads.run(jobs, self.domain.device.workers)
        results = dict(zip(chain(*groups), chain(*found), strict=True))
        return self._counted(due, [results[number] for number in range(due.size)])

    def wide(self, i: int) -> bool:
        """Whether an expert keeps a device busy by itself."""
        x = self.x[i]
        return not isinstance(x, FactoredMatrix) or x.rank * sum(x.shape) * 8 > _NARROW

    def on_streams(self, jobs: Sequence[Callable[[], Any]]) -> list[Callable[[], Any]]:
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


class Job(NamedTuple):
    """A projection under way, or done: what the expert will have when its block ends."""

    x: Annotated[Point, Field(POINTS)]  # feasible
    y: Annotated[Point, Field(POINTS)]  # the target; once done, the infeasible point
    calls: Count = 0  # LMO calls made
    running: Annotated[bool, Field(bool)] = False  # whether it is not done yet


class EvenDescent(ListDescent):
    r"""Experts that work on the gradients of one block during the next.

    At the start of block n an expert launches :math:`(x_{n+1}, y_{n+1}) = IP(x_n,\ y_n - c h \sum_{n-1} g)`, and
    plays its result from block n+1 on. The calls that a round brings (one, for a budget of 1) go to the run whose
    block ends first. As expert i has :math:`\lfloor b_i K_i\rfloor` calls for every :math:`K_i` rounds and the
    :math:`b_i` sum to the budget, no run is late; a call that is not reserved goes to any run that is not done.
    """

    jobs: Annotated[list[Job], Field(list, ("experts",), items=Field(Job))]
    missed: Count  # runs that ended with their block, before they had reached their tolerance

    def __init__(self, domain: Domain, oracle: ProjectionConfig, step_scale: float | None) -> None:
        super().__init__(domain, oracle, step_scale)
        self.jobs, self.missed = [], 0

    def _new_expert(self, start: Point) -> dict[str, Any]:
        return {**super()._new_expert(start), "jobs": Job(start, start)}

    def check(self) -> None:
        super().check()
        points = [point for job in self.jobs for point in (job.x, job.y)]
        require_kind(self.domain, points, "projections under way")
        require_feasible(self.domain, [job.x for job in self.jobs])

    def step(self, loss: Loss, slopes: Any, shared: bool = False) -> None:
        """Add gradients, spend the round's calls, and at the end of a block launch the next run."""
        sums, largest = self._longer_sums(loss, slopes, shared)
        jobs = self._spend()
        x, y = list(self.x), list(self.y)
        for i in self.due().tolist():
            x[i], reached = jobs[i].x, jobs[i].y
            if jobs[i].running and (apart := distance(x[i], reached)) ** 2 > self.tolerances[i]:
                self._left(i, apart)  # a projection is no farther from x than its target
                self.missed += 1
            total, y[i], sums[i] = sums[i].total(x[i]), reached, GradientSum()
            jobs[i] = self._launch(i, x[i], reached, total, self.scale_for(largest))
        self.x, self.y, self.sums, self.jobs = x, y, sums, jobs
        self.largest_gradient = largest
        self.clocks = self.clocks + 1

    def _spend(self) -> list[Job]:
        """The jobs after the calls of this round."""
        jobs = list(self.jobs)
        self.pooled_budget = budget = cast(LMOBudget, self.pooled_budget).next_round()
        last = budget.spent + budget.arriving()
        deadlines = self.blocks - self.clocks % self.blocks  # rounds until the block ends
        while budget.spent < last and (running := [i for i, job in enumerate(jobs) if job.running]):
            reserved = [i for i in running if jobs[i].calls < cast(int, self.limit(i))]
            i = min(reserved or running, key=lambda i: deadlines[i])
            before = jobs[i].calls
            jobs[i] = self._advance(i, jobs[i])
            budget.spent += jobs[i].calls - before
        return jobs

    def _advance(self, i: int, job: Job) -> Job:
        """The job after one call, or after none where it turns out to be done."""
        # What is reserved surely affords the tolerance, and no more.
        accuracy = self.oracle.accuracy if self.oracle.pooled else None
        stop = Stopping(float(self.tolerances[i]), accuracy or np.inf, None)
        run = HalfspaceRun(self.domain, job.x, job.y, stop)
        answer = run.advance()
        calls = job.calls + run.calls
        if answer is None:
            return Job(run.pair.x, job.y, calls, running=True)
        self._ended(i, answer)
        return Job(trimmed(answer.feasible), trimmed(answer.infeasible), calls)

    def _launch(self, i: int, x: Point, y: Point, total: Point, scale: float) -> Job:
        """The projection of the block's gradient step; none where the expert will leave before."""
        if self.clocks[i] + 1 + self.blocks[i] >= self.lifetimes[i]:
            return Job(x, y)
        target = in_hull(self.domain, y + (-scale * self.steps[i]) * total)
        target = clip_to_ball(target, self.domain.center, self.domain.radius)
        return Job(x, target, running=True)
