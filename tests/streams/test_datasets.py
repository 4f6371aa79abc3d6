"""The layouts of the paper's two experiments, on small and on real data."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
import scipy.sparse as sp

import driftwolfe as dw
from driftwolfe.losses import AbsoluteEntries, HuberEntries, SquaredEntries
from driftwolfe.streams import datasets, matrix_completion, movielens_100k, multiclass, shuttle
from driftwolfe.streams.datasets import rows_played
from real_data import needs_data

#: Reading the files takes most of the time of these tests.
ratings, flown = cache(movielens_100k), cache(shuttle)
ROWS, COLS, RATINGS = [0, 1, 2, 0, 1], [0, 0, 1, 1, 1], [1.0, 2.0, 3.0, 4.0, 5.0]


def test_copies_follow_each_other_with_their_signs():
    stream = matrix_completion(ROWS, COLS, RATINGS, (3, 2), per_round=2)
    targets = [loss.targets.tolist() for loss in stream]
    one = [[1.0, 2.0], [3.0, 4.0], [5.0]]
    assert targets == [*one, *[[-v for v in batch] for batch in one], *one]
    assert stream[1].rows.tolist() == [2, 0]
    assert stream.lipschitz == math.sqrt(2)
    assert stream.comparators is None
    assert type(stream[0]) is AbsoluteEntries
    assert stream[0].shape == (3, 2)


def test_every_copy_is_shuffled_on_its_own():
    stream = matrix_completion(ROWS, COLS, RATINGS, (3, 2), per_round=5, copies=(1, 2), seed=0)
    first, second = (loss.targets for loss in stream)
    assert sorted(first) == RATINGS
    assert sorted(second) == [2 * value for value in RATINGS]
    assert (2 * first).tolist() != second.tolist()
    again = matrix_completion(ROWS, COLS, RATINGS, (3, 2), per_round=5, copies=(1, 2), seed=0)
    assert again[1].targets.tolist() == second.tolist()
    squared = matrix_completion(ROWS, COLS, RATINGS, (3, 2), loss=SquaredEntries)
    assert type(squared[0]) is SquaredEntries
    assert squared.lipschitz == math.inf
    huber = matrix_completion(ROWS, COLS, RATINGS, (3, 2), loss=partial(HuberEntries, width=2.0))
    assert huber.lipschitz == pytest.approx(2.0 * math.sqrt(5))


def test_features_flip_every_so_many_rounds():
    features = np.arange(1.0, 15.0).reshape(7, 2)
    stream = multiclass(features, [0, 1, 2, 0, 1, 2, 0], 3, per_round=2, flip_every=1)
    assert len(stream) == 4
    signs = [np.sign(loss.features[0, 0]) for loss in stream]
    assert signs == [1, -1, 1, -1]
    assert np.abs(np.concatenate([loss.features for loss in stream])).tolist() == features.tolist()
    assert stream[3].labels.tolist() == [0]
    assert stream.lipschitz == pytest.approx(math.sqrt(2) * np.linalg.norm(features[6]))
    still = multiclass(features, [0] * 7, 3, per_round=2, flip_every=None)
    assert all(loss.features.min() > 0 for loss in still)


def test_rows_shuffle_with_their_labels_and_may_be_sparse():
    features = sp.csr_array(np.diag(np.arange(1.0, 9.0)))
    stream = multiclass(features, np.arange(8) % 4, 4, per_round=4, flip_every=None, seed=1)
    for loss in stream:
        assert (loss.features.indices % 4).tolist() == loss.labels.tolist()
    order = np.concatenate([loss.features.indices for loss in stream])
    assert sorted(order) == list(range(8))
    assert order.tolist() != list(range(8))


def test_drifts_are_where_neighbouring_copies_differ_and_features_flip():
    def drifts(**options):
        return matrix_completion(ROWS, COLS, RATINGS, (3, 2), per_round=2, **options).drifts

    assert drifts() == (3, 6)
    assert drifts(copies=(1, 1, -1, -1, 2)) == (6, 12)
    assert drifts(copies=(1,)) == ()

    def drifts(flip_every):
        return multiclass(np.ones((7, 2)), [0] * 7, 3, per_round=1, flip_every=flip_every).drifts

    assert drifts(3) == (3, 6)
    assert drifts(1) == (1, 2, 3, 4, 5, 6)
    assert drifts(7) == drifts(None) == ()


def test_refusals_say_why():
    with pytest.raises(ValueError, match="rows and cols must be of one length, got 5 and 1"):
        matrix_completion(ROWS, [0], RATINGS, (3, 2))
    with pytest.raises(ValueError, match="takes matrices of at least 3 rows and 2 columns"):
        matrix_completion(ROWS, COLS, RATINGS, (2, 2))
    with pytest.raises(ValueError, match="one class for each of 2 rows, got 1"):
        multiclass(np.ones((2, 2)), [0], 2)
    with pytest.raises(ValueError, match=r"labels must lie in 0\.\.1"):
        multiclass(np.ones((2, 2)), [0, 2], 2)


@needs_data
def test_movielens_is_laid_out_as_in_the_paper():
    stream = ratings()
    assert (len(stream), stream.drifts, stream.lipschitz) == (3000, (1000, 2000), 10.0)
    assert all(loss.targets.size == 100 for loss in stream)
    assert stream.domain.shape == (943, 1682)
    signs = [np.unique(np.sign(loss.targets)) for loss in stream]
    assert all(sign == 1 for sign in signs[:1000] + signs[2000:])
    assert all(sign == -1 for sign in signs[1000:2000])
    targets = np.concatenate([loss.targets for loss in stream[:1000]])
    assert np.unique(targets, return_counts=True)[1].tolist() == [6110, 11370, 27145, 34174, 21201]
    first = stream[0]
    assert (first.rows[0], first.cols[0], first.targets[0]) == (195, 241, 3.0)
    assert stream[1000].rows.tolist() == first.rows.tolist()
    assert (stream[1000].targets == -first.targets).all()
    shuffled = movielens_100k(seed=0, copies=(1,))
    assert len(shuffled) == 1000
    assert shuffled[0].rows.tolist() != first.rows.tolist()


@needs_data
def test_a_shorter_movielens_holds_the_first_ratings_in_every_copy():
    whole, short = ratings(), movielens_100k(rounds=300)
    assert (len(short), short.drifts, short.lipschitz) == (300, (100, 200), 10.0)
    for t in (0, 99):
        for copy, sign in enumerate((1, -1, 1)):
            loss = short[100 * copy + t]
            assert loss.rows.tolist() == whole[t].rows.tolist()
            assert (loss.targets == sign * whole[t].targets).all()
    shuffled = movielens_100k(rounds=300, seed=0)
    assert shuffled[0].rows.tolist() != short[0].rows.tolist()
    held, *others = (
        set(np.concatenate([loss.rows * 1682 + loss.cols for loss in stream[:100]]))
        for stream in (whole, short, shuffled)
    )
    assert others == [held, held]
    few = movielens_100k(rounds=5, copies=(1,), per_round=7, loss=SquaredEntries)
    assert [loss.targets.size for loss in few] == [7] * 5 and type(few[0]) is SquaredEntries


@needs_data
def test_shuttle_is_laid_out_as_in_the_paper():
    stream = flown()
    assert len(stream) == 4350
    assert all(loss.labels.size == 10 for loss in stream)
    assert stream.domain.shape == (7, 9)
    labels = np.concatenate([loss.labels for loss in stream])
    assert np.bincount(labels).tolist() == [34108, 37, 132, 6748, 2458, 6, 11]
    plain = shuttle(flip_every=None)
    for t in (0, 999, 1000, 1999, 2000, 3000, 3999, 4000, 4349):
        sign = -1.0 if t // 1000 % 2 else 1.0
        np.testing.assert_array_equal(stream[t].features, sign * plain[t].features)
    rows = np.concatenate([loss.features for loss in plain])
    assert (rows.min(), rows.max()) == (-1.0, 1.0)
    assert (rows[:, 2] == 0).sum() == 897
    assert stream.lipschitz <= math.sqrt(2) * 3.0
    assert (stream.drifts, plain.drifts) == ((1000, 2000, 3000, 4000), ())


@needs_data
def test_a_shorter_shuttle_flips_in_proportion():
    whole, short = flown(), shuttle(rounds=435)
    assert (len(short), short.drifts) == (435, (100, 200, 300, 400))
    np.testing.assert_array_equal(short[99].features, whole[99].features)
    np.testing.assert_array_equal(short[100].features, -whole[100].features)
    wide = [shuttle(per_round=20), shuttle(per_round=20, rounds=2175)]
    assert [(len(stream), stream.drifts) for stream in wide] == [(2175, (1000, 2000))] * 2
    assert len(shuttle(per_round=40_000, rounds=2)) == 2
    shuffled = shuttle(rounds=435, seed=0)
    assert shuffled.drifts == short.drifts
    rows = [np.abs(np.concatenate([loss.features for loss in s])) for s in (short, shuffled)]
    assert rows[0].tolist() != rows[1].tolist()
    assert sorted(rows[0].tolist()) == sorted(rows[1].tolist())


@needs_data
@pytest.mark.slow
@pytest.mark.parametrize("tau", [100, 500, 1000])
def test_adaptive_regret_of_the_whole_experiment_is_certified(tau):
    stream = shuttle()
    learner = dw.OGD(stream.domain, lipschitz=stream.lipschitz, step_scale=64.0)
    history = dw.play(learner, stream)
    regret = dw.regret.adaptive_regret(history, tau)
    assert regret.gap <= 1e-3 * regret
    start, end = regret.window
    assert start in (1000, 2000, 3000, 4000)  # where the features flip
    best = dw.regret.offline_minimum(stream.domain, stream.losses[start:end])
    assert history.losses[start:end].sum() - best.value == pytest.approx(regret, rel=1e-4)


def test_an_empty_file_is_refused(monkeypatch, tmp_path):
    nothing = replace(datasets.RATINGS, size=0, sha256=hashlib.sha256(b"").hexdigest())
    monkeypatch.setattr(datasets, "RATINGS", nothing)
    (tmp_path / "ml-100k").mkdir()
    (tmp_path / nothing.path).touch()
    with pytest.raises(ValueError, match="does not hold the published rows: it is empty"):
        datasets.movielens_100k(tmp_path)


def test_rows_of_shorter_streams():
    assert rows_played(1000, per_round=10, rounds=30, copies=3) == 100
    assert rows_played(1000, per_round=10, rounds=None, copies=3) == 1000
    with pytest.raises(ValueError, match="a multiple of the 3 copies, at most 300, got 31"):
        rows_played(1000, per_round=10, rounds=31, copies=3)
