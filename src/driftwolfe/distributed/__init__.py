"""On the workers of a Dask cluster: losses that are sums over them, and one model per key."""

try:
    import distributed as _dask  # noqa: F401
except ImportError:
    raise ImportError(
        "driftwolfe.distributed needs Dask; install it with: pip install 'driftwolfe[distributed]'"
    ) from None

from driftwolfe.distributed.keyed import Keyed
from driftwolfe.distributed.sums import SumLoss

__all__ = ["Keyed", "SumLoss"]
