"""`minimise`: a convex function over a set by linear minimisations, with a certified gap."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe.domains import Domain
from driftwolfe.losses import Loss
from driftwolfe.points import FactoredMatrix, checks, inner, norm
from driftwolfe.points.kinds import Array, Point
from driftwolfe.points.ops import trimmed

METHODS = ("auto", "corrective", "blended", "pairwise", "away", "vanilla")
#: A line search ends where the slope is at most this fraction of that at its start; its most evaluations.
_FLAT, _TRIALS = 0.1, 60
#: Rounding, relative to the size of numbers; error asked of an inexact vertex, relative to the gap.
_NOISE, _ERROR_FRACTION = 2.0**-48, 0.1
#: Steps after which vanilla recompresses a factored point; most atoms of corrective; its step to see curvature.
_COMPRESSED, _MODELLED, _GLANCE = 40, 200, 1e-3
#: Least curvatures of its model: relative to the largest; relative to the slopes, which bounds steps.
_FLATTEST, _GENTLEST = 1e-10, 1e-3


@dataclass(frozen=True, slots=True)
class Minimum:
    r"""A point of a set, the value of a convex function there, and how much less its minimum may be.

    Attributes
    ----------
    point, value, gap
        A point x of K, f(x), and a bound: :math:`f(x) - \min_K f \le gap`, also where the run was cut off.
    lmo_calls, iterations, method, converged
        LMO calls and steps made, the method that ran, and whether the gap is as small as asked.
    atoms, weights
        Points of K whose mean with these weights is x, vertices but perhaps the start; of ``"vanilla"``, x alone.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> best = dw.minimise(dw.losses.SquaredDistance([1.0, 1.0]), dw.L1Ball(2))
    >>> best.point, best.gap <= 1e-6, best.converged
    (array([0.5, 0.5]), True, True)
    """

    point: Point
    value: float
    gap: float
    lmo_calls: int
    iterations: int
    method: str
    converged: bool
    atoms: list[Point]
    weights: Array


def minimise(
    f: Loss | Callable[[Any], tuple[float, Any]],
    domain: Domain,
    gap: float = 1e-6,
    *,
    method: str = "auto",
    start: Any = None,
    max_lmo_calls: int = 10_000,
) -> Minimum:
    r"""Minimise a differentiable convex function over a set: :math:`\min_{x \in K} f(x)`.

    Frank-Wolfe steps with line searches on the slope of f: no curvature is to be known. Each LMO call
    proves :math:`\min_K f \ge f(x) - \max_{v \in K}\langle\nabla f(x), x - v\rangle`, less its error.

    Parameters
    ----------
    f
        A loss, or a function that returns value and gradient at a point; it may be infinite in parts of K.
    domain, gap
        The set K, which needs only its LMO, and when to stop: once the value is proved to be within
        this of the minimum, in units of f.
    method
        ``"vanilla"`` steps towards vertices. The others hold x as a mean of vertices, converge linearly
        on polytopes, and call the LMO only where the vertices held promise less than a quarter of the
        last gap: ``"away"`` also steps away from the worst one, ``"pairwise"`` moves weight from the
        worst one to another, ``"blended"`` does so among those held and steps to a new one where that
        gains more. ``"corrective"`` moves all weights at once, to the minimum of a quadratic model of f
        (BFGS): by far the fewest gradients, and LMO calls. Beyond 200 vertices it goes on as blended.
        ``"auto"``: corrective, but vanilla for factored points.
    start
        A point of K where f is finite; by default `domain.origin()`.
    max_lmo_calls
        Limit on the LMO calls; the gap may then be larger.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> target = np.array([0.9, 0.5, 0.1])
    >>> best = dw.minimise(lambda x: (np.sum((x - target) ** 4), 4 * (x - target) ** 3), dw.Simplex(3))
    >>> best.point.round(2), best.gap <= 1e-6
    (array([0.7, 0.3, 0. ]), True)

    References
    ----------
    Lacoste-Julien and Jaggi (2015), On the global linear convergence of Frank-Wolfe optimization variants;
    Tsuji, Tanaka and Pokutta (2022), Pairwise conditional gradients without swap steps; Braun, Pokutta and
    Zink (2017), Lazifying conditional gradient algorithms; Braun et al. (2022), Conditional gradient methods.
    """
    if not isinstance(domain, Domain):
        raise TypeError(f"domain must be a Domain, got {type(domain).__name__}")
    if domain.lmo_method == "separation":
        kind = type(domain.unwrapped).__name__
        raise ValueError(f"minimise needs linear minimisation, which {kind} lacks; use LMODomain")
    checks.one_of(method, "method", METHODS)
    gap, limit = checks.positive(gap, "gap"), checks.count(max_lmo_calls, "max_lmo_calls")
    first = domain.origin() if start is None else checked_start(domain, start)
    if method == "auto":
        method = "vanilla" if isinstance(first, FactoredMatrix) else "corrective"
    run, calls, enough = _Run(f, domain, first, method), 0, math.inf
    while run.gap > gap:
        spread, best, held = float(np.ptp(run.slopes)), int(run.slopes.argmin()), True
        if spread < enough:
            if calls == limit:
                break
            calls, vertex = calls + 1, run.ask()
            toward = run.here - float(run.slopes[vertex])
            enough = min(enough, 0.25 * toward)
            if run.method != "blended" or spread < toward:
                best, held = vertex, False
        if run.gap <= gap or not run.move(run.step(best, held)):  # of rounding, or at a kink
            break
    used = np.flatnonzero(run.weights)
    atoms = [atom.reshape(run.shape) if run.dense else atom for atom in run.atoms[used]]
    done = calls, run.iterations, run.method, run.gap <= gap, atoms, run.weights[used]
    return Minimum(run.x.copy(), run.value, run.gap, *done)


def checked_start(domain: Domain, start: Any) -> Point:
    """Return a point to start from, which must be of the set."""
    first = domain.check_point(start, "start")
    if domain.cheap_membership and not domain.contains(first, atol=1e-6):
        raise ValueError(f"start must be a point of {domain!r}; this is outside: project it first")
    return first


class _Run:
    """The point x as a mean of atoms, what f says there, and the best lower bound proved."""

    def __init__(self, f: Any, domain: Domain, start: Point, method: str) -> None:
        if isinstance(f, Loss):
            f.check_shape(domain.shape)
        elif not callable(f):
            raise TypeError(f"f must be a Loss or a function, got {type(f).__name__}")
        self.f = f.value_and_gradient if isinstance(f, Loss) else f
        self.domain, self.method, self.shape = domain, method, start.shape
        self.dense = isinstance(start, np.ndarray)
        self.atoms, self.weights = _row(start), np.ones(1)  # rows of a table, or of objects
        self.x, self.value, self.gradient, self.slopes = self._at(self.weights)
        if not math.isfinite(self.value + self.here):
            raise ValueError(f"f and its gradient must be finite at the start; f is {self.value:g}")
        self.lower, self.iterations, self._curvature = -math.inf, 0, 0.0
        #: Model of <a - x, H (b - x)> for atoms a and b, H the second derivative of f.
        self._model = np.zeros((1, 1))

    @property
    def gap(self) -> float:
        """How far the value may be from the minimum."""
        return max(0.0, self.value - self.lower)

    @property
    def here(self) -> float:
        """<gradient, x>; the slopes are <gradient, atom>."""
        return float(self.weights @ self.slopes)

    def ask(self) -> int:
        """Call the LMO, raise the lower bound, and return the index of as good an atom as the vertex."""
        largest = norm(self.gradient) * self.domain.radius or 1.0
        accuracy = _ERROR_FRACTION * min(1.0, self.gap / largest)
        vertex, error = self.domain.lmo_with_error(self.gradient, accuracy)
        here, slope = self.here, inner(self.gradient, vertex)
        noise = _NOISE * (abs(self.value) + abs(here) + abs(slope))
        self.lower = max(self.lower, self.value - (max(0.0, here - slope) + error + noise))
        if self.slopes.min() > slope + noise:
            self.atoms = np.concatenate((self.atoms, _row(vertex)))
            self.weights, self.slopes = np.append(self.weights, 0.0), np.append(self.slopes, slope)
            if self.slopes.size > _MODELLED and self.method == "corrective":
                self.method = "blended"
            if self.method == "corrective":
                toward = -self.weights  # from x to the vertex
                toward[-1] = 1.0
                turned = (self._at(self.weights + _GLANCE * toward)[3] - self.slopes) / _GLANCE
                turned[~np.isfinite(turned)] = 0.0
                self._model = np.pad(self._model, (0, 1))
                self._model[-1] = self._model[:, -1] = turned - self.weights @ turned
        return int(self.slopes.argmin())

    def step(self, index: int, held: bool) -> Array:
        """Return a change of the weights: to that atom, to or from another, or of all."""
        if self.method == "corrective":
            moved = self._corrected() - self.weights
            if moved @ self.slopes < 0.0:
                return moved / np.abs(moved).sum()  # so that its slope is above rounding
        best, worst = np.zeros((2, self.slopes.size))
        best[index] = worst[self.slopes.argmax()] = 1.0
        if self.method == "away" and (best + worst - 2 * self.weights) @ self.slopes > 0.0:
            return self.weights - worst
        pair = self.method in ("pairwise", "corrective") or (self.method == "blended" and held)
        return best - (worst if pair else self.weights)

    def _corrected(self) -> Array:
        """Return the weights that minimise the model."""
        values, vectors = np.linalg.eigh(self._model)
        least = max(_FLATTEST * values[-1], _GENTLEST * float(np.ptp(self.slopes)))
        sizes = np.sqrt(np.maximum(values, least or 1.0))
        # In these coordinates it is the squared distance of the atoms' mean from a target.
        moves = vectors.T @ (self.slopes - self.here) / sizes
        rows = vectors.T * sizes[:, None]
        rows += (moves - rows @ self.weights)[:, None]
        # The nearest point to 0 of a hull, as a multiple: min |rows u|^2 + (sum u - 1)^2, u >= 0.
        A = np.vstack((rows / (norm(moves) or 1.0), np.ones(sizes.size)))
        try:
            weights, _ = scipy.optimize.nnls(A, np.append(np.zeros(sizes.size), 1.0))
        except RuntimeError:  # too many iterations
            return self.weights
        return weights / weights.sum()

    def move(self, change: Array) -> bool:
        """Go along a step until f is nearly flat; return whether it is, or the step was full."""
        gain, falling = -float(change @ self.slopes), change < 0.0
        if gain <= _NOISE * (abs(self.here) + gain):
            return False
        most = float((self.weights[falling] / -change[falling]).min())
        modelled = self.method == "corrective"
        bend = float(change @ self._model @ change) if modelled else self._curvature
        part = min(most, gain / bend) if bend > 0.0 else most
        low, high, found, ends = (0.0, -gain), (math.inf, math.inf), None, False
        for trial in range(_TRIALS):
            weights = self.weights + part * change
            weights[weights < _NOISE] = 0.0
            weights /= weights.sum()
            there = self._at(weights)
            slope = float(change @ there[3])
            slope = slope if math.isfinite(there[1] + slope) else math.inf
            flat = abs(slope) <= _FLAT * gain
            if slope <= 0.0 or (flat and there[1] <= self.value + _NOISE * abs(self.value)):
                found, self._curvature = (weights, *there), (slope + gain) / part
                if ends := flat or part == most:
                    break
            low, high = ((part, slope), high) if slope <= 0.0 else (low, (part, slope))
            secant = high[1] < math.inf and trial % 3 < 2  # every third time the middle
            share = low[1] / (low[1] - high[1]) if secant else 0.5
            inside = low[0] + share * (high[0] - low[0])
            part = inside if high[0] < math.inf else min(most, 4.0 * part)
            if not low[0] < part < high[0]:
                break
        if found is None:
            return False
        moved, turned, kept = found[0] - self.weights, found[4] - self.slopes, found[0] > 0.0
        bend = float(moved @ turned)
        if modelled and bend > 0.0:  # make it right along this step (BFGS)
            along = self._model @ moved
            self._model -= np.outer(along, along / ((moved @ along) or 1.0))
            self._model += np.outer(turned, turned / bend)
        self.weights, self.x, self.value, self.gradient, self.slopes = found
        self.iterations += 1
        if self.method == "vanilla":
            self.slopes, self.weights = np.array([self.here]), np.ones(1)
            self.x = self.x if self.iterations % _COMPRESSED else trimmed(self.x)
            self.atoms = _row(self.x)
        elif not kept.all():
            self.atoms, self.weights = self.atoms[kept], self.weights[kept]
            self.slopes = self.slopes[kept]
        if modelled:
            model = self._model[np.ix_(kept, kept)]
            turned = model @ self.weights
            self._model = model - turned - turned[:, None] + self.weights @ turned
        return ends

    def _at(self, weights: Array) -> tuple[Point, float, Point, Array]:
        """Return the mean of the atoms, the value and gradient there, and the slopes."""
        x: Any = weights @ self.atoms
        if self.dense:
            x = x.reshape(self.shape)
            x.setflags(write=False)
        with np.errstate(all="ignore"):  # where f is infinite
            told = self.f(x)
            if not isinstance(told, tuple):
                raise TypeError("f must return a tuple, the value and the gradient")
            value, gradient = float(told[0]), told[1]
            if self.dense:
                gradient = np.array(checks.real_array(gradient, "the gradient of f"))
            if (was := gradient.shape) != x.shape:
                raise ValueError(f"the gradient of f must have shape {x.shape}, got {was}")
            if self.dense:
                return x, value, gradient, self.atoms @ gradient.ravel()
        return x, value, gradient, np.array([inner(gradient, a) for a in self.atoms])


def _row(point: Point) -> Array:
    """A point as one row: of numbers, or of a single object."""
    row = np.empty(1, dtype=object)
    row[0] = point
    return point.reshape(1, -1) if isinstance(point, np.ndarray) else row
