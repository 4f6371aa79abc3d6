"""One Frank-Wolfe run and one half-space step."""

from __future__ import annotations

import math
from dataclasses import replace

from driftwolfe.domains import Domain
from driftwolfe.oracles.atoms import Atoms
from driftwolfe.oracles.pair import Pair
from driftwolfe.oracles.result import InfeasibleProjection
from driftwolfe.oracles.stopping import Stopping, collapse, cut_short, give_up, slice_off, stay
from driftwolfe.points.kinds import Point

METHOD = "halfspace"
#: LMO calls <= this * D^2 / tolerance with an exact oracle; `docs/theory/oracles.md` has the proof.
CALLS = 2.6
#: Steps towards known vertices between two calls: more of them bring ever less.
FREE_STEPS = 32
#: Error of an inexact oracle, in units of sqrt(tolerance) * d, that the run is sure to end with.
ORACLE_ERROR = 3 / 8


def halfspace(
    domain: Domain, x: Point, y: Point, stop: Stopping, atoms: Atoms | None = None
) -> InfeasibleProjection:
    r"""Project infeasibly by one Frank-Wolfe run and one half-space step.

    Line-search Frank-Wolfe on :math:`\tfrac12\lVert x - y\rVert^2` until the gap g falls to
    :math:`\sqrt{tolerance}\, d`. The last oracle answer bounds a half-space that holds K; y' is the
    projection of y on it, which lies on the segment to x at distance :math:`g/d`.

    At most :math:`2.6\, D^2/tolerance` oracle calls with an exact oracle, 6.66 in place of 2.6 with
    one that has the error asked of it, whatever `accuracy` asks for: where accuracy is
    finer, the run goes on to it as long as that cap allows, and otherwise returns the answer that
    was good enough on the way. Vertices found before (`atoms`) are tried before the oracle is asked.
    """
    run = HalfspaceRun(domain, x, y, stop, atoms)
    answer = run.ask()
    while answer is None:
        answer = run.ask()
    return answer


class HalfspaceRun:
    """A run of `halfspace`, one oracle call at a time.

    Parameters
    ----------
    domain
        The set.
    x, y
        The start, in the set, and the target, in its ball.
    stop
        When to stop.
    atoms
        Vertices found before, to be tried before the oracle is asked; new ones are added.

    Attributes
    ----------
    pair
        Where x and y are.
    calls
        Oracle calls made.
    """

    def __init__(
        self, domain: Domain, x: Point, y: Point, stop: Stopping, atoms: Atoms | None = None
    ) -> None:
        self.domain, self.stop, self.atoms = domain, stop, atoms
        self.pair, self.calls = Pair(x, y), 0
        # Up to this relative error the run still ends, after 6.66 D^2 / tolerance calls.
        self._hint = ORACLE_ERROR * math.sqrt(stop.tolerance) / domain.radius
        self._cap = CALLS * (2.0 * domain.radius) ** 2 / stop.tolerance
        self._fallback: InfeasibleProjection | None = None

    def ask(self) -> InfeasibleProjection | None:
        """Move on by one oracle call, or none where x is near; return the answer once there is one."""
        pair, stop = self.pair, self.stop
        if self.atoms is not None:
            self._try_atoms(self.atoms)
        if stop.near(pair):
            return stay(pair, self.calls, pair.distance * 2 * self.domain.radius, METHOD)
        gap = self._call()
        if stop.slices(pair.squared, gap):
            return slice_off(pair, self.calls, gap, METHOD)
        if stop.collapses(pair.squared, gap):
            return collapse(pair, self.calls, gap, METHOD)
        if stop.within_reach(pair.squared, gap):
            self._fallback = slice_off(pair, self.calls, gap, METHOD)
        if self._fallback and (stop.spent(self.calls) or self.calls + 1 > self._cap):
            return self._better(give_up(pair, stop, self.calls, gap, METHOD))
        if stop.spent(self.calls) and stop.accuracy is None and gap <= 0.5 * pair.squared:
            return collapse(pair, self.calls, gap, METHOD)
        if not pair.step():
            return self._better(give_up(pair, stop, self.calls, gap, METHOD))
        return self.leave() if stop.spent(self.calls) else None

    def leave(self) -> InfeasibleProjection:
        """Return where the run has got to."""
        return cut_short(self.pair, self.stop, self.calls, 2.0 * self.domain.radius, METHOD)

    def _call(self) -> float:
        """Ask the oracle, and return the gap that it certifies."""
        vertex, error = self.domain.lmo_with_error(self.pair.direction(), self._hint)
        self.calls += 1
        if self.atoms is not None:
            self.atoms.add(vertex)
        return self.pair.look(vertex) + error

    def _try_atoms(self, atoms: Atoms) -> None:
        """Step towards known vertices as long as one of them proves that the run must go on."""
        for _ in range(FREE_STEPS):
            if self.stop.near(self.pair):
                return
            vertex = atoms.best(self.pair.direction())
            if vertex is None:
                return
            gap = self.pair.look(vertex)
            if not gap > self.stop.enough(self.pair.squared) or not self.pair.step():
                return

    def _better(self, last: InfeasibleProjection) -> InfeasibleProjection:
        """The last answer if it keeps the contract, else an earlier one that did."""
        if last.converged or self._fallback is None:
            return last
        return replace(self._fallback, lmo_calls=last.lmo_calls)
