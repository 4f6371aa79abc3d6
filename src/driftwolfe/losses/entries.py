"""`EntryLoss`: what losses on some entries of a matrix share."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from driftwolfe.losses.base import Loss
from driftwolfe.losses.copies import Copies
from driftwolfe.losses.inputs import batch_of_indices, batch_of_numbers
from driftwolfe.points import checks
from driftwolfe.points.devices import HOST, Device, device_of, to_host
from driftwolfe.points.factored import FactoredMatrix
from driftwolfe.points.kinds import Array, Indices, Point, Shape


class EntryLoss(Loss):
    r"""A sum of losses of single entries, :math:`f(X) = \sum_k \varphi(X_{i_k j_k} - M_k)`.

    Looking costs one look-up per entry, and the gradient of a `FactoredMatrix` is sparse. A pair
    (i, j) may come several times; its terms add up. A new one overrides `value_at` and `slope_at`.

    Parameters
    ----------
    rows, cols
        Indices :math:`i_k, j_k`, from 0.
    targets
        The numbers :math:`M_k`.
    shape
        Shape of the matrices, if the indices are to be checked now; else every matrix that has
        these entries will do.
    """

    on_devices = True

    def __init__(self, rows: Any, cols: Any, targets: Any, shape: Any = None) -> None:
        self.rows = batch_of_indices(rows, "rows")
        self.cols = batch_of_indices(cols, "cols")
        if self.rows.size != self.cols.size:
            raise ValueError(
                f"rows and cols must be of one length, got {self.rows.size} and {self.cols.size}"
            )
        self.targets = batch_of_numbers(targets, "targets", self.rows.size)
        self._copies = Copies(self.rows, self.cols, self.targets)
        self._largest = (int(self.rows.max()), int(self.cols.max()))
        if shape is not None:
            sizes = checks.shape(shape)
            self.check_shape(sizes)
            self.shape = sizes

    def check_shape(self, shape: Shape) -> None:
        """Raise `ValueError` unless matrices of that shape have these entries."""
        super().check_shape(shape)
        if len(shape) != 2:
            raise ValueError(f"{type(self).__name__} takes matrices, got a point of shape {shape}")
        for name, largest, size in zip(("rows", "cols"), self._largest, shape, strict=True):
            if largest >= size:
                raise ValueError(
                    f"{name} has the index {largest}, but a matrix of shape {shape} "
                    f"has only 0..{size - 1}"
                )

    def scores(self, x: Point) -> Array:
        """Return the entries of x at (rows, cols)."""
        self.check_shape(x.shape)
        if isinstance(x, FactoredMatrix):
            return x.entries_at(*self.places(x.device))
        entries: Array = x[self.rows, self.cols]
        return entries

    def places(self, device: Device) -> tuple[Any, Any]:
        """The rows and columns, where a point lives."""
        return self._copies.on(device)[:2]

    def errors(self, scores: Any) -> Any:
        """Scores minus targets, where the scores are; leading axes are kept."""
        return scores - self._copies.on(device_of(scores))[2]

    def pull_back(self, slope: Array, like: Point) -> Point:
        """Return the matrix with these slopes at (rows, cols), sparse for a `FactoredMatrix`."""
        if isinstance(like, FactoredMatrix):
            self.check_shape(like.shape)
            return FactoredMatrix._stored(like.shape, *self.places(like.device), slope)
        return self.stacked_pull_back(slope[None], like[None])[0]

    def stacked_scores(self, stack: Array) -> Array:
        """Return the entries at (rows, cols) of every matrix of a stack."""
        self.check_shape(tuple(stack.shape[1:]))
        rows, cols = self.places(device_of(stack))
        entries: Array = to_host(stack[:, rows, cols])  # few, and what follows is quicker there
        return entries

    def stacked_pull_back(self, slopes: Array, stack: Array) -> Array:
        """Return the dense matrices with these slopes at (rows, cols)."""
        number, m, n = stack.shape
        if (device := device_of(stack)) is not HOST:
            rows, cols = self.places(device)
            return device.summed(device.put(slopes), rows * n + cols, m * n).reshape(stack.shape)
        gradients = np.zeros(stack.shape)
        # One flat index: numpy's fast path, twice as fast here as indexing three axes.
        flat = (np.arange(number) * (m * n))[:, None] + (self.rows * n + self.cols)
        np.add.at(gradients.reshape(-1), flat.ravel(), slopes.ravel())
        return gradients

    def gradient_norm(self, slope: Array) -> float:
        """Return the norm of the matrix with these slopes at (rows, cols), entries added up."""
        return float(self.gradient_norms(slope[None])[0])

    def gradient_norms(self, slopes: Any) -> Array:
        """Return `gradient_norm` of every row of a table of slopes, on the host."""
        device = device_of(slopes)
        if self._repeats:
            pairs, number = self._pairs
            slopes = device.summed(slopes, device.put(pairs), number)
        return np.asarray(device.host(device.xp.linalg.vector_norm(slopes, axis=1)))

    @cached_property
    def _repeats(self) -> bool:
        keys = np.sort(self._keys())
        return bool((keys[1:] == keys[:-1]).any())

    @cached_property
    def _pairs(self) -> tuple[Indices, int]:
        """The number of every entry's pair among the distinct ones, and how many these are."""
        distinct, pairs = np.unique(self._keys(), return_inverse=True)
        return pairs, distinct.size

    def _keys(self) -> Indices:
        return self.rows * (self._largest[1] + 1) + self.cols

    def multiplicities(self) -> Array:
        """Return how often each distinct pair (row, col) comes, in no particular order."""
        return np.unique_counts(self._keys()).counts.astype(np.float64)
