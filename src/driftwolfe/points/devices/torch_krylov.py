"""`TorchKrylov`: Lanczos steps on a device, which is asked for numbers only when they are looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from driftwolfe.points.devices.base import Krylov
from driftwolfe.points.devices.torch_stored import TorchStored
from driftwolfe.points.kinds import Array


class TorchKrylov(Krylov):
    """Products with A and its transpose in turn, and two passes of orthogonalisation.

    Every call of a device has its price, whatever it does: s is multiplied into a factor once, and
    several matrices share all calls. Their factors lie side by side, so that one product reads all
    of them, and what one matrix makes of another's vector is struck out.
    """

    def __init__(self, matrices: Sequence[Any], starts: Sequence[Any], most: int) -> None:
        m, n = matrices[0].shape
        number, like = len(matrices), starts[0]
        scaled = [matrix.V * matrix.scale for matrix in matrices]
        self._left, self._right = matrices[0].U, scaled[0]
        self._own: Any = None  # which columns are whose
        if number > 1:
            self._left = torch.cat([matrix.U for matrix in matrices], 1)
            self._right = torch.cat(scaled, 1)
            ranks = like.new_tensor([matrix.rank for matrix in matrices]).long()
            index = torch.arange(number, device=like.device)
            whose = torch.repeat_interleave(index, ranks, output_size=self._left.shape[1])
            self._own = (whose == index[:, None]).to(like.dtype)
        self._stored = TorchStored.beside([matrix.sparse for matrix in matrices], (m, n))
        self._basis = like.new_empty((number, most + 1, n))
        self._images = like.new_empty((most, number, m))
        self._basis[:, 0] = torch.stack(list(starts))
        self._coordinates = like.new_zeros((2, most, number, most))  # of products, in each pass
        self._rest = like.new_zeros((most, number))

    def grow(self, size: int) -> tuple[Array, Array]:
        """Take steps until there are so many; return all diagonals and off-diagonals so far."""
        for k in range(self.size, size):
            self._step(k)
        self.size = max(self.size, size)
        diagonals = self._coordinates.diagonal(dim1=1, dim2=3).sum(0)
        inside, rest = torch.stack((diagonals[:, :size], self._rest[:size].T)).cpu().numpy()
        return inside, rest

    def _step(self, k: int) -> None:
        images, length = self._images[k], self._rest[k]
        products = torch.empty_like(self._basis[:, 0])
        self._multiply(self._basis[:, k], self._right, self._left, 0, images)
        self._multiply(images, self._left, self._right, 1, products)
        held, columns = self._basis[:, : k + 1], products[:, :, None]
        turned = held.mT
        for coordinates in self._coordinates[:, k, :, : k + 1, None].unbind():
            torch.bmm(held, columns, out=coordinates)
            columns.baddbmm_(turned, coordinates, alpha=-1.0)
        # Where nothing is left, what follows is not finite; the zero says so.
        torch.linalg.vector_norm(products, dim=1, out=length)
        torch.div(products, length[:, None], out=self._basis[:, k + 1])

    def _multiply(self, vectors: Any, first: Any, second: Any, way: int, out: Any) -> None:
        """Write the products of each matrix, or its transpose, with its own vector, in rows."""
        if self._own is None:
            torch.mv(second, torch.mv(first.T, vectors[0]), out=out[0])
        else:
            torch.mm((vectors @ first).mul_(self._own), second.T, out=out)
        if self._stored is not None:
            out.view(-1).addmv_(self._stored[way], vectors.reshape(-1))

    def combine(self, turns: Sequence[Array]) -> list[tuple[Any, Any]]:
        """Return the image A v and the vector v with these coordinates in each basis."""
        found = []
        for i, turn in enumerate(turns):
            weights, k = self._basis.new_tensor(turn), len(turn)
            found.append((weights @ self._images[:k, i], weights @ self._basis[i, :k]))
        return found
