"""The types that cross the layers."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.integer[Any]]
Shape: TypeAlias = tuple[int, ...]

#: What a decision is: a dense float64 array, a `FactoredMatrix` or a `ProductPoint`. All three add,
#: subtract and scale; `driftwolfe.points.inner` and `norm` measure them.
Point: TypeAlias = Any
