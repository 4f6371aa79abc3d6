"""What is played does not hang on the last bit of what was seen.

Another machine adds up the same numbers in another order. Noise of 1e-15 in the data stands for it
here, on any machine; decisions may move by 1e-6 of the set's radius. The data are generic: where two
vertices of a set are exactly as good, or a gradient is all rounding, a step of Frank-Wolfe cannot but
choose, and either choice is right.
"""

import numpy as np
import pytest

import driftwolfe as dw
from contracts.learner_cases import LEARNER_CASES, Along, more_domains, suits
from contracts.test_learner_contract import stream as contract_stream
from driftwolfe.ensemble import AdaNormalHedge, MultiplicativeWeights
from driftwolfe.ensemble.ball import surrogate
from driftwolfe.losses import LinearLoss, SquaredDistance, SquaredEntries
from driftwolfe.points import FactoredMatrix, ProductPoint
from driftwolfe.points.lanczos import leading_triplet
from learners.families import play_all

ROUNDS, ALLOWED = 36, 1e-6
SETS = ("l1", "simplex", "birkhoff", "trees", "factored", "product-factored")
#: Beyond the first settings of each: those with rules of their own.
MORE = [
    (dw.POLD, {"oracle": dw.Oracle(lmo_budget=1.0)}, "birkhoff"),
    (dw.POLA, {"oracle": dw.Oracle(lmo_budget=0.5)}, "birkhoff"),
    (dw.POLA, {"oracle": dw.Oracle(lmo_budget=1.0, schedule="even")}, "factored"),
    (dw.POLAR, {"experts": ("lazy", "origin", "agile")}, "trees"),
    (dw.POLAR, {"weights": "sleeping"}, "simplex"),
    (dw.POLAR, {"oracle": dw.Oracle(lmo_budget=0.5)}, "birkhoff"),
    (dw.learners.MultiOCG, {"max_inner": 2}, "product-factored"),
]
CASES = [
    *(
        (cls, cases[0], name)
        for cls, cases in LEARNER_CASES.items()
        for name in SETS
        if suits(cls, more_domains()[name]) and cls is not dw.learners.Constant  # which never moves
    ),
    *MORE,
]


def shaken(array, noise):
    return array if noise is None else array * (1.0 + 1e-15 * noise.uniform(-1.0, 1.0, array.shape))


def stream(domain, noise):
    """Losses that jump halfway, in general position; with `noise`, a little beside them."""
    rng = np.random.default_rng(0)
    for t in range(ROUNDS):
        sign = 1.0 if t < ROUNDS // 2 else -1.0
        if isinstance(domain, dw.ProductDomain):
            parts = [shaken(rng.standard_normal(shape), noise) for shape in domain.shape]
            pairs = zip(domain.origin().parts, parts, strict=True)
            kinds = [FactoredMatrix.from_dense(b) if hasattr(a, "rank") else b for a, b in pairs]
            yield Along(ProductPoint(kinds), sign * (3.0 + rng.random()))
        elif len(domain.shape) == 2 and t % 3:
            rows, cols = (rng.integers(0, size, 6) for size in domain.shape)
            yield SquaredEntries(rows, cols, shaken(sign * rng.standard_normal(6), noise))
        else:
            kind = LinearLoss if t % 2 else SquaredDistance
            yield kind(shaken(sign * rng.standard_normal(domain.shape), noise))


def flat(point):
    if isinstance(point, ProductPoint):
        return np.concatenate([flat(part) for part in point.parts])
    return point.toarray().ravel() if isinstance(point, FactoredMatrix) else np.ravel(point)


def decisions(learner, losses):
    """What is played after each loss."""
    return np.array([flat(play_all(learner, [loss]).decision) for loss in losses])


def marks(cls, settings, name):
    """Quick: each learner with its first settings on every second set in turn."""
    turn = list(LEARNER_CASES).index(cls) + SETS.index(name)
    first = settings == LEARNER_CASES[cls][0]
    return pytest.mark.slow if first and turn % 2 else ()


@pytest.mark.in_turn("cls settings", "name")
@pytest.mark.parametrize(
    ("cls", "settings", "name"),
    [
        pytest.param(
            *case,
            id="-".join([case[0].__name__, *map(str, case[1].values()), case[2]]),
            marks=marks(*case),
        )
        for case in CASES
    ],
)
def test_noise_in_the_last_digit_moves_no_decision(cls, settings, name):
    domain = more_domains()[name]
    # Without a horizon LOO-BOGD's first block is longer than the game.
    settings = {"horizon": ROUNDS if cls is dw.learners.LOOBOGD else None} | settings
    noises = None, np.random.default_rng(1)
    expected, found = (decisions(cls(domain, **settings), stream(domain, n)) for n in noises)
    np.testing.assert_allclose(found, expected, rtol=0, atol=ALLOWED * domain.radius)
    assert np.ptp(expected, axis=0).max() > 1e-3 * domain.radius  # it moves at all


def test_rough_vertices_of_large_matrices_do_not_hang_on_the_last_bit():
    """Random starts are seeded by the matrix: by its leading digits, not by its bits."""
    rng = np.random.default_rng(2)
    parts = [rng.standard_normal(shape) for shape in ((90, 5), (5,), (70, 5))]
    noise = np.random.default_rng(3)
    plain, beside = FactoredMatrix(*parts), FactoredMatrix(*(shaken(p, noise) for p in parts))
    for tolerance in (0.3, 0.1, 0.01):
        one, other = (leading_triplet(matrix, tolerance=tolerance) for matrix in (plain, beside))
        assert one.error > 1e-6 or tolerance < 0.1  # a rough answer, which the start shows in
        np.testing.assert_allclose(
            np.outer(other.u, other.v), np.outer(one.u, one.v), rtol=0, atol=1e-9
        )
    dense = rng.standard_normal((90, 70))
    one, other = (leading_triplet(A, tolerance=0.1) for A in (dense, shaken(dense, noise)))
    np.testing.assert_allclose(
        np.outer(other.u, other.v), np.outer(one.u, one.v), rtol=0, atol=1e-9
    )


# -- feasible after any number of rounds -------------------------------------------------------------


def trace_norm(point):
    return np.linalg.svd(point.toarray(), compute_uv=False).sum()


def small_ball():
    return dw.TraceNormBall((12, 10), 1.0, representation="factored")


def test_a_fixed_gradient_never_leads_a_line_search_out_of_the_ball():
    """Near the vertex squared lengths cancel, on any machine for a few of these seeds."""
    for seed in range(20):
        loss = LinearLoss(10.0 * np.random.default_rng(seed).standard_normal((12, 10)))
        learner = play_all(dw.learners.LineSearchOFW(small_ball()), [loss] * 40)
        assert trace_norm(learner.decision) <= 1.0 + 1e-12, seed


@pytest.mark.parametrize(
    ("cls", "settings"),
    [
        (dw.OnlineFrankWolfe, {"horizon": 750}),
        (dw.learners.KalhanOFW, {"horizon": 750}),
        (dw.learners.LineSearchOFW, {"smoothness": 30.0}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_rounding_does_not_add_up_over_many_rounds(cls, settings):
    """A convex combination rounds by 1e-16 of the radius: 1e-12 leaves room for thousands of them."""
    rng, learner = np.random.default_rng(0), cls(small_ball(), **settings)
    fixed = rng.standard_normal((12, 10))
    for t in range(750):
        gradient = fixed if t < 250 else fixed + rng.standard_normal((12, 10))
        learner.update(LinearLoss(gradient))
        if t % 50 == 49:
            assert trace_norm(learner.decision) <= 1.0 + 1e-12


# -- ties and the ends of the range ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cls", "meta"),
    [(dw.POLA, AdaNormalHedge), (dw.learners.SAOL, MultiplicativeWeights)],
    ids=["POLA", "SAOL"],
)
def test_new_experts_start_at_the_same_point_whatever_rounding_does_to_weights(
    cls, meta, monkeypatch
):
    """Experts that have not parted are as heavy as each other; the longest interval's is taken."""
    domain, plain, noise = more_domains()["factored"], meta.weights, np.random.default_rng(0)

    def played():
        return decisions(cls(domain, lipschitz=10.0), contract_stream(domain, ROUNDS))

    expected = played()
    monkeypatch.setattr(meta, "weights", property(lambda self: shaken(plain.fget(self), noise)))
    np.testing.assert_allclose(played(), expected, rtol=0, atol=ALLOWED * domain.radius)


def test_a_target_beyond_the_range_of_numbers_is_refused():
    ball = dw.TraceNormBall((120, 130), representation="factored")
    y = FactoredMatrix.from_entries(ball.shape, [0, 3], [5, 1], [1e200, 2e200])
    with pytest.raises(ValueError, match="beyond the range of numbers"):
        dw.infeasible_projection(ball, ball.origin(), y, 1e-3, method="block")
    dense = dw.L2Ball(3)
    far = dw.infeasible_projection(dense, dense.origin(), [1e200, 0.0, 0.0], 0.3, method="paper")
    np.testing.assert_allclose(far.feasible, [1.0, 0.0, 0.0], atol=0.6)


def test_what_is_left_of_a_gradient_is_right_where_y_is_near_x():
    """The part of a gradient along y - x is taken out, however short that is."""
    rng = np.random.default_rng(0)
    factors = (rng.standard_normal((size, 3)) / 10 for size in (12, 10))
    x = FactoredMatrix(next(factors), np.ones(3), next(factors))
    move = rng.standard_normal((12, 10))
    move /= np.linalg.norm(move)
    gradient = FactoredMatrix.from_dense(-move + x.toarray())
    away = FactoredMatrix.from_dense(x.toarray() + 1e-9 * move) - x
    left_over = surrogate(gradient, away).toarray()
    expected = gradient.toarray() - (gradient.toarray() * move).sum() * move
    np.testing.assert_allclose(left_over, expected, atol=1e-5)


def test_a_gauge_of_1_but_for_rounding_counts_as_1():
    """PAMO's experts are clipped to the ball around the set, which here is the set."""
    ball, rng = dw.L2Ball(6), np.random.default_rng(0)
    slopes = [rng.standard_normal(6) + (0.8 if t < 30 else -0.8) for t in range(60)]

    def played(noise):
        learner = dw.learners.PAMO(ball, lipschitz=1.0, gauge="exact")
        return decisions(learner, (LinearLoss(shaken(slope, noise)) for slope in slopes))

    for seed in range(4):
        np.testing.assert_allclose(played(np.random.default_rng(seed)), played(None), atol=ALLOWED)
