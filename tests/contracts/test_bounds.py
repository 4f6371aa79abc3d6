"""Every learner with a bound, against the sequences that broke bounds before: regret over bound is at most 1.

``PYTHONPATH=src:tests python tests/contracts/test_bounds.py`` prints each learner's largest ratio and its game.
"""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import driftwolfe as dw
from contracts.learner_cases import LEARNER_CASES, VALUES_ONLY, played, suits
from driftwolfe.losses import LinearLoss, SquaredDistance

ROUNDS = 72  # beyond the first epoch of learners without a horizon
#: Learners whose bound is for curved losses, or for these settings.
CURVED = (dw.contrib.OnlineNewtonStep, dw.contrib.AFLH, dw.contrib.StronglyConvexOFW)
CURVED_SETTINGS = ({"strong_convexity"}, {"weights", "alpha"})
#: Learners with random numbers: mean regret of some seeds, where losses are set in advance.
RANDOM = (*VALUES_ONLY, dw.contrib.FTPL)
SEEDS = 6
#: Learners without a bound, and those whose bound needs to be told of the losses.
NONE = (dw.learners.Constant,)
TOLD = (dw.learners.KalhanOFW, dw.learners.LineSearchOFW)


def away(x, domain, t, rng):
    """Uphill from the centre: the gradient is chosen against the decision."""
    offset = domain.tangent(x - domain.origin())
    size = np.linalg.norm(offset)
    g = offset if size > 1e-3 * domain.radius else domain.tangent(rng.standard_normal(x.shape))
    return g / np.linalg.norm(g)


def signs(x, domain, t, rng):
    """The sign of every coordinate, from the centre."""
    offset = x - domain.origin()
    return np.where(offset >= 0.0, 1.0, -1.0) / math.sqrt(offset.size)


def pieces(x, domain, t, rng):
    """Directions that stay for a sixth of the game, whatever is played."""
    g = np.cos(np.arange(x.size) + 2.5 * (6 * t // ROUNDS)).reshape(x.shape)
    return g / np.linalg.norm(g)


def steady(x, domain, t, rng):
    """The same direction in every round."""
    return np.eye(x.size)[0].reshape(x.shape)


def chased(x, domain, t, rng):
    """Away in long pieces, then back: the sign of a coordinate, now and then kept."""
    return signs(x, domain, t, rng) if t % 5 else pieces(x, domain, t, rng)


@dataclass(frozen=True)
class Game:
    """A set as it is given, the exact one, and what is played on it."""

    domain: Callable[[], Any]
    rule: Callable[..., Any]
    factor: Callable[[int], float] = lambda t: 1.0
    exact: Callable[[], Any] | None = None
    curved: bool = False
    told: bool = True  # whether the learner is given G, and not "auto"

    @property
    def oblivious(self):
        return self.rule in (pieces, steady)


def sloppy():
    """A disc whose oracle answers as badly as it says: the right vertex, turned."""
    turn = math.acos(1.0 - 0.1)
    states = [1.0]

    def lmo(direction):
        v = -direction / (np.linalg.norm(direction) or 1.0)
        states[0] *= -1.0
        c, s = math.cos(turn), states[0] * math.sin(turn)
        return np.array([c * v[0] - s * v[1], s * v[0] + c * v[1]])

    return dw.LMODomain(2, lmo, radius=1.0, error=0.1)


def useless():
    """A disc whose oracle always answers the centre, and says that it may."""
    return dw.LMODomain(2, lambda direction: np.zeros(2), radius=1.0, error=1.0)


def box(number, center, half_width):
    return lambda: dw.Box([center - half_width] * number, [center + half_width] * number)


segment = box(1, 0.0, 1.0)


def swings(t):
    return (1.0, 1e9, 1e-9)[(t // 3) % 3]


GAMES = {
    "signs against it, one dimension": Game(segment, signs),
    "uphill, a ball": Game(lambda: dw.L2Ball(3), away),
    "uphill, a simplex": Game(lambda: dw.Simplex(3), away),
    "signs, a cross": Game(lambda: dw.L1Ball(3, radius=2.0), chased),
    "factors 1e9 and 1e-9": Game(lambda: dw.L2Ball(2), away, swings, told=False),
    "zeros, then huge": Game(segment, chased, lambda t: 0.0 if t < 20 else 1e9, told=False),
    "huge, then small": Game(segment, chased, lambda t: 1e9 if t < 3 else 1.0, told=False),
    "tiny and far from 0": Game(box(2, 1.0, 1e-9), chased),
    "a radius of 64 roundings of the centre": Game(box(1, 1e8, 1e-6), chased),
    "pieces, an oracle with errors": Game(sloppy, pieces, exact=lambda: dw.L2Ball(2)),
    "uphill, an oracle with errors": Game(sloppy, away, exact=lambda: dw.L2Ball(2)),
    "steady, a useless oracle": Game(useless, steady, exact=lambda: dw.L2Ball(2)),
    "curved, a useless oracle": Game(useless, steady, exact=lambda: dw.L2Ball(2), curved=True),
    "pieces": Game(lambda: dw.L2Ball(2), pieces),
    "pieces, a simplex": Game(lambda: dw.Simplex(3), pieces),
    "pieces, factors": Game(segment, pieces, swings),
    "curved, against it": Game(lambda: dw.L2Ball(2), away, curved=True),
    "curved, pieces": Game(lambda: dw.L2Ball(2), pieces, curved=True),
    "curved, one dimension": Game(segment, chased, curved=True),
    "curved, an oracle with errors": Game(sloppy, pieces, exact=lambda: dw.L2Ball(2), curved=True),
}


class Played:
    """A game that was played: rows of gradients, or of targets, and what each round cost."""

    def __init__(self, learner, game, domain):
        rng, exact = np.random.default_rng(0), (game.exact or game.domain)()
        self.curved, self.exact, self.rows, self.costs = game.curved, exact, [], []
        self.moved, last = 0.0, None
        for t in range(ROUNDS):
            points = played(learner)
            row = game.factor(t) * game.rule(learner.decision, domain, t, rng)
            row = exact.origin() - 0.4 * row if game.curved else row
            self.rows.append(row)
            self.costs.append(np.mean([self.cost(row, x) for x in points]))
            self.moved += 0.0 if last is None else float(np.linalg.norm(points[0] - last))
            last = points[0]
            learner.update(SquaredDistance(row) if game.curved else LinearLoss(row))

    def cost(self, row, x):
        """A loss at x, less that of the centre."""
        c = self.exact.origin()
        if self.curved:
            return 0.5 * float(((x - row) ** 2).sum() - ((c - row) ** 2).sum())
        return float(np.vdot(row, x - c))

    def best(self, a, b):
        """The best fixed point of rounds a to b - 1, and what it costs there."""
        total, c = np.sum(self.rows[a:b], axis=0), self.exact.origin()
        if not self.curved:
            u = self.exact.lmo(total)
            return u, float(np.vdot(total, u - c))
        u = total / (b - a)
        return u, 0.5 * (b - a) * float((u**2).sum() - (c**2).sum()) - float(total @ (u - c))

    def regret(self, cuts):
        """Regret against the best point of each piece, and the path of these points."""
        found = [self.best(a, b) for a, b in pairwise(cuts)]
        paid = math.fsum(self.costs[cuts[0] : cuts[-1]]) - math.fsum(cost for _, cost in found)
        return paid, float(sum(np.linalg.norm(v - u) for (u, _), (v, _) in pairwise(found)))


def comparators():
    """Where comparators change: in the whole game, and in windows of some lengths."""
    for number in (1, 2, 3, 6, 18):
        yield None, [round(i * ROUNDS / number) for i in range(number + 1)]
    for tau in (1, 7, 32):
        for start in range(0, ROUNDS - tau + 1, max(3, tau // 3)):
            for number in (1, 3) if tau > 3 else (1,):
                yield tau, [start + round(i * tau / number) for i in range(number + 1)]


@cache
def bound_of(learner, path, tau, told):
    """The bound, or None where it is refused."""
    try:
        return learner.bound(path, tau, **dict(told))
    except NotImplementedError:
        return None


def new(cls, settings, game, domain, seed=None):
    """A learner that is told what the game allows."""
    certified = settings.get("tuning") == "certified"
    G = 1.4 if game.curved else max(game.factor(t) for t in range(ROUNDS))
    auto = not game.told and not certified
    seeds = {} if seed is None else {"seed": seed}
    return cls(domain, horizon=ROUNDS, lipschitz="auto" if auto else G, **(settings | seeds))


def allowed(cls, settings, game, domain):
    """Whether the bound is for this game."""
    if not suits(cls, domain) or cls in NONE or (cls in RANDOM and not game.oblivious):
        return False
    if cls in (*CURVED, *TOLD) or any(keys <= settings.keys() for keys in CURVED_SETTINGS):
        return game.curved
    if cls is dw.contrib.SemiBandit:  # vertices that choose components
        return isinstance(domain, dw.Simplex)
    return not (game.curved and cls is dw.contrib.FTPL)


def variation(rows):
    """The sum of the largest differences of one loss and the next on the unit ball, and the first gap."""
    found = 0.0
    for a, b in pairwise(rows):
        middle = 0.5 * (float(a @ a) - float(b @ b))
        found += abs(middle) + float(np.linalg.norm(a - b))
    return {"variation": found, "first_gap": 0.5 * float(rows[0] @ rows[0])}


def ratios(cls, settings, game):
    """Regret over bound, for each comparator with a bound."""
    seeds = range(SEEDS) if cls in RANDOM else (None,)
    pairs = []
    for seed in seeds:
        domain = game.domain()
        learner = new(cls, settings, game, domain, seed)
        pairs.append((learner, Played(learner, game, domain)))
    told, cases = (), comparators()
    if cls in TOLD:
        smooth = {"smoothness": 1.0} if cls is dw.learners.KalhanOFW else {}
        told = tuple((variation(pairs[0][1].rows) | smooth).items())
        cases = [(None, range(ROUNDS + 1))]
    for tau, cuts in cases:
        regrets, paths = zip(*(game.regret(cuts) for _, game in pairs), strict=True)
        path = 0.0 if told else paths[0]
        bounds = [bound_of(learner, path, tau, told) for learner, _ in pairs]
        if None in bounds:
            continue
        regret, bound = np.mean(regrets), np.mean(bounds)
        if cls is dw.contrib.Scream:  # it pays for moving, with lambda = `switching`
            regret += settings.get("switching", 1.0) * pairs[0][1].moved
        assert math.isfinite(bound) or bound == math.inf
        slack = 1e-14 * sum(map(np.linalg.norm, pairs[0][1].rows))
        yield max(0.0, regret - slack) / bound if regret > slack else 0.0


def public():
    """All learners of the library, with every setting of the learner contract."""
    for cls, cases in LEARNER_CASES.items():
        yield from ((cls, number, settings) for number, settings in enumerate(cases))


@cache
def tightest(cls, number, thorough=False):
    """The largest ratio of a learner with a setting, its game, and how many were bounded.

    If not thorough, the first settings of a learner play half of the games in turn, others a quarter.
    """
    settings, found, count = LEARNER_CASES[cls][number], (-1.0, "no bound"), 0
    turn, share = list(LEARNER_CASES).index(cls) + number, 4 if number else 2
    for place, (name, game) in enumerate(GAMES.items()):
        mine = thorough or (place + turn) % share == 0
        if mine and allowed(cls, settings, game, game.domain()):
            each = list(ratios(cls, settings, game))
            count += len(each)
            found = max(found, (max(each, default=-1.0), name))
    return *found, count


every = pytest.mark.parametrize(
    ("cls", "number"), [pytest.param(cls, n, id=f"{cls.__name__}-{n}") for cls, n, _ in public()]
)


@every
def test_no_sequence_that_broke_a_bound_breaks_one(cls, number):
    ratio, name, _ = tightest(cls, number)
    assert ratio <= 1.0 + 1e-9, name


@pytest.mark.slow
@every
def test_no_sequence_breaks_a_bound_with_any_setting(cls, number):
    ratio, name, _ = tightest(cls, number, thorough=True)
    assert ratio <= 1.0 + 1e-9, name


def test_every_learner_but_one_has_a_bound_here():
    """Those that the games never make give one would pass unseen."""
    classes = {
        cls
        for module in (dw, dw.learners, dw.contrib)
        for cls in vars(module).values()
        if inspect.isclass(cls) and issubclass(cls, dw.Learner) and not inspect.isabstract(cls)
    }
    assert classes <= set(LEARNER_CASES)
    for cls, cases in LEARNER_CASES.items():
        found = (
            ratio
            for settings in cases
            for game in GAMES.values()
            if allowed(cls, settings, game, game.domain())
            for ratio in ratios(cls, settings, game)
        )
        assert (next(found, None) is None) == (cls in NONE), cls


if __name__ == "__main__":
    for cls in LEARNER_CASES:
        found = [tightest(cls, n, thorough=True) for n in range(len(LEARNER_CASES[cls]))]
        ratio, name, _ = max(found)
        print(f"{cls.__name__:<18} {ratio:6.3f}  {name}  ({sum(n for *_, n in found)} comparisons)")
