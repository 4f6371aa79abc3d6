"""The low-rank part of `MatrixCompleter`: exact projections, balls that are never left."""

import numpy as np
import pytest

from driftwolfe.estimators import MatrixCompleter
from driftwolfe.estimators.completer_experts import INTERACTION_STEP, ROOM
from estimators.plain_ratings import slope
from estimators.rating_streams import answers, coming_and_going, constants, interactions, turning


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


def weights_of(counts):
    """Of rows or columns in the weighted trace norm; half as if all were rated alike."""
    return ((counts / counts.mean() + 1.0) / 2.0) ** (0.75 / 2.0)


class Watched:
    """A completer, and the steps of its low-rank experts, collected from outside."""

    def __init__(self, users, items, loss="huber"):
        self.completer, self.loss = MatrixCompleter(loss=loss), loss
        self.pool = self.completer._pool
        self.shape, self.steps, self.counts = (users, items), {}, np.zeros((users, items))

    def learn(self, user, item, rating):
        """One rating; users and items are numbered in order of appearance."""
        experts = np.flatnonzero(self.pool.slots.low >= 0)
        self.completer.partial_fit([(user, item)], [rating])
        raw = self.pool._bound.spare  # what each expert predicted, before clipping
        self.counts[user, item] += 1
        unit = 1.33 * self.pool.scale.numbers[0]
        for e in experts.tolist():
            k = int(self.pool.slots.low[e])
            collected = self.steps.setdefault(k, np.zeros(self.shape))
            if unit > 0:
                move = INTERACTION_STEP * unit * slope((raw[e] - rating) / unit, self.loss)
                collected[user, item] -= move
            if self.pool.slots.starts[e] == self.pool.t:
                collected[:] = 0.0

    def projected(self, k):
        """What the projection of all steps of an expert would be now."""
        e = int(np.flatnonzero(self.pool.slots.low == k)[0])
        users, items = (np.count_nonzero(self.counts.sum(axis=axis)) for axis in (1, 0))
        counts = self.counts[:users, :items]
        rows, cols = (weights_of(counts.sum(axis=axis)) for axis in (1, 0))
        radius = self.pool.experts[e].radius * self.pool.scale.numbers[0] * np.sqrt(users * items)
        weighted = self.steps[k][:users, :items] / (rows[:, None] * cols)
        return on_ball(weighted, (1.0 - ROOM) * radius), radius


def numbered(pairs):
    """Users and items by their order of appearance."""
    users, items = {}, {}
    return [(users.setdefault(u, len(users)), items.setdefault(i, len(items))) for u, i in pairs]


@pytest.mark.parametrize(
    ("shape", "memory", "loss"),
    [
        *(((9, 6), 100_000, "huber"), ((6, 9), 256, "absolute")),
        *(((25, 4), 64, "squared"), ((3, 30), 100, "huber")),
    ],
)
def test_with_enough_rank_projections_are_exact(shape, memory, loss, monkeypatch):
    """Also after steps have been folded, as the rank holds all of them."""
    constants(monkeypatch, MEMORY=memory, RANK=min(shape), RADII=(0.05, 20.0))
    watched = Watched(*shape, loss)
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


@pytest.mark.parametrize("memory", [128, 125])  # a projection when experts restart, or later
def test_restarted_experts_forget_their_steps(memory, monkeypatch):
    constants(monkeypatch, MEMORY=memory, RANK=6, RADII=(20.0, 20.0), FIRST_LOW_RANK_LEVEL=7)
    watched = Watched(8, 6)
    pairs, ratings = turning(1400, 8, 6)
    # After the restart at 1,024 one item only: of the directions of before nothing may be left.
    pairs = [pair if n < 1024 else (pair[0], 0) for n, pair in enumerate(numbered(pairs))]
    compared = 0
    for pair, rating in zip(pairs, ratings.tolist(), strict=True):
        due = watched.pool.next_projection
        watched.learn(*pair, rating)
        if watched.pool.t == due and watched.pool.t > 512:
            for k in (4, 5):  # restarted every 128 and every 256
                if k in watched.steps:
                    found, (expected, _) = interactions(watched.completer, k), watched.projected(k)
                    tolerance = 1e-7 * max(np.abs(watched.steps[k]).max(), 1.0)
                    assert found == pytest.approx(expected, abs=tolerance)
                    compared += np.abs(expected).max() > 0
    assert compared >= 10


@pytest.mark.parametrize("loss", ["absolute", "huber", "squared"])
def test_no_interaction_ever_leaves_its_ball(loss, monkeypatch):
    """Radii so small that every step pushes against them, and a bound on the norm that is kept up to date.

    It is half the sum of |p_k|^2/d_k + d_k, over what users have learned since the expert's start.
    """
    constants(monkeypatch, MEMORY=500, RANK=3, RADII=(1e-3, 0.05), FIRST_LOW_RANK_LEVEL=8)
    # Experts restart in the middle of a block: what users had before is no longer theirs.
    completer, start, moved, restarts = MatrixCompleter(loss=loss), 500, 0, 0
    pairs, ratings = turning(1100, 14, 11, new=30)
    completer.partial_fit(pairs[:start], ratings[:start])
    pool = completer._pool
    for pair, rating in zip(pairs[start:], ratings[start:], strict=True):
        before = pool.low.norms.copy()
        completer.partial_fit([pair], [rating])
        side, low = pool.users.known, pool.low
        for k, (e, own) in enumerate(pool.interacting()):
            norm = trace_norm(interactions(completer, k))
            assert norm <= low.norms[k] + 1e-9 * low.radii[k]
            assert norm <= low.radii[k] * (1.0 + 1e-9)
            known = side.touched >= pool.slots.starts[e]
            squares = ((side.rows[:, own] * side.metric[:, None])[known] ** 2).sum(axis=0)
            expected = 0.5 * (squares / low.spreads[k] + low.spreads[k]).sum()
            assert low.norms[k] == pytest.approx(expected, rel=1e-9)
            restarts += pool.slots.starts[e] == pool.t and pool.experts[e].level >= 0
        moved += before.shape == low.norms.shape and bool((before != low.norms).any())
    assert moved > 0 and restarts >= 3


def test_within_a_block_rows_step_inside_the_space_of_the_projection(monkeypatch):
    constants(monkeypatch, MEMORY=256, RANK=3, RADII=(5.0, 5.0))
    watched = Watched(10, 8)
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


@pytest.mark.parametrize("rest", [False, True])
def test_factors_predict_where_nothing_is_clipped(rest, monkeypatch):
    constants(monkeypatch, MEMORY=64, MOST_ROWS=5 if rest else 1000)
    pairs, ratings = coming_and_going() if rest else turning(700, 14, 11)
    completer = MatrixCompleter().partial_fit(pairs, ratings)
    mean, users, items, left, right = completer.factors()
    assert len(users) == len(left) == completer.n_users_ and len(items) == completer.n_items_
    table, pool = mean + users[:, None] + items + left @ right.T, completer._pool
    work = pool.owners()
    told, low, high = answers(completer)[:-1, :-1], *pool.scale.numbers[1:3]
    inside = ((told > low) & (told < high)).all(axis=-1)
    assert 20 < inside.sum() < inside.size
    asked = [(completer.users_[u], i) for u in work for i in completer.items_]
    predicted = completer.predict(asked).reshape(inside.shape)
    assert predicted[inside] == pytest.approx(table[work][inside], abs=1e-12)
    assert np.abs(left @ right.T).max() > 1e-3
