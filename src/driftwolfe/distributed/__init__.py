"""Losses on several machines, by Dask."""

try:
    import distributed as _dask  # noqa: F401
except ImportError:
    raise ImportError(
        'driftwolfe.distributed needs Dask: pip install "driftwolfe[distributed]"'
    ) from None

from driftwolfe.distributed.sums import SumLoss

__all__ = ["SumLoss"]
