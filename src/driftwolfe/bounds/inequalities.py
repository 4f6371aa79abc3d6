"""Regret bounds of single experts and on intervals of time, with all constants; `docs/theory` has the proofs.

D is twice the radius. Lengths have the units of a decision, and G is in loss per length.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from driftwolfe.ensemble import AdaHedge, SleepingMeta
from driftwolfe.points import checks
from driftwolfe.points.kinds import Array

#: ||y_1 - c||^2 terms of the master inequality in units of D^2: anywhere in K, and at the centre.
ANYWHERE, AT_CENTER = 1 / 2, 1 / 8
#: Inverse rate of weights for smooth losses (docs/theory/benign.md), in units of smoothness times D^2.
SLOW_WEIGHTS = math.sqrt(7.5)


def asked(path_length: float, tau: int | None) -> tuple[float, int | None]:
    """Return what `Learner.bound` was asked for, checked."""
    length = checks.nonnegative(path_length, "path_length")
    return length, None if tau is None else checks.count(tau, "tau")


def blocked_descent(
    G: float,
    D: float,
    rounds: int,
    eta: float,
    block: int,
    tolerance: float,
    path_length: float = 0.0,
    start: float = ANYWHERE,
    shrinking_steps: bool = False,
    delay_factor: float = 1.0,
    noise: float = 0.0,
) -> float:
    r"""Return the master inequality for blocked gradient descent with infeasible projections.

    .. math:: G T \sqrt{tol} + \frac{v_0 D^2 + D P/2}{\eta} + \frac{r\,\eta K T G^2}{2} + (K-1) G P

    bounds :math:`\sum_t f_t(x_t) - f_t(u_t)` for any :math:`u_t \in K` of path length P; r, `delay_factor`, is 3
    where a block's gradients are worked on during the next. Where steps shrink as larger gradients are seen, eta
    is the last one, :math:`v_0 = 1/2` and the path term doubles. Where gradients are random, it bounds the mean of
    the sum; G bounds the norms of their means, and in the third term there is :math:`G + noise/\sqrt K`.
    """
    if G == 0:
        return 0.0
    weight, first = (1.0, ANYWHERE) if shrinking_steps else (0.5, start)
    apart = G * rounds * np.sqrt(tolerance)
    moving = (first * D**2 + weight * D * path_length) / eta
    stepping = delay_factor * eta * block * rounds * (G + noise / np.sqrt(block)) ** 2 / 2.0
    return float(apart + moving + stepping + (block - 1) * G * path_length)


def lazy_descent(
    G: float,
    D: float,
    eta: float,
    squares: float,
    longest: int,
    apart: float,
    start: float,
    shrinking_steps: bool,
) -> float:
    r"""Return the bound on the static regret of a lazy expert, which projects the sum of its gradients.

    .. math:: \frac{v_0 D^2}{\eta} + \frac{1}{2} G^2 \sum_m \eta_m K_m^2 + G \sum_t \delta_t

    with steps :math:`\eta_m`, blocks of :math:`K_m` rounds, the `longest` K, and as `squares` and `apart` the two
    sums, the latter of distances from the exact projections. Where steps shrink as larger gradients are seen, eta
    is the last one, the second term is twice as large and 2 K G D is added.
    """
    if G == 0:
        return 0.0
    found = start * D**2 / eta + squares * G**2 / 2.0 + G * apart
    return found + (squares * G**2 / 2.0 + 2.0 * longest * G * D if shrinking_steps else 0.0)


def adaptive_descent(D: float, squares: float, h: float, block: int) -> float:
    r"""Return the bound on the static regret of a lazy expert whose steps come from its own gradients.

    .. math:: D\sqrt\Gamma\,\Big(\frac{v_0}{h} + \sqrt K\,\frac{1 + \sqrt{1 + s^2}}{s}\Big), \qquad
              s = \frac{2}{h\sqrt K}

    with steps :math:`h D/\sqrt\Gamma`, :math:`\Gamma` the sum of squared gradient norms (`squares`), K the longest
    block and h the last one, which may have fallen.
    """
    s = 2.0 / (h * math.sqrt(block))
    stepping = math.sqrt(block) * (1.0 + math.sqrt(1.0 + s * s)) / s
    return D * math.sqrt(squares) * (AT_CENTER / h + stepping)


def weighing(
    meta: SleepingMeta,
    length: float,
    end: int,
    created: int | None = None,
    awake: int | None = None,
) -> float:
    """Return the regret of the weights against the expert of one interval that ends by round `end`."""
    if meta.largest_difference > meta.scale * (1.0 + 1e-9):
        raise NotImplementedError(
            f"no bound is known: losses differed by {meta.largest_difference:g} in a round, more "
            f"than the loss_scale of {meta.scale:g}; give a larger lipschitz or loss_scale"
        )
    return meta.regret_bound(length, max(1, end), meta.scale, created, awake)


def over_windows(
    tau: int,
    level_bound: Callable[[int], float],
    level_per_path: Callable[[int], float],
    path_length: float,
) -> float:
    r"""Return a bound on the dynamic regret on every window of length tau (`docs/theory/bounds.md`).

    For each k, a window is a head of :math:`a < 2^k` rounds, q intervals of length :math:`2^k` and a tail
    of :math:`c < 2^k` rounds; head and tail are geometric-cover intervals of the lengths that the binary
    digits of a and c name. The bounds of levels, :math:`B_k`, are on the static regret on one interval of length
    :math:`2^k`, and a unit of path inside it adds :math:`p_k`. With S the sum of the :math:`B_j` over digits,

    .. math:: \min_k \max_{a + c + q 2^k = \tau} \big[S(a) + q B_k + S(c)\big] + P \max_{j \le k} p_j
    """
    sums: Array = np.zeros(1)  # S(a) for a < 2^k
    best, per_path = np.inf if tau else 0.0, 0.0
    for k in range(tau.bit_length()):
        one, (q, rest) = level_bound(k), divmod(tau, sums.size)
        per_path = max(per_path, level_per_path(k)) if path_length else 0.0
        short, long = sums[: rest + 1], sums[rest + 1 :]  # a + c = rest, or 2^k + rest
        worst = q * one + (short + short[::-1]).max()
        if long.size:
            worst = max(worst, (q - 1) * one + (long + long[::-1]).max())
        best = min(best, worst + path_length * per_path)
        sums = np.concatenate((sums, sums + one))
    return float(best)


def over_tracked_windows(
    tau: int,
    weights: AdaHedge,
    spread: float,
    level_bound: Callable[[int], float],
    level_per_path: Callable[[int], float],
    path_length: float,
) -> float:
    r"""Return a bound on every window of weights that follow sequences of experts, one for each piece.

    `over_windows` with the price of a change for each piece, or the most that a piece can cost without its own
    expert (`spread` per round), and once the rest of the tracking bound, which holds from any round on. A level's
    bound is that of an expert that starts with an interval of :math:`2^k` rounds that :math:`2^k` divides.
    """
    change = weights.regret_bound(1) - weights.regret_bound(0)

    def level(k: int) -> float:
        return min(spread * 2**k, level_bound(k) + change)

    found = over_windows(tau, level, level_per_path, path_length)
    return min(spread * tau, weights.regret_bound(0) - change + found)


def over_game(
    rounds: int,
    level_bound: Callable[[int], float],
    level_per_path: Callable[[int], float],
    path_length: float,
) -> float:
    """Return a bound on the dynamic regret in a game of so many rounds; levels are as in `over_windows`.

    For each k, the game is intervals of 1, 2, ..., 2^(k-1) rounds and then as many of 2^k as it takes.
    The path is split over them, so the largest addition per unit covers all of it.
    """
    best, shorter, per_path = np.inf, 0.0, 0.0
    for k in range(rounds.bit_length()):
        one, per_path = level_bound(k), max(per_path, level_per_path(k))
        many = -(-(rounds - (1 << k) + 1) // (1 << k))
        best = min(best, shorter + many * one + path_length * per_path)
        shorter += one
    return float(best) if rounds else 0.0


def frank_wolfe_tracking(
    G: float,
    D: float,
    diameter: float,
    rounds: int,
    eta: float,
    fraction: float,
    error: float = 0.0,
) -> float:
    r"""Return the bound for online Frank-Wolfe with one LMO call per round.

    With steps of a fixed fraction s and an oracle of error e on the objectives, the root mean square distance to
    their minimisers is at most q, the root of :math:`s q^2 = s^2 diam^2/2 + s e + \eta G q`, and regret at most
    :math:`D^2/(8\eta) + G T q`.
    """
    a = eta * G
    steps = 2.0 * fraction**3 * diameter**2 + 4.0 * fraction**2 * error
    root = (a + np.sqrt(a**2 + steps)) / (2.0 * fraction)
    return float(D**2 / (8.0 * eta) + G * rounds * root)


def smooth_frank_wolfe(
    smoothness: float,
    diameter: float,
    rounds: int,
    variation: float,
    first_gap: float,
    fraction: float | None = None,
) -> float:
    r"""Return the bound on :math:`\sum_t f_t(x_t) - \min f_t` for Frank-Wolfe on smooth losses.

    :math:`e_{t+1} \le (1 - s) e_t + \beta s^2 diam^2/2 + 2 v_t` for every s in [0, 1], where
    :math:`v_t = \sup_K|f_{t+1} - f_t|`. With line search (`fraction` None):
    :math:`\sqrt{2\beta\,diam^2\,T E} + 2E`, with a fixed fraction s: :math:`E/s + \beta\,diam^2\,s T/2`;
    :math:`E = e_1 + 2 \sum_t v_t`.
    """
    total = first_gap + 2.0 * variation
    curvature = smoothness * diameter**2
    if fraction is None:
        return float(np.sqrt(2.0 * curvature * rounds * total) + 2.0 * total)
    return float(total / fraction + curvature * fraction * rounds / 2.0)


def curved_distance(G: float, curvature: float, distance: float) -> float:
    r"""Return the largest :math:`G d - \lambda d^2/2` with d at most `distance`.

    That is how much better than x a point so far away can be, for a :math:`\lambda`-strongly convex loss whose
    gradient at x has the norm G.
    """
    d = min(distance, G / curvature)
    return G * d - 0.5 * curvature * d * d


def strongly_convex_frank_wolfe(G: float, curvature: float, diameter: float, rounds: int) -> float:
    r"""Return the bound for online Frank-Wolfe on strongly convex losses, :math:`O(T^{2/3})`.

    :math:`H_t`, the gap of :math:`F_t` at :math:`x_t`, is at most the root of
    :math:`H = e_{t-1} + G\sqrt{2H/(\lambda t)}`, and each step brings it to
    :math:`H - H^2/(2\lambda t\,diam^2)` (to :math:`\lambda t\,diam^2/2`, if it is above twice that); regret is at
    most :math:`\sum_t G d_t - \lambda d_t^2/2`, :math:`d_t = \sqrt{2 H_t/(\lambda t)}`.
    """
    total, gap = 0.0, 0.0
    for t in range(1, rounds + 1):
        b = G * math.sqrt(2.0 / (curvature * t))
        gap = (0.5 * (b + math.sqrt(b * b + 4.0 * gap))) ** 2
        total += curved_distance(G, curvature, math.sqrt(2.0 * gap / (curvature * t)))
        bend = curvature * t * diameter**2
        gap = gap - gap * gap / (2.0 * bend) if gap < bend else 0.5 * bend
    return total


def strongly_convex_leader(G: float, curvature: float, rounds: int) -> float:
    r"""Return the bound for the leader of strongly convex losses, found to a gap of :math:`G^2/(2\lambda t)`.

    :math:`\sum_t G d_t - \lambda d_t^2/2` with
    :math:`d_t = (G/\lambda)\min(1, (1 + \sqrt{2 + 1/t})/(t + 1))`: about :math:`2.41\,(G^2/\lambda)\ln T`.
    """
    t = np.arange(1.0, rounds + 1.0)
    d = np.minimum(1.0, (1.0 + np.sqrt(2.0 + 1.0 / t)) / (t + 1.0))
    return float(G**2 / curvature * (d - 0.5 * d * d).sum())


def newton_steps(rate: float, ridge: float, squares: Array, slack: float) -> float:
    r"""Return :math:`\frac\epsilon{2\rho} + \rho\ln\det(I + S/\epsilon)`, and what inexact minima may have cost."""
    _, logdet = np.linalg.slogdet(np.eye(len(squares)) + squares / ridge)
    return ridge / (2.0 * rate) + rate * float(logdet) + slack


def newton_on_intervals(
    alpha: float, rate: float, numbers: int, length: int, rounds: int, slack: float
) -> float:
    """Return the bound of `AFLH` on all intervals of a length, with weights for so many rounds."""
    if not length:
        return 0.0
    newton = rate * (0.5 + numbers * math.log1p(length / (4.0 * numbers))) + slack
    pieces = math.ceil(math.log2(length + 1))
    return pieces * (math.log(rounds * (rounds + 1.0)) / alpha + newton)
