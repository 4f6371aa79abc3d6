"""A set known by a function of the user's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from driftwolfe.domains.base import Domain
from driftwolfe.domains.hull import comes_near
from driftwolfe.domains.unit_vector import unit_vector
from driftwolfe.points import checks, inner, norm
from driftwolfe.points.kinds import Array

#: How far beyond the given radius an answer may lie, in units of it.
_RADIUS_TOLERANCE = 1e-6


class LMODomain(Domain):
    r"""A set known by your own linear minimisation oracle, and by more functions if you have them.

    Every answer is checked: its shape, that it is finite, and that it lies within `radius` of the
    centre. Until an answer has beaten the centre, none may be worse than the centre by more than
    ``(error + 1e-6) * radius * norm(direction)``: so an oracle that maximises is refused. Membership
    without a function of its own grows a hull of oracle answers, which needs an exact oracle.

    Parameters
    ----------
    shape
        Shape of the points: a number of coordinates or a tuple.
    lmo
        ``lmo(direction)`` returns a minimiser of the inner product with `direction` over the set.
    radius
        Euclidean: every point of the set is at most this far from `center`.
    center
        A point of the set; zero if not given, which must then belong to the set.
    error
        Relative error rr of the oracle: its answer is within ``rr * radius * norm(direction)`` of
        the minimum.
    contains, project, gauge
        Optional: ``contains(x)`` says whether x is in the set, ``project(y)`` returns its nearest
        point, ``gauge(y)`` the gauge around `center`.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> signs = dw.LMODomain(3, lambda direction: -np.sign(direction), radius=3**0.5)
    >>> signs.lmo([1.0, -2.0, 3.0])
    array([-1.,  1., -1.])
    >>> signs.can("project"), signs.contains([0.5, 1.0, 1.0])
    (False, True)
    """

    def __init__(
        self,
        shape: Any,
        lmo: Callable[[Array], Any],
        radius: float,
        center: Any = None,
        error: float = 0.0,
        contains: Callable[[Array], bool] | None = None,
        project: Callable[[Array], Any] | None = None,
        gauge: Callable[[Array], float] | None = None,
    ) -> None:
        given = {"lmo": lmo, "contains": contains, "project": project, "gauge": gauge}
        for name, function in given.items():
            if not callable(function) and (function is not None or name == "lmo"):
                raise TypeError(f"{name} must be a function, got {type(function).__name__}")
        sizes = checks.shape(shape)
        self.error = checks.nonnegative(error, "error")
        self._functions: dict[str, Callable[[Array], Any] | None] = given
        self._minimises = False  # whether an answer was seen that only a minimiser gives
        middle = None if center is None else checks.finite_array(center, "center", sizes).copy()
        super().__init__(sizes, radius, center=middle)
        if contains is not None and not contains(self.origin()):
            raise ValueError(
                f"contains says that {'0' if center is None else 'center'} is not in the set; "
                "give a center that is"
            )

    def can(self, operation: str) -> bool:
        """Whether `operation` was given as a function."""
        return self._functions.get(operation) is not None

    @property
    def cheap_membership(self) -> bool:
        """Whether a function for it was given."""
        return self.can("contains")

    def lmo_with_error(
        self, direction: Array, accuracy: float | None = None
    ) -> tuple[Array, float]:
        """Return the oracle's answer and what its relative error allows."""
        return self._lmo(direction), self.error * self.radius * norm(direction)

    def _lmo(self, direction: Array) -> Array:
        answer = self._call("lmo", direction)
        offset = answer if self._center is None else answer - self._center
        distance = norm(offset)
        if distance > self.radius * (1 + _RADIUS_TOLERANCE):
            raise ValueError(
                f"lmo returned a point at distance {distance:g} from the centre, but radius is "
                f"{self.radius:g}; correct the oracle or give the larger radius"
            )
        if not self._minimises:
            self._check_minimiser(direction, offset)
        return answer

    def _check_minimiser(self, direction: Array, offset: Array) -> None:
        """Raise ValueError where the centre, which is in the set, beats the answer of the oracle."""
        if not direction.any():  # all points are as good
            return
        worse, room = inner(unit_vector(direction), offset), _RADIUS_TOLERANCE * self.radius
        if worse > room + self.error * self.radius:
            raise ValueError(
                "lmo must MINIMISE the inner product with its direction, but its answer is worse "
                f"than the {'origin' if self._center is None else 'center'} by {worse:g} times the "
                "norm of the direction; return a minimiser, and give a center that is in the set"
            )
        self._minimises = worse < -room

    def _contains(self, x: Array, slack: float) -> bool:
        function = self._functions["contains"]
        if function is not None:
            return bool(function(x.copy()))
        if self.error > 0:
            raise NotImplementedError(
                "an lmo with an error cannot tell whether a point is in the set; give contains="
            )
        return comes_near(self._lmo, x, self.origin(), slack)

    def _project(self, y: Array) -> Array:
        return self._call("project", y) if self.can("project") else super()._project(y)

    def _gauge(self, y: Array) -> float:
        function = self._functions["gauge"]
        return super()._gauge(y) if function is None else float(function(y.copy()))

    def _call(self, name: str, argument: Array) -> Array:
        """Call a function of the user's, which gets and gives arrays of its own."""
        function = self._functions[name]
        assert function is not None
        return checks.finite_array(
            function(argument.copy()), f"the answer of {name}", self.shape
        ).copy()
