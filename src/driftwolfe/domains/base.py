"""`Domain`: a convex set; wrappers that count its oracle calls or declare a cache; checks of saved points."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, wraps
from operator import attrgetter
from threading import Lock
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from driftwolfe.points import checks, inner, norm
from driftwolfe.points.devices import HOST, Device, best_device, device_named, to_host
from driftwolfe.points.kinds import Array, Point, Shape
from driftwolfe.points.ops import distance
from driftwolfe.state import Count, Stateful
from driftwolfe.storage import require

#: A point that an oracle returns, and a bound on its error.
Answer: TypeAlias = tuple[Point, float]
#: A linear minimisation oracle for checked directions.
LMO: TypeAlias = Callable[[Any], Any]
#: Distance from the affine hull that is rounding, over the set's radius or the point's distance from the centre.
AFFINE_TOLERANCE = 1e-9
#: Coordinates from which stacks of experts are quicker on a GPU (H200, docs/gpu.md).
DEVICE_SIZE = 100_000


class Separation(NamedTuple):
    """What a set says of a point: how far towards it the set reaches, and a half-space between them."""

    fraction: float  # of the way from the centre that is in K; 1: the point itself is
    normal: Any  # <normal, z> <= level for all z in K, and more for the point outside
    level: float
    calls: int  # oracle calls made


class Domain(checks.Constructed, ABC):
    r"""A closed bounded convex set :math:`K` of points of one `shape`.

    A new set overrides `_lmo` and `_contains`, where they are cheap also `_project` and `_gauge`,
    and passes its sizes on. The public methods check their input first and never change it.

    Parameters
    ----------
    shape
        Shape of the points.
    radius, diameter
        :math:`R = \max_{z \in K} \lVert z - c\rVert` and the diameter of :math:`K`, by default `2 * radius`, or
        bounds on them; Euclidean, as all lengths.
    center, inner_radius
        The point :math:`c \in K` that takes the place of 0 for learners and oracles, zero if not given; and the
        radius of a ball around it that lies in :math:`K`, inside its affine hull, 0 if unknown.
    stack_device
        Where ensembles keep stacks of points: a device's name, or ``"auto"``: a GPU for large points.

    Examples
    --------
    The segment from (-1, 0) to (1, 0), as a set of one's own:

    >>> import numpy as np, driftwolfe as dw
    >>> class Segment(dw.Domain):
    ...     def __init__(self):
    ...         super().__init__(shape=2, radius=1.0)
    ...     def _lmo(self, direction):
    ...         return np.array([-1.0 if direction[0] > 0 else 1.0, 0.0])
    ...     def _contains(self, x, slack):
    ...         return abs(x[0]) <= 1.0 + slack and abs(x[1]) <= slack
    >>> segment = Segment()
    >>> segment.lmo([3.0, 1.0]), segment.contains([0.5, 0.0]), segment.can("project")
    (array([-1.,  0.]), True, False)
    """

    #: Method of `infeasible_projection` that spends nothing but linear minimisations.
    lmo_method: str = "corrective"
    #: Declared error of `lmo`, over the radius and the norm of the direction.
    lmo_error: float = 0.0
    #: Whether K holds the matrices whose singular values sum to at most `radius`; `lmo` has rank one.
    rank_one_atoms: bool = False
    #: Whether an LMO is all that is known: then `radius` may be far too large in most directions.
    known_by_lmo: bool = False
    #: Whether `contains` costs no more than a few calls of `lmo`.
    cheap_membership: bool = True
    #: Least distance from its target of a projection with method ``"separation"``.
    cut_accuracy: float = 0.0
    #: Vertices that learners cache, see `CachedDomain`; None: the learner decides.
    cached_vertices: int | None = None
    #: Arguments of the constructor, each with the attribute that holds it; None for sets of functions.
    _made_from: ClassVar[tuple[tuple[str, str], ...] | None] = None

    def __init__(
        self,
        shape: Any,
        radius: float,
        *,
        diameter: float | None = None,
        center: Point | None = None,
        inner_radius: float = 0.0,
        stack_device: str = "cpu",
    ) -> None:
        self.shape: Shape = checks.shape(shape)
        self.radius = checks.positive(radius, "radius")
        self.diameter = min(2 * self.radius, 2 * self.radius if diameter is None else diameter)
        self.inner_radius = inner_radius
        #: The point that takes the place of 0, or None where that is 0 itself.
        self.center: Any = center
        for part in getattr(center, "parts", [center]):
            if isinstance(part, np.ndarray):
                part.flags.writeable = False
        #: Where points live, and where ensembles keep stacks of points that are arrays on the host.
        self.device: Device = HOST
        self.stack_device: Device = HOST
        #: Whether "auto" chose the latter; ensembles then stay on the host where that is quicker.
        self.stack_chosen = stack_device == "auto"
        if not self.stack_chosen:
            self.stack_device = device_named(stack_device)
        elif math.prod(self.shape) >= DEVICE_SIZE:
            self.stack_device = best_device()

    def origin(self) -> Point:
        """A fresh copy of the centre: the feasible point that learners start from."""
        return np.zeros(self.shape) if self.center is None else self.center.copy()

    def lmo(self, direction: Point) -> Point:
        r"""Return a minimiser of :math:`\langle direction, v\rangle` over :math:`v \in K`."""
        return self._lmo(self.check_point(direction, "direction"))

    def lmo_with_error(self, direction: Point, accuracy: float | None = None) -> Answer:
        r"""Return ``(v, delta)``: :math:`\langle direction, v\rangle \le \min_K + delta`, certified.

        Oracles call this with a checked direction. `accuracy` tells an iterative set that
        :math:`delta \le accuracy \cdot \max_{v \in K}|\langle direction, v - c\rangle|` suffices.
        """
        return self._lmo(direction), 0.0

    def lmo_many_with_error(
        self, directions: Sequence[Point], accuracies: Sequence[float | None], enough: Any = ()
    ) -> list[Answer]:
        """Return `lmo_with_error` for several directions; below a value that is `enough`, errors may be inf."""
        return list(map(self.lmo_with_error, directions, accuracies))

    def contains(self, x: Point, atol: float = 1e-8) -> bool:
        """Whether x lies in the set, up to `atol` in units of `radius`."""
        slack = checks.nonnegative(atol, "atol") * self.radius
        return bool(self._contains(self.check_point(x, "x"), slack))

    def project(self, y: Point) -> Point:
        """Return the Euclidean projection of y, a new point."""
        return self._project(self.check_point(y, "y"))

    def project_many(self, stack: Array) -> Array:
        """Return the projections of a `stack` of checked dense points along its first axis."""
        return np.stack([*map(self._project, stack)])

    def project_each(self, points: Sequence[Point]) -> list[Point]:
        """Return the projections of several checked points, computed together where the set can."""
        return list(map(self._project, points))

    def gauge(self, y: Point) -> float:
        r"""Return :math:`\inf\{t \ge 0 : c + (y - c)/t \in K\}`, inf if there is no such t."""
        return float(self._gauge(self.check_point(y, "y")))

    def gauge_subgradient(self, y: Point) -> Point:
        r"""Return a subgradient s of the gauge at y: :math:`gauge(z) \ge gauge(y) + \langle s, z-y\rangle`."""
        return self._gauge_subgradient(self.check_point(y, "y"))

    def separate(self, y: Point) -> tuple[Point, float] | None:
        r"""Return ``(normal, level)`` with :math:`\langle normal, z\rangle \le level` on K and > at y, or None.

        None says that y is in the set. Offered (``can("separate")``) by sets with a gauge, its subgradient and
        an inner radius, and by `SeparationDomain`; see method ``"separation"`` of `infeasible_projection`.
        """
        cut = self._separate(self.check_point(y, "y"), 0.0)
        return None if cut.fraction >= 1.0 else (cut.normal, cut.level)

    def decompose(self, x: Point, atol: float = 1e-7) -> tuple[list[Point], Array]:
        r"""Return points :math:`v_i`, as `lmo` returns them, and weights with :math:`\sum_i w_i v_i = x`.

        For arrays, and factored matrices of a `TraceNormBall`. Weights are positive and add up to 1:
        ``vertices[rng.choice(len(weights), p=weights)]`` is a random vertex whose mean is x. The sum is x up to
        `atol` in units of `radius`; a point farther outside is refused with a ValueError. Most sets need at most
        one vertex more than they have dimensions.
        """
        x, allowed = self.check_point(x, "x"), checks.positive(atol, "atol") * self.radius
        vertices, weights = self._decompose(x, allowed, self._lmo)
        kept = np.flatnonzero(weights > 0)
        vertices, weights = [vertices[i] for i in kept], weights[kept] / weights[kept].sum()
        mean = weights[0] * vertices[0]
        for weight, vertex in zip(weights[1:], vertices[1:], strict=True):
            mean = mean + weight * vertex
        if (away := distance(mean, x)) > allowed:
            raise ValueError(
                f"x must be a point of the set to be a mean of its vertices, but is about {away:g} "
                "outside; project it first, or allow for that with atol"
            )
        return vertices, weights

    def can(self, operation: str) -> bool:
        """Whether ``"project"``, ``"gauge"``, ``"gauge_subgradient"`` or ``"separate"`` is offered."""
        if operation == "separate" and type(self)._separate is Domain._separate:
            return self.inner_radius > 0 and self.can("gauge") and self.can("gauge_subgradient")
        name = f"_{operation}"
        return getattr(type(self), name) is not getattr(Domain, name)

    def tangent(self, direction: Point) -> Point:
        """Return the part of a direction along the set's affine hull: all of it for most sets."""
        return direction

    def tangent_many(self, stack: Array) -> Array:
        """Return `tangent` of several arrays."""
        first = stack[0]
        return stack if self.tangent(first) is first else np.stack([*map(self.tangent, stack)])

    def check_point(self, value: Any, name: str) -> Point:
        """Return `value` as a finite point of this set's shape, or raise a ValueError with its `name`."""
        return checks.finite_array(to_host(value), name, self.shape)

    def arguments(self) -> dict[str, Any]:
        """Return the constructor's arguments that make this set again, as plain data for a file."""
        if self._made_from is None:
            kind = type(self).__name__
            raise NotImplementedError(
                f"a {kind} holds functions, which no file can; give it to load"
            )
        return {name: getattr(self, attribute) for name, attribute in self._made_from}

    def warm_up(self) -> None:
        """Do what the first call would otherwise wait for, such as compiling: for most sets nothing."""

    @cached_property
    def dimension(self) -> int:
        """Dimension of the affine hull: that in which the set has an inside."""
        size = math.prod(self.shape)
        if self.tangent(probe := np.zeros(self.shape)) is probe:
            return size
        return round(sum(float(self.tangent(self._at(i, 1.0)).flat[i]) for i in range(size)))

    @property
    def unwrapped(self) -> Domain:
        """The set itself; of a wrapper, the set inside."""
        return self

    @cached_property
    def cheap_projection(self) -> bool:
        """Whether `project` costs no more than a few calls of `lmo`."""
        return self.can("project")

    @cached_property
    def affordable_projection(self) -> bool:
        """Whether `project` is worth its price where minimisers need many calls of `lmo`."""
        return self.cheap_projection

    # -- what a set overrides; points are checked --------------------------------------------

    @abstractmethod
    def _lmo(self, direction: Point) -> Point: ...

    @abstractmethod
    def _contains(self, x: Point, slack: float) -> bool: ...

    def _project(self, y: Point) -> Point:
        instead = "use driftwolfe.infeasible_projection, which needs only its lmo"
        raise NotImplementedError(f"{type(self).__name__} has no cheap projection; {instead}")

    def _gauge(self, y: Point) -> float:
        raise NotImplementedError(f"{type(self).__name__} has no cheap gauge; use contains")

    def _gauge_subgradient(self, y: Point) -> Point:
        instead = "use a method that needs only its lmo, such as POLA in place of PAMO"
        raise NotImplementedError(f"{type(self).__name__} has no gauge subgradient; {instead}")

    def _separate(self, y: Point, near: float) -> Separation:
        """Separate by the gauge; the fraction may fall short by `near`, as a distance of the points."""
        if not self.can("separate"):
            instead = "use a method that needs only its lmo"
            raise NotImplementedError(f"{type(self).__name__} separates no points; {instead}")
        if (gauge := float(self._gauge(y))) <= 1.0:
            return Separation(1.0, None, 0.0, 1)
        normal = self._gauge_subgradient(y)
        # <normal, z - c> <= gauge(z) <= 1 on K.
        level = 1.0 + (0.0 if self.center is None else float(inner(normal, self.center)))
        return Separation(1.0 / gauge, normal, level, 1)

    def _decompose(self, x: Point, tolerance: float, lmo: LMO) -> tuple[list[Point], Array]:
        """Return points and weights, nearly those of `decompose`; any for a point outside."""
        from driftwolfe.domains.hull import approach  # which needs this module

        if not isinstance(x, np.ndarray):
            kind = type(x).__name__
            raise NotImplementedError(
                f"a {kind} is not decomposed; give arrays, or each part to its set"
            )
        return approach(lmo, x, lmo(self.origin() - x), 0.5 * tolerance, tolerance).atoms

    # -- what helps it -----------------------------------------------------------------------

    def _at(self, places: Any, values: Any) -> Array:
        """Return the array with these values at flat indices and 0 elsewhere."""
        array = np.zeros(self.shape)
        array.flat[places] = values
        return array

    def _from_center(self, y: Array) -> Array:
        return y if self.center is None else y - self.center

    def _offset(self, y: Array) -> float:
        """Return the distance of y from the affine hull of K."""
        step = self._from_center(y)
        along = self.tangent(step)
        return 0.0 if along is step else norm(step - along)

    def _outside_hull(self, y: Array) -> bool:
        """Whether y is farther from the affine hull of K than rounding explains."""
        offset = self._offset(y) / AFFINE_TOLERANCE
        return offset > self.radius and offset > norm(self._from_center(y))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, radius={self.radius:g})"


#: Held while counts are raised: experts count in several threads.
_COUNTING = Lock()


@dataclass
class OracleCalls(Stateful):
    """Numbers of oracle calls.

    Parameters
    ----------
    lmo, projection, gauge, membership
        Linear minimisations, Euclidean projections, gauges and their subgradients, membership tests and
        separations.

    Examples
    --------
    >>> OracleCalls(lmo=2, membership=4).numbers()
    (2, 0, 0, 4)
    """

    lmo: Count = 0
    projection: Count = 0
    gauge: Count = 0
    membership: Count = 0

    def add(self, lmo: int = 0, projection: int = 0, gauge: int = 0, membership: int = 0) -> None:
        """Add to the counts; safe in several threads at once."""
        with _COUNTING:
            self.lmo += lmo
            self.projection += projection
            self.gauge += gauge
            self.membership += membership

    def numbers(self) -> tuple[int, int, int, int]:
        """The counts: lmo, projection, gauge, membership."""
        return self.lmo, self.projection, self.gauge, self.membership

    def reset(self) -> None:
        """Count from 0 again."""
        self.lmo = self.projection = self.gauge = self.membership = 0


def _of_inside(name: str) -> Any:
    return property(attrgetter(f"domain.{name}"), doc=f"`{name}` of the set inside.")


class DomainWrapper(Domain):
    """A set around another, `domain`, which has what is its own; in all else the same set."""

    _made_from: ClassVar[tuple[tuple[str, str], ...]] = (("domain", "domain"),)

    def __init__(self, domain: Domain) -> None:
        if not isinstance(domain, Domain):
            raise TypeError(f"domain must be a Domain, got {type(domain).__name__}")
        self.domain = domain

    _lmo, _contains = _of_inside("_lmo"), _of_inside("_contains")


# All that `Domain` has, but what checks a point and then calls another method, or names the set.
_OWN = {"lmo", "contains", "project", "gauge", "gauge_subgradient", "separate", "decompose"}
_OWN |= {"arguments", "_made_from", "_abc_impl"}
_SIZES = {"shape", "radius", "diameter", "center", "inner_radius"}
_SIZES |= {"device", "stack_device", "stack_chosen"}
for _name in (_SIZES | {*vars(Domain)}) - _OWN:
    if not _name.startswith("__"):
        setattr(DomainWrapper, _name, _of_inside(_name))


def _counted(name: str, kind: str, several: bool = False) -> Any:
    """Return a method that counts its call, or one for each of several points, and calls that of the set inside."""

    @wraps(getattr(Domain, name), updated=())  # nothing of what makes it abstract
    def method(self: CountedDomain, given: Any, *more: Any) -> Any:
        self.calls.add(**{kind: len(given) if several else 1})
        return getattr(self.domain, name)(given, *more)

    return method


class CountedDomain(DomainWrapper, Stateful):
    """A set that counts the calls of the set inside, `domain`, which has what is its own.

    Parameters
    ----------
    domain
        The set inside; it is shared, not copied.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> ball = dw.count_calls(dw.L1Ball(3))
    >>> ball.gauge([1.0, 2.0, 3.0]), ball.radius, ball.calls
    (6.0, 1.0, OracleCalls(lmo=0, projection=0, gauge=1, membership=0))
    """

    calls: OracleCalls

    def __init__(self, domain: Domain) -> None:
        super().__init__(domain)
        self.calls = OracleCalls()

    def lmo_with_error(self, direction: Point, accuracy: float | None = None) -> Answer:
        self.calls.add(lmo=1)  # the call of the hot loop, written out for its speed
        return self.domain.lmo_with_error(direction, accuracy)

    def lmo_many_with_error(self, directions: Sequence[Point], *asked: Any) -> list[Answer]:
        self.calls.add(lmo=len(directions))
        return self.domain.lmo_many_with_error(directions, *asked)

    def _separate(self, y: Point, near: float) -> Separation:
        cut = self.domain._separate(y, near)
        self.calls.add(membership=cut.calls)
        return cut

    _lmo = _counted("_lmo", "lmo")
    _project = _counted("_project", "projection")
    project_many = _counted("project_many", "projection", several=True)
    project_each = _counted("project_each", "projection", several=True)
    _gauge = _counted("_gauge", "gauge")
    _gauge_subgradient = _counted("_gauge_subgradient", "gauge")
    _contains = _counted("_contains", "membership")

    def __repr__(self) -> str:
        return f"count_calls({self.domain!r})"


#: What `CountedDomain` is for.
count_calls = CountedDomain


class CachedDomain(DomainWrapper):
    """A set on which learners cache the vertices found last, and try them before they call the LMO.

    The cache belongs to a learner's experts: clones share nothing, and files hold it. It saves LMO calls where
    the same vertices come back, as on polytopes, with methods ``"halfspace"`` and, except on trace-norm balls,
    ``"corrective"``; with a cache ``"auto"`` is one of these. Learners that make no infeasible projections have
    no use for it. `infeasible_projection` by itself caches the vertices of one call.

    Parameters
    ----------
    domain
        The set inside, `domain`.
    size
        Vertices to cache. With 0 there is no cache, also where `POLAR` has one by default.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> simplex = dw.Simplex(12)
    >>> losses = [dw.losses.LinearLoss([t % 7 - i % 5 for i in range(12)]) for t in range(200)]
    >>> learners = [dw.POLA(each, oracle="halfspace") for each in (simplex, dw.CachedDomain(simplex, 8))]
    >>> plain, cached = (dw.play(learner, losses).lmo.sum() for learner in learners)
    >>> bool(cached < plain / 2)
    True
    """

    _made_from = (("domain", "domain"), ("size", "size"))
    cached_vertices: Any = property(attrgetter("size"), doc="The size of the cache.")

    def __init__(self, domain: Domain, size: int) -> None:
        super().__init__(domain)
        self.size = checks.count(size, "size", least=0)

    def __repr__(self) -> str:
        return f"CachedDomain({self.domain!r}, size={self.size})"


def unit_vector(direction: Array) -> Array:
    """Return the direction scaled to norm 1; the first unit vector for a direction of 0."""
    largest = np.abs(direction).max()
    if largest == 0:
        return np.eye(1, direction.size).reshape(direction.shape)
    # Scaled by the largest entry first, so that squares neither over- nor underflow.
    scaled = direction / largest
    return scaled / norm(scaled)


def reach(lmo: LMO, center: Array, lower: Any, upper: Any) -> float:
    """Bound the distance from a set's centre to its points, which are between these bounds.

    It is exact where vertices are at bounds: as (x - lower)(x - upper) <= 0, squares are at most linear.
    """
    below, above = lower - center, upper - center
    slope = below + above
    square = np.vdot(slope, lmo(-slope) - center) - np.vdot(below, above)
    return min(norm(np.maximum(-below, above)), math.sqrt(max(square, 0.0)))


# -- points of saved files -----------------------------------------------------------------------

#: Distance outside the set, in units of the radius, that rounding in long sums may leave.
SLACK = 1e-6


def same_kind(point: Point, like: Point) -> bool:
    """Whether a point is of another one's kind and shape."""
    return type(point) is type(like) and bool(point.shape == like.shape)


def require_kind(domain: Domain, points: Iterable[Point], what: str) -> None:
    """Raise ValueError unless all points are of the set's kind and shape."""
    like = domain.origin()
    require(all(same_kind(point, like) for point in points), what)


def in_ball(domain: Domain, point: Point) -> bool:
    """Whether a point lies in the ball around the set."""
    return bool(distance(point, domain.origin()) <= (1.0 + SLACK) * domain.radius)


def require_feasible(domain: Domain, points: Iterable[Point]) -> None:
    """Raise ValueError unless all points lie in the set; no call is counted."""
    for point in {id(point): point for point in points}.values():  # experts may share one
        try:
            feasible = domain.unwrapped.contains(point, atol=SLACK)
        except NotImplementedError:  # it cannot tell; the ball around it can
            feasible = in_ball(domain, point)
        except ValueError:  # of another shape, or beyond the range of numbers
            feasible = False
        if not feasible:
            raise ValueError("this archive holds points that are not in the set")
