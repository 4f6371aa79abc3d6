"""`minimise`: a convex function over a set by linear minimisations, with a certified gap."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.losses import Loss
from driftwolfe.points import FactoredMatrix, checks, inner
from driftwolfe.points.kinds import Array, Point
from driftwolfe.points.ops import trimmed

METHODS = ("auto", "blended", "pairwise", "away", "vanilla")
#: A line search ends where the slope is at most this fraction of that at its start; its most evaluations.
_FLAT, _TRIALS = 0.1, 60
#: Rounding, relative to the size of numbers; error asked of an inexact vertex, relative to the gap.
_NOISE, _ERROR_FRACTION = 2.0**-48, 0.1
#: Steps after which vanilla recompresses a factored point.
_COMPRESSED = 40


@dataclass(frozen=True, slots=True)
class Minimum:
    r"""A point of a set, the value of a convex function there, and how much less its minimum may be.

    Attributes
    ----------
    point, value, gap
        A point x of K, f(x), and a bound: :math:`f(x) - \min_K f \le gap`, also where the run was cut off.
    lmo_calls, iterations
        LMO calls and steps made.
    method, converged
        The method that ran, and whether the gap is as small as asked.
    atoms, weights
        Points of K whose mean with these weights is x: vertices and, if it still counts, the start. Of
        ``"vanilla"``, x alone.

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
    lazy: bool = True,
    start: Any = None,
    max_lmo_calls: int = 10_000,
) -> Minimum:
    r"""Minimise a differentiable convex function over a set: :math:`\min_{x \in K} f(x)`.

    Frank-Wolfe steps with line searches on the slope of f: no curvature is to be known. Each LMO call
    proves :math:`\min_K f \ge f(x) - \max_{v \in K}\langle\nabla f(x), x - v\rangle`, less the LMO's own
    error and rounding.

    Parameters
    ----------
    f
        A loss, or a function that returns the value and the gradient at a point, like those for SciPy's
        ``minimize(jac=True)``; it may be infinite in parts of K.
    domain
        The set K, which needs only its LMO.
    gap
        Stop once the value is proved to be within this of the minimum; in units of f.
    method
        ``"vanilla"`` steps towards vertices. The others hold x as a mean of vertices and converge linearly
        on polytopes: ``"away"`` also steps away from the worst one, ``"pairwise"`` moves weight from the
        worst one to another, ``"blended"`` does so among those held and steps to a new one where that
        gains more. ``"auto"``: blended, but vanilla for factored points.
    lazy
        Whether to call the LMO only where the vertices held promise less than half of the last gap. Vanilla
        holds none.
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
    Tsuji, Tanaka and Pokutta (2022), Pairwise conditional gradients without swap steps and sparser kernel
    herding; Braun, Pokutta and Zink (2017), Lazifying conditional gradient algorithms; Braun et al. (2022),
    Conditional gradient methods.
    """
    if domain.lmo_method == "separation":
        kind = type(domain.unwrapped).__name__
        raise ValueError(f"minimise needs linear minimisation, which {kind} lacks; use LMODomain")
    checks.one_of(method, "method", METHODS)
    gap, limit = checks.positive(gap, "gap"), checks.count(max_lmo_calls, "max_lmo_calls")
    first = domain.origin() if start is None else domain.check_point(start, "start")
    if start is not None and domain.cheap_membership and not domain.contains(first, atol=1e-6):
        raise ValueError(f"start must be a point of {domain!r}; this is outside: project it first")
    if method == "auto":
        method = "vanilla" if isinstance(first, FactoredMatrix) else "blended"
    run, calls, enough = _Run(f, domain, first, method), 0, math.inf
    while run.gap > gap:
        best = int(run.slopes.argmin())
        change, most, gain = run.step(best, held=True)
        if not lazy or gain < enough:
            if calls == limit:
                break
            calls, vertex = calls + 1, run.ask(gap)
            toward = run.here - float(run.slopes[vertex])
            enough = min(enough, 0.5 * toward)
            held = method == "blended" and gain >= toward
            change, most, gain = run.step(best if held else vertex, held)
        if run.gap <= gap or not run.move(change, most, gain):  # of rounding, or at a kink
            break
    used = np.flatnonzero(run.weights)
    atoms = [atom.reshape(run.shape) if run.dense else atom for atom in run.atoms[used]]
    done = calls, run.iterations, method, run.gap <= gap, atoms, run.weights[used]
    return Minimum(run.x.copy(), run.value, run.gap, *done)


class _Run:
    """The point x as a mean of atoms, what f says there, and the best lower bound proved."""

    def __init__(self, f: Any, domain: Domain, start: Point, method: str) -> None:
        if isinstance(f, Loss):
            f.check_shape(domain.shape)
        elif not callable(f):
            raise TypeError(f"f must be a Loss or a function, got {type(f).__name__}")
        self.f, self.domain, self.method, self.shape = f, domain, method, start.shape
        self.dense = isinstance(start, np.ndarray)
        self.atoms, self.weights = _row(start), np.ones(1)  # rows of a table, or of objects
        self.x, self.value, self.gradient, self.slopes = self._at(self.weights)
        if not math.isfinite(self.value + self.here):
            raise ValueError(f"f and its gradient must be finite at the start; f is {self.value:g}")
        self.lower, self.iterations, self._curvature, self._size = -math.inf, 0, 0.0, 0.0

    @property
    def gap(self) -> float:
        """How far the value may be from the minimum."""
        return max(0.0, self.value - self.lower)

    @property
    def here(self) -> float:
        """<gradient, x>; the slopes are <gradient, atom>."""
        return float(self.weights @ self.slopes)

    def ask(self, gap: float) -> int:
        """Call the LMO, raise the lower bound, and return the index of the vertex among the atoms."""
        wanted = _ERROR_FRACTION * max(gap, min(self.gap, self._size))
        accuracy = min(_ERROR_FRACTION, wanted / (self._size or wanted))
        vertex, error = self.domain.lmo_with_error(self.gradient, accuracy)
        here, slope, center = self.here, inner(self.gradient, vertex), self.domain.center
        self._size = abs(slope - (0.0 if center is None else inner(self.gradient, center)))
        noise = _NOISE * (abs(self.value) + abs(here) + abs(slope))
        self.lower = max(self.lower, self.value - (max(0.0, here - slope) + error + noise))
        row = _row(vertex)
        for index in np.flatnonzero(
            self.slopes <= slope + 1e-9 * abs(slope)
        ):  # none else can be it
            if np.array_equal(self.atoms[index], row[0]):
                return int(index)
        self.atoms = np.concatenate((self.atoms, row))
        self.weights, self.slopes = np.append(self.weights, 0.0), np.append(self.slopes, slope)
        return self.slopes.size - 1

    def step(self, index: int, held: bool) -> tuple[Array, float, float]:
        """Return the step to an atom: a change of weights, how often it fits, minus the slope along it."""
        worst, change = int(self.slopes.argmax()), np.zeros(self.slopes.size)
        toward, away = self.here - self.slopes[index], self.slopes[worst] - self.here
        if self.method == "pairwise" or (self.method == "blended" and held):
            change[index], change[worst] = 1.0, -1.0
            return change, float(self.weights[worst]), float(toward + away)
        if self.method == "away" and away > toward:
            change[worst], weight = -1.0, float(self.weights[worst])
            return change + self.weights, weight / max(1.0 - weight, _NOISE), float(away)
        change[index] = 1.0
        return change - self.weights, 1.0, float(toward)

    def move(self, change: Array, most: float, gain: float) -> bool:
        """Go along a step until f is nearly flat; return whether it is, or the step was full."""
        if gain <= _NOISE * (abs(self.here) + gain):
            return False
        low, high, last, slope = 0.0, math.inf, 0.0, -gain
        part = min(most, gain / self._curvature) if self._curvature > 0.0 else most
        found: Any = None
        ends = False
        for trial in range(_TRIALS):
            weights = self.weights + part * change
            weights[weights < _NOISE] = 0.0
            weights /= weights.sum()
            there, before = self._at(weights), slope
            slope = float(change @ there[3])
            slope = slope if math.isfinite(there[1] + slope) else math.inf
            low, high = (part, high) if slope <= 0.0 else (low, part)
            flat = abs(slope) <= _FLAT * gain
            if slope <= 0.0 or (flat and there[1] <= self.value + _NOISE * abs(self.value)):
                found, self._curvature = (weights, *there), (slope + gain) / part
                if ends := flat or part == most:
                    break
            bend = (slope - before) / (part - last)  # a secant; every third time the middle
            last, guess = part, min(most, part - slope / bend) if bend > 0.0 else most
            inside = low < guess < high and (trial % 3 < 2 or high == math.inf)
            part = guess if inside else 0.5 * (low + min(high, most))
            if not low < part < high:
                break
        if found is None:
            return False
        self.weights, self.x, self.value, self.gradient, self.slopes = found
        self.iterations += 1
        if self.method == "vanilla":
            self.slopes, self.weights = np.array([self.here]), np.ones(1)
            self.x = self.x if self.iterations % _COMPRESSED else trimmed(self.x)
            self.atoms = _row(self.x)
        elif not self.weights.all():
            kept = np.flatnonzero(self.weights)
            self.atoms, self.weights = self.atoms[kept], self.weights[kept]
            self.slopes = self.slopes[kept]
        return ends

    def _at(self, weights: Array) -> tuple[Point, float, Point, Array]:
        """Return the mean of the atoms, the value and gradient there, and the slopes."""
        x: Any = weights @ self.atoms
        if self.dense:
            x = x.reshape(self.shape)
            x.setflags(write=False)
        with np.errstate(all="ignore"):  # where f is infinite
            known = isinstance(self.f, Loss)
            value, gradient = self.f.value_and_gradient(x) if known else self.f(x)
            if self.dense:
                gradient = np.array(checks.real_array(gradient, "the gradient of f"))
            if gradient.shape != x.shape:
                was = gradient.shape
                raise ValueError(f"the gradient of f must have shape {x.shape}, got {was}")
            if self.dense:
                return x, float(value), gradient, self.atoms @ gradient.ravel()
        return x, float(value), gradient, np.array([inner(gradient, a) for a in self.atoms])


def _row(point: Point) -> Array:
    """A point as one row: of numbers, or of a single object."""
    if isinstance(point, np.ndarray):
        return point.reshape(1, -1)
    row = np.empty(1, dtype=object)
    row[0] = point
    return row
