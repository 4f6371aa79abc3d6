"""`LinearMinimiser`: many linear programs that differ in their costs, by HiGHS."""

from __future__ import annotations

from importlib import import_module
from threading import Lock
from typing import Any

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe.points.kinds import Array

#: Answers are rounded to multiples of this times the largest entry: which basis a run starts from, and so how
#: the last bits are rounded, does not show. HiGHS itself keeps rows to 1e-7.
_GRAIN = 2.0**-36


class LinearMinimiser:
    r"""Minimises linear functions over :math:`\{x : low \le A x \le high,\ lower \le x \le upper\}`.

    With `highspy` a run starts from the basis where the last one ended; without it SciPy's `linprog` starts
    afresh, which takes a few times as long. Costs should have no ties (`tilted`): then the answer depends on
    nothing else. Copies and pickles leave the solver behind; calls from several threads take turns.
    """

    def __init__(self, A: Any, low: Any, high: Any, lower: Any, upper: Any) -> None:
        self.A = scipy.sparse.csc_array(A, dtype=np.float64)
        rows, columns = self.A.shape
        self.low, self.high = (np.broadcast_to(each, rows).astype(float) for each in (low, high))
        self.lower, self.upper = (
            np.broadcast_to(each, columns).astype(float) for each in (lower, upper)
        )
        self._solver: Any = None
        self._lock = Lock()

    def __call__(self, costs: Array) -> Array:
        """Return a minimiser of <costs, x>; a ValueError with the solver's word where there is none."""
        largest = float(np.abs(costs).max(initial=0.0))
        scaled = costs / largest if largest > 0.0 else costs  # tolerances are absolute
        with self._lock:
            if self._solver is None:
                self._solver = self._highs() or self._linprog
            solution = self._solver(scaled)
        grain = _GRAIN * max(float(np.abs(solution).max(initial=0.0)), 1e-300)
        rounded: Array = np.clip(grain * np.rint(solution / grain), self.lower, self.upper)
        return rounded

    def _highs(self) -> Any:
        """The solver with a memory, or None where it is not installed."""
        try:
            highspy: Any = import_module("highspy")  # optional; without it the types are the same
        except ImportError:
            return None
        highs, model = highspy.Highs(), highspy.HighsLp()
        for option, value in (("output_flag", False), ("threads", 1), ("presolve", "off")):
            highs.setOptionValue(option, value)
        model.num_row_, model.num_col_ = self.A.shape
        model.col_cost_ = np.zeros(self.A.shape[1])
        model.col_lower_, model.col_upper_ = self.lower, self.upper
        model.row_lower_, model.row_upper_ = self.low, self.high
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_, model.a_matrix_.index_ = self.A.indptr, self.A.indices
        model.a_matrix_.value_ = self.A.data
        highs.passModel(model)
        columns = np.arange(self.A.shape[1], dtype=np.int32)

        def solve(costs: Array) -> Array:
            highs.changeColsCost(columns.size, columns, costs)
            highs.run()
            status = highs.getModelStatus()
            if status != highspy.HighsModelStatus.kOptimal:
                highs.clearSolver()
                raise ValueError(highs.modelStatusToString(status).lower())
            return np.array(highs.getSolution().col_value)

        return solve

    def _linprog(self, costs: Array) -> Array:
        from scipy.optimize import linprog  # a slow import

        equal = self.low == self.high
        above, below = ~equal & np.isfinite(self.high), ~equal & np.isfinite(self.low)
        rows = self.A.tocsr()
        found = linprog(
            costs,
            A_ub=scipy.sparse.vstack([rows[above], -rows[below]]),
            b_ub=np.concatenate((self.high[above], -self.low[below])),
            A_eq=rows[equal],
            b_eq=self.low[equal],
            bounds=np.stack((self.lower, self.upper), axis=1),
            method="highs-ds",
        )
        if found.status != 0:
            words = {2: "infeasible", 3: "unbounded"}
            raise ValueError(words.get(found.status, found.message))
        return np.asarray(found.x)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_solver": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=Lock())
