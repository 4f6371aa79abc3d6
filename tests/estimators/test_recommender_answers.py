"""What `Recommender` answers: among given items, similar ones, why; and events from sparse matrices."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from driftwolfe.estimators import Recommender
from estimators.plain_ranks import PlainRanks

USERS, ITEMS = 30, 60


@pytest.fixture(scope="module")
def learned():
    rng = np.random.default_rng(5)
    pairs = np.stack([rng.integers(0, USERS, 900), 60 * rng.random(900) ** 2], axis=1)
    pairs = [tuple(pair) for pair in pairs.astype(int).tolist()]
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], 900)
    plain = PlainRanks(ITEMS)
    for (user, item), weight in zip(pairs, weights.tolist(), strict=True):
        plain.learn(user, item, weight)
    return Recommender().partial_fit(pairs, weights=weights), plain


@pytest.mark.parametrize("user", [0, 7, "new"])
def test_among_some_items_is_the_full_ranking_filtered(learned, user):
    model, _ = learned
    items, scores = model.recommend(user, ITEMS, return_scores=True)
    some, others = [*range(0, ITEMS, 2), "unknown", 4], [*range(0, ITEMS, 3), "unknown"]
    for given in ({"items": some}, {"exclude": others}, {"items": some, "exclude": others}):
        kept = [
            k
            for k, item in enumerate(items)
            if item in given.get("items", items) and item not in given.get("exclude", ())
        ]
        for n in (0, 3, ITEMS):
            found, told = model.recommend(user, n, return_scores=True, **given)
            assert len(found) == min(n, len(kept)) and not {*found} - {items[k] for k in kept}
            np.testing.assert_allclose(told, scores[kept][:n], rtol=1e-5)
            # The same order but for scores that rounding may exchange.
            own = dict(zip(items, scores.tolist(), strict=True))
            assert all(own[a] >= own[b] * (1.0 - 1e-5) for a, b in pairwise(found))
    assert model.recommend(user, 5, items=[]) == []
    with pytest.raises(TypeError, match="items must be a list"):
        model.recommend(user, items="tea")


def test_similar_items_are_those_of_plain_counts(learned):
    model, plain = learned
    for item in (0, 3, 20):
        found, told = model.similar_items(item, ITEMS, return_scores=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            naive = plain.far[item] / np.sqrt(plain.events * plain.events[item])
        np.testing.assert_allclose(told, naive[found], rtol=1e-4)
        assert (np.diff(told) <= 0.0).all() and {*found} == {*np.flatnonzero(plain.far[item])}
        assert model.similar_items(item, 3) == found[:3]
    assert model.similar_items("unknown") == []


def test_explanations_sum_to_the_score(learned):
    model, plain = learned
    for user in (*range(5), "new"):
        for item in model.recommend(user, ITEMS)[::7]:
            told, expected = model.explain(user, item), plain.chances(user)
            np.testing.assert_allclose(told["score"], model.predict([(user, item)])[0], rtol=1e-9)
            np.testing.assert_allclose(sum(told["experts"].values()), told["score"], rtol=1e-9)
            # By hand: what is not popularity, shared in proportion to the counts.
            pairs, of_pairs = plain.pairs(user)[:, :, item], [*told["experts"].values()][2:]
            weights = model.expert_weights_[plain.bucket(user), 2:]
            own = weights * (expected[2:, item] - 0.1 * expected[0, item]) * pairs.any(axis=1)
            np.testing.assert_allclose(of_pairs, own, rtol=3e-3, atol=1e-9)
            shares = own @ (pairs / np.maximum(pairs.sum(axis=1, keepdims=True), 1e-300))
            by_item = zip(plain.latest(user), shares.tolist(), strict=False)
            wanted = {other: share for other, share in by_item if share > 0.0}
            assert told["items"] == pytest.approx(wanted, rel=3e-3)
            assert [*told["items"].values()] == sorted(told["items"].values(), reverse=True)
    seen = model.seen(0)[0]
    assert model.explain(0, seen)["score"] == model.explain(0, "unknown")["score"] == 0.0


def test_a_sparse_matrix_is_its_entries():
    matrix = sparse.random(20, 30, 0.2, "csr", random_state=0)
    entries = matrix.tocoo()
    pairs = list(zip(entries.row.tolist(), entries.col.tolist(), strict=True))
    one = Recommender().partial_fit(pairs, weights=entries.data)
    for kind in ("csr", "csc", "coo"):
        other = Recommender().partial_fit(matrix.asformat(kind))
        assert other.users_ == one.users_ and other.items_ == one.items_
        assert np.array_equal(other.predict(pairs), one.predict(pairs))
        assert other.recommend(3, 5) == one.recommend(3, 5)
    before = one.n_events_
    with pytest.raises(ValueError, match="leave weights= out"):
        one.partial_fit(matrix, weights=entries.data)
    broken = matrix.copy()
    broken.indices[0] = 10**6
    with pytest.raises(ValueError, match="ind"):
        one.partial_fit(broken)
    with pytest.raises(ValueError, match="users in rows and items in columns"):
        one.partial_fit(sparse.coo_array([1.0, 0.0]))
    assert one.n_events_ == before
