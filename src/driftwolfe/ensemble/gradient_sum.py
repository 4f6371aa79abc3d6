"""`GradientSum`: the gradients of one block, added up when the block ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from driftwolfe.domains.saved_points import same_kind
from driftwolfe.losses import Loss
from driftwolfe.losses.entries import EntryLoss
from driftwolfe.points import FactoredMatrix, norm
from driftwolfe.points.devices import namespace, to_host
from driftwolfe.points.kinds import Array, Indices, Point
from driftwolfe.points.product import at_home


@dataclass(eq=False)
class GradientSum:
    """A sum of gradients of points that are not dense.

    Gradients of entry losses are kept as lists of entries and made into one sparse matrix at the
    end, which costs a fraction of adding sparse matrices round by round.
    """

    rows: list[Indices] = field(default_factory=list)
    cols: list[Indices] = field(default_factory=list)
    values: list[Array] = field(default_factory=list)
    rest: Point | None = None

    def plus(self, loss: Loss, slope: Any, like: Point) -> tuple[GradientSum, float | None]:
        """Return the sum with one more gradient, and that gradient's norm; this one stays.

        Norms of gradients of entries are None: `EntryLoss.gradient_norms` has those of several at
        once.
        """
        if isinstance(loss, EntryLoss) and isinstance(like, FactoredMatrix):
            rows, cols = loss.places(like.device)
            lists = ([*self.rows, rows], [*self.cols, cols], [*self.values, slope])
            return GradientSum(*lists, self.rest), None
        gradient = at_home(loss.pull_back(slope, like), like)
        total = gradient if self.rest is None else self.rest + gradient
        return GradientSum(self.rows, self.cols, self.values, total), norm(gradient)

    def fits(self, like: Point) -> bool:
        """Whether a sum that was read from a file can be one of gradients at such a point."""
        if self.rest is not None and not same_kind(self.rest, like):
            return False
        sides = zip((self.rows, self.cols), like.shape, strict=False)
        held = ((to_host(each), size) for side, size in sides for each in side)
        return all(each.min(initial=0) >= 0 and each.max(initial=0) < size for each, size in held)

    def total(self, like: Point) -> Point:
        """The sum, as a point of the same kind as `like`."""
        if not self.rows:
            return 0.0 * like if self.rest is None else self.rest
        concat = namespace(self.rows[0]).concat
        entries = (concat(part) for part in (self.rows, self.cols, self.values))
        stored = FactoredMatrix._stored(like.shape, *entries)
        return stored if self.rest is None else self.rest + stored
