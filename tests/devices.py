"""The devices that tests run on, by their names."""

import importlib.util
from functools import cache

import pytest

#: Whether PyTorch is installed; it is not imported to find out.
HAS_TORCH = importlib.util.find_spec("torch") is not None

#: Why tests are skipped, and how to run them.
NO_TORCH = "needs PyTorch; to install it and run these: make test TORCH=1"
NO_GPU = "needs a GPU that PyTorch finds; on a machine with one: make test-gpu"

needs_torch = pytest.mark.skipif(not HAS_TORCH, reason=NO_TORCH)

#: PyTorch on the host, which needs no GPU, and on one.
DEVICES = [
    pytest.param("torch", marks=needs_torch),
    pytest.param("cuda", marks=pytest.mark.gpu),
]
EVERYWHERE = ["cpu", *DEVICES]


@cache
def single_threaded_torch() -> None:
    """PyTorch has threads of its own, beside those of BLAS."""
    import torch

    torch.set_num_threads(1)


@cache
def has_gpu() -> bool:
    """Whether PyTorch finds a GPU."""
    if not HAS_TORCH:
        return False
    import torch

    return torch.cuda.is_available()
