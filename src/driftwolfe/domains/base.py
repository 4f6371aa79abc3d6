"""`Domain`: a convex set, known by minimising linear functions over it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from driftwolfe.points import checks
from driftwolfe.points.devices import HOST, Device, to_host
from driftwolfe.points.kinds import Array, Point, Shape


class Domain(ABC):
    r"""A closed bounded convex set :math:`K` of points of one `shape`.

    A set is its linear minimisation oracle; projection and gauge are extras that some sets have.
    A new set overrides `_lmo` and `_contains`, where they are cheap also `_project` and `_gauge`,
    and passes its sizes to `Domain.__init__`. The public methods check their input first and
    never change it.

    Parameters
    ----------
    shape
        Shape of the points.
    radius
        :math:`R = \max_{z \in K} \lVert z - c\rVert`, a bound suffices; :math:`c` is `center`. A
        Euclidean length, in units of the points, as all lengths here.
    diameter
        A bound on the Euclidean diameter of :math:`K`; `2 * radius` if not given.
    center
        The point :math:`c \in K` that plays the part of 0. Zero when not given; a set without 0
        gives a point of its own, and everything above works in coordinates relative to it.
    inner_radius
        Some :math:`r > 0` such that the ball of radius r around `center`, cut with the affine hull
        of :math:`K`, lies in :math:`K`; 0 when none is known.

    Examples
    --------
    The segment from (-1, 0) to (1, 0), as a set of one's own:

    >>> import numpy as np, driftwolfe as dw
    >>> class Segment(dw.Domain):
    ...     def __init__(self):
    ...         super().__init__(shape=2, radius=1.0)
    ...
    ...     def _lmo(self, direction):
    ...         return np.array([-1.0 if direction[0] > 0 else 1.0, 0.0])
    ...
    ...     def _contains(self, x, slack):
    ...         return abs(x[0]) <= 1.0 + slack and abs(x[1]) <= slack
    >>> segment = Segment()
    >>> segment.lmo([3.0, 1.0]), segment.contains([0.5, 0.0]), segment.can("project")
    (array([-1.,  0.]), True, False)
    """

    #: Where points live.
    device: Device = HOST
    #: Where ensembles keep theirs, where points themselves are arrays on the host.
    stack_device: Device = HOST
    #: Whether that was chosen for speed alone: ensembles stay on the host where that is quicker.
    stack_chosen: bool = False

    def __init__(
        self,
        shape: Any,
        radius: float,
        *,
        diameter: float | None = None,
        center: Array | None = None,
        inner_radius: float = 0.0,
    ) -> None:
        self.shape: Shape = checks.shape(shape)
        self.radius = checks.positive(radius, "radius")
        self.diameter = min(2 * self.radius, 2 * self.radius if diameter is None else diameter)
        self.inner_radius = inner_radius
        self._center = center
        if isinstance(center, np.ndarray):
            center.flags.writeable = False

    # -- what every set can do ---------------------------------------------------------------

    @property
    def center(self) -> Point | None:
        """The point that plays the part of 0, or None where that is 0 itself."""
        return self._center

    def origin(self) -> Point:
        """A fresh copy of the centre: the feasible point that learners start from."""
        return np.zeros(self.shape) if self._center is None else self._center.copy()

    def lmo(self, direction: Point) -> Point:
        r"""Return a minimiser of :math:`\langle direction, v\rangle` over :math:`v \in K`."""
        return self._lmo(self.check_point(direction, "direction"))

    def lmo_with_error(
        self, direction: Point, accuracy: float | None = None
    ) -> tuple[Point, float]:
        r"""Return ``(v, delta)``: :math:`\langle direction, v\rangle \le \min_K + delta`, certified.

        Oracles call this one, with a direction that is known to be well formed. `accuracy` tells
        an iterative oracle that :math:`delta \le accuracy \cdot \max_{v \in K}|\langle direction, v - c\rangle|`
        will do.
        """
        return self._lmo(direction), 0.0

    def lmo_many_with_error(
        self, directions: Sequence[Point], accuracies: Sequence[float | None]
    ) -> list[tuple[Point, float]]:
        """Return `lmo_with_error` for several directions; a set that can do them together does."""
        pairs = zip(directions, accuracies, strict=True)
        return [self.lmo_with_error(direction, accuracy) for direction, accuracy in pairs]

    def contains(self, x: Point, atol: float = 1e-8) -> bool:
        """Whether x lies in the set, up to `atol` in units of `radius`."""
        slack = checks.nonnegative(atol, "atol") * self.radius
        return bool(self._contains(self.check_point(x, "x"), slack))

    def tangent(self, direction: Point) -> Point:
        """Return the part of a direction along the set's affine hull: all of it for most sets."""
        return direction

    def arguments(self) -> dict[str, Any]:
        """Return what the set can be made from again: arguments of its constructor, as plain data.

        Sets that hold functions cannot say that.
        """
        raise NotImplementedError(
            f"a {type(self).__name__} cannot be written to a file; make it anew and give it to load"
        )

    def warm_up(self) -> None:  # noqa: B027  most sets have nothing to do
        """Do what the first call would otherwise have to wait for, such as compiling; learners ask."""

    @property
    def unwrapped(self) -> Domain:
        """The set itself; a wrapper answers with the set inside."""
        return self

    # -- what some sets can do cheaply -------------------------------------------------------

    @property
    def cheap_projection(self) -> bool:
        """Whether `project` costs no more than a few calls of `lmo`."""
        return self.can("project")

    @property
    def cheap_membership(self) -> bool:
        """Whether `contains` costs no more than a few calls of `lmo`."""
        return True

    def project(self, y: Point) -> Point:
        """Return the Euclidean projection of y, a new point."""
        return self._project(self.check_point(y, "y"))

    def project_many(self, stack: Array) -> Array:
        """Return the projections of a `stack` of dense points, along its first axis.

        They must be well formed.
        """
        return np.stack([self._project(y) for y in stack])

    def gauge(self, y: Point) -> float:
        r"""Return :math:`\inf\{t \ge 0 : c + (y - c)/t \in K\}`, inf where no t will do."""
        return float(self._gauge(self.check_point(y, "y")))

    def gauge_subgradient(self, y: Point) -> Point:
        r"""Return a subgradient s of the gauge at y: :math:`gauge(z) \ge gauge(y) + \langle s, z-y\rangle`."""
        return self._gauge_subgradient(self.check_point(y, "y"))

    def can(self, operation: str) -> bool:
        """Whether `operation` (``"project"``, ``"gauge"`` or ``"gauge_subgradient"``) is offered.

        >>> import driftwolfe as dw
        >>> dw.L1Ball(3).can("project"), dw.BirkhoffPolytope(3).can("project")
        (True, False)
        """
        name = f"_{operation}"
        return getattr(type(self), name) is not getattr(Domain, name)

    # -- what a set overrides ----------------------------------------------------------------

    @abstractmethod
    def _lmo(self, direction: Point) -> Point: ...

    @abstractmethod
    def _contains(self, x: Point, slack: float) -> bool: ...

    def _project(self, y: Point) -> Point:
        raise NotImplementedError(
            f"{type(self).__name__} has no cheap projection; "
            "use driftwolfe.infeasible_projection, which needs only its lmo"
        )

    def _gauge(self, y: Point) -> float:
        raise NotImplementedError(
            f"{type(self).__name__} has no cheap gauge; use contains for membership, "
            "or driftwolfe.oracles.gauge_by_bisection, which needs only that"
        )

    def _gauge_subgradient(self, y: Point) -> Point:
        raise NotImplementedError(
            f"{type(self).__name__} has no cheap subgradient of its gauge; "
            "use a method that needs only its lmo, such as POLA in place of PAMO"
        )

    def check_point(self, value: Any, name: str) -> Point:
        """Return `value` as a finite point of this set's shape, or raise a ValueError with its `name`."""
        return checks.finite_array(to_host(value), name, self.shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, radius={self.radius:g})"
