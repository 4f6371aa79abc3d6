r"""The algorithms as plain loops over arrays, to read beside the paper and to test the learners with.

Each function takes a set, the losses of a game and G, a bound on gradient norms, and returns the
decisions, one row per round. They are slow, keep every point dense and check nothing: `driftwolfe.learners`
has the same methods for use. D is twice the radius of the set. A step is :math:`\eta = h D/G` with a pure
number h, so the paper's formulas, which are for D = G = 1, hold in any units. With ``linear=True`` experts
and weights see :math:`\langle\nabla f_t(x_t), x\rangle` in place of :math:`f_t(x)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.losses import LinearLoss, Loss
from driftwolfe.points.kinds import Array

#: Takes a set, its point x, a target y and a tolerance; returns a point of the set and one beside it.
Oracle: TypeAlias = Callable[[Domain, Array, Array, float], tuple[Array, Array]]

__all__ = ["ader", "bogd_ip", "exact_projection", "infeasible_projection", "pola", "polar", "pold"]


def infeasible_projection(
    domain: Domain, x: Array, y: Array, tolerance: float
) -> tuple[Array, Array]:
    r"""Return the paper's infeasible projection of y: a point of the set, and one beside it.

    Frank-Wolfe runs bring x near y, and y is pulled towards x after each:
    :math:`y \leftarrow y - \gamma(y - x)`, until :math:`\lVert x - y\rVert^2 \le 3\epsilon`, with
    :math:`\gamma = 2\epsilon/\lVert x_0 - y_0\rVert^2`.

    Parameters
    ----------
    domain, x, y, tolerance
        The set; where to start, in it; the target; :math:`3\epsilon`, a squared distance.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> infeasible_projection(dw.L1Ball(2), np.zeros(2), np.array([2.0, 1.0]), 0.03)[0].round(1)
    array([0.7, 0.3])
    """
    center, eps, first = domain.origin(), tolerance / 3, np.sum((x - y) ** 2)
    y = center + (y - center) / max(1.0, np.linalg.norm(y - center) / domain.radius)
    while np.sum((x - y) ** 2) > tolerance:
        v = domain.lmo(x - y)
        gap = np.vdot(x - y, x - v)
        if gap > eps:
            x = x + min(1.0, gap / np.sum((v - x) ** 2)) * (v - x)
        else:
            y = y - 2 * eps / first * (y - x)
    return x, y


def exact_projection(domain: Domain, x: Array, y: Array, tolerance: float) -> tuple[Array, Array]:
    """Return the nearest point of the set, twice: an infeasible projection without any error.

    Parameters
    ----------
    domain, x, y, tolerance
        As in `infeasible_projection`; x and the tolerance are not used.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> exact_projection(dw.L2Ball(1), np.zeros(1), np.array([3.0]), 0.0)[0]
    array([1.])
    """
    nearest = domain.project(y)
    return nearest, nearest


def bogd_ip(
    domain: Domain, losses: Sequence[Loss], lipschitz: float, oracle: Oracle = infeasible_projection
) -> Array:
    r"""Return the decisions of BOGD_IP: gradient descent in blocks, with infeasible projections.

    .. math:: (x, y) \leftarrow IP\Big(x,\ y - \eta\sum_{\text{block}} \nabla f_t(x)\Big), \qquad
              h = T^{-3/4},\ \eta = \tfrac DG h,\ K = \lfloor h^{-2/3}\rfloor,\ \epsilon = D^2 h^{2/3}

    Parameters
    ----------
    domain, losses, lipschitz, oracle
        The set; the losses; G; how to project.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> bogd_ip(dw.L1Ball(2), [dw.losses.LinearLoss([1.0, 0.0])] * 400, 1.0)[-1].round(2)
    array([-0.89,  0.  ])
    """
    T, G, D = len(losses), lipschitz, 2 * domain.radius
    eta, block, eps = D / G * T**-0.75, math.isqrt(T), D**2 * T**-0.5
    x = y = domain.origin()
    total, played = 0 * x, []
    for t, loss in enumerate(losses, start=1):
        played.append(x)
        total = total + domain.tangent(loss.gradient(x))
        if t % block == 0:
            x, y = oracle(domain, x, y - eta * total, 3 * eps)
            total = 0 * x
    return np.array(played)


def pold(
    domain: Domain,
    losses: Sequence[Loss],
    lipschitz: float,
    linear: bool = False,
    oracle: Oracle = infeasible_projection,
) -> Array:
    r"""Return the decisions of POLD: a BOGD_IP for each step of a grid, weighted by Hedge.

    .. math:: x_t = \sum_i w_t^i x_t^i, \quad w_{t+1}^i \propto w_t^i e^{-\alpha f_t(x_t^i)}, \quad
              w_1^i = \frac{1 + 1/N}{i(i + 1)},\ \alpha = \frac{\sqrt{8/T}}{B},\ h_i = 2^{i-1} h_1

    Parameters
    ----------
    domain, losses, lipschitz, oracle
        As in `bogd_ip`; B is G times the diameter of the set.
    linear
        Whether experts and weights see linearised losses.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> losses = [dw.losses.LinearLoss([1.0 if t < 300 else -1.0]) for t in range(600)]
    >>> pold(dw.L1Ball(1), losses, 1.0)[[299, 599], 0].round(1)
    array([-1.,  1.])
    """
    T, D = len(losses), 2 * domain.radius
    number = math.floor(0.75 * math.log2(1 + 4 * (T - 1))) + 1
    h = (1.344 / 8 / T) ** 0.75 * 2.0 ** np.arange(number)
    block = np.maximum(1, h ** (-2 / 3) + 1e-9).astype(int)
    plans = [*zip(D / lipschitz * h, block, D**2 * h ** (2 / 3), strict=True)]
    return _weighted(domain, losses, lipschitz, plans, linear, oracle)


def _weighted(
    domain: Domain, losses: Sequence[Loss], G: float, plans: Any, linear: bool, oracle: Oracle
) -> Array:
    """The decisions of descents with these steps, blocks and accuracies, weighted by Hedge."""
    N, alpha = len(plans), math.sqrt(8 / len(losses)) / (G * domain.diameter)
    w = np.array([(1 + 1 / N) / (i * (i + 1)) for i in range(1, N + 1)])
    x, y, total = [domain.origin()] * N, [domain.origin()] * N, [0 * domain.origin()] * N
    played = []
    for t, loss in enumerate(losses, start=1):
        played.append(_mean(w, x))
        f = LinearLoss(loss.gradient(played[-1])) if linear else loss
        lost = np.array([f.value(point) for point in x])
        w = w * np.exp(-alpha * (lost - lost.min()))
        w = w / w.sum()
        for i, (eta, block, eps) in enumerate(plans):
            total[i] = total[i] + domain.tangent(f.gradient(x[i]))
            if t % block == 0:
                x[i], y[i] = oracle(domain, x[i], y[i] - eta * total[i], 3 * eps)
                total[i] = 0 * x[i]
    return np.array(played)


def ader(domain: Domain, losses: Sequence[Loss], lipschitz: float, linear: bool = False) -> Array:
    r"""Return the decisions of Ader: as `pold`, but with projections and other steps.

    .. math:: x_{t+1}^i = P(x_t^i - \eta_i \nabla f_t(x_t^i)), \qquad
              \eta_i = 2^{i-1} \frac DG \sqrt{\frac 7{2T}}, \quad i = 1, \dots, N

    with :math:`N = \lceil\tfrac12\log_2(1 + 4T/7)\rceil + 1`.

    Parameters
    ----------
    domain, losses, lipschitz, linear
        As in `pold`; the set must be able to project.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> ader(dw.L2Ball(2), [dw.losses.LinearLoss([1.0, 0.0])] * 50, 1.0)[-1].round(2)
    array([-1.,  0.])
    """
    T, G, D = len(losses), lipschitz, 2 * domain.radius
    N = math.ceil(0.5 * math.log2(1 + 4 * T / 7)) + 1
    plans = [(2**i * D / G * math.sqrt(7 / (2 * T)), 1, 0.0) for i in range(N)]
    return _weighted(domain, losses, G, plans, linear, exact_projection)


def pola(
    domain: Domain,
    losses: Sequence[Loss],
    lipschitz: float,
    loss_scale: float | str | None = None,
    start: str = "current",
    linear: bool = False,
    oracle: Oracle = infeasible_projection,
) -> Array:
    r"""Return the decisions of POLA: a BOGD_IP for each interval of a cover, weighted by AdaNormalHedge.

    In round t one starts for every k with :math:`2^k \mid t`, for :math:`|I| = 2^k` rounds, with
    :math:`h = |I|^{-3/4}`.

    .. math:: x_t = \sum_I p_I x_{t,I}, \quad p_I \propto w(R_I, C_I), \quad
              R_I \leftarrow R_I + r_I,\ C_I \leftarrow C_I + |r_I|, \quad r_I = \frac{f_t(x_t) - f_t(x_{t,I})}B

    Parameters
    ----------
    domain, losses, lipschitz, linear, oracle
        As in `pold`.
    loss_scale
        B; by default G times the diameter of the set. ``"auto"``: the largest difference so far.
    start
        New experts start at the last point played, ``"current"``, or at the centre, ``"origin"``.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> losses = [dw.losses.LinearLoss([1.0 if t < 300 else -1.0]) for t in range(600)]
    >>> pola(dw.L1Ball(1), losses, 1.0)[[299, 599], 0].round(1)
    array([-1. ,  0.9])
    """
    G, D, B, auto = lipschitz, 2 * domain.radius, lipschitz * domain.diameter, loss_scale == "auto"
    B = 0.0 if auto else float(loss_scale or B)
    experts, played = dict[tuple[int, int], SimpleNamespace](), [domain.origin()]
    for t, loss in enumerate(losses, start=1):
        experts = {(s, e): expert for (s, e), expert in experts.items() if e >= t}
        first = played[-1] if start == "current" else domain.origin()
        for length in (2**k for k in range(t.bit_length()) if t % 2**k == 0):
            new = SimpleNamespace(x=first, y=first, total=0 * first, R=0.0, C=0.0)
            experts[t, t + length - 1] = new
        active = list(experts.values())
        p = _normal_hedge([i.R for i in active], [i.C for i in active])
        x = _mean(p, [i.x for i in active])
        played.append(x)
        f = LinearLoss(loss.gradient(x)) if linear else loss
        gaps = [f.value(x) - f.value(expert.x) for expert in active]
        old, B = B, max(B, *map(abs, gaps)) if auto else B
        for gap, ((s, e), expert) in zip(gaps, experts.items(), strict=True):
            length = e - s + 1
            eta, block, eps = D / G * length**-0.75, math.isqrt(length), D**2 * length**-0.5
            ahead = gap / B if B else 0.0
            expert.R, expert.C = expert.R + ahead, expert.C + abs(ahead)
            if 0 < old < B:  # in the old unit, then into the new one
                expert.R, expert.C = old / B * expert.R, old / B * expert.C
            expert.total = expert.total + domain.tangent(f.gradient(expert.x))
            if (t - s + 1) % block == 0:
                target = expert.y - eta * expert.total
                expert.x, expert.y = oracle(domain, expert.x, target, 3 * eps)
                expert.total = 0 * x
    return np.array(played[1:])


def polar(
    domain: Domain,
    losses: Sequence[Loss],
    lipschitz: float | None = None,
    kinds: Sequence[str] = ("lazy", "adaptive", "agile"),
    loss_scale: float | None = None,
    linear: bool = False,
    block: Callable[[int], int] = lambda length: 1,
) -> Array:
    r"""Return the decisions of POLAR: leaders that restart, weighted by AdaHedge with a fixed share.

    .. math:: x_{t+1}^i = P\Big(a_i - \frac D{G\sqrt{L_i}}\sum_{\text{epoch}} \nabla f_s(x_s^i)\Big)

    with one expert for the whole game and more for epochs of L = 8, 16, 32, ... rounds: ``"lazy"`` ones
    begin an epoch at :math:`a_i`, the point then played, ``"origin"`` ones at the centre. ``"adaptive"`` ones
    (L = 8, 32, ... and the whole game) have :math:`D/(2\sqrt{\sum\lVert g\rVert^2})` in place of the step.
    ``"agile"`` ones (L = 4, 16, 64, ...) step from their last point, expect a part of the last gradient again,
    and never restart; ``"vertex"`` ones (L = 8, 32, ...) go 2/L of the way to the minimiser of the gradient.

    Parameters
    ----------
    domain, losses, linear
        As in `pold`; weights see linearised losses in any case. The set must be able to project.
    lipschitz
        G; by default the largest gradient norm so far.
    kinds, block
        Which experts of each length there are; takes L, returns the rounds between two projections.
    loss_scale
        B, for the weights of `pola` in place of AdaHedge's.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> losses = [dw.losses.LinearLoss([1.0 if t < 100 else -1.0]) for t in range(200)]
    >>> polar(dw.L1Ball(1), losses)[[99, 199], 0].round(2)
    array([-1.,  1.])
    """
    center, D, largest, played = domain.origin(), 2 * domain.radius, 0.0, list[Array]()
    forgets = "adaptive" in kinds and loss_scale is None
    a, kept, phi, last, agreement = 0.0, 0.0, 0.0, 0 * center, np.zeros(2)
    first = {"adaptive": ("whole adaptive", 1), "agile": ("agile", 4), "vertex": ("vertex", 8)}
    members = [("whole", 1), *(first[kind] for kind in kinds if kind in first)]
    experts = [_polar_expert(*member, center) for member in members]
    posterior = np.full(len(experts), 1 / len(experts))

    def weights(t: int) -> Array:
        if loss_scale is not None:
            return _normal_hedge([each.R for each in experts], [each.C for each in experts])
        share = min(1 / 2, (0.75 if forgets else 1) / t) if t else 1.0
        return (1 - share) * posterior + share / posterior.size

    for t, loss in enumerate(losses, start=1):
        w, points = weights(t - 1), [each.x for each in experts]
        x = _mean(w, points)
        played.append(x)
        g = domain.tangent(loss.gradient(x))
        gradients = [g if linear else domain.tangent(loss.gradient(point)) for point in points]
        largest = max(largest, *(float(np.linalg.norm(each)) for each in gradients))
        posterior, a = _ada_hedge(w, a, np.array([np.vdot(g, point) for point in points]))
        if agile := [g for each, g in zip(experts, gradients, strict=True) if each.kind == "agile"]:
            agreement += np.array([np.vdot(last, agile[0]), np.vdot(last, last)])
            phi, last = min(1, max(0, agreement[0] / agreement[1])) if t > 1 else 1.0, agile[0]
        if forgets and t >= 16 and t & (t - 1) == 0:
            a, kept = a - kept, a - kept
        for each, gradient in zip(experts, gradients, strict=True):
            ahead = np.vdot(g, x - each.x) / (loss_scale or 1.0)
            each.R, each.C = each.R + ahead, each.C + abs(ahead)
            each.total, each.waited = each.total + gradient, each.waited + 1
            each.squares += np.vdot(gradient, gradient)
            each.ends = each.kind in ("lazy", "origin", "adaptive") and (t + 1) % each.length == 0
            if each.kind == "vertex":
                each.x = each.x + 2 / each.length * (domain.lmo(gradient) - each.x)
            elif largest and not each.ends and each.waited >= block(each.length):
                eta = D / (lipschitz or largest) * each.length**-0.5
                if "adaptive" in each.kind:
                    eta = D / (2 * math.sqrt(each.squares))
                if "whole" in each.kind:
                    eta /= 2  # no point is farther than D/2 from the centre
                ahead = phi if each.kind == "agile" else 0.0
                end = each.start - (1 + ahead) * eta * each.total
                each.x, each.waited = domain.project(end), 0
                if each.kind == "agile":
                    each.start, each.total = each.x + ahead * eta * each.total, 0 * x
        for each in (each for each in experts if "whole" in each.kind):
            each.length = 2 ** t.bit_length()  # a longer game has smaller steps
        decision = _mean(weights(t), [each.x for each in experts])
        for each in (each for each in experts if each.ends):
            each.start, each.total, each.waited, each.R, each.C = center, 0 * x, 0, 0.0, 0.0
            each.squares = 0.0
            if each.kind != "origin":
                each.start = each.x = decision
        if t + 1 >= 8 and t & (t + 1) == 0:  # as many rounds as an epoch of a new length
            odd = t.bit_length() % 2 == 0  # 16, 64, ... rounds
            joins = {"adaptive": not odd, "vertex": not odd and t > 7, "agile": odd}
            for kind in (kind for kind in kinds if joins.get(kind, True)):
                start = center if kind == "origin" else decision
                experts.append(_polar_expert(kind, t + 1, start))
            posterior = np.append(posterior, np.zeros(len(experts) - posterior.size))
    return np.array(played)


def _polar_expert(kind: str, length: int, x: Array) -> SimpleNamespace:
    sums = {"total": 0 * x, "squares": 0.0, "waited": 0, "R": 0.0, "C": 0.0}
    return SimpleNamespace(kind=kind, length=length, start=x, x=x, **sums)


def _mean(weights: Array, points: Sequence[Array]) -> Array:
    return np.tensordot(weights, np.array(points), 1)


def _normal_hedge(R: Sequence[float], C: Sequence[float]) -> Array:
    """AdaNormalHedge: w = (Phi(R + 1, C + 1) - Phi(R - 1, C + 1))/2 over their sum."""

    def phi(R: float, C: float) -> float:
        return math.exp(max(R, 0.0) ** 2 / (3 * C))

    pairs = zip(R, C, strict=True)
    w = np.array([0.5 * (phi(r + 1, c + 1) - phi(r - 1, c + 1)) for r, c in pairs])
    return w / w.sum() if w.any() else np.full(w.size, 1 / w.size)


def _ada_hedge(w: Array, a: float, losses: Array) -> tuple[Array, float]:
    """AdaHedge: the weights after a round, before the fixed share, and the next inverse rate."""
    lost = losses - losses.min()
    lost[lost <= 64 * 2.0**-52 * np.abs(losses).max()] = 0.0  # rounding
    kept = w * (np.exp(-lost / a) if a > 0 else lost == 0)
    gap = w @ lost + (a * math.log(kept.sum()) if a > 0 else 0.0)
    return kept / kept.sum(), a + max(0.0, gap) / math.log(w.size) if w.size > 1 else a
