"""The low-rank part of `MatrixCompleter`: exact projections, balls that are never left."""

import numpy as np
import pytest

from driftwolfe.estimators import MatrixCompleter, completer_tables
from driftwolfe.estimators.completer_experts import INTERACTION_STEP, ROOM
from estimators.plain_ratings import PlainPool
from estimators.rating_streams import interactions, turning


def on_ball(matrix, radius):
    """The nearest matrix of at most this trace norm: singular values less one number, by bisection."""
    left, s, right = np.linalg.svd(matrix, full_matrices=False)
    low, high = 0.0, s[0]
    while s.sum() > radius and high - low > 1e-15 * s[0]:
        middle = (low + high) / 2.0
        low, high = (middle, high) if np.maximum(s - middle, 0.0).sum() > radius else (low, middle)
    return (left * np.maximum(s - high, 0.0)) @ right if s.sum() > radius else matrix


def trace_norm(matrix):
    return float(np.linalg.svd(matrix, compute_uv=False).sum())


def weights_of(counts, weighting):
    """Of rows or columns in the weighted trace norm; half as if all were rated alike."""
    return ((counts / counts.mean() + 1.0) / 2.0) ** (weighting / 2.0)


class Watched:
    """A completer, and the steps of its low-rank experts, collected from outside."""

    def __init__(self, users, items, **settings):
        self.completer = MatrixCompleter(**settings)
        self.pool = self.completer._pool
        self.shape, self.steps, self.counts = (users, items), {}, np.zeros((users, items))
        self.plain = PlainPool(self.pool.settings.loss)

    def raw(self, user, item):
        """What each expert predicts before clipping."""
        pool, rank = self.pool, self.pool.settings.rank
        sides = [(grown.tables, key) for grown, key in zip(pool.sides, (user, item), strict=True)]
        raw = pool.slots.means.copy()
        # The loops need each number at least once; so numbers are in order of appearance.
        known = [
            (side.touched[key] >= pool.slots.starts) if key < grown.size else np.False_
            for (side, key), grown in zip(sides, pool.sides, strict=True)
        ]
        for (side, key), there in zip(sides, known, strict=True):
            if np.any(there):
                raw += there * side.biases[key]
        for e in np.flatnonzero(pool.slots.low >= 0):
            if np.any(known[0]) and known[0][e] and item < pool.items.size:
                part = slice(pool.slots.low[e] * rank, (pool.slots.low[e] + 1) * rank)
                raw[e] += sides[0][0].rows[user, part] @ sides[1][0].rows[item, part]
        return raw

    def learn(self, user, item, rating):
        """One rating; users and items are numbered in order of appearance."""
        raw = self.raw(user, item)
        if self.pool.t == 0:
            raw[:] = rating
        experts = np.flatnonzero(self.pool.slots.low >= 0)
        self.completer.partial_fit([(user, item)], [rating])
        self.counts[user, item] += 1
        unit = 1.33 * self.pool.scale.numbers[0]
        for e in experts.tolist():
            k = int(self.pool.slots.low[e])
            slope = self.plain.slope((raw[e] - rating) / unit) if unit > 0 else 0.0
            collected = self.steps.setdefault(k, np.zeros(self.shape))
            collected[user, item] -= INTERACTION_STEP * unit * slope
            if self.pool.slots.starts[e] == self.pool.t:
                collected[:] = 0.0

    def projected(self, k):
        """What the projection of all steps of an expert would be now."""
        e = int(np.flatnonzero(self.pool.slots.low == k)[0])
        users, items = (np.count_nonzero(self.counts.sum(axis=axis)) for axis in (1, 0))
        counts = self.counts[:users, :items]
        rows, cols = (
            weights_of(counts.sum(axis=axis), self.pool.settings.weighting) for axis in (1, 0)
        )
        radius = self.pool.experts[e].radius * self.pool.scale.numbers[0] * np.sqrt(users * items)
        weighted = self.steps[k][:users, :items] / (rows[:, None] * cols)
        return on_ball(weighted, (1.0 - ROOM) * radius), radius


def numbered(pairs):
    """Users and items by their order of appearance."""
    users, items = {}, {}
    return [(users.setdefault(u, len(users)), items.setdefault(i, len(items))) for u, i in pairs]


SHAPES = [(9, 6), (6, 9), (25, 4), (3, 30)]
SETTINGS = [
    (100_000, "huber", 0.75),
    (256, "absolute", 1.0),
    (64, "squared", 0.0),
    (100, "huber", 0.5),
]


@pytest.mark.parametrize(
    ("shape", "memory", "loss", "weighting"),
    [
        pytest.param(shape, *settings, marks=() if number == other else pytest.mark.slow)
        for number, settings in enumerate(SETTINGS)
        for other, shape in enumerate(SHAPES)
    ],
)
def test_with_enough_rank_projections_are_exact(shape, memory, loss, weighting):
    """Also after steps have been folded, as the rank holds all of them."""
    settings = {"memory": memory, "loss": loss, "weighting": weighting, "rank": min(shape)}
    watched = Watched(*shape, radii=(0.05, 0.5, 40.0), learner="pold", **settings)
    pairs, ratings = turning(2100 if memory > 1000 else 600, *shape, new=20)
    seen = 0
    for pair, rating in zip(numbered(pairs), ratings.tolist(), strict=True):
        due = watched.pool.next_projection
        watched.learn(*pair, rating)
        if watched.pool.t == due:
            seen += 1
            for k in range(watched.pool.low.radii.size):
                expected, radius = watched.projected(k)
                found = interactions(watched.completer, k)
                assert found == pytest.approx(expected, abs=1e-7 * np.abs(watched.steps[k]).max())
                assert watched.pool.low.radii[k] == pytest.approx(radius)
    assert seen >= 2
    assert bool(watched.pool.older) == (memory < 1000)


@pytest.mark.parametrize("memory", [1024, 1000])  # a projection when experts restart, or later
def test_restarted_experts_forget_their_steps(memory, monkeypatch):
    monkeypatch.setattr(
        completer_tables, "FIRST_LOW_RANK_LEVEL", 10
    )  # so that little is remembered
    watched = Watched(8, 6, memory=memory, rank=6, radii=(20.0,), learner="both")
    pairs, ratings = turning(8900, 8, 6)
    # After the restart at 8,192 one item only: of the directions of before nothing may be left.
    pairs = [pair if n < 8192 else (pair[0], 0) for n, pair in enumerate(numbered(pairs))]
    compared = 0
    for pair, rating in zip(pairs, ratings.tolist(), strict=True):
        due = watched.pool.next_projection
        watched.learn(*pair, rating)
        if watched.pool.t == due and watched.pool.t > 4096:
            for k in (2, 3):  # restarted every 1,024 and every 2,048
                if k in watched.steps:
                    found, (expected, _) = interactions(watched.completer, k), watched.projected(k)
                    tolerance = 1e-7 * max(np.abs(watched.steps[k]).max(), 1.0)
                    assert found == pytest.approx(expected, abs=tolerance)
                    compared += np.abs(expected).max() > 0
    assert compared >= 10


@pytest.mark.parametrize(
    ("learner", "loss"),
    [
        ("pold", "absolute"),
        ("both", "huber"),
        ("pold", "squared"),
        pytest.param("both", "absolute", marks=pytest.mark.slow),
        pytest.param("pold", "huber", marks=pytest.mark.slow),
        pytest.param("both", "squared", marks=pytest.mark.slow),
    ],
)
def test_no_interaction_ever_leaves_its_ball(loss, learner, monkeypatch):
    """Radii so small that every step pushes against them; the bound is never below the norm."""
    monkeypatch.setattr(completer_tables, "FIRST_LOW_RANK_LEVEL", 8)
    # Experts restart at 8,192, in the middle of a block: what users had before is no longer theirs.
    memory, start, count = (500, 8180, 8400) if learner == "both" else (80, 1, 700)
    completer = MatrixCompleter(
        loss=loss, learner=learner, radii=(1e-3, 0.05, 0.3), rank=3, memory=memory
    )
    pairs, ratings = turning(count, 14, 11, new=30)
    completer.partial_fit(pairs[:start], ratings[:start])
    moved = 0
    for pair, rating in zip(pairs[start:], ratings[start:], strict=True):
        before = completer._pool.low.norms.copy()
        completer.partial_fit([pair], [rating])
        low = completer._pool.low
        for k in range(low.radii.size):
            norm = trace_norm(interactions(completer, k))
            assert norm <= low.norms[k] + 1e-9 * low.radii[k]
            assert norm <= low.radii[k] * (1.0 + 1e-9)
        if before.shape == low.norms.shape:
            moved += bool((before != low.norms).any())
    assert moved > 0


def test_the_bound_that_is_kept_up_to_date_is_what_it_says_also_after_restarts(monkeypatch):
    """Half the sum of |p_k|^2/d_k + d_k, over what users have learned since the expert's start."""
    monkeypatch.setattr(completer_tables, "FIRST_LOW_RANK_LEVEL", 8)
    completer = MatrixCompleter(radii=(0.3,), rank=3, memory=500)
    pool, restarts = completer._pool, 0
    pairs, ratings = turning(1100, 14, 11, new=30)
    completer.partial_fit(pairs[:500], ratings[:500])
    for pair, rating in zip(pairs[500:], ratings[500:], strict=True):
        completer.partial_fit([pair], [rating])
        side, size = pool.users.tables, pool.users.size
        for e in np.flatnonzero(pool.slots.low >= 0):
            k, start = int(pool.slots.low[e]), pool.slots.starts[e]
            factors = side.rows[:size, 3 * k : 3 * k + 3] * side.metric[:size, None]
            factors = factors * (side.touched[:size] >= start)[:, None]
            spreads = pool.low.spreads[k]
            expected = 0.5 * ((factors**2).sum(axis=0) / spreads + spreads).sum()
            assert pool.low.norms[k] == pytest.approx(expected, rel=1e-9)
            restarts += start == pool.t and pool.experts[e].level >= 0
    assert restarts >= 3


@pytest.mark.parametrize("weighting", [0.0, 1.0])
def test_within_a_block_rows_step_inside_the_space_of_the_projection(weighting):
    watched = Watched(10, 8, memory=256, rank=3, radii=(5.0,), learner="pold", weighting=weighting)
    pool, moves, refusals = watched.pool, 0, 0
    pairs, ratings = turning(700, 10, 8)
    for (user, item), rating in zip(numbered(pairs), ratings.tolist(), strict=True):
        before = interactions(watched.completer, 0)
        known = user < pool.users.size and item < pool.items.size
        projects = pool.t + 1 == pool.next_projection
        collected = watched.steps.get(0, np.zeros(watched.shape)).copy()
        watched.learn(user, item, rating)
        if not known or projects:
            continue
        step = (watched.steps[0] - collected)[user, item]
        metrics = [grown.tables.metric[: grown.size] for grown in pool.sides]
        space = pool.items.tables.rows[: pool.items.size, :3] * metrics[1][:, None]
        expected = before.copy()
        expected[user] += step / (metrics[0][user] * metrics[1][item]) * (space @ space[item])
        after = interactions(watched.completer, 0)
        if np.array_equal(after, before):
            refusals += 1
        else:
            moves += 1
            assert after == pytest.approx(expected, abs=1e-9)
    assert moves > 100 and refusals > 10


@pytest.mark.parametrize("settings", [{}, {"weighting": 0.0}, {"weighting": 1.0, "rank": 9}])
def test_the_decision_lies_in_its_domain(settings):
    completer = MatrixCompleter(memory=64, radii=(0.02, 0.2), **settings)
    pairs, ratings = turning(250, new=20)
    ratings[100] = 9.0
    for pair, rating in zip(pairs, ratings, strict=True):
        completer.partial_fit([pair], [rating])
        if len(set(ratings[: completer.n_ratings_].tolist())) > 1:
            assert completer.domain_.contains(completer.decision_, atol=1e-8)
    mean, users, items, matrix = completer.decision_.parts
    assert mean.shape == (1,) and matrix.shape == (users.size, items.size)
    assert np.abs(matrix.toarray()).max() > 0


def test_the_decision_has_the_weights_of_users_and_items():
    completer = MatrixCompleter(memory=64, radii=(0.3,)).partial_fit(*turning(16 * 20))
    shown = completer.decision_.parts[3].toarray()
    weights, slots = completer.expert_weights_, completer._pool.slots
    parts = [weights[e] * interactions(completer, slots.low[e]) for e in range(weights.size)
             if slots.low[e] >= 0]  # fmt: skip
    assert shown == pytest.approx(sum(parts), abs=1e-12)
    counts = [grown.tables.counts[: grown.size] for grown in completer._pool.sides]
    rows, cols = (weights_of(count, 0.75) for count in counts)  # a projection was just made
    factors = completer.factors()
    assert shown == pytest.approx(factors.users @ factors.items.T * rows[:, None] * cols, abs=1e-12)


def test_factors_predict_where_nothing_is_clipped():
    completer = MatrixCompleter(memory=64).partial_fit(*turning(4300, 14, 11))
    mean, users, items, left, right = completer.factors()
    table = mean + users[:, None] + items + left @ right.T
    pairs = [(u, i) for u in completer.users_ for i in completer.items_]
    answers = completer.expert_predictions(pairs)
    inside = ((answers > 1.0) & (answers < 5.0)).all(axis=1)
    assert 20 < inside.sum() < inside.size
    assert completer.predict(pairs)[inside] == pytest.approx(table.ravel()[inside], abs=1e-12)
    assert np.abs(left @ right.T).max() > 1e-3
