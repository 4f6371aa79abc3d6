"""`separation`: infeasible projections by half-spaces between the set and the point."""

from __future__ import annotations

from driftwolfe.domains import Domain
from driftwolfe.oracles.frank_wolfe import InfeasibleProjection
from driftwolfe.points import distance, inner
from driftwolfe.points.kinds import Point


def separation(domain: Domain, y: Point, tolerance: float) -> InfeasibleProjection:
    r"""Project infeasibly by moving y onto half-spaces that hold the set.

    Each separates y from the set where the segment from the centre to y leaves it, so y moves by at least
    half of :math:`(1 - s) r`, where :math:`x' = c + s(y - c)` is in K. The distance from K falls by a
    factor :math:`\sqrt{1 - 1/(4\kappa^2)}` at least, :math:`\kappa = R/r`, and there are at most
    :math:`\lceil 8\kappa^2 \ln(2\kappa\, dist(y, K)/\sqrt{tolerance})\rceil^+ + 1` cuts (proof:
    `docs/theory/bandit.md`). Every cut brings y nearer to all of K.
    """
    near, target = tolerance**0.5, y
    if near < domain.cut_accuracy:
        raise ValueError(
            f"a tolerance of {tolerance:.2g} is below what membership tests reach on this set, "
            f"{domain.cut_accuracy**2:.2g}: use a larger tolerance_scale, a shorter horizon, or a "
            "SeparationDomain"
        )
    while True:
        cut = domain._separate(y, near)
        x = y.copy()
        if cut.fraction < 1.0:
            x = cut.fraction * y
            if domain.center is not None:
                x = x + (1.0 - cut.fraction) * domain.center
        if (apart := distance(x, y)) <= near:
            gap = distance(target, x) * 2.0 * domain.radius
            return InfeasibleProjection(x, y.copy(), 0, gap, apart, "separation")
        excess = inner(cut.normal, y) - cut.level
        y = y - (excess / inner(cut.normal, cut.normal)) * cut.normal
