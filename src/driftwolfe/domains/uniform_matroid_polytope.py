"""The uniform matroid polytope."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftwolfe.domains.partition_matroid_polytope import PartitionMatroidPolytope
from driftwolfe.points import checks


class UniformMatroidPolytope(PartitionMatroidPolytope):
    r"""k of n, or mixtures of such choices: :math:`\{0 \le x \le 1 : \sum_i x_i = k\}`.

    With ``kind="independent"``, the sum is at most k. The oracle selects the k smallest entries in
    O(n); the projection shifts and clips in O(n log n). Centre and gauge are those of
    `PartitionMatroidPolytope` with a single part.

    Parameters
    ----------
    n
        Number of coordinates.
    k
        How many are chosen: from 1 to n - 1 for bases, to n for independent sets.
    kind
        ``"base"`` or ``"independent"``.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> polytope = dw.UniformMatroidPolytope(4, k=2)
    >>> polytope.lmo([3.0, 1.0, -2.0, 5.0])
    array([0., 1., 1., 0.])
    >>> polytope.project([2.0, 1.0, 0.5, 0.0])
    array([1.  , 0.75, 0.25, 0.  ])
    """

    def __init__(self, n: int, k: int, kind: str = "base") -> None:
        size, chosen = checks.count(n, "n"), checks.count(k, "k")
        most = size - 1 if kind == "base" else size
        if chosen > most:
            raise ValueError(f'k must be from 1 to {most} for n = {n} and kind "{kind}", got {k}')
        self.k = chosen
        super().__init__(np.zeros(size, dtype=np.intp), chosen, kind)

    def arguments(self) -> dict[str, Any]:
        """What it was made from."""
        return {"n": self.shape[0], "k": self.k, "kind": self.kind}
