"""`MatrixCompleter`: noise of the size of rounding errors in the ratings hardly changes predictions."""

import numba
import numpy as np
import pytest
import scipy

from driftwolfe.estimators import MatrixCompleter, completer_experts, completer_kernels
from driftwolfe.estimators.completer_experts import leading
from driftwolfe.points.kinds import interpreted
from estimators.rating_streams import constants

NOISE = 1e-14
#: Gaps that a projection divides by, as shares of the largest singular value: it makes 1e-8 of the noise.
GAP = 1e-6
#: A hundred times as much, for the rounds in which differences grow.
BOUND = 100.0 * NOISE / GAP

CASES = [(seed, {}) for seed in range(6)] + [(k, {"MEMORY": 64, "RANK": 1}) for k in range(3)]
LOSSES = [("huber", *case) for case in CASES]
LOSSES += [(loss, seed, {}) for loss in ("absolute", "squared") for seed in (0, 1)]


def noisy_taste(seed, count=1200):
    """Ratings of 1 to 5, whole or by halves, some users and items much more often than others.

    In every third stream the first ratings are equal.
    """
    rng = np.random.default_rng(seed)
    users, items = ((12, 9), (56, 38), (200, 120))[seed % 3]
    pairs = np.stack([zipf(rng, size, count) for size in (users, items)], axis=1)
    left, right = rng.standard_normal((users, 2)), rng.standard_normal((items, 2))
    raw = 3.0 + 0.6 * (left @ right.T)[*pairs.T] + 0.5 * rng.standard_normal(count)
    per_star = 1 + seed % 2
    ratings = np.clip(np.round(per_star * raw) / per_star, 1.0, 5.0)
    ratings[: 5 * (seed % 3 == 0)] = 3.0
    return pairs, ratings


def zipf(rng, size, count):
    often = 1.0 / np.arange(1.0, size + 1.0) ** rng.uniform(0.3, 1.1)
    return rng.choice(size, count, p=often / often.sum())


@pytest.mark.parametrize(("loss", "seed", "options"), LOSSES, ids=str)
def test_noise_of_rounding_moves_no_prediction(loss, seed, options, monkeypatch):
    constants(monkeypatch, FIRST_LOW_RANK_LEVEL=8, **options)
    pairs, ratings = noisy_taste(seed)
    table = np.indices(pairs.max(axis=0) + 1).reshape(2, -1).T
    noise = NOISE * np.random.default_rng(1).standard_normal(ratings.size)
    told, disturbed = (
        MatrixCompleter(loss=loss).partial_fit(pairs, given).predict(table)
        for given in (ratings, ratings + noise)
    )
    assert np.abs(told - disturbed).max() < BOUND


def as_steps(matrix):
    users, items = matrix.shape
    sparse = scipy.sparse.csr_array(matrix)
    return (sparse, sparse.T), np.zeros((users, 0)), np.zeros((items, 0))


def spectrum(values, seed=0):
    """A matrix with these singular values, and its right vectors in columns."""
    rng = np.random.default_rng(seed)
    left, right = (np.linalg.qr(rng.standard_normal((n, len(values))))[0] for n in (30, 25))
    return (left * values) @ right.T, right


def disturbed(matrix):
    return matrix + NOISE * np.random.default_rng(2).standard_normal(matrix.shape)


@pytest.mark.parametrize(
    ("values", "counting"),
    [
        ([3.0, 2.0, 1.0, 0.5], [3.0, 2.0]),
        ([3.0, 2.0, 2.0, 0.5], [3.0]),  # the second and the third tie
        ([3.0, 3.0, 3.0, 3.0], []),
        ([3.0, 0.0, 0.0, 0.0], [3.0]),
    ],
)
def test_directions_that_tie_with_one_left_out_do_not_count(values, counting):
    matrix, right = spectrum(values)
    expected, products = (right[:, : len(counting)] * counting) @ right[:, : len(counting)].T, []
    for given in (matrix, disturbed(matrix)):
        left, s, found, kept = leading(*as_steps(given), np.eye(25), 2)
        products.append((left * s * kept) @ found.T)
        squares = (found * s * kept) @ (found * kept).T
        assert squares == pytest.approx(expected, abs=NOISE / GAP)
    assert products[0] == pytest.approx(products[1], abs=NOISE / GAP)


def test_right_vectors_that_depend_on_each_other_or_are_not_seen():
    """Twice the same, and one that the matrix maps to 0: the rest says what is found."""
    rng = np.random.default_rng(3)
    matrix, right = spectrum(np.linspace(3.0, 1.0, 12))
    known = rng.standard_normal((25, 4))
    unseen = known[:, 0] - right @ (right.T @ known[:, 0])
    space = np.column_stack([known[:, 0], unseen, known[:, 0], known[:, 1:]])
    basis = np.linalg.qr(matrix @ known)[0]
    expected = np.linalg.svd(basis.T @ matrix, compute_uv=False)
    for given in (matrix, disturbed(matrix)):
        _, s, _, kept = leading(*as_steps(given), space, 6)
        assert s == pytest.approx(expected, abs=NOISE / GAP)
        assert kept.tolist() == [1.0] * 4


@numba.njit
def compiled_step(*given):
    completer_kernels.step_row(*given)


@numba.njit
def compiled_gradient(*given):
    return completer_kernels.gradient(*given)


@numba.njit
def compiled_count(*given):
    return completer_kernels.count_rating(*given)


def as_written():
    """The loops in Python, which tells of divisions by 0."""
    with interpreted():
        return completer_experts.kernels()


@pytest.mark.parametrize("zeros", ["all", "a spread"])
def test_no_step_into_a_ball_that_is_a_point(zeros):
    """Before the first error its radius is 0, and nothing is divided by it."""
    numbers = {"all": (0.0, [0.0, 0.0]), "a spread": (1.0, [0.1, 0.0])}
    radius, spreads = numbers[zeros]
    radii, norms = np.array([radius]), np.array([0.5 * sum(spreads)])
    users, items = np.zeros(2), np.full(2, 0.5)
    for step_row in (as_written().step_row, compiled_step):
        with np.errstate(all="raise"):
            step_row(0, 2, 0, 0, 1.0, 1.0, users, items, radii, norms, np.array(spreads))
        assert not users.any()
        assert norms.tolist() == [0.5 * sum(spreads)]


def test_steps_stop_at_the_sphere():
    """Full steps inside, none beyond, and a part of one in the last two billionths of the radius."""
    for room, part in ((0.5e-9, 0.0), (1.5e-9, 0.5), (3e-9, 1.0), (-1.0, 0.0)):
        users, norms = np.zeros(3), np.array([0.5 - room])
        # From 0 by 0.5 on a spread of 0.25: the norm grows by 0.5.
        compiled_step(
            *(0, 1, 1, 2, 0.5, 1.0, users, np.array([0.0, 0.0, 1.0]), np.ones(1), norms),
            np.array([0.25]),
        )
        assert users == pytest.approx([0.0, 0.5 * part, 0.0], abs=1e-6)
        assert norms[0] == pytest.approx(0.5 - room + 0.5 * part**2, abs=1e-6)


@pytest.mark.parametrize(
    ("error", "slope"), [(0.0, 0.0), (1e-9, 0.0), (-1.5e-9, -0.5), (2e-9, 1.0), (-3.0, -1.0)]
)
def test_the_absolute_loss_is_flat_at_errors_of_rounding(error, slope):
    for gradient in (as_written().gradient, compiled_gradient):
        assert gradient(error, completer_kernels.ABSOLUTE) == pytest.approx(slope, abs=1e-12)


@pytest.mark.parametrize(("low", "high"), [(-1e13, 0.0), (0.0, 1e13), (-9e12, 1e13)])
def test_nothing_is_learned_while_errors_are_rounding_of_the_largest_rating(low, high):
    for unit, part in ((10.0, 0.0), (15.0, 0.25), (20.0, 0.5), (1e9, 0.5)):
        numbers = np.array([unit / 1.33, low, high])
        learned = compiled_count(numbers, 0.0, unit / 1.33, 0.5, 100)
        assert learned == pytest.approx(part, abs=1e-9)
        assert numbers == pytest.approx([unit / 1.33, low, high])
