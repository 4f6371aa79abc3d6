"""`Atoms`: vertices found before, to be tried before the set is asked again."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from driftwolfe.points import checks, inner
from driftwolfe.points.kinds import Point
from driftwolfe.storage.state import require


class Atoms:
    r"""The vertices found last, the oldest forgotten first.

    Any point v of the set with :math:`\langle x - y, x - v\rangle` above the gap that a Frank-Wolfe run
    stops at makes as valid a step as the minimiser: only the claim that none is left needs the
    oracle.

    Parameters
    ----------
    size
        How many to keep, at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> atoms = Atoms(2)
    >>> for vertex in np.eye(3):
    ...     atoms.add(vertex)
    >>> atoms.best(np.array([-5.0, 1.0, 0.0])), len(atoms)
    (array([0., 0., 1.]), 2)
    """

    STATE: ClassVar[tuple[str, ...]] = ("points",)

    def __init__(self, size: int) -> None:
        self.size = checks.count(size, "size")
        self.points: list[Point] = []
        self._table: Any = None  # dense ones, as rows

    def __len__(self) -> int:
        return len(self.points)

    def add(self, vertex: Point) -> None:
        """Remember a vertex."""
        self.points = [*self.points[-self.size + 1 :], vertex] if self.size > 1 else [vertex]
        self._table = None

    def best(self, direction: Point) -> Point | None:
        """Return the one with the least inner product with `direction`; None where there is none."""
        if not self.points:
            return None
        if isinstance(direction, np.ndarray):
            if self._table is None:
                self._table = np.stack([point.ravel() for point in self.points])
            values = self._table @ direction.ravel()
        else:
            values = np.array([inner(direction, point) for point in self.points])
        return self.points[int(values.argmin())]

    def check_state(self) -> None:
        """Refuse a state, read from a file, whose parts do not fit together."""
        require(len(self.points) <= self.size, "vertices")
        self._table = None
