"""Linear programs: the solver, their sets, and those of models in cvxpy."""

from __future__ import annotations

import math
from importlib import import_module
from threading import Lock
from typing import Any, cast

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe.domains.base import Domain, reach
from driftwolfe.domains.composite import LMODomain
from driftwolfe.points import checks, norm
from driftwolfe.points.kinds import Array
from driftwolfe.points.ops import tilt

#: Lengths, over that of the set, that are rounding of a linear program, or of a few operations.
_ROUNDED, _FEW = 1e-7, 1e-9
#: Variables up to which all bounds are found by the oracle.
_BOUNDED = 64
#: Answers are rounded to multiples of this times the largest entry. HiGHS itself keeps rows to 1e-9, and costs
#: to 1e-7 where the largest is `_LARGEST`.
_GRAIN, _LARGEST = 2.0**-36, 1024.0
_HIGHS_OPTIONS: dict[str, Any] = {"output_flag": False, "threads": 1, "presolve": "off"}
_HIGHS_OPTIONS["primal_feasibility_tolerance"] = 1e-9


class LinearMinimiser:
    r"""Minimises linear functions over :math:`\{x : low \le A x \le high,\ lower \le x \le upper\}`.

    With `highspy` the rows are given once. Without it SciPy's `milp` takes several times as long; it also finds
    `whole` numbers. Copies and pickles leave the solver behind; calls from several threads take turns.
    """

    def __init__(
        self, A: Any, low: Any, high: Any, lower: Any, upper: Any, whole: bool = False
    ) -> None:
        self.A = scipy.sparse.csc_array(A, dtype=np.float64)
        rows, columns = self.A.shape
        self.low, self.high = (np.full(rows, each, float) for each in (low, high))
        self.lower, self.upper = (np.full(columns, each, float) for each in (lower, upper))
        self.whole, self._solver = whole, cast(Any, None)
        self._lock = Lock()

    def __call__(self, costs: Array) -> Array:
        """Return a minimiser of <costs, x>; a ValueError with the solver's word where there is none."""
        largest = float(np.abs(costs).max(initial=0.0))
        scaled = costs / largest * _LARGEST if largest > 0.0 else costs  # tolerances are absolute
        with self._lock:
            if self._solver is None:
                self._solver = (None if self.whole else self._highs()) or self._milp
            solution = self._solver(scaled)
        if self.whole:
            return np.rint(solution)
        grain = _GRAIN * 2.0 ** np.frexp(0.7 * float(np.abs(solution).max(initial=1e-300)))[1]
        return np.clip(grain * np.rint(solution / grain), self.lower, self.upper)

    def _highs(self) -> Any:
        """HiGHS without SciPy's checks, or None where it is not installed."""
        try:
            highspy: Any = import_module("highspy")  # optional; without it the types are the same
        except ImportError:
            return None
        highs, model, n = highspy.Highs(), highspy.HighsLp(), self.A.shape[1]
        for option, value in _HIGHS_OPTIONS.items():
            highs.setOptionValue(option, value)
        model.num_row_, model.num_col_ = self.A.shape
        model.col_cost_ = np.zeros(n)
        model.col_lower_, model.col_upper_ = self.lower, self.upper
        model.row_lower_, model.row_upper_ = self.low, self.high
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_, model.a_matrix_.index_ = self.A.indptr, self.A.indices
        model.a_matrix_.value_ = self.A.data
        highs.passModel(model)
        columns = np.arange(n, dtype=np.int32)

        def solve(costs: Array) -> Array:
            highs.clearSolver()  # so that an answer depends on the costs alone
            highs.changeColsCost(n, columns, costs)
            highs.run()
            if (status := highs.getModelStatus()) != highspy.HighsModelStatus.kOptimal:
                raise ValueError(highs.modelStatusToString(status).lower())
            return np.array(highs.getSolution().col_value)

        return solve

    def _milp(self, costs: Array) -> Array:
        from scipy.optimize import Bounds, LinearConstraint, milp  # a slow import

        rows, bounds = LinearConstraint(self.A, self.low, self.high), Bounds(self.lower, self.upper)
        whole, options = np.full(costs.size, int(self.whole)), {"mip_rel_gap": 0.0}
        found = milp(costs, integrality=whole, bounds=bounds, constraints=rows, options=options)
        if found.status != 0:
            words = {2: "infeasible", 3: "unbounded"}
            raise ValueError(words.get(found.status, found.message))
        return np.asarray(found.x)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_solver": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=Lock())


class LinearProgram(Domain):
    r"""Feasible points: :math:`\{x : A_{ub} x \le b_{ub}, A_{eq} x = b_{eq}, low \le x \le high\}`.

    The parameters are those of `scipy.optimize.linprog`. The set must be bounded and more than a point; if it is
    not, the error names a row or a ray. The oracle is HiGHS, quicker where `highspy` is installed (``pip install
    "driftwolfe[sets]"``). The gauge is infinite where an equality fails (more than 1e-9 of the size away).

    The centre is that of a largest ball in the set, within its affine hull: O(m^2 n) for m equalities and n
    variables. `radius` is a bound, exact if bounds on the variables hold with equality at all vertices. Such bounds
    take a call of the oracle each, up to 64 variables; for more, where none are given.

    Parameters
    ----------
    A_ub, b_ub, A_eq, b_eq
        Rows of inequalities and equalities, dense or sparse, and their right-hand sides.
    bounds
        A pair ``(low, high)`` for all variables, or one for each; None stands for none.

    Examples
    --------
    Two products within the hours of two machines:

    >>> import driftwolfe as dw
    >>> plans = dw.LinearProgram(A_ub=[[1.0, 2.0], [3.0, 1.0]], b_ub=[8.0, 9.0])
    >>> plans.lmo([-1.0, -1.0]), plans.contains([1.0, 3.0]), round(plans.inner_radius, 4)
    (array([2., 3.]), True, 1.2566)
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
        self.bounds = _bounds(bounds, [A.shape[1] for A in (self.A_ub, self.A_eq) if A is not None])
        (lower, upper), size, sparse = self.bounds.T.copy(), len(self.bounds), scipy.sparse
        both = (self.A_ub, self.b_ub), (self.A_eq, self.b_eq)
        given = [(A, b) for A, b in both if b is not None]
        A = sparse.vstack([sparse.csr_array((0, size)), *(A for A, _ in given)], format="csr")
        lengths = sparse.linalg.norm(A, axis=1)
        scale = 1.0 / np.where(lengths > 0, lengths, 1.0)  # so that slacks are distances
        A = sparse.csr_array(sparse.diags_array(scale) @ A)
        b = scale * np.concatenate([[], *(b for _, b in given)])
        n_ub = 0 if self.b_ub is None else self.b_ub.size
        rows, above, equal = A[:n_ub], b[:n_ub], A[n_ub:]
        low = np.where(np.arange(b.size) < n_ub, -math.inf, b)
        self._program = LinearMinimiser(A, low, b, lower, upper)
        # Two opposite directions without ties tell a bounded set, a point and nothing apart.
        generic = tilt(size) - 0.5
        try:
            ends = [self._program(generic), self._program(-generic)]
        except ValueError as error:
            raise ValueError(self._fault(generic, n_ub) or f"HiGHS: {error}") from None
        length = norm(ends[1] - ends[0])
        if length <= _FEW * max(map(norm, ends)):
            raise ValueError("the set is a single point; loosen a row or a bound")
        unit, below = sparse.eye_array(size, format="csr"), np.isfinite(lower)
        rows = sparse.vstack((rows, unit[np.isfinite(upper)], -unit[below]), format="csr")
        above = np.concatenate((above, upper[np.isfinite(upper)], -lower[below]))
        self._set_hull(equal)
        inner, center = self._largest_ball(rows, above, length)
        if inner <= _ROUNDED * length:
            tied = self._tied(rows, above - _ROUNDED * length, ends[0])
            self._set_hull(sparse.vstack((equal, rows[tied])))
            rows, above = rows[~tied], above[~tied]
            inner, center = self._largest_ball(rows, above, length)
        moving = self._lengths(rows) > 0
        self._rows, self._above = rows[moving], above[moving]
        self._room = self._above - self._rows @ center
        for bound, sign in ((lower, 1.0), (upper, -1.0)):
            for i in np.flatnonzero(np.isinf(bound) | (size <= _BOUNDED)):
                bound[i] = self._program(sign * unit[[i]].toarray()[0])[i]
        super().__init__(
            size,
            reach(self._lmo, center, lower, upper) * (1 + _FEW),
            diameter=norm(upper - lower) * (1 + _FEW),
            center=center if center.any() else None,
            inner_radius=float((self._room / self._lengths(self._rows)).min()),
        )
        self.dimension = size - self._normals.shape[1]

    def tangent(self, direction: Array) -> Array:
        if not self._normals.size:
            return direction
        return direction - self._normals @ (self._normals.T @ direction)

    def _lmo(self, direction: Array) -> Array:
        return self._program(direction)

    def _contains(self, x: Array, slack: float) -> bool:
        within = (self._rows @ x <= self._above + slack).all()
        return bool(within and self._offset(x) <= slack)

    def _loads(self, y: Array) -> Array:
        """Return how much of its room each inequality takes, on the way from the centre."""
        return self._rows @ self._from_center(y) / self._room

    def _gauge(self, y: Array) -> float:
        return math.inf if self._outside_hull(y) else max(0.0, self._loads(y).max())

    def _gauge_subgradient(self, y: Array) -> Array:
        tightest = int(self._loads(y).argmax())
        return self.tangent(self._rows[[tightest]].toarray()[0] / self._room[tightest])

    # -- what the constructor finds out; rows have length 1 --------------------------------------

    def _set_hull(self, equal: Any) -> None:
        """Keep an orthonormal basis of the normals of the affine hull, given its equalities."""
        basis, weights, _ = scipy.linalg.qr(equal.toarray().T, mode="economic", pivoting=True)
        self._normals = basis[:, np.abs(weights.diagonal()) > _FEW]

    def _lengths(self, rows: Any) -> Array:
        """Return the lengths of rows along the affine hull, 0 where that is rounding."""
        squares = (rows * rows).sum(axis=1) - np.square(rows @ self._normals).sum(axis=1)
        return np.sqrt(np.where(squares > _ROUNDED**2, squares, 0.0))

    def _largest_ball(self, rows: Any, above: Array, length: float) -> tuple[float, Array]:
        """Return radius and centre of a largest ball in the set; of several, the mean of two far apart."""
        known, sparse = self._program, scipy.sparse
        radii = np.append(np.zeros(known.A.shape[0]), self._lengths(rows))
        A = sparse.hstack((sparse.vstack((known.A, rows)), radii[:, None]))
        low = np.append(known.low, np.full(above.size, -math.inf))
        bounds = np.append(known.lower, 0.0), np.append(known.upper, length)
        ball = LinearMinimiser(A, low, np.append(known.high, above), *bounds)
        aside = 1e-4 * (tilt(rows.shape[1]) - 0.5)
        found = [ball(np.append(sign * aside, -1.0)) for sign in (1.0, -1.0)]
        return float(min(each[-1] for each in found)), 0.5 * (found[0] + found[1])[:-1]

    def _tied(self, rows: Any, almost: Array, inside: Array) -> Any:
        """Return the inequalities that hold with equality everywhere; `almost` is a little less."""
        tied = np.ones(almost.size, dtype=bool)
        while (loose := tied & (rows @ inside < almost)).any():
            tied &= ~loose
            inside = self._program(rows.T @ tied.astype(float))  # if some can be loose, one is here
        return tied

    def _fault(self, generic: Array, n_ub: int) -> str:
        """Say which row no point keeps, or along which ray the set is unbounded; nothing if neither."""
        known, (m, n) = self._program, self._program.A.shape
        slack = scipy.sparse.eye_array(m, format="csc")
        A = scipy.sparse.hstack((known.A, slack, -slack))
        upper = np.append(known.upper, np.full(2 * m, math.inf))
        lower = np.append(known.lower, np.zeros(2 * m))
        elastic = LinearMinimiser(A, known.low, known.high, lower, upper)
        misses = elastic(np.repeat([0.0, 1.0], (n, 2 * m)))[n:].reshape(2, m).sum(axis=0)
        if misses.max(initial=0.0) > _ROUNDED:
            i = int(misses.argmax())
            row = f"row {i} of A_ub" if i < n_ub else f"row {i - n_ub} of A_eq"
            return (
                f"the set is empty: the other rows and the bounds rule {row} out, by a distance of "
                f"{misses[i]:.3g} or more; correct it, or what is against it"
            )
        bounds = (known.low, known.high, known.lower, known.upper)
        low, high, lower, upper = (np.where(np.isfinite(each), 0.0, math.inf) for each in bounds)
        cone = LinearMinimiser(known.A, -low, high, -lower.clip(0, 1), upper.clip(0, 1))
        ray = max(cone(generic), cone(-generic), key=norm)
        parts = [f"{ray[i]:+.3g} x[{i}]" for i in np.flatnonzero(ray)]
        way = " ".join(parts[:5]) + " ..." * (len(parts) > 5)
        return way and f"the set is unbounded along the ray {way}; give bounds that stop it"


def _rows(A: Any, b: Any, name: str) -> tuple[Any, Any]:
    """Return a matrix, dense or CSR, and its right-hand side, or None for both."""
    if A is None and b is None:
        return None, None
    if scipy.sparse.issparse(A):
        A = scipy.sparse.csr_array(checks.sound_sparse(A, f"A_{name}"), dtype=float, copy=True)
        A.sum_duplicates()
        checks.finite_array(A.data, f"A_{name}")
    elif A is not None:
        A = checks.finite_array(A, f"A_{name}").copy()
    b = None if b is None else checks.finite_array(b, f"b_{name}").copy()
    if A is None or b is None or A.ndim != 2 or b.shape != A.shape[:1]:
        raise ValueError(f"A_{name} must be a matrix with a row for each number of b_{name}")
    return A, b


def _bounds(given: Any, columns: list[int]) -> Array:
    """Return one pair of bounds for each variable, which may be infinite."""
    checks.refuse_masked(given, "bounds")
    try:
        pairs = np.array(given, dtype=np.float64)  # None becomes NaN
    except (TypeError, ValueError):
        pairs = np.empty(0)
    if pairs.shape == (2,) and columns:
        pairs = np.tile(pairs, (columns[0], 1))
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not pairs.size or {*columns} - {len(pairs)}:
        raise ValueError(
            "bounds must be a pair (low, high), or one pair for each variable, and rows have an entry for "
            f"each; got bounds of shape {pairs.shape} and rows of {columns or 'no'} entries"
        )
    pairs = np.where(np.isnan(pairs), [-math.inf, math.inf], pairs)
    empty = (pairs[:, 0] > pairs[:, 1]) | (pairs == [math.inf, -math.inf]).any(axis=1)
    if (wrong := np.flatnonzero(empty)).size:
        low, high = pairs[wrong[0]].tolist()
        raise ValueError(f"the set is empty: x[{wrong[0]}] has bounds ({low:g}, {high:g})")
    return pairs


def from_cvxpy(variable: Any, constraints: Any, **options: Any) -> LMODomain:
    """Return the set of a cvxpy model: all values of a variable for which the constraints can be met.

    The oracle is the model with a linear cost, compiled once, as the cost is a parameter. It is as exact as the
    solver. Other variables may occur in the constraints; attributes such as ``PSD=True`` hold; with
    ``boolean=True`` the set is the convex hull. Centre and radius are those that an `LMODomain` finds.

    Parameters
    ----------
    variable
        A real variable with one axis or more.
    constraints
        A list of constraints, which bound the variable.
    options
        Of the solver, as for ``Problem.solve``; by default cvxpy chooses one.

    Examples
    --------
    >>> import cvxpy as cp, driftwolfe as dw
    >>> x = cp.Variable(2)
    >>> half_disc = dw.from_cvxpy(x, [cp.norm(x) <= 1, x[0] >= 0])
    >>> half_disc.lmo([1.0, -1.0]).round(4) + 0.0
    array([0., 1.])
    """
    try:
        cp: Any = import_module("cvxpy")  # optional, and slow to import
    except ImportError:
        raise ImportError('from_cvxpy needs cvxpy: pip install "driftwolfe[sets]"') from None
    if not isinstance(variable, cp.Variable) or variable.is_complex() or not variable.shape:
        raise TypeError(f"variable must be a real cvxpy Variable with an axis, got {variable!r}")
    costs, lock = cp.Parameter(variable.shape), Lock()
    problem = cp.Problem(cp.Minimize(cp.sum(cp.multiply(costs, variable))), list(constraints))

    def lmo(direction: Array) -> Any:
        with lock:  # learners project in several threads
            costs.value = direction / (np.abs(direction).max() or 1.0)
            problem.solve(**{"warm_start": False, **options})  # answers depend on costs alone
            if variable.value is None or "optimal" not in problem.status:
                must = f"constraints must bound {variable.name()} and leave it several values"
                raise ValueError(f"the model is {problem.status}: {must}")
            return getattr(variable.value, "toarray", lambda: variable.value)()

    return LMODomain(variable.shape, lmo)
