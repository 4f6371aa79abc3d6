"""Losses made up so that the best comparators are known.

Every function takes a `seed` (a whole number or a `numpy.random.Generator`) and returns a `Stream`;
the same seed gives the same stream.
"""

from __future__ import annotations

import numpy as np

from driftwolfe.domains import Domain
from driftwolfe.losses import LinearLoss, SquaredDistance
from driftwolfe.points import checks
from driftwolfe.points.kinds import Point
from driftwolfe.streams.geometry import random_point, steady_angles, tour, wide_direction
from driftwolfe.streams.stream import Stream, boundaries
from driftwolfe.streams.synthetic_matrices import Seed, absolute_entries, drifting_logistic

__all__ = [
    "absolute_entries",
    "drifting_logistic",
    "hard_linear",
    "linear_signs",
    "piecewise_constant",
    "rotating_quadratic",
]


def linear_signs(
    domain: Domain, rounds: int, changes: int = 1, seed: Seed = None, lipschitz: float = 1.0
) -> Stream:
    r"""Linear losses :math:`f_t(x) = \pm G \langle e, x\rangle` whose sign changes now and then.

    The unit vector e points across the set where it is wide. The sign flips `changes` times, at
    equal distances; the comparators are the ends of the set, each optimal in its rounds.

    Parameters
    ----------
    domain
        The set.
    rounds
        Number of losses.
    changes
        How often the sign flips, fewer than `rounds`.
    seed
        Of the direction.
    lipschitz
        G, the norm of every gradient, in units of the loss over those of x.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> stream = linear_signs(dw.L1Ball(3), rounds=100, changes=3, seed=0)
    >>> round(dw.regret.path_length(stream.comparators), 6)  # three times across
    6.0
    """
    count, flips = checks.count(rounds, "rounds"), checks.count(changes, "changes", least=0)
    if flips >= count:
        raise ValueError(f"changes must be fewer than the {count} rounds, got {changes}")
    steepness = checks.positive(lipschitz, "lipschitz")
    width = wide_direction(domain, np.random.default_rng(seed))
    # One pair of losses for all rounds: a thousand copies of a large gradient would fill memory.
    sides = [
        (LinearLoss(width.direction * steepness), width.lowest),
        (LinearLoss(width.direction * -steepness), width.highest),
    ]
    order = [t * (flips + 1) // count for t in range(count)]
    chosen = [sides[piece % 2] for piece in order]
    losses, comparators = (list(column) for column in zip(*chosen, strict=True))
    return Stream(losses, "linear signs", steepness, comparators, domain, boundaries(order))


def hard_linear(domain: Domain, rounds: int, seed: Seed = None, lipschitz: float = 1.0) -> Stream:
    r"""Linear losses with random signs: the construction behind the :math:`\sqrt T` lower bound.

    :math:`f_t(x) = \epsilon_t G \langle e, x\rangle` with fair random signs. Whatever a learner does,
    its expected loss relative to the middle of the set is 0, while the best fixed point gains
    :math:`\frac{G w}2 \mathbb{E}|\sum_t \epsilon_t| \approx G w \sqrt{T/(2\pi)}`, w the width of the set
    along e. The comparator is that best fixed point.

    Parameters
    ----------
    domain
        The set.
    rounds
        Number of losses T.
    seed
        Of the direction and the signs.
    lipschitz
        G, the norm of every gradient, in units of the loss over those of x.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> stream = hard_linear(dw.L2Ball(3), rounds=1000, seed=0)
    >>> regret = sum(-loss.value(stream.comparators[0]) for loss in stream)
    >>> bool(regret > 1)
    True

    References
    ----------
    Abernethy, Bartlett, Rakhlin, Tewari (2008), Optimal strategies and minimax lower bounds for
    online convex games.
    """
    count, steepness = checks.count(rounds, "rounds"), checks.positive(lipschitz, "lipschitz")
    rng = np.random.default_rng(seed)
    width = wide_direction(domain, rng)
    up, down = LinearLoss(width.direction * steepness), LinearLoss(width.direction * -steepness)
    rises = rng.random(count) < 0.5
    best = width.lowest if 2 * int(rises.sum()) >= count else width.highest
    losses = [up if rise else down for rise in rises]
    return Stream(losses, "hard linear", steepness, [best] * count, domain)


def rotating_quadratic(
    domain: Domain, rounds: int, speed: float = 0.01, seed: Seed = None, weight: float = 0.5
) -> Stream:
    r"""Squared distances :math:`w \lVert x - z_t\rVert^2` to a target that goes round in the set.

    The target runs on a closed curve between three vertices, `speed` radians a round, and is the
    comparator: no point has a smaller loss.

    Parameters
    ----------
    domain
        The set.
    rounds
        Number of losses.
    speed
        Radians a round.
    seed
        Of the vertices.
    weight
        The factor w, in units of the loss over squared units of x.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> stream = rotating_quadratic(dw.L2Ball(3), rounds=50, speed=0.1, seed=0)
    >>> max(loss.value(u) for loss, u in zip(stream, stream.comparators))
    0.0
    """
    angles = steady_angles(speed, checks.count(rounds, "rounds"), "speed")
    targets = tour(domain, angles, np.random.default_rng(seed))
    return _squared_distances(domain, targets, weight, "rotating quadratic")


def piecewise_constant(
    domain: Domain, rounds: int, pieces: int = 4, seed: Seed = None, weight: float = 0.5
) -> Stream:
    r"""Squared distances :math:`w \lVert x - z_t\rVert^2` to a target that jumps.

    The target stays where it is for about ``rounds / pieces`` rounds, then jumps to another random
    point of the set. It is the comparator.

    Parameters
    ----------
    domain
        The set.
    rounds
        Number of losses.
    pieces
        How many different targets, at most `rounds`.
    seed
        Of the targets.
    weight
        The factor w, in units of the loss over squared units of x.

    Examples
    --------
    >>> import driftwolfe as dw
    >>> stream = piecewise_constant(dw.Simplex(3), rounds=12, pieces=3, seed=0)
    >>> stream[3] is stream[0], stream[4] is stream[0]
    (True, False)
    """
    count, number = checks.count(rounds, "rounds"), checks.count(pieces, "pieces")
    if number > count:
        raise ValueError(f"pieces must be at most the {count} rounds, got {pieces}")
    rng = np.random.default_rng(seed)
    points = [random_point(domain, rng) for _ in range(number)]
    stream = _squared_distances(domain, points, weight, "piecewise constant")
    order = [t * number // count for t in range(count)]
    return Stream(
        [stream.losses[piece] for piece in order],
        stream.name,
        stream.lipschitz,
        [points[piece] for piece in order],
        domain,
        boundaries(order),
    )


def _squared_distances(domain: Domain, targets: list[Point], weight: float, name: str) -> Stream:
    losses = [SquaredDistance(target, weight) for target in targets]
    # Targets lie in the set, so no point of it is farther than its diameter.
    steepest = 2.0 * losses[0].weight * domain.diameter
    return Stream(losses, name, steepest, targets, domain)
