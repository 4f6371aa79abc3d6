"""`LinearMinimiser`: many linear programs that differ in their costs, by HiGHS."""

from __future__ import annotations

from importlib import import_module
from threading import Lock
from typing import Any, cast

import numpy as np
import scipy  # its parts load when first named, which keeps the start quick

from driftwolfe.points.kinds import Array

#: The largest cost that HiGHS is given: reduced costs below 1e-7 are none to it.
_LARGEST = 1024.0


class LinearMinimiser:
    r"""Minimises linear functions over :math:`\{x : low \le A x \le high,\ lower \le x \le upper\}`.

    By `highspy` or, where that is not installed, afresh by SciPy's `milp`, which takes several times as long and
    also finds `whole` numbers. An answer depends on the costs alone, so runs start from no basis; in the course
    of a learner's calls, that of the last run saves nothing. Copies and pickles leave the solver behind; calls
    from several threads take turns.
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
        within: Array = np.clip(solution, self.lower, self.upper)
        return np.rint(within) if self.whole else within

    def _highs(self) -> Any:
        """The solver that keeps the rows, or None where it is not installed."""
        try:
            highspy: Any = import_module("highspy")  # optional; without it the types are the same
        except ImportError:
            return None
        highs, model = highspy.Highs(), highspy.HighsLp()
        options = {"output_flag": False, "threads": 1, "presolve": "off"}
        for option, value in (options | {"primal_feasibility_tolerance": 1e-9}).items():
            highs.setOptionValue(option, value)
        model.num_row_, model.num_col_ = self.A.shape
        model.col_lower_, model.col_upper_ = self.lower, self.upper
        model.row_lower_, model.row_upper_ = self.low, self.high
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_, model.a_matrix_.index_ = self.A.indptr, self.A.indices
        model.a_matrix_.value_ = self.A.data

        def solve(costs: Array) -> Array:
            model.col_cost_ = costs
            highs.passModel(model)
            highs.run()
            status = highs.getModelStatus()
            if status != highspy.HighsModelStatus.kOptimal:
                raise ValueError(highs.modelStatusToString(status).lower())
            return np.array(highs.getSolution().col_value)

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
