"""The parts of the classifier against independent computations and against their guarantees."""

import pickle
from itertools import product

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from driftwolfe import TraceNormBall
from driftwolfe.estimators import TraceNormClassifier, classifier
from driftwolfe.estimators.classifier import (
    BLOCK,
    FEW_CLASSES,
    LENGTHS,
    START,
    WINDOWS,
    ClassLearner,
)
from driftwolfe.estimators.core import shared_kernels
from driftwolfe.estimators.core.models import ONE, SLACK
from driftwolfe.estimators.core.rows import (
    FULL_FEATURES,
    LARGEST,
    SMALLEST,
    FeatureMap,
    SparseRows,
    as_rows,
)
from driftwolfe.losses import MulticlassLogistic
from estimators.classifier_streams import experts_of, mapped, seen, seen_as, state_of, turning

RADII = (2.0, 20.0)


def labelled(X, y, weights=None):
    parts = np.ones(len(y)) if weights is None else weights
    return as_rows(np.asarray(X, float)), np.asarray(y, np.int64), parts


def learn(experts, z, y, weights=None):
    """Let experts learn rows that are z already."""
    experts._learn(
        seen_as(z), np.asarray(y, np.int64), np.ones(len(y)) if weights is None else weights
    )


def rows_of_norm(rng, number, width, norm=1.0):
    z = rng.normal(size=(number, width))
    return z * (norm / np.linalg.norm(z, axis=1, keepdims=True))


def matrices(experts):
    """What each expert holds, one row per class."""
    stacked = experts.points[: experts.width].reshape(experts.width, -1, experts.classes)
    return stacked.transpose(1, 2, 0)


def trace_norm(matrix):
    return np.linalg.svd(matrix, compute_uv=False).sum()


# --- projection ------------------------------------------------------------------------------


def projected(matrix, radius):
    """The point of the trace-norm ball next to a matrix, by its singular values."""
    U, values, V = np.linalg.svd(matrix, full_matrices=False)
    theta = ((values.cumsum() - radius) / np.arange(1, values.size + 1)).max()
    return U * np.maximum(values - max(theta, 0.0), 0.0) @ V


def shaped(rng, kind, rows, columns):
    """A matrix of entries around 1, of a kind that is hard for rotations."""
    made = rng.normal(size=(rows, columns))
    if kind == "of low rank":
        made = made[:, : 1 + columns // 3] @ rng.normal(size=(1 + columns // 3, columns))
    elif kind == "repeated columns":
        made = made[:, rng.integers(0, 1 + columns // 2, columns)]
    elif kind == "zero columns":
        made[:, rng.random(columns) < 0.5] = 0.0
    elif kind == "equal columns":  # and equal singular values, if there are enough rows
        made = np.linalg.qr(rng.normal(size=(max(rows, columns), columns)))[0][:rows]
    elif kind == "falling columns":
        made *= 10.0 ** -rng.uniform(0.0, 12.0, columns)
    return made


PROJECTIONS = {"compiled": classifier.few_columns, "numpy": classifier.project_columns}
KINDS = "any", "of low rank", *(f"{k} columns" for k in ("repeated", "zero", "falling", "equal"))
#: Squares are summed, over 30 rows, with errors of 30 units of rounding: their roots have errors of this.
LOST = 1e-7


@pytest.mark.parametrize("by", PROJECTIONS)
@given(
    rows=st.integers(1, 30),
    columns=st.integers(1, 20),
    kind=st.sampled_from(KINDS),
    share=st.floats(0.01, 1.5) | st.just(1e-20),
    size=st.sampled_from([1e-100, 1e-6, 1.0, 1e6, 1e100]),
    seed=st.integers(0, 10**6),
)
def test_projection_is_that_of_the_ball(by, rows, columns, kind, share, size, seed):
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(rows + 2, 3 * columns)) * size
    own = (slice(0, rows), slice(columns, 2 * columns))
    table[own] = shaped(rng, kind, rows, columns) * size
    values = np.linalg.svd(table[own], compute_uv=False)
    radius = share * (values.sum() or size)
    expected = projected(table[own], radius)
    found = table.copy()
    norm, squared = PROJECTIONS[by](found[:rows], columns, columns, radius)
    error = LOST * values[0]  # of every singular value
    np.testing.assert_allclose(found[own], expected, rtol=0.0, atol=columns * error)
    least = min(values.sum(), radius)
    assert norm == pytest.approx(least, rel=1e-12, abs=columns * error)
    assert norm <= radius
    assert squared == pytest.approx((expected**2).sum(), rel=1e-12, abs=4.0 * error * least)
    found[own] = table[own]
    np.testing.assert_array_equal(found, table)  # nothing else was touched


@pytest.mark.parametrize("by", PROJECTIONS)
@pytest.mark.parametrize("size", [1e-100, 1.0, 1e100])
def test_projection_of_columns_of_equal_length_and_of_none(by, size):
    # Equal diagonals of the Gram matrix: a rotation by 45 degrees, whatever the scale.
    table = np.array([[3.0, 1.0], [1.0, 3.0]]) * size
    norm, squared = PROJECTIONS[by](table, 0, 2, 2.0 * size)  # of singular values 4 and 2
    np.testing.assert_allclose(table, np.ones((2, 2)) * size, rtol=1e-12)
    assert norm == 2.0 * size and squared == pytest.approx(4.0 * size * size, rel=1e-12)
    table = np.zeros((3, 2))
    assert PROJECTIONS[by](table, 0, 2, size) == (0.0, 0.0) and not table.any()
    table = np.array([[3.0], [4.0]]) * size
    assert PROJECTIONS[by](table, 0, 1, 2.5 * size)[0] == 2.5 * size
    np.testing.assert_allclose(table, np.array([[1.5], [2.0]]) * size, rtol=1e-12)


@pytest.mark.parametrize("classes", [1, 2, FEW_CLASSES, FEW_CLASSES + 1])
def test_experts_use_either_projection(classes, monkeypatch):
    calls = []
    plain = classifier.project_columns
    monkeypatch.setattr(
        classifier, "project_columns", lambda *given: calls.append(1) or plain(*given)
    )
    experts = experts_of(RADII, classes, 5, "random")
    rng = np.random.default_rng(0)
    for name in ("points", "noisy"):
        getattr(experts, name)[:] = 9.0 * rng.normal(size=getattr(experts, name).shape)
    experts.norms[:, : sum(experts.numbers[:2])] = np.inf
    before = np.hstack(experts.tables[:2]).reshape(5, -1, classes)
    experts.project()
    after = np.hstack(experts.tables[:2]).reshape(5, -1, classes)
    assert bool(calls) == (classes > FEW_CLASSES)
    for i, radius in enumerate(experts._radii[: after.shape[1]]):
        expected = projected(before[:, i], radius)
        np.testing.assert_allclose(after[:, i], expected, atol=1e-5)
        assert experts.norms[0, i] == pytest.approx(trace_norm(expected), rel=1e-6)
        assert experts.norms[1, i] == pytest.approx((expected**2).sum(), rel=1e-6)
    assert not experts.norms[:, after.shape[1] :].any()  # the other views hold nothing


# --- experts ---------------------------------------------------------------------------------


def test_a_step_is_down_the_gradient():
    rng = np.random.default_rng(0)
    experts = experts_of((1e6,), 3, 5)
    start = rng.normal(size=experts.points.shape)
    experts.points[:] = start
    experts.norms[:] = 1.0
    before = matrices(experts).copy()
    z, label, part = rows_of_norm(rng, 1, 5), np.array([2]), 0.7
    learn(experts, z, label, np.array([part]))
    for i, length in enumerate(experts.lengths):
        eta = 1e6 / np.sqrt(2.0 * length)
        step = (before[i] - matrices(experts)[i]) / (eta * part)
        exact = MulticlassLogistic(z, label, 3).gradient(before[i])
        np.testing.assert_allclose(step, exact, atol=1e-9)


@pytest.mark.parametrize("classes", [3, 20])
def test_norms_are_followed_and_kept_within_the_slack(classes):
    rng = np.random.default_rng(1)
    experts = experts_of(RADII, classes, 6)
    rule, reached = rng.normal(size=(6, classes)), 0
    for _ in range(40):
        z = rows_of_norm(rng, BLOCK, 6, norm=2.0)
        learn(experts, z, (z @ rule).argmax(axis=1))
        norms = np.array([trace_norm(matrix) for matrix in matrices(experts)])
        radii = np.resize(RADII, norms.size)
        assert (norms <= experts.norms[0] * (1 + 1e-9) + 1e-12).all()
        assert (experts.norms[0] <= (1.0 + SLACK) * radii).all()
        squares = (matrices(experts) ** 2).sum(axis=(1, 2))
        np.testing.assert_allclose(experts.norms[1], squares, rtol=1e-9, atol=1e-12)
        reached += (norms > 0.99 * radii).sum()
    assert reached > 50


def play(experts, Z, y):
    """Learn row by row; return the losses of the mixture and of every expert."""
    mixture, own = [], []
    for k in range(len(y)):
        scores = matrices(experts) @ Z[k]
        losses = scipy.special.logsumexp(scores, axis=1) - scores[:, y[k]]
        p = np.zeros((1, 3))
        experts._follow(seen_as(Z[k : k + 1]), np.zeros(0, np.int64), np.zeros(0), 0, p)
        p = p[0]
        assert p.sum() == pytest.approx(1.0)
        np.testing.assert_allclose(p[y[k]], experts.weights @ np.exp(-losses), rtol=1e-9)
        mixture.append(-np.log(p[y[k]]))
        own.append(losses)
        learn(experts, Z[k : k + 1], y[k : k + 1])
    return np.array(mixture), own


def drifting(rows, rng):
    Z = rows_of_norm(rng, rows, 4, norm=2.0)
    rule = rng.normal(size=(4, 3)) * 3.0
    scores = Z @ rule
    scores[rows // 3 : 2 * rows // 3] *= -1.0
    return Z, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)


@pytest.fixture(scope="module")
def drifted():
    Z, y = drifting(1024, np.random.default_rng(3))
    return Z, y, *play(experts_of(RADII, 3, 4), Z, y)


def test_the_mixture_loses_little_to_any_expert_on_any_interval(drifted):
    _, y, mixture, own = drifted
    table = np.array([losses[: len(own[0])] for losses in own])
    for start in range(0, len(y), 37):
        ahead = (mixture[start:, None] - table[start:]).cumsum(axis=0)
        ends = np.arange(start + 1, len(y) + 1)
        assert (ahead <= np.log(len(own[-1]) * ends)[:, None] + 0.01).all()


def test_on_intervals_of_the_cover_the_loss_is_near_that_of_the_best_matrix(drifted):
    (Z, y, mixture, own), G = drifted, 2.0 * np.sqrt(2.0)
    for radius in RADII:
        ball = TraceNormBall((3, 4), radius)
        for length in (16, 64, 256):
            for start in range(length, len(y) - length + 1, length):
                piece = slice(start, start + length)
                loss = MulticlassLogistic(Z[piece], y[piece], 3)
                best = np.zeros((3, 4))
                for k in range(60):  # Frank-Wolfe: near the best is enough
                    best += (ball.lmo(loss.gradient(best)) - best) * 2.0 / (k + 2.0)
                allowed = 1.3 * G * 2.0 * radius * np.sqrt(length)
                allowed += np.log(len(own[-1]) * (start + length)) + 0.01
                assert mixture[piece].sum() <= length * loss.value(best) + allowed


def test_experts_restart_at_the_heaviest_of_their_radius_when_intervals_end():
    rng = np.random.default_rng(4)
    experts = experts_of(RADII, 2, 3)
    for b in range(1, 40):
        Z = rows_of_norm(rng, BLOCK, 3)
        learn(experts, Z, Z[:, 0] > 0)
        levels = experts.weights.reshape(-1, 2)
        tied = levels >= levels.max(axis=0) * (1.0 - 1e-9)
        heaviest = [int(np.flatnonzero(tied[:, r])[-1]) for r in range(2)]  # the longest of them
        stacked = matrices(experts).reshape(-1, 2, 2, 3)
        for level, rounds in enumerate((1, 4, 16)):
            for r in range(2):
                same = np.array_equal(stacked[level, r], stacked[heaviest[r], r])
                assert same == (b % rounds == 0 or level == heaviest[r])


def test_longer_intervals_join_in_time(monkeypatch):
    monkeypatch.setattr(classifier, "FIRST_LEVELS", 1)
    experts = experts_of(RADII, 2, 3)
    rng = np.random.default_rng(0)
    lengths = {}
    for _ in range(80):
        learn(experts, rows_of_norm(rng, BLOCK, 3), rng.integers(0, 2, BLOCK))
        lengths[experts.t] = experts.lengths.max()
        assert experts.weights.sum() == pytest.approx(1.0)
        assert experts.points.shape[1] == 2 * experts.weights.size == experts.norms.size
    assert [lengths[t] for t in (16, 64, 240, 256, 1024)] == [64, 256, 256, 1024, 4096]


# --- views -----------------------------------------------------------------------------------


def xor(rows, seed=0, features=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features))
    return X, (X[:, 0] * X[:, 1] > 0).astype(np.int64)


def test_who_doubts_labels_takes_the_step_of_its_own_loss():
    rng = np.random.default_rng(0)
    experts = experts_of((1e6,), 3, 5, "random")
    experts.noisy[:] = rng.normal(size=experts.noisy.shape)
    experts.norms[:] = 1.0
    before = experts.noisy.copy().reshape(5, -1, 3)
    z = rows_of_norm(rng, 1, 5)
    own = slice(experts.plain, experts.plain + len(LENGTHS) + len(WINDOWS))
    inner = experts.weights[own].copy()
    learn(experts, z, [2])
    likely = []
    for i, length in enumerate((*LENGTHS, *WINDOWS)):

        def loss(flat):
            scores = z[0] @ flat.reshape(5, 3)
            return -np.log(0.9 * scipy.special.softmax(scores)[2] + 0.1 / 3.0)

        numeric = scipy.optimize.approx_fprime(before[:, i].ravel(), loss, 1e-7).reshape(5, 3)
        step = before[:, i] - experts.noisy.reshape(5, -1, 3)[:, i]
        if i < len(LENGTHS):
            np.testing.assert_allclose(step / (1e6 / np.sqrt(2.0 * length)), numeric, atol=1e-6)
        else:
            assert not step.any()  # a mean
        likely.append(np.exp(-loss(before[:, i].ravel())))
    expected = inner * likely / (inner @ likely)
    np.testing.assert_allclose(experts.weights[own], 0.5 * expected + 0.5 / inner.size, rtol=1e-6)


def test_means_are_those_of_the_points_every_16_rows_and_later_every_64():
    X, y = xor(64 * BLOCK)
    experts, number = ClassLearner(2, 4), len(LENGTHS) * 2
    model = experts
    means, first = np.zeros((2, 5, 2)), experts.plain
    for k in range(0, len(y), BLOCK):
        # Up to the last row of a round: then the means are moved, and experts restarted.
        model.learn(*labelled(X[k : k + BLOCK - 1], y[k : k + BLOCK - 1]))
        last = labelled(X[k + BLOCK - 1 :][:1], y[k + BLOCK - 1 :][:1])
        copied = pickle.loads(pickle.dumps(model))
        copied._end_round = lambda: None  # nothing moves in this copy
        copied.learn(*last)
        weights = copied.weights[first : first + number]
        points = copied.noisy.reshape(5, -1, 2)[:, :number]
        mean = np.einsum("jic,i->jc", points, weights / weights.sum())
        awake, t = experts.rests[1] == 0, k + BLOCK
        gap = 64 if t >= 512 and experts.last_rests[1] == 0 else BLOCK
        model.learn(*last)
        for i, window in enumerate(WINDOWS):
            means[i] += awake * (t % gap == 0) * gap / min(window, t) * (mean - means[i])
            found = experts.noisy.reshape(5, -1, 2)[:, number + i]
            np.testing.assert_allclose(found, means[i], atol=1e-9)
            norm = np.linalg.svd(found, compute_uv=False).sum()
            assert norm <= experts.norms[0, first + number + i] * (1.0 + 1e-9)
    assert np.abs(means).max() > 0.05


def test_random_features_are_those_described():
    X, y = xor(300)
    learner = ClassLearner(2, 4)
    learner.learn(*labelled(X[:299], y[:299]))
    random, last = learner.random, X[299:]
    counts, total = random.counts.copy(), random.totals[0]
    z, waves, ferns, found = seen(learner, as_rows(last), np.zeros(0))
    angles = (random.slopes * z[random.inputs]).sum(axis=1) + random.offsets
    inner = mapped(random.waves, np.cos(angles)[None])[0]
    both = inner.size + z.size
    expected = np.concatenate((inner * np.sqrt(inner.size), z * np.sqrt(z.size)))
    np.testing.assert_allclose(waves, expected / np.sqrt(both), rtol=1e-9)
    bits = last[0][random.tests] > random.cuts
    leaves = bits @ 2 ** np.arange(4, -1, -1) + 32 * np.arange(len(bits))
    np.testing.assert_array_equal(found, leaves)
    values = ((counts[leaves] + 1.0) / (total + 1.0)) ** -0.25
    usual = np.sqrt(random.totals[1] / total)
    length = max(usual, np.linalg.norm(values) / 2.0)
    np.testing.assert_allclose(ferns, values / length, rtol=1e-9)
    # Cuts are means plus so many deviations of the first rows.
    means, deviations = (
        part[random.tests] for part in (X[:START].mean(axis=0), X[:START].std(axis=0))
    )
    ahead = (random.cuts - means) / deviations
    assert abs(ahead.mean()) < 0.15 and abs(ahead.std() - 1.0) < 0.1


def test_a_row_with_gaps_is_in_all_leaves_where_it_could_be_by_their_frequencies():
    X, y = xor(300)
    learner = ClassLearner(2, 4)
    learner.learn(*labelled(X[:299], y[:299]))
    random, gaps = learner.random, [0, 3]
    counts, total = random.counts.copy(), random.totals[0]
    row = SparseRows(np.array([0, 4]), np.array([-2, 1, 2, -5]), X[299])
    *_, ferns, found = seen(learner, row, np.zeros(0))
    expected, values, silent = [], [], 0
    for f, (tests, cuts) in enumerate(zip(random.tests, random.cuts, strict=True)):
        ways = [
            (0, 1) if j in gaps else (int(X[299, j] > cut),)
            for j, cut in zip(tests, cuts, strict=True)
        ]
        leaves = [32 * f + int("".join(map(str, bits)), 2) for bits in product(*ways)]
        if len(leaves) > 4:
            silent += 1
            continue
        chances = (counts[leaves] + 0.1) / (counts[leaves] + 0.1).sum()
        expected += leaves
        values += (chances * ((counts[leaves] + 1.0) / (total + 1.0)) ** -0.25).tolist()
    assert silent > 10 and len(expected) > 128
    order = found[: len(expected)].argsort()
    np.testing.assert_array_equal(found[order], expected)
    length = max(np.sqrt(random.totals[1] / total), np.linalg.norm(values) / 2.0)
    np.testing.assert_allclose(ferns[order], np.array(values) / length, rtol=1e-9)
    # Learned with weight 1, it counts as one row for each fern that says something.
    seen(learner, row, np.ones(1))
    np.testing.assert_allclose(random.counts.sum() - counts.sum(), 128 - silent)


def views_losses(learner, X, y):
    """Log losses of the mixture and of each view's own mixture, row by row; None while it rests."""
    mixture, own = [], []
    for k in range(len(y)):
        rows, experts = as_rows(X[k : k + 1]), learner
        mixture.append(-np.log(learner.predict(rows)[0, y[k]]))
        rests, told = experts.rests.copy(), np.full(4, np.nan)
        for v in np.flatnonzero(rests == 0):
            experts.rests[:] = 1
            experts.rests[v] = 0
            told[v] = -np.log(learner.predict(rows)[0, y[k]])
        experts.rests[:] = rests
        own.append(told)
        learner.learn(*labelled(X[k : k + 1], y[k : k + 1]))
    return np.array(mixture), np.array(own)


@pytest.mark.parametrize("linear", [False, True])
def test_the_mixture_loses_little_to_any_view_on_rows_on_which_it_is_awake(linear):
    X, y = xor(1500)
    y = (X[:, 0] + 0.3 * X[:, 1] > 0).astype(np.int64) if linear else y
    y[700:] = 1 - y[700:]
    mixture, own = views_losses(ClassLearner(2, 4), X, y)
    assert np.isfinite(own[:, 0]).all()  # the first never rests
    assert np.isnan(own).any(axis=0)[2:].all() or not linear
    ahead = np.nan_to_num(mixture[:, None] - own)
    for start in range(0, 1500, 53):
        ends = np.arange(start + 1, 1501)
        assert (ahead[start:].cumsum(axis=0) <= np.log(4.0 * ends)[:, None] + 1e-6).all()


def test_a_view_without_weight_rests_and_returns_when_it_is_needed():
    X, y = xor(9000, features=8)
    y[:6000] = X[:6000].sum(axis=1) > 0.0
    y[:6000:20] = 1 - y[:6000:20]  # wrong labels
    learner, awake = ClassLearner(2, 8), []
    for k in range(0, 9000, BLOCK):
        own = slice(k, min(k + BLOCK, 9000))
        awake.append(learner.rests == 0)
        weights = learner.view_weights.copy()
        learner.learn(*labelled(X[own], y[own]))
        assert learner.view_weights.sum() == pytest.approx(1.0)
        if not awake[-1].all() and k > 1000:  # who rests keeps its weight, but for the shares
            kept = np.flatnonzero(~awake[-1])
            assert (np.abs(learner.view_weights - weights)[kept] < 2.0 * BLOCK / k).all()
    awake = np.array(awake)
    assert awake[:, 0].all()
    assert awake[300:375, 2:].mean() < 0.7  # at the end of 6,000 rows that are linear
    assert awake[-60:, 2:].any(axis=1).all()  # of 3,000 that are not
    assert (learner.predict(as_rows(X[-200:])).argmax(axis=1) == y[-200:]).mean() > 0.8


def test_many_features_and_linear_ones_have_no_random_features():
    for kind, features in (("linear", 4), ("random", FULL_FEATURES + 1)):
        X, y = xor(200, features=features)
        learner = ClassLearner(2, features, kind)
        learner.learn(*labelled(X, y))
        assert not learner.random.offsets.size and learner.rests[2] != 0
    X, y = xor(200)
    learner = ClassLearner(2, 4)
    learner.learn(*labelled(X, y))
    assert learner.random.offsets.size
    learner.grow(2, FULL_FEATURES + 1)
    assert not learner.random.offsets.size and (learner.rests[2:] != 0).all()


# --- features --------------------------------------------------------------------------------


def test_the_map_is_the_one_described():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 4)) @ rng.normal(size=(4, 4)) + 5.0
    parts = rng.uniform(0.2, 1.0, 200)
    made = FeatureMap(4)
    mapped(made, X, parts)
    made.renew()
    mean = np.average(X, axis=0, weights=parts)
    covariance = np.cov(X.T, aweights=parts, ddof=0)
    scales = np.sqrt(covariance.diagonal())
    correlations = covariance / np.outer(scales, scales)
    inner = correlations + 30.0 / parts.sum() * np.eye(4)
    expected = scipy.linalg.fractional_matrix_power(inner, -0.375) / scales
    np.testing.assert_allclose(made.table.T, expected, rtol=1e-9)
    np.testing.assert_allclose(made.centre, mean, rtol=1e-12)
    row = X[3] * 1.01
    plain = np.concatenate(([1.0], expected @ (row - mean)))
    length = np.sqrt(made.totals[1] / made.totals[0])
    z = mapped(made, row[None])[0]
    np.testing.assert_allclose(z, plain / max(length, np.linalg.norm(plain) / 2.0), rtol=1e-9)


@pytest.mark.parametrize("features", [3, 300])
def test_no_row_is_longer_than_two_whatever_comes(features):
    rng = np.random.default_rng(6)
    made = FeatureMap(features)
    for _ in range(30):
        X = rng.normal(size=(4, features)) * 10.0 ** rng.integers(-9, 9, (4, 1))
        found = mapped(made, X, np.ones(4))
        for row in found if features == 3 else np.split(found.values, found.starts[1:-1]):
            assert np.linalg.norm(row) <= 2.0 + 1e-12
        made.renew()


@pytest.mark.parametrize("rare", [False, True])
def test_a_feature_that_comes_late_or_rarely_has_its_scale_at_once(rare):
    learner = ClassLearner(2, 3)
    rng = np.random.default_rng(7)
    X = rng.normal(size=(2000, 3))
    X[:, 2] = 0.0
    learner.learn(*labelled(X, X[:, 0] > 0))
    assert learner.map.table[2, 2] == 0.0
    late = rng.normal(size=(BLOCK, 3))
    late[:, 2] = rng.normal(size=BLOCK) * 1e4
    if rare:
        late[1:, 2] = 0.0
    learner.learn(*labelled(late, late[:, 0] > 0))
    scale = np.abs(late[0, 2]) if rare else late[:, 2].std()
    assert 0.3 < learner.map.table[2, 2] * scale < 3.0


# --- both together ---------------------------------------------------------------------------


@pytest.mark.parametrize("features", [4, 300])
@pytest.mark.filterwarnings("ignore:.*smaller than 1e-100 in size count as 0")
def test_one_row_and_many_are_the_same_bit_by_bit(features):
    rng = np.random.default_rng(1)
    X, y = turning(rows=150, features=features)
    X[rng.random(X.shape) < 0.3] = 0.0
    X[::7, 1] = SMALLEST / 2.0  # counts as 0
    whole, single = (ClassLearner(3, features) for _ in range(2))

    def entries(row):
        """The entries in any order, some twenty of unknown places among them."""
        places, values = np.append(np.arange(features), np.full(20, -1)), np.append(row, X[:5, :4])
        order = rng.permutation(places.size)
        return places[order], values[order]

    def asked(places, values):
        return single.predict(single.one_row(places, values))

    for k in range(150):
        batch = single.predict(as_rows(X[k : k + 1]))[0]
        assert asked(*entries(X[k])).tobytes() == batch.tobytes()
        if k % 10 == 0:
            before, (places, values) = state_of(single), entries(X[k])
            for wild in (2.0 * LARGEST, -np.inf, np.nan):
                for e in (0, places.size // 2, int(places.argmax())):  # also of unknown places
                    bad = values.copy()
                    bad[e] = wild
                    assert not single.learn(single.one_row(places, bad), np.array([1]), ONE)
                    assert not asked(places, bad).size
            assert state_of(single) == before
        assert single.learn(single.one_row(*entries(X[k])), y[k : k + 1], ONE)
    whole.learn(*labelled(X, y))
    assert state_of(single) == state_of(whole)
    # Rows of very different lengths.
    more = np.tile(X, (5, 1)) * (rng.random((750, features)) < rng.random((750, 1)) ** 3)
    more[3], more[700] = 1.0, 0.0
    told = whole.predict(as_rows(more))
    assert told.tobytes() == np.vstack([asked(*entries(row)) for row in more]).tobytes()
    assert whole.predict(as_rows(more[:0])).shape == (0, 3)


@pytest.mark.filterwarnings("ignore:.*smaller than 1e-100 in size count as 0")
def test_a_full_map_has_a_place_for_every_feature_and_a_sparse_one_for_what_is_there():
    X = np.array([[0.0, 2.0, SMALLEST / 2.0], [0.0, 0.0, 0.0], [1.0, 3.0, 5.0]])
    few, many = FeatureMap(3), FeatureMap(FULL_FEATURES + 1)
    assert mapped(few, X, np.ones(3)).shape == (3, 4)
    starts, places, z = mapped(many, np.pad(X, ((0, 0), (0, FULL_FEATURES - 2))), np.ones(3))
    assert starts.tolist() == [0, 2, 3, 7] and places[:7].tolist() == [0, 2, 0, 0, 1, 2, 3]
    assert (z[:7] != 0.0).all()
    # Too small or of unknown places; the same row without them.
    rows = SparseRows(np.array([0, 4]), np.array([-1, 0, 1, 2]), np.array([7.0, 0.0, 2.0, 1e-101]))
    starts, places, z = many.rows(rows, np.zeros(0))
    assert starts.tolist() == [0, 2] and places[:2].tolist() == [0, 2]
    assert z[:2].tobytes() == mapped(many, np.eye(1, 257, 1) * 2.0).values.tobytes()
    assert (shared_kernels.SMALLEST, shared_kernels.LARGEST) == (SMALLEST, LARGEST)


def test_the_map_for_many_features_takes_over(monkeypatch):
    X, y = turning(rows=400, features=6)
    monkeypatch.setattr(ClassLearner, "RADII", (1e3,))
    learner = ClassLearner(3, 6)
    learner.learn(*labelled(X, y))
    weights, intercepts = learner.coefficients()
    learner.grow(3, FULL_FEATURES + 1)
    assert not learner.map.full
    after, also = learner.coefficients()
    np.testing.assert_allclose(after[:, :6], weights, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(also, intercepts, rtol=1e-8, atol=1e-10)
    wide = np.pad(X, ((0, 0), (0, FULL_FEATURES - 5)))
    learner.learn(*labelled(wide, y))
    assert np.isfinite(learner.predict(as_rows(wide))).all()
    monkeypatch.setattr(ClassLearner, "RADII", (0.5, 3.0))
    learner = ClassLearner(3, 6)
    learner.learn(*labelled(X * [1e3, 1.0, 1.0, 1.0, 1.0, 1e-3] + 4.0, y))
    learner.grow(3, FULL_FEATURES + 1)
    experts, first = learner, 0
    for table, size in zip(experts.tables[:2], experts.numbers[:2], strict=True):
        for matrix in table.reshape(len(table), size, 3).transpose(1, 0, 2):
            norm = trace_norm(matrix)
            assert norm <= experts._radii[first] * (1.0 + 1e-6)
            assert experts.norms[0, first] == pytest.approx(norm, rel=1e-6)
            assert experts.norms[1, first] == pytest.approx((matrix**2).sum(), rel=1e-6)
            first += 1
    assert not experts.norms[:, first:].any()


@pytest.mark.parametrize("features", [5, 300])
def test_coefficients_are_those_of_the_probabilities(features):
    X, y = turning(rows=200, features=features)
    learner = ClassLearner(3, features)
    learner.learn(*labelled(X, y))
    learner.weights[:] = 0.0
    learner.weights[3] = 1.0  # of one expert they are exact
    weights, intercepts = learner.coefficients()
    X = X.mean(axis=0) + 0.1 * (X - X.mean(axis=0))  # none so long that it is shortened
    expected = scipy.special.softmax(X @ weights.T + intercepts, axis=1)
    np.testing.assert_allclose(learner.predict(as_rows(X)), expected, rtol=1e-8)


def test_a_map_for_many_features_goes_on_from_what_one_for_few_has_counted():
    rng = np.random.default_rng(0)
    X = 5.0 + rng.standard_normal((40, 3))  # far from 0, so that the mean counts
    X[rng.random(X.shape) < 0.4] = 0.0
    weights = rng.uniform(0.5, 2.0, 40)
    few = FeatureMap(3)
    mapped(few, X, weights)
    many = few.diagonal()
    assert not many.full and many.features == 3
    np.testing.assert_allclose(many.squares, weights @ X**2)
    np.testing.assert_allclose(many.seen, weights @ (X != 0.0))
    # Squared norms of (1, x / scale): every entry that is not 0 counts 1 in the mean.
    lengths = weights.sum() + (weights @ (X != 0.0)).sum()
    np.testing.assert_allclose(many.totals, [weights.sum(), lengths])
    # The same weights of features, on either side of the map.
    weights_of_features, intercepts = rng.standard_normal((3, 2)), np.zeros(2)
    inner = many.from_features(weights_of_features, intercepts)
    back, _ = many.to_features(inner)
    np.testing.assert_allclose(back, weights_of_features)
    _, places, entries = mapped(many, X[:1])
    scales = np.sqrt((weights @ X**2) / (weights @ (X != 0.0)))
    own = np.linalg.norm(np.append(1.0, X[0] / scales))
    length = max(np.sqrt(lengths / weights.sum()), own / 2)
    expected = np.append(1.0, (X[0] / scales)[X[0] != 0.0]) / length
    np.testing.assert_allclose(entries, expected)
    assert places.tolist() == [0, *(1 + np.flatnonzero(X[0]))]


def test_one_wild_row_does_not_make_all_others_small():
    # Four rows of squared length 2 so far; a fifth counts for at most nine times their mean.
    for squared, counted in ((1.0, 1.0), (17.0, 17.0), (18.5, 18.0), (1e9, 18.0)):
        totals = np.array([5.0, 8.0])
        length = shared_kernels.divisor.py_func(totals, squared, 1.0)
        assert totals.tolist() == [5.0, 8.0 + counted]
        # No row is longer than 2 in units of the root mean square.
        expected = max(np.sqrt((8.0 + counted) / 5.0), np.sqrt(squared) / 2.0)
        assert length == pytest.approx(expected)
    totals = np.array([0.5, 0.0])
    # The first of all counts as it is.
    assert shared_kernels.divisor.py_func(totals, 1e9, 0.5) == pytest.approx(np.sqrt(1e9))
    assert totals.tolist() == [0.5, 0.5e9]
    # Looked at, not counted.
    assert shared_kernels.divisor.py_func(totals, 4.0, 0.0) == pytest.approx(np.sqrt(1e9))
    assert totals.tolist() == [0.5, 0.5e9]


def test_random_views_start_awake_and_long_streams_are_read_again(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4200, 3))
    y = (X[:, 0] > 0.0).astype(int)
    model = TraceNormClassifier().partial_fit(X[:33], y[:33], classes=[0, 1])
    assert not model._learner.last_rests.any()
    model.partial_fit(X[33:48], y[33:48])
    assert model._learner.random.renewal == 64  # from 32 on after 16 rounds, later a fifth of all
    model.partial_fit(X[48:], y[48:])
    model.save(tmp_path / "model")
    again = TraceNormClassifier.load(tmp_path / "model")  # with experts for a sixth length
    np.testing.assert_array_equal(again.predict_proba(X[:5]), model.predict_proba(X[:5]))
