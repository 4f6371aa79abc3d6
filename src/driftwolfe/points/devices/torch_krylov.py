"""`TorchKrylov`: Lanczos steps on a device, which is asked for numbers only when they are looked at."""

from __future__ import annotations

from typing import Any

import torch

from driftwolfe.points.devices.base import Krylov
from driftwolfe.points.kinds import Array


class TorchKrylov(Krylov):
    """Products with A and its transpose in turn, and two passes of orthogonalisation.

    Every call of a device has its price, whatever it does: s is multiplied into a factor once, and
    views are made once.
    """

    def __init__(self, matrix: Any, start: Any, most: int) -> None:
        left, right = matrix.U, matrix.V * matrix.scale
        self._factors = left, right, left.T, right.T
        self._stored = None if matrix.sparse is None else matrix.sparse.both_ways
        self._basis = start.new_empty((most + 1, len(start)))
        self._images = start.new_empty((most, matrix.shape[0]))
        self._basis[0] = start
        self._coordinates = start.new_zeros((2, most, most))  # of products, in each pass
        self._rest = start.new_zeros(most)

    def grow(self, size: int) -> tuple[Array, Array]:
        """Take steps until there are so many; return all diagonals and off-diagonals so far."""
        for k in range(self.size, size):
            self._step(k)
        self.size = max(self.size, size)
        diagonals = self._coordinates.diagonal(dim1=1, dim2=2).sum(0)
        inside, rest = torch.stack((diagonals, self._rest))[:, :size].cpu().numpy()
        return inside, rest

    def _step(self, k: int) -> None:
        left, right, left_turned, right_turned = self._factors
        vector, image, length = self._basis[k], self._images[k], self._rest[k]
        torch.mv(left, torch.mv(right_turned, vector), out=image)
        if self._stored is not None:
            image.addmv_(self._stored[0], vector)
        product = torch.mv(right, torch.mv(left_turned, image))
        if self._stored is not None:
            product.addmv_(self._stored[1], image)
        held = self._basis[: k + 1]
        turned = held.T
        for coordinates in self._coordinates[:, k, : k + 1].unbind():
            torch.mv(held, product, out=coordinates)
            product.addmv_(turned, coordinates, alpha=-1.0)
        # Where nothing is left, what follows is not finite; the zero says so.
        torch.linalg.vector_norm(product, out=length)
        torch.div(product, length, out=self._basis[k + 1])

    def combine(self, turn: Array) -> tuple[Any, Any]:
        """Return the image A v and the vector v with these coordinates in the basis."""
        weights = self._basis.new_tensor(turn)
        k = len(weights)
        return weights @ self._images[:k], weights @ self._basis[:k]
