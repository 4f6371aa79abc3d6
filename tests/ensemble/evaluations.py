"""Evaluations with given slopes, for experts that are moved by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftwolfe.ensemble.experts import Evaluation


def with_slopes(slopes: Any, shared: bool = False) -> Evaluation:
    """What `step` takes: a slope for each expert, or one for all; no values."""
    return Evaluation(np.nan, np.nan, np.empty(0), slopes, shared)
