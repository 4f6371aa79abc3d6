"""The infeasible projection of the paper, line by line."""

from __future__ import annotations

from dataclasses import replace

from driftwolfe.domains import Domain
from driftwolfe.oracles.pair import Pair
from driftwolfe.oracles.result import InfeasibleProjection
from driftwolfe.oracles.stopping import Stopping, give_up, stay
from driftwolfe.points import distance
from driftwolfe.points.kinds import Point

METHOD = "paper"


def paper(domain: Domain, x: Point, y: Point, stop: Stopping, given: Point) -> InfeasibleProjection:
    r"""Project infeasibly by Algorithms 3 and 4 of Garber & Kretzu (2022).

    Frank-Wolfe runs to a gap of eps alternate with small pulls of y towards x,
    :math:`y \leftarrow y - \gamma(y - x)`, :math:`\gamma = 2\epsilon/\lVert x_0 - y_0\rVert^2`, until
    :math:`\lVert x - y\rVert^2 \le 3\epsilon`, the tolerance. At most n runs call the oracle,
    :math:`n = \lceil \ln(\rho/3) / (-2\ln(1 - 2/\rho))\rceil`, :math:`\rho = \lVert x_0 - y_0\rVert^2/\epsilon`,
    each at most :math:`4D^2/\epsilon` times.

    The distance is tested before the oracle is called, not after, as the paper's listing has it,
    which saves one call a run. `given` is the target as it was before it was moved to the ball.

    References
    ----------
    D. Garber and B. Kretzu, New projection-free algorithms for online convex optimization with
    adaptive regret guarantees, COLT 2022.
    """
    eps = stop.tolerance / 3.0
    pair = Pair(x, y)
    if stop.near(pair):
        return stay(pair, 0, pair.distance * 2 * domain.radius, METHOD)
    apart = distance(x, given)
    share = min(1.0, 2.0 * eps / apart / apart)  # at most 2/3, rounding apart
    calls = 0
    while True:
        gap, spent = _approximate(domain, pair, eps, stop, calls)
        calls += spent
        if stop.near(pair):
            return _seen_from(y, stay(pair, calls, gap, METHOD), pair, domain)
        # An oracle error above ||x - y||^2 - 2 eps would let the pull lengthen some ||y - z||.
        if gap > pair.squared - eps or stop.spent(calls):
            return _seen_from(y, give_up(pair, stop, calls, gap, METHOD), pair, domain)
        pair.pull(share)


def _seen_from(
    y: Point, result: InfeasibleProjection, pair: Pair, domain: Domain
) -> InfeasibleProjection:
    """The same answer with a gap that holds for y, not only for what the pulls have made of it.

    <y - x, z - x> exceeds the inner product with the pulled target by at most ||y - pulled|| D.
    """
    if pair.y is y:
        return result
    return replace(result, gap=result.gap + distance(y, pair.y) * 2 * domain.radius)


def _approximate(
    domain: Domain, pair: Pair, eps: float, stop: Stopping, before: int
) -> tuple[float, int]:
    """Algorithm 3: move x until it is near y or its gap is at most eps; the gap and the calls."""
    hint = eps / (4.0 * domain.radius**2)
    gap, calls = pair.distance * 2 * domain.radius, 0
    while not stop.near(pair) and not stop.spent(before + calls):
        vertex, error = domain.lmo_with_error(pair.direction(), hint)
        calls += 1
        measured = pair.look(vertex)
        gap = measured + error
        if measured <= eps or not pair.step():
            break
        gap = pair.distance * 2 * domain.radius  # all that is known of where x is now
    return gap, calls
