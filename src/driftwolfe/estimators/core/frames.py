"""Data frames of pandas, polars and arrow, seen in one way."""

from __future__ import annotations

from typing import Any


def is_frame(X: Any) -> bool:
    """Whether X is a data frame, of any library."""
    kinds = "iloc", "__dataframe__", "__arrow_c_stream__"
    return any(hasattr(X, name) for name in kinds) and hasattr(X, "columns")


def frame(X: Any, what: str) -> tuple[Any, Any]:
    """Return a data frame of any library as narwhals sees it, and narwhals."""
    try:
        import narwhals.stable.v2 as narwhals
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "data frames need narwhals; install it with: pip install 'driftwolfe[estimators]'",
            name=error.name,
        ) from error
    try:
        return narwhals.from_native(X, eager_only=True), narwhals
    except TypeError:
        kinds = "a frame of pandas, polars or arrow, in memory"
        raise TypeError(f"{what} must be {kinds}, got {type(X).__name__}") from None
    except narwhals.exceptions.DuplicateError:
        raise ValueError("the frame names a feature twice") from None
