"""Cases of the learner contract: every learner, its settings, sets and losses."""

import numpy as np

import driftwolfe as dw
from devices import HAS_TORCH
from driftwolfe.losses import Loss
from driftwolfe.points import inner

#: Learners for a mixture, for any set: classes, and a function that makes one.
MIXED = [
    dw.learners.Constant,
    dw.learners.KalhanOFW,
    lambda domain, **given: dw.contrib.Mixture(domain, [dw.learners.Constant, dw.BOGDIP], **given),
]

#: One entry per class: keyword settings beyond the defaults.
LEARNER_CASES = {
    dw.learners.Constant: [{}],
    dw.OGD: [{}],
    dw.contrib.OnlineNewtonStep: [{}, {"alpha": 0.5}, {"rate": -0.75, "ridge": 1.0}],
    dw.contrib.Mixture: [
        {},
        {"weights": "natural", "alpha": 0.1, "prior": [1.0, 3.0, 2.0], "learners": MIXED},
    ],
    dw.contrib.LongTerm: [
        {},
        {"learner": dw.POLD, "weight": 3.0, "violation_scale": 2.0},
        {"learner": dw.BOGDIP, "constraint_lipschitz": 2.0},
    ],
    dw.contrib.CutBOGDIP: [{}, {"tuning": "certified", "oracle": dw.Oracle(lmo_budget=20.0)}],
    dw.OnlineFrankWolfe: [{}],
    dw.BOGDIP: [
        {},
        {"tuning": "certified"},
        {"oracle": "halfspace"},
        {"tuning": "certified", "oracle": dw.Oracle(lmo_budget=20.0, schedule="even")},
    ],
    dw.learners.LOOBOGD: [{}],
    dw.learners.SOOGD: [{}],
    dw.POLD: [
        {},
        {"feedback": "linear"},
        {"tuning": "certified"},
        {"grid": "paper"},
        {"oracle": "halfspace", "tuning": "certified", "grid": "experiment"},
        {"oracle": dw.Oracle(lmo_budget=1.0)},
        {"oracle": dw.Oracle(lmo_budget=30.0), "tuning": "certified"},
        {"oracle": dw.Oracle(lmo_budget=0.7, schedule="even"), "feedback": "linear"},
        {"oracle": dw.Oracle("halfspace", lmo_budget=0.3)},
    ],
    dw.POLA: [
        {},
        {"feedback": "linear"},
        {"tuning": "certified"},
        {"start": "origin"},
        {"oracle": dw.Oracle(lmo_budget=0.5)},
        {"oracle": dw.Oracle(lmo_budget=60.0, schedule="even"), "tuning": "certified"},
        {"oracle": dw.Oracle(lmo_budget=1.0, schedule="even")},
    ],
    dw.POLAR: [
        {},
        {"experts": ("lazy", "origin", "agile")},
        {"weights": "sleeping"},
        {"feedback": "linear"},
        {"tuning": "certified"},
        {"tuning": "certified", "oracle": dw.Oracle(lmo_budget=60.0)},
        {"oracle": dw.Oracle(lmo_budget=0.5)},
        {"oracle": dw.Oracle("corrective", lmo_budget=0.3)},
        {"oracle": "halfspace"},
    ],
    dw.learners.OneOracleAder: [
        {},
        {"tuning": "certified", "oracle": dw.Oracle(lmo_budget=5.0)},
        {"oracle": dw.Oracle(lmo_budget=0.2)},
    ],
    dw.Ader: [{}, {"feedback": "linear"}, {"oracle": dw.Oracle("corrective", accuracy=0.05)}],
    dw.learners.MultiOCG: [{}, {"max_inner": 2}, {"strong_convexity": 0.1, "max_inner": 5}],
    dw.learners.PAMO: [{}, {"gauge": "exact", "steps": "lazy"}],
    dw.learners.KalhanOFW: [{}],
    dw.learners.LineSearchOFW: [{"smoothness": 2.0}],
    dw.learners.SAOL: [{}, {"oracle": dw.Oracle("corrective", tolerance_scale=1e-4)}],
    dw.contrib.Bandit: [
        {},
        {"points": 2, "learner": dw.POLD, "tuning": "certified"},
        {"learner": dw.POLA, "seed": 3, "oracle": dw.Oracle(lmo_budget=1.0)},
        {"points": 2, "learner": dw.learners.Constant},
    ],
    dw.contrib.SemiBandit: [{}, {"learner": dw.POLD, "exploration": 0.2, "seed": 5}],
    dw.learners.OneProjectionAder: [
        {},
        {"oracle": "auto"},
        {"oracle": dw.Oracle("corrective", accuracy=0.05)},
    ],
    dw.learners.OneProjectionSAOL: [{}, {"oracle": "corrective", "start": "origin"}],
    dw.contrib.Sword: [
        {},
        {"oracle": "auto"},
        {"smoothness": 1.0},
        {"oracle": dw.Oracle("corrective", accuracy=0.05)},
    ],
    dw.contrib.SACS: [
        {},
        {"feedback": "linear", "start": "origin"},
        {"oracle": "corrective"},
        {"projections": "one"},
    ],
    dw.contrib.Scream: [{}, {"switching": 5.0}],
    dw.contrib.AFLH: [{"alpha": 0.01}],
    dw.contrib.FTPL: [{}, {"seed": 4}],
    dw.contrib.AnytimeOFW: [{}],
    dw.contrib.DiscountedAdaptive: [{}, {"discount": 0.9}, {"discount": 1.0}],
    dw.contrib.SmoothedOGD: [{}, {"feedback": "linear"}, {"oracle": "corrective"}],
    dw.contrib.StronglyConvexOFW: [{}, {"strong_convexity": 0.5}],
}

#: What a learner needs of a set besides its LMO.
NEEDS_PROJECTION = (
    *(dw.OGD, dw.Ader, dw.learners.SAOL, dw.learners.OneProjectionAder),
    *(dw.learners.OneProjectionSAOL, dw.contrib.Sword, dw.contrib.SACS, dw.contrib.Scream),
    *(dw.contrib.SmoothedOGD, dw.contrib.DiscountedAdaptive),
)
NEEDS_GAUGE = (dw.learners.PAMO,)
NEEDS_ARRAYS = (
    *(dw.contrib.OnlineNewtonStep, dw.contrib.SemiBandit, dw.contrib.AFLH, dw.contrib.FTPL),
    *(dw.contrib.SACS, dw.contrib.Scream, dw.contrib.DiscountedAdaptive),
)
NEEDS_SEPARATION = (dw.learners.SOOGD,)
NEEDS_INSIDE = (dw.contrib.Bandit,)
#: Learners that see values, or some components, at points that `query` returns.
VALUES_ONLY = (dw.contrib.Bandit, dw.contrib.SemiBandit)


#: Options with units, with a value and as powers of the units of a slope and of a length: a curvature is a
#: slope over a length.
UNITS = {
    dw.learners.LineSearchOFW: {"smoothness": (2.0, 1, -1)},
    dw.contrib.StronglyConvexOFW: {"strong_convexity": (1.0, 1, -1)},
    dw.contrib.Scream: {"switching": (1.0, 1, 0)},
    dw.contrib.AFLH: {"alpha": (0.5, -1, -1)},
}
#: Learners that square gradients, and refuse those whose squares leave the range of numbers.
SQUARING = (
    *(dw.contrib.Sword, dw.contrib.SACS, dw.contrib.Scream, dw.contrib.AFLH, dw.contrib.FTPL),
    *(dw.contrib.OnlineNewtonStep, dw.contrib.StronglyConvexOFW, dw.contrib.DiscountedAdaptive),
)


def domains():
    """Sets of every kind: with and without 0, with and without projection, dense and factored."""
    return {
        "l1": dw.L1Ball(4, radius=2.0),
        "simplex": dw.Simplex(5),
        "birkhoff": dw.BirkhoffPolytope(3),
        "trees": dw.SpanningTreePolytope(4),
        "trace-norm": dw.TraceNormBall((3, 4), radius=2.0),
        "factored": dw.TraceNormBall((12, 10), radius=6.0, representation="factored"),
        "own": dw.LMODomain(3, dw.L2Ball(3).lmo, radius=1.0),
    }


def more_domains():
    """All of `domains`, products, a set made from a graph, and sets with a cache."""
    edges = [("s", "a"), ("s", "b"), ("a", "b"), ("a", "t"), ("b", "t"), ("s", "t")]
    small = dw.TraceNormBall((7, 6), radius=3.0, representation="factored")
    return domains() | {
        "flow": dw.FlowPolytope(edges, "s", "t"),
        "program": dw.LinearProgram([[1.0, 2.0, 1.0]], [2.0], [[1.0, 1.0, 1.0]], [1.0]),
        "product": dw.ProductDomain([dw.L1Ball(3), dw.Simplex(4)]),
        "product-factored": dw.ProductDomain([dw.L2Ball(2), small]),
        "cached": dw.CachedDomain(dw.Simplex(5), 4),
        "cached-factored": dw.CachedDomain(domains()["factored"], 4),
    }


#: Learners for large matrices, which may be on a device; and those whose experts may be.
LARGE = (
    *(dw.POLD, dw.POLA, dw.POLAR, dw.BOGDIP, dw.learners.LOOBOGD, dw.OnlineFrankWolfe),
    *(dw.learners.LineSearchOFW, dw.learners.KalhanOFW),
)
STACKED = (dw.POLD, dw.POLA, dw.POLAR, dw.Ader, dw.learners.SAOL)


def device_domains():
    """Sets whose points, or whose experts, are on PyTorch, with the learners for them."""
    if not HAS_TORCH:
        return {}
    large = dw.TraceNormBall((12, 10), radius=6.0, representation="factored", device="torch")
    return {"torch": (large, LARGE), "experts": (dw.L2Ball(4, radius=1.5, device="torch"), STACKED)}


def domain_named(name):
    """A set of `domains` or `device_domains`."""
    return domains()[name] if name in domains() else device_domains()[name][0]


class Along(Loss):
    """A loss for points of any kind: the distance of an inner product from a number."""

    def __init__(self, direction, wanted):
        self.direction, self.wanted = direction, wanted

    def scores(self, x):
        return np.array([inner(self.direction, x)])

    def value_at(self, scores):
        return 0.5 * (scores[..., 0] - self.wanted) ** 2

    def slope_at(self, scores):
        return scores - self.wanted

    def pull_back(self, slope, like):
        return float(slope[0]) * self.direction


def product_losses(domain, rounds, seed=0):
    """Losses on a product of sets, towards and away from its vertices."""
    rng = np.random.default_rng(seed)
    directions = ([rng.standard_normal(shape) for shape in domain.shape] for _ in range(rounds))
    vertices = [domain.lmo(direction) for direction in directions]
    return [Along(v, 2.0 if t % 3 else -1.0) for t, v in enumerate(vertices)]


def played(learner):
    """The points whose losses a learner is about to suffer the mean of."""
    if not isinstance(learner, VALUES_ONLY):
        return [learner.decision]
    asked = learner.query()
    return [asked] if asked.shape == learner.domain.shape else list(asked)


def suits(cls, domain):
    """Whether a learner can work on a set."""
    if cls in NEEDS_ARRAYS and not hasattr(domain.origin(), "flat"):
        return False
    if domain.cached_vertices and cls in (*NEEDS_PROJECTION, *NEEDS_SEPARATION):
        return cls is dw.OGD
    if cls in NEEDS_PROJECTION:
        return domain.can("project")
    if cls in NEEDS_SEPARATION:
        return domain.can("separate")
    if cls in NEEDS_INSIDE:
        return domain.inner_radius > 0 and hasattr(domain.origin(), "flat")
    if cls in NEEDS_GAUGE:
        offered = domain.can("gauge") and domain.can("gauge_subgradient")
        return offered and domain.inner_radius > 0 and hasattr(domain.origin(), "flat")
    return True
