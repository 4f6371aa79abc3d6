"""More than one machine, by Dask."""

try:
    import distributed as _dask  # noqa: F401
except ImportError:
    raise ImportError(
        'driftwolfe.distributed needs Dask: pip install "driftwolfe[distributed]"'
    ) from None

from driftwolfe.distributed.keyed import Keyed

__all__ = ["Keyed"]
