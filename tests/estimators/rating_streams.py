"""Streams of ratings, states, and best sequences of experts, that tests of recommenders share."""

import numpy as np

from driftwolfe.estimators import completer_experts, completer_tables
from driftwolfe.state import state_of as declared_state


def constants(patch, **values):
    """Replace constants of `MatrixCompleter`, so that little is remembered, say."""
    for name, value in values.items():
        home = completer_experts if name in ("RANK", "MOST_ROWS") else completer_tables
        patch.setattr(home, name, value)


def turning(count=600, users=12, items=9, seed=0, new=0):
    """Ratings of 1 to 5 by halves, with taste in them, turned upside down after half of them.

    Users and items appear slowly: a new one of each after every `new` ratings; 0: all from the start.
    """
    rng = np.random.default_rng(seed)
    left, right = rng.standard_normal((users, 2)), rng.standard_normal((items, 2))
    liking = 0.7 * left @ right.T + rng.standard_normal((users, 1)) + rng.standard_normal(items)
    times = np.arange(count)
    there = 1 + times // new if new else np.full(count, max(users, items))
    rows = (rng.random(count) * np.minimum(there, users)).astype(int)
    cols = (rng.random(count) * np.minimum(there, items)).astype(int)
    sign = np.where(times < count // 2, 1.0, -1.0)
    raw = 3.0 + sign * liking[rows, cols] + 0.3 * rng.standard_normal(count)
    ratings = np.clip(np.round(2.0 * raw) / 2.0, 1.0, 5.0)
    return list(zip(rows.tolist(), cols.tolist(), strict=True)), ratings


def coming_and_going(count=900, items=9, seed=0):
    """Ratings of users who come for a while; the first five come back at the end."""
    rng = np.random.default_rng(seed)
    users = np.arange(count) // 20 + rng.integers(0, 4, count)
    users[-60:] = rng.integers(0, 5, 60)
    cols = rng.integers(0, items, count)
    liking = 3.0 + np.sin(5.0 * users) + np.cos(3.0 * cols) + 0.5 * np.sin(users * cols)
    ratings = np.clip(np.round(liking + 0.3 * rng.standard_normal(count)), 1.0, 5.0)
    return list(zip(users.tolist(), cols.tolist(), strict=True)), ratings


def one_by_one(completer, pairs, ratings):
    """Predict and learn each rating in a call of its own; the predictions."""
    predictions = []
    for pair, rating in zip(pairs, ratings.tolist(), strict=True):
        known = completer.n_ratings_
        predictions.append(completer.predict([pair])[0] if known else completer.predict_one(*pair))
        completer.partial_fit([pair], [rating])
    return np.array(predictions)


def state_of(completer):
    """Everything that a `MatrixCompleter` knows, byte by byte."""
    settings, arrays = declared_state({"pool": completer._pool})
    held = {name: (a.dtype.str, a.shape, a.tobytes()) for name, a in arrays.items()}
    return settings, held, completer.users_, completer.items_


def interactions(completer, k):
    """The interactions of a low-rank expert in weighted coordinates, as a dense matrix."""
    pool = completer._pool
    expert, own = pool.interacting()[k]
    users, items = (grown.known for grown in pool.sides)
    left, right = (side.rows[:, own] * side.metric[:, None] for side in (users, items))
    return (left * (users.touched >= pool.slots.starts[expert])[:, None]) @ right.T


def answers(completer):
    """What each expert predicts before clipping: users x items x experts; the last user and item are new."""
    pool = completer._pool
    users, items = (
        side._replace(biases=np.pad(side.biases * known, new), rows=np.pad(side.rows, new))
        for side, known, new in (
            (grown.known, grown.known.touched[:, None] >= pool.slots.starts, ((0, 1), (0, 0)))
            for grown in pool.sides
        )
    )
    found = pool.slots.means + users.biases[:, None] + items.biases
    for e, own in pool.interacting():
        known = np.append(users.touched >= pool.slots.starts[e], False)
        found[..., e] += (users.rows[:, own] * known[:, None]) @ items.rows[:, own].T
    return found


def best_sequences(table, switches):
    """The least total loss of a sequence of experts, for 0, 1, ... switches."""
    best = [np.zeros(table.shape[1])] + [np.full(table.shape[1], np.inf)] * switches
    for row in table:
        moved = [np.inf, *(np.min(before) for before in best[:-1])]
        best = [row + np.minimum(b, m) for b, m in zip(best, moved, strict=True)]
    return [float(b.min()) for b in best]
