"""What an infeasible projection returns."""

from __future__ import annotations

from dataclasses import dataclass

from driftwolfe.points.kinds import Point


@dataclass(frozen=True, slots=True)
class InfeasibleProjection:
    r"""A feasible point and an infeasible one beside it.

    Attributes
    ----------
    feasible
        :math:`x' \in K`.
    infeasible
        :math:`y'`, in the ball, and to no point of K farther than y was.
    lmo_calls
        Linear minimisations spent.
    gap
        Bound on :math:`\max_{z \in K}\langle y - x', z - x'\rangle`, a squared distance: x' is within
        the root of it of the projection of y. Where y lies outside the ball, ``"halfspace"`` and
        ``"paper"`` move it there first, and this is about that point.
    distance
        :math:`\lVert x' - y'\rVert`, in units of the points.
    method
        The method that ran.
    converged
        Whether distance^2 <= tolerance. False only when `max_lmo_calls` ended the work early; the
        other three points of the contract hold even then.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> ball = dw.L2Ball(2)
    >>> result = dw.infeasible_projection(
    ...     ball, [0.0, 0.0], [3.0, 4.0], tolerance=0.01, method="halfspace", max_lmo_calls=0
    ... )
    >>> result.feasible, result.infeasible, result.converged
    (array([0., 0.]), array([0.6, 0.8]), False)
    """

    feasible: Point
    infeasible: Point
    lmo_calls: int
    gap: float
    distance: float
    method: str
    converged: bool = True
