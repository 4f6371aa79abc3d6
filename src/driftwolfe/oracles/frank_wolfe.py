"""Line-search Frank-Wolfe towards a point."""

from __future__ import annotations

from typing import NamedTuple

from driftwolfe.domains import Domain
from driftwolfe.oracles.pair import Pair, Scalars
from driftwolfe.points.kinds import Point
from driftwolfe.points.shelf import Shelf

#: Error of a linear minimisation that is worth avoiding, as a share of the gap.
_SHARE = 0.03


class Memory(NamedTuple):
    """What one run may tell the next; all of it may be left out.

    Attributes
    ----------
    scalars
        Those of a factored x and y, see `Pair`.
    hint
        Accuracy at which to ask for the first vertex.
    shelf
        Where a factored x lies, so that vertices are added without a copy.
    length
        How far x may move before its objective rises by about the gap that it had.
    """

    scalars: Scalars | None = None
    hint: float | None = None
    shelf: Shelf | None = None
    length: float = 0.0


class Approach(NamedTuple):
    r"""Where a Frank-Wolfe run towards y ended.

    Attributes
    ----------
    point
        The point x of the set.
    gap
        What it reached: :math:`\max_{v \in K}\langle x - y, x - v\rangle` at most, a squared distance.
        Of the point before the last step where `max_lmo_calls` ended the run.
    lmo_calls
        Linear minimisations spent.
    memory
        What may be told to the next run; a `Memory`.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> end = frank_wolfe(dw.L1Ball(2), np.zeros(2), np.array([2.0, 0.5]), gap=1e-6)
    >>> end.gap <= 1e-6, end.lmo_calls
    (True, 2)
    """

    point: Point
    gap: float
    lmo_calls: int
    memory: Memory


def frank_wolfe(
    domain: Domain,
    x: Point,
    y: Point,
    gap: float,
    max_lmo_calls: int | None = None,
    accuracy: float | None = None,
    memory: Memory | None = None,
) -> Approach:
    r"""Move from x towards y inside the set until the Frank-Wolfe gap is small.

    Minimises :math:`\tfrac12\lVert x - y\rVert^2` by exact line searches until
    :math:`\langle x - y, x - v\rangle \le gap`; at most :math:`27 D^2/(4 gap)` calls, or as many as
    allowed. With `accuracy`, a gap of that share of :math:`\lVert x - y\rVert^2` ends it as well.
    The error of a vertex counts towards the gap; less than 3 % of it is not asked for.

    Parameters
    ----------
    domain
        The set.
    x
        A point of the set: the start, not changed.
    y
        The point to move towards, not changed; in the set or not.
    gap
        Where to stop: a squared distance, positive.
    max_lmo_calls
        Linear minimisations at most, at least 1; None for no limit.
    accuracy
        Share of :math:`\lVert x - y\rVert^2` at which a gap ends the run too; None for none.
    memory
        That of an earlier run with the same factored x; nothing is lost without.

    Examples
    --------
    >>> import numpy as np, driftwolfe as dw
    >>> frank_wolfe(dw.L1Ball(2), np.zeros(2), np.array([2.0, 0.5]), gap=1e-6).point
    array([1., 0.])
    """
    known = memory or Memory()
    pair, calls = Pair(x, y, known.scalars, known.shelf), 0
    careful = gap / (8.0 * domain.radius**2)
    hint = careful if known.hint is None else known.hint
    while True:
        vertex, error = domain.lmo_with_error(pair.direction(), hint)
        calls += 1
        reached = pair.look(vertex) + error
        spent = max_lmo_calls is not None and calls >= max_lmo_calls
        enough = max(gap, (accuracy or 0.0) * pair.squared)
        if not pair.dense:
            hint = _next_hint(hint, error, _SHARE * max(reached, enough), pair.reach)
            if reached <= 2.0 * enough:  # a claim is near
                hint = min(hint, careful)
        if reached <= enough or not pair.step() or spent:
            return Approach(pair.snapshot(), reached, calls, _memory(pair, known, hint, reached))


def _memory(pair: Pair, known: Memory, hint: float, reached: float) -> Memory:
    if pair.dense:
        return Memory()
    length = max(0.0, reached) / pair.distance if pair.squared > 0 else 0.0
    return Memory(pair.scalars, hint, known.shelf, length)


def _next_hint(hint: float, error: float, wanted: float, reach: float) -> float:
    """The accuracy that makes the error as wanted, judged by the size of the last vertex's value.

    Where an error came out larger, as it may with sets far from the origin, the hint shrinks.
    """
    asked = min(_SHARE, wanted / reach) if reach > 0 else _SHARE
    return asked if error <= wanted else min(asked, hint * wanted / error)
