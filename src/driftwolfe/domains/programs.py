"""Sets of linear programs, and of models in cvxpy."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe.domains.base import Domain, reach
from driftwolfe.domains.highs import LinearMinimiser
from driftwolfe.points import checks, norm
from driftwolfe.points.kinds import Array
from driftwolfe.points.ops import tilt

#: Lengths, over the size of the set, that are rounding of a linear program; and of one computed by steps.
_ROUNDED, _SOLVED = 1e-7, 1e-9
#: Coordinates up to which all bounds are found by the oracle; beyond, those that are not given.
_BOUNDED = 64


class LinearProgram(Domain):
    r"""The feasible set of a linear program: :math:`\{x : A_{ub} x \le b_{ub}, A_{eq} x = b_{eq}, l \le x \le u\}`.

    Parameters are those of `scipy.optimize.linprog`. The set must be bounded and more than a point: what is wrong
    is named by a row or a ray. The oracle is HiGHS: `highspy` with a warm start where it is installed (``pip
    install driftwolfe[sets]``), else SciPy's, which takes a few times as long; equal directions have equal
    answers. Membership is checked row by row, each divided by its norm. The gauge is infinite where an equality
    fails (more than 1e-9 of the size away).

    The centre is that of a largest ball inside the set, within its affine hull, which takes O(m^2 n) for m
    equalities of n variables. `radius` is from bounds on the variables and one call of the oracle: exact if all
    vertices are at these bounds, and at most sqrt(n) times too large. Bounds take a call each, up to 64 variables;
    for more, only those that are infinite.

    Parameters
    ----------
    A_ub, b_ub, A_eq, b_eq
        Rows of inequalities and equalities, dense or sparse, and their right-hand sides.
    bounds
        A pair ``(low, high)`` for all variables, or one for each; None stands for none.

    Examples
    --------
    Plans for two products within the hours of two machines:

    >>> import driftwolfe as dw
    >>> plans = dw.LinearProgram(A_ub=[[1.0, 2.0], [3.0, 1.0]], b_ub=[8.0, 9.0])
    >>> plans.lmo([-1.0, -1.0]), plans.contains([1.0, 3.0]), plans.inner_radius.round(4)
    (array([2., 3.]), True, 1.3257)
    """

    known_by_lmo = True
    _made_from = tuple((name, name) for name in ("A_ub", "b_ub", "A_eq", "b_eq", "bounds"))

    def __init__(
        self,
        A_ub: Any = None,
        b_ub: Any = None,
        A_eq: Any = None,
        b_eq: Any = None,
        bounds: Any = (0, None),
    ) -> None:
        self.A_ub, self.b_ub = _rows(A_ub, b_ub, "ub")
        self.A_eq, self.b_eq = _rows(A_eq, b_eq, "eq")
        self.bounds = _bounds(bounds, self.A_ub, self.A_eq)
        self._size = len(self.bounds)
        lower, upper = self.bounds.T
        # All rows have length 1, so that slacks are distances.
        (rows, above), (equal, level) = map(self._scaled, (A_ub, A_eq), (self.b_ub, self.b_eq))
        A, low = (
            scipy.sparse.vstack((rows, equal)),
            np.append(np.full(len(above), -math.inf), level),
        )
        self._program = LinearMinimiser(A, low, np.append(above, level), lower, upper)
        unit = scipy.sparse.eye_array(self._size, format="csr")
        up, down = np.isfinite(upper), np.isfinite(lower)
        rows = scipy.sparse.vstack((rows, unit[up], -unit[down]), format="csr")
        above = np.concatenate((above, upper[up], -lower[down]))
        generic = tilt(self._size) - 0.5
        try:
            ends = [self._program(generic), self._program(-generic)]
        except ValueError as error:
            raise ValueError(self._fault(generic) or f"HiGHS: {error}") from None
        length = norm(ends[1] - ends[0])
        if length <= _SOLVED * max(map(norm, ends)):
            raise ValueError("the set is a single point; loosen a row or a bound")
        self._set_hull(equal)
        inner, center = self._largest_ball(rows, above, length)
        if inner <= _ROUNDED * length:
            tied = self._tied(rows, above, 0.5 * (ends[0] + ends[1]), length)
            self._set_hull(scipy.sparse.vstack((equal, rows[tied])))
            rows, above = rows[~tied], above[~tied]
            inner, center = self._largest_ball(rows, above, length)
        moving = self._lengths(rows) > _ROUNDED
        self._rows, self._above = rows[moving], above[moving]
        self._room = self._above - self._rows @ center
        low, high = self._box(lower.copy(), upper.copy())
        radius = reach(self._lmo, center, low, high) * (1 + _ROUNDED)
        super().__init__(
            self._size,
            radius,
            center=center if center.any() else None,
            diameter=norm(high - low) * (1 + _ROUNDED),
            inner_radius=float((self._room / self._lengths(self._rows)).min()),
        )

    @cached_property
    def dimension(self) -> int:
        return self._size - self._normals.shape[1]

    def tangent(self, direction: Array) -> Array:
        if not self._normals.size:
            return direction
        return direction - self._normals @ (self._normals.T @ direction)

    def _lmo(self, direction: Array) -> Array:
        return self._program(direction)

    def _contains(self, x: Array, slack: float) -> bool:
        within = (self._rows @ x <= self._above + slack).all()
        return bool(within and self._offset(x) <= slack)

    def _gauge(self, y: Array) -> float:
        if self._outside_hull(y):
            return math.inf
        return max(0.0, float((self._rows @ self._from_center(y) / self._room).max()))

    def _gauge_subgradient(self, y: Array) -> Array:
        tightest = int((self._rows @ self._from_center(y) / self._room).argmax())
        return self.tangent(self._rows[[tightest]].toarray()[0] / self._room[tightest])

    # -- what the constructor finds out ------------------------------------------------------

    def _scaled(self, A: Any, b: Any) -> tuple[Any, Array]:
        """Return rows of length 1 and their right-hand sides; rows of zeros stay."""
        rows = scipy.sparse.csr_array((0, self._size) if A is None else A, dtype=np.float64)
        lengths = scipy.sparse.linalg.norm(rows, axis=1)
        scale = 1.0 / np.where(lengths > 0, lengths, 1.0)
        return scipy.sparse.diags_array(scale).tocsr() @ rows, scale * (() if b is None else b)

    def _set_hull(self, equal: Any) -> None:
        """Keep an orthonormal basis of what is normal to the affine hull, given its equalities."""
        unique = equal.toarray().T
        basis, weights, _ = scipy.linalg.qr(unique, mode="economic", pivoting=True)
        self._normals = basis[:, np.abs(weights.diagonal()) > _SOLVED]

    def _lengths(self, rows: Any) -> Array:
        """Lengths of rows along the affine hull."""
        squares = (rows * rows).sum(axis=1) - np.square(rows @ self._normals).sum(axis=1)
        return np.sqrt(np.maximum(squares, 0.0))

    def _largest_ball(self, rows: Any, above: Array, length: float) -> tuple[float, Array]:
        """Return the radius and the centre of a largest ball within the affine hull.

        Of several centres, the mean of two opposite ones.
        """
        known = self._program
        A = scipy.sparse.vstack((known.A, rows))
        lengths = np.append(np.zeros(known.A.shape[0]), self._lengths(rows))
        ball = LinearMinimiser(
            scipy.sparse.hstack((A, lengths[:, None])),
            np.append(known.low, np.full(len(above), -math.inf)),
            np.append(known.high, above),
            np.append(known.lower, 0.0),
            np.append(known.upper, length),
        )
        aside = np.append(1e-4 * (tilt(self._size) - 0.5), -1.0)
        found = [ball(aside * [*np.full(self._size, sign), 1.0]) for sign in (1.0, -1.0)]
        mean = 0.5 * (found[0] + found[1])
        return float(min(each[-1] for each in found)), mean[:-1]

    def _tied(self, rows: Any, above: Array, inside: Array, length: float) -> Any:
        """Return the inequalities that hold with equality everywhere."""
        tied = np.ones(len(above), dtype=bool)
        while True:
            loose = tied & (rows @ inside < above - _ROUNDED * length)
            if not loose.any():
                return tied
            tied &= ~loose
            inside = self._program(rows.T @ tied.astype(float))  # if one can be loose, some is here

    def _box(self, lower: Array, upper: Array) -> tuple[Array, Array]:
        """Return bounds on the variables, those that were given or better ones."""
        for i, unit in enumerate(np.eye(self._size) if self._size <= _BOUNDED else ()):
            lower[i], upper[i] = self._program(unit)[i], self._program(-unit)[i]
        for bound, sign in ((lower, 1.0), (upper, -1.0)):
            for i in np.flatnonzero(np.isinf(bound)):
                unit = np.zeros(self._size)
                unit[i] = sign
                bound[i] = self._program(unit)[i]
        return lower, upper

    def _fault(self, generic: Array) -> str:
        """Say which row no point keeps, or along which ray the set is unbounded; nothing if neither."""
        known, (m, n) = self._program, self._program.A.shape
        slack = scipy.sparse.eye_array(m)
        elastic = LinearMinimiser(
            scipy.sparse.hstack((known.A, slack, -slack)) if m else known.A,
            *(known.low, known.high),
            np.append(known.lower, np.zeros(2 * m)),
            np.append(known.upper, np.full(2 * m, math.inf)),
        )
        broken = elastic(np.append(np.zeros(n), np.ones(2 * m)))[n:].reshape(2, m).sum(axis=0)
        if broken.max(initial=0.0) > _ROUNDED:
            worst, first = int(broken.argmax()), m - (0 if self.b_eq is None else len(self.b_eq))
            name = f"row {worst} of A_ub" if worst < first else f"row {worst - first} of A_eq"
            return (
                f"the set is empty: {name} cannot be kept together with the other rows and the bounds; the "
                f"nearest point is {broken[worst]:.3g} away from it; correct that row or what is against it"
            )
        cone = [np.where(np.isfinite(bound), 0.0, math.inf) for bound in (known.low, known.high)]
        least, most = (np.where(np.isfinite(bound), 0.0, 1.0) for bound in self.bounds.T)
        ways = LinearMinimiser(known.A, -cone[0], cone[1], -least, most)
        ray = max(ways(generic), ways(-generic), key=norm)
        shown = ", ".join(f"x[{i}] by {ray[i]:.3g}" for i in np.flatnonzero(ray)[:5])
        more = ", ..." if np.count_nonzero(ray) > 5 else ""
        return ray.any() and (
            f"the set is unbounded: in steps of one ray, {shown}{more}, no row or bound is ever met; "
            "give bounds there"
        )


def _rows(A: Any, b: Any, name: str) -> tuple[Any, Any]:
    """Return a matrix, dense or CSR, and its right-hand side, or None for both."""
    if A is None and b is None:
        return None, None
    if A is None or b is None:
        raise ValueError(f"A_{name} and b_{name} go together, but one of them is None")
    if scipy.sparse.issparse(A):
        A = scipy.sparse.csr_array(checks.sound_sparse(A, f"A_{name}"), dtype=float, copy=True)
        A.sum_duplicates()
        checks.finite_array(A.data, f"A_{name}")
    else:
        A = checks.finite_array(A, f"A_{name}").copy()
    b = checks.finite_array(b, f"b_{name}").copy()
    if A.ndim != 2 or b.shape != A.shape[:1]:
        raise ValueError(
            f"A_{name} must have a row for each number of b_{name}, got {A.shape} and {b.shape}"
        )
    return A, b


def _bounds(given: Any, *matrices: Any) -> Array:
    """Return one pair of bounds for each variable, which may be infinite."""
    checks.refuse_masked(given, "bounds")
    try:
        pairs = np.array(given, dtype=np.float64)  # None becomes NaN
    except (TypeError, ValueError):
        pairs = np.empty(0)
    sizes = {A.shape[1] for A in matrices if A is not None}
    if pairs.shape == (2,) and len(sizes) == 1:
        pairs = np.tile(pairs, (*sizes, 1))
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs) or sizes - {len(pairs)}:
        columns = " and ".join(map(str, sorted(sizes))) or "no"
        raise ValueError(
            "bounds must be a pair (low, high), or one pair for each variable; the rows have "
            f"{columns} columns, and bounds have shape {pairs.shape}"
        )
    pairs = np.where(np.isnan(pairs), [-math.inf, math.inf], pairs)
    wrong = np.flatnonzero(
        (pairs[:, 0] > pairs[:, 1]) | (pairs == [math.inf, -math.inf]).any(axis=1)
    )
    if wrong.size:
        raise ValueError(
            f"the set is empty: bounds of x[{wrong[0]}] are {tuple(pairs[wrong[0]].tolist())}"
        )
    return pairs
