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
        Bound on :math:`\max_{z \in K}\langle y - x', z - x'\rangle`: x' is within the root of it of the
        projection of y.
    distance
        :math:`\lVert x' - y'\rVert`.
    method
        The method that ran.
    converged
        Whether distance^2 <= tolerance. False only when `max_lmo_calls` ended the work early; the
        other three points of the contract hold even then.
    """

    feasible: Point
    infeasible: Point
    lmo_calls: int
    gap: float
    distance: float
    method: str
    converged: bool = True
