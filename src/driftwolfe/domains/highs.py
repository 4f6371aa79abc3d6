"""`LinearMinimiser`: many linear programs that differ in their costs, by HiGHS."""

from __future__ import annotations

import math
from importlib import import_module
from threading import Lock
from typing import Any, cast

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe.points.kinds import Array

#: Answers are rounded to multiples of this times the largest entry: which basis a run starts from, and so how
#: the last bits are rounded, does not show. HiGHS itself keeps rows to 1e-9, and costs to 1e-7 where the largest
#: is `_LARGEST`. A reduced cost of more than `_CERTAIN` is none of 0.
_GRAIN, _LARGEST, _CERTAIN = 2.0**-36, 1024.0, 1e-6


class LinearMinimiser:
    r"""Minimises linear functions over :math:`\{x : low \le A x \le high,\ lower \le x \le upper\}`.

    With `highspy` a run starts from the basis where the last one ended, and again from none if other answers may
    be as good: so an answer depends on the costs alone. Without it SciPy's `milp` starts afresh, which takes a
    few times as long; it also finds `whole` numbers. Copies and pickles leave the solver behind; calls from
    several threads take turns.
    """

    def __init__(
        self, A: Any, low: Any, high: Any, lower: Any, upper: Any, whole: bool = False
    ) -> None:
        self.A = scipy.sparse.csc_array(A, dtype=np.float64)
        rows, columns = self.A.shape
        self.low, self.high = (np.broadcast_to(each, rows).astype(float) for each in (low, high))
        self.lower, self.upper = (
            np.broadcast_to(each, columns).astype(float) for each in (lower, upper)
        )
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
        rounded = grain * np.rint(solution / grain)
        return np.clip(rounded.astype(float), self.lower, self.upper)

    def _highs(self) -> Any:
        """The solver with a memory, or None where it is not installed."""
        try:
            highspy: Any = import_module("highspy")  # optional; without it the types are the same
        except ImportError:
            return None
        if not self.A.nnz:  # it would have no basis
            return None
        highs, model = highspy.Highs(), highspy.HighsLp()
        options = {"output_flag": False, "threads": 1, "presolve": "off"}
        for option, value in (options | {"primal_feasibility_tolerance": 1e-9}).items():
            highs.setOptionValue(option, value)
        model.num_row_, model.num_col_ = self.A.shape
        model.col_cost_ = np.zeros(self.A.shape[1])
        model.col_lower_, model.col_upper_ = self.lower, self.upper
        model.row_lower_, model.row_upper_ = self.low, self.high
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_, model.a_matrix_.index_ = self.A.indptr, self.A.indices
        model.a_matrix_.value_ = self.A.data
        highs.passModel(model)
        n = self.A.shape[1]
        columns = np.arange(n, dtype=np.int32)
        lower, upper = np.append(self.lower, self.low), np.append(self.upper, self.high)
        movable, A = lower < upper, self.A.astype(np.longdouble)

        def solve(costs: Array) -> Array:
            highs.changeColsCost(n, columns, costs)
            for _ in range(2):  # the second time from no basis, where other answers may be as good
                highs.run()
                if (status := highs.getModelStatus()) != highspy.HighsModelStatus.kOptimal:
                    highs.clearSolver()
                    raise ValueError(highs.modelStatusToString(status).lower())
                basic, found = highs.getBasicVariables()[1], highs.getSolution()
                prices = np.append(found.col_dual, found.row_dual)
                prices[np.where(basic < 0, n - 1 - basic, basic)] = math.inf
                if (np.abs(prices[movable]) > _CERTAIN).all():
                    break
                highs.clearSolver()
            return refined(basic, np.append(found.col_value, found.row_value))

        def refined(basic: Any, values: Array) -> Any:
            """Return the vertex to more digits than bases differ in: what is not basic is at its bound."""
            held = np.ones(values.size, dtype=bool)
            held[np.where(basic < 0, n - 1 - basic, basic)] = False
            bound = np.where(values - lower <= upper - values, lower, upper)
            exact = np.where(held & np.isfinite(bound), bound, values).astype(np.longdouble)
            missing = np.where(held[n:], exact[n:] - A @ exact[:n], 0.0)
            unit = np.abs(missing).max(initial=1e-300)  # HiGHS drops small numbers
            moves = unit * highs.getBasisSolve((missing / unit).astype(float))[1]
            exact[basic[basic >= 0]] += moves[basic >= 0]
            return exact[:n]

        return solve

    def _milp(self, costs: Array) -> Array:
        from scipy.optimize import Bounds, LinearConstraint, milp  # a slow import

        found = milp(
            costs,
            integrality=np.full(costs.size, int(self.whole)),
            bounds=Bounds(self.lower, self.upper),
            constraints=LinearConstraint(self.A, self.low, self.high),
            options={"mip_rel_gap": 0.0},
        )
        if found.status != 0:
            words = {2: "infeasible", 3: "unbounded"}
            raise ValueError(words.get(found.status, found.message))
        return np.asarray(found.x)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_solver": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=Lock())
