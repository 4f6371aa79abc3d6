"""Synthetic twins: the shapes of the real data, always the same, and learners that fare alike."""

from __future__ import annotations

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.streams import movielens_100k, movielens_twin, shuttle, shuttle_twin
from real_data import needs_data


def joined(stream, *parts):
    return [np.concatenate([getattr(loss, part) for loss in stream]) for part in parts]


def ratings(stream):
    """Users, films and ratings of all rounds."""
    return joined(stream, "rows", "cols", "targets")


def table(stream):
    """Features and classes of all rounds."""
    return joined(stream, "features", "labels")


@pytest.fixture(scope="module")
def films():
    return movielens_twin()


@pytest.fixture(scope="module")
def rows():
    return shuttle_twin(flip_every=None)


def test_ratings_have_the_shape_of_movielens(films):
    assert (len(films), films.drifts, films.lipschitz) == (3000, (1000, 2000), 10.0)
    assert films.name == "MovieLens 100K (synthetic twin)"
    assert (films.domain.shape, films.domain.radius) == ((943, 1682), 1e4)
    assert all(loss.targets.size == 100 for loss in films)
    users, titles, stars = ratings(films[:1000])
    assert np.unique(users * 1682 + titles).size == 100_000
    assert users.max() < 943 and titles.max() < 1682
    shares = np.bincount(stars.astype(int), minlength=6)[1:] / 1000
    assert set(stars) == {1.0, 2.0, 3.0, 4.0, 5.0}
    np.testing.assert_allclose(shares, [6.1, 11.4, 27.1, 34.2, 21.2], atol=2.0)
    activity, popularity = np.bincount(users, minlength=943), np.bincount(titles, minlength=1682)
    assert activity.min() >= 20
    assert activity.max() > 5 * activity.mean()
    assert popularity.max() > 5 * popularity.mean()
    assert np.median(popularity) < 0.7 * popularity.mean()


def test_rows_have_the_shape_of_shuttle(rows):
    assert len(rows) == 4350
    assert rows.name == "Shuttle (synthetic twin)"
    assert (rows.domain.shape, rows.domain.radius) == ((7, 9), 100.0)
    features, labels = table(rows)
    assert features.shape == (43_500, 9)
    assert np.abs(features).max() <= 1.0
    assert np.bincount(labels).tolist() == [34108, 37, 132, 6748, 2458, 6, 11]
    assert np.bincount(labels[:4350], minlength=7)[0] / 4350 == pytest.approx(0.78, abs=0.03)


def test_the_data_are_always_the_same(films, rows):
    for a, b in zip(ratings(films[:1000]), ratings(movielens_twin(copies=(1,))), strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(table(rows), table(shuttle_twin(flip_every=None)), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_seed_changes_the_order_only(films, rows):
    shuffled = movielens_twin(seed=1)
    known = np.lexsort(ratings(films[:1000]))
    for copy in (slice(0, 1000), slice(2000, 3000)):
        order = np.lexsort(ratings(shuffled[copy]))
        assert order.tolist() != known.tolist()
        for a, b in zip(ratings(films[:1000]), ratings(shuffled[copy]), strict=True):
            np.testing.assert_array_equal(a[known], b[order])
    again = movielens_twin(seed=1)
    assert again[0].rows.tolist() == shuffled[0].rows.tolist() != films[0].rows.tolist()
    plain, mixed = (
        np.column_stack(table(stream)) for stream in (rows, shuttle_twin(flip_every=None, seed=1))
    )
    assert not np.array_equal(plain, mixed)
    np.testing.assert_array_equal(plain[np.lexsort(plain.T)], mixed[np.lexsort(mixed.T)])


def test_twins_take_the_options_of_the_real_ones(films, rows):
    short = movielens_twin(rounds=20, copies=(1, 2))
    assert (len(short), short.drifts) == (20, (10,))
    assert (short[10].targets == 2 * short[0].targets).all()
    flipped = shuttle_twin(rounds=435, radius=5.0)
    assert (len(flipped), flipped.drifts) == (435, (100, 200, 300, 400))
    assert flipped.domain.radius == 5.0
    np.testing.assert_array_equal(flipped[100].features, -rows[100].features)
    assert shuttle_twin(rounds=40, flip_every=10).drifts == (10, 20, 30)


def test_flips_keep_their_share_of_the_rounds():
    def drifts(**options):
        return shuttle_twin(**options).drifts

    assert drifts() == drifts(rounds=4350) == (1000, 2000, 3000, 4000)
    assert drifts(rounds=300) == (69, 138, 207, 276)
    assert drifts(rounds=3) == (1, 2)
    assert drifts(rounds=435, flip_every=200) == (200, 400)
    assert drifts(rounds=435, flip_every=None) == ()
    with pytest.raises(TypeError, match="flip_every must be a whole number"):
        drifts(flip_every="often")


def test_strange_lengths_are_refused():
    for rounds in (301, 3003, 0, -3, 1.5, "many"):
        with pytest.raises((ValueError, TypeError), match="rounds must be"):
            movielens_twin(rounds=rounds)
    with pytest.raises(ValueError, match="rounds must be at most 4350, got 4351"):
        shuttle_twin(rounds=4351)


def average(make, stream):
    return dw.play(make(stream), stream, progress=False).losses.mean()


def pola(stream):
    return dw.POLA(stream.domain, lipschitz=stream.lipschitz, step_scale=16.0)


def pold(stream):
    options = {"lipschitz": stream.lipschitz, "step_scale": 1e4, "grid": "experiment"}
    return dw.POLD(stream.domain, horizon=len(stream), **options)


@pytest.mark.slow
@needs_data
def test_learners_fare_alike_on_shuttle_and_its_twin():
    real, twin = shuttle(), shuttle_twin()
    assert average(pola, twin) == pytest.approx(average(pola, real), rel=0.1)
    best = [dw.regret.offline_minimum(s.domain, s.losses[:1000]).value for s in (real, twin)]
    assert best[1] == pytest.approx(best[0], rel=0.25)


@pytest.mark.slow
@needs_data
def test_learners_fare_alike_on_movielens_and_its_twin():
    real, twin = (load(rounds=60) for load in (movielens_100k, movielens_twin))
    assert average(pold, twin) == pytest.approx(average(pold, real), rel=0.1)
