"""Made-up streams: feasible and optimal comparators, true Lipschitz bounds, seeds that repeat."""

from __future__ import annotations

import inspect
import math

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.points import norm
from driftwolfe.regret import offline_minimum, path_length
from driftwolfe.streams import synthetic

DOMAINS = {
    "L1Ball": dw.L1Ball(4, 2.0),
    "L2Ball": dw.L2Ball(4, 2.0),
    "LinfBall": dw.LinfBall(3, 0.5),
    "Simplex": dw.Simplex(4),
    "TraceNormBall": dw.TraceNormBall((3, 4), 2.0),
    "TraceNormBall, factored": dw.TraceNormBall((6, 5), 2.0, representation="factored"),
    "BirkhoffPolytope": dw.BirkhoffPolytope(3),
    "ConvexHull": dw.ConvexHull(np.random.default_rng(0).standard_normal((6, 3))),
}

ON_ANY_SET = {
    "linear_signs": lambda domain, seed: synthetic.linear_signs(domain, 24, 3, seed),
    "hard_linear": lambda domain, seed: synthetic.hard_linear(domain, 24, seed),
    "rotating_quadratic": lambda domain, seed: synthetic.rotating_quadratic(domain, 24, 0.2, seed),
    "piecewise_constant": lambda domain, seed: synthetic.piecewise_constant(domain, 24, 5, seed),
}
ON_MATRICES = {
    "drifting_logistic": lambda seed: synthetic.drifting_logistic((3, 4), 24, 5, 0.1, seed),
    "absolute_entries": lambda seed: synthetic.absolute_entries((8, 5), 2, 3.0, 24, 9, 0.1, seed),
}
CASES = [(maker, name) for maker in ON_ANY_SET for name in DOMAINS] + [
    (maker, None) for maker in ON_MATRICES
]


def make(maker, name, seed=0):
    return ON_MATRICES[maker](seed) if name is None else ON_ANY_SET[maker](DOMAINS[name], seed)


def dense(point):
    return point.toarray() if isinstance(point, dw.FactoredMatrix) else point


@pytest.mark.parametrize(("maker", "name"), CASES)
def test_comparators_are_feasible_bounds_true_and_seeds_repeat(maker, name):
    stream, same, other = (make(maker, name, seed) for seed in (3, 3, 4))
    assert len(stream) == len(stream.comparators) == 24
    for point in stream.comparators:
        assert stream.domain.contains(point, atol=1e-9)
    rng = np.random.default_rng(1)
    for loss in stream[::5]:
        directions = [rng.standard_normal(stream.domain.shape) for _ in range(5)]
        vertices = [stream.domain.lmo(direction) for direction in directions]
        for x in [stream.domain.origin(), *vertices]:
            assert norm(loss.gradient(x)) <= stream.lipschitz * (1 + 1e-9)
    x = dense(stream.comparators[-1])
    values, repeated, changed = ([loss.value(x) for loss in s] for s in (stream, same, other))
    assert values == repeated != changed
    for a, b in zip(stream.comparators, same.comparators, strict=True):
        np.testing.assert_array_equal(dense(a), dense(b))


@pytest.mark.in_turn
@pytest.mark.parametrize("maker", ["linear_signs", "rotating_quadratic", "piecewise_constant"])
@pytest.mark.parametrize("name", list(DOMAINS))
def test_comparators_minimise_their_own_loss(maker, name):
    stream = make(maker, name)
    for loss, u in zip(stream, stream.comparators, strict=True):
        best = offline_minimum(stream.domain, [loss])
        assert loss.value(u) <= best.value + best.gap + 1e-6


def test_the_truth_behind_entries_has_no_loss():
    stream = make("absolute_entries", None)
    for loss, u in zip(stream, stream.comparators, strict=True):
        assert loss.value(u) == pytest.approx(0.0, abs=1e-12)
        assert loss._pairs[1].max() == 1.0
        assert u.nuclear_norm() == pytest.approx(3.0)
    assert path_length(stream.comparators) == pytest.approx(
        23 * path_length(stream.comparators[:2])
    )


def test_the_truth_behind_labels_beats_other_matrices():
    stream = synthetic.drifting_logistic((4, 6), 300, rows=20, speed=0.005, seed=0, radius=30.0)
    truth = sum(loss.value(u) for loss, u in zip(stream, stream.comparators, strict=True))
    rng = np.random.default_rng(1)
    others = [stream.domain.lmo(rng.standard_normal((4, 6))) for _ in range(5)]
    fixed = [sum(loss.value(x) for loss in stream) for x in [*others, stream.domain.origin()]]
    assert truth < 0.9 * min(fixed)


@pytest.mark.parametrize("name", list(DOMAINS))
def test_the_comparator_of_hard_linear_is_the_best_fixed_point(name):
    stream = make("hard_linear", name)
    best = offline_minimum(stream.domain, stream.losses)
    assert sum(loss.value(stream.comparators[0]) for loss in stream) == pytest.approx(best.value)


def test_hard_linear_forces_the_square_root():
    domain, rounds = dw.L2Ball(3), 400
    regrets = [
        -sum(loss.value(stream.comparators[0]) for loss in stream)
        for stream in (synthetic.hard_linear(domain, rounds, seed) for seed in range(100))
    ]
    expected = 2.0 * math.sqrt(rounds / (2 * math.pi))  # G w sqrt(T / 2 pi)
    assert np.mean(regrets) == pytest.approx(expected, rel=0.15)


def test_refusals_say_why_and_every_stream_is_tested():
    ball = dw.L2Ball(2)
    with pytest.raises(ValueError, match="fewer than the 5 rounds"):
        synthetic.linear_signs(ball, 5, changes=5)
    with pytest.raises(ValueError, match="at most the 5 rounds"):
        synthetic.piecewise_constant(ball, 5, pieces=6)
    with pytest.raises(ValueError, match="room to turn"):
        synthetic.absolute_entries((5, 5), rank=3)
    with pytest.raises(ValueError, match="at most the 25 entries"):
        synthetic.absolute_entries((5, 5), rank=2, per_round=26)
    for name in synthetic.__all__:
        assert "seed" in inspect.signature(getattr(synthetic, name)).parameters
    assert sorted({*ON_ANY_SET, *ON_MATRICES}) == synthetic.__all__


def test_drifts_are_where_the_target_jumps():
    ball = dw.L2Ball(3)
    assert synthetic.piecewise_constant(ball, 12, pieces=3, seed=0).drifts == (4, 8)
    assert synthetic.piecewise_constant(ball, 12, pieces=1, seed=0).drifts == ()
    uneven = synthetic.piecewise_constant(ball, 11, pieces=4, seed=0)
    jumps = [t for t in range(1, 11) if uneven[t] is not uneven[t - 1]]
    assert uneven.drifts == tuple(jumps)
    assert synthetic.linear_signs(ball, 12, changes=2, seed=0).drifts == (4, 8)
    assert synthetic.rotating_quadratic(ball, 12, seed=0).drifts == ()
    stream = synthetic.linear_signs(dw.L1Ball(3), 100, changes=4, seed=0)
    changes = [t for t in range(1, 100) if stream[t] is not stream[t - 1]]
    assert changes == [20, 40, 60, 80]
    assert path_length(stream.comparators) == pytest.approx(4 * 2.0)
    assert norm(stream[0].g) == pytest.approx(1.0)


@pytest.mark.parametrize("make", [synthetic.linear_signs, synthetic.hard_linear])
def test_every_gradient_has_the_norm_that_was_asked_for(make):
    for lipschitz in (0.5, 3.0):
        stream = make(dw.L2Ball(3), 20, seed=0, lipschitz=lipschitz)
        gradients = np.array([loss.g for loss in stream])
        # One direction, both signs.
        assert {int(np.sign(g @ gradients[0])) for g in gradients} == {1, -1}
        assert abs(gradients @ gradients[0]) == pytest.approx(lipschitz**2)
        assert stream.lipschitz == lipschitz
