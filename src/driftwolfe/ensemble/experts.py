"""Choosing the stack that suits a set's points."""

from __future__ import annotations

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.ensemble.dense_descent import DenseDescent
from driftwolfe.ensemble.descent import Descent, Oracle
from driftwolfe.ensemble.list_descent import ListDescent


def descent(domain: Domain, oracle: Oracle, step_scale: float | None) -> Descent:
    """Return an empty stack of descent experts: stacked arrays, or a list of larger points."""
    if isinstance(domain.origin(), np.ndarray):
        return DenseDescent(domain, oracle, step_scale)
    return ListDescent(domain, oracle, step_scale)
