"""The L-infinity ball."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftwolfe.domains.box import Box
from driftwolfe.points import checks
from driftwolfe.points.kinds import Shape


class LinfBall(Box):
    r"""Bounded coordinates: :math:`\{x : |x_i| \le radius\}`.

    The oracle returns signs in O(n), the projection clips.

    Parameters
    ----------
    n
        Number of coordinates, or a shape.
    radius
        Bound on each absolute value; the Euclidean radius is sqrt(n) times as large.
    device
        Where ensembles keep their experts' points: ``"cpu"``, ``"cuda"``, ..., or ``"auto"``, a GPU
        where there is one and points are large enough for it to be quicker. Decisions are NumPy's.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> ball = dw.LinfBall(4, radius=2.0)
    >>> ball.lmo([1.0, -1.0, 3.0, 0.5])
    array([-2.,  2., -2., -2.])
    >>> ball.scale, ball.radius
    (2.0, 4.0)
    """

    def __init__(self, n: int | Shape, radius: float = 1.0, *, device: str = "cpu") -> None:
        self.scale = checks.positive(radius, "radius")
        bound = np.full(checks.shape(n, "n"), self.scale)
        super().__init__(-bound, bound, device=device)

    def arguments(self) -> dict[str, Any]:
        """What it was made from."""
        return {"n": self.shape, "radius": self.scale}
