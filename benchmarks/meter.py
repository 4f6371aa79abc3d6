"""What PyTorch's operations move: bytes read once and written once, by kind of work."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

#: Kinds of work, by what an operation's name holds; the first that fits.
KINDS = (
    ("sparse products", ("sparse:",)),
    ("matrix products", ("aten.mm", "aten.addmm", "aten.bmm")),
    ("matrix-vector products", ("aten.mv", "aten.addmv", "aten.dot", "aten.vdot")),
    ("small decompositions", ("linalg_cholesky", "linalg_solve", "linalg_eigh", "linalg_qr")),
    ("sorting entries", ("sort", "unique", "searchsorted", "arange")),
    ("look-ups", ("aten.index",)),
    ("side by side", ("aten.cat", "aten.stack")),
    ("random columns", ("randn", "normal")),
    ("to and from the host", ("_to_copy", "aten.copy_", "_local_scalar", "lift_fresh")),
    ("scaling, norms and the rest", ("",)),
)
#: Names that only look at memory in another way, or at nothing at all.
VIEWS = (
    *("view", "permute", "select", "slice", "unsqueeze", "squeeze", "aten.t.", "transpose"),
    *("detach", "unbind", "alias", "as_strided", "expand", "diagonal", "empty", "lift_fresh"),
    *("split", "sparse_compressed", "crow_indices", "col_indices", "values", "_local_scalar"),
)


def kind_of(name: str) -> str:
    """The kind of work that an operation is."""
    return next(kind for kind, parts in KINDS if any(part in name for part in parts))


class Meter(TorchDispatchMode):
    """Counts what every operation in its scope must at least move.

    Attributes
    ----------
    bytes, calls
        By kind of work.
    """

    def __init__(self) -> None:
        super().__init__()
        self.bytes: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None):
        result = function(*args, **(kwargs or {}))
        name = str(function)
        if any(part in name for part in VIEWS):
            return result
        inputs = _tensors((args, kwargs or {}))
        if any(tensor.layout is not torch.strided for tensor in inputs):
            name = f"sparse:{name}"
        kind = kind_of(name)
        self.calls[kind] += 1
        outputs = _tensors(result)
        if kind == "look-ups":  # a few rows of a table, not all of it
            moved = 2 * sum(map(_size, outputs)) + sum(map(_size, inputs[1:]))
        else:
            written = {tensor.data_ptr() for tensor in outputs if tensor.layout is torch.strided}
            read = [tensor for tensor in inputs if not _written(tensor, written, name)]
            moved = sum(map(_size, read)) + sum(map(_size, outputs))
        self.bytes[kind] += moved
        return result


def _written(tensor: Any, written: set[int], name: str) -> bool:
    """Whether an input is only written to: an `out` that is also a result."""
    strided = tensor.layout is torch.strided
    return strided and tensor.data_ptr() in written and not name.endswith(("_.default", "_.Tensor"))


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in _tensors(item)]
    return []


def _size(tensor: Any) -> int:
    if tensor.layout is torch.strided:
        return int(tensor.nbytes)
    parts = (tensor.crow_indices(), tensor.col_indices(), tensor.values())
    return sum(int(part.nbytes) for part in parts)
