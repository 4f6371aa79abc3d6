"""The experts of `MatrixCompleter`: against plain Python, against their guarantee, in other units."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftwolfe.estimators import MatrixCompleter
from estimators.plain_ratings import PlainPool, price
from estimators.rating_streams import best_sequences, constants, turning

LOSSES = ("absolute", "huber", "squared")


@pytest.mark.parametrize("loss", LOSSES)
def test_mean_and_biases_are_those_of_plain_python(loss):
    pairs, ratings = turning(620, users=15, items=11, new=20)
    ratings[300] = 40.0  # far out of range, so that clipping and the largest slopes matter
    completer, plain = MatrixCompleter(loss=loss), PlainPool(loss)
    for (user, item), rating in zip(pairs, ratings.tolist(), strict=True):
        probes = [(user, item), (0, "new"), ("new", 0), ("new", "new")]
        expected = [plain.predict(*probe) for probe in probes]
        assert completer._answers(probes) == pytest.approx(expected, abs=1e-9)
        assert plain.learn(user, item, rating) == expected[0]
        completer.partial_fit([(user, item)], [rating])
        assert completer.expert_weights_ == pytest.approx(plain.weights, abs=1e-9)
    assert completer._pool.scale.numbers == pytest.approx(
        [plain.error, plain.low, plain.high, plain.recent]
    )
    # 64, 128, 256 and 512, each restarted since.
    assert len(plain.experts) == len(names := completer.expert_names_) == 10
    assert {"step 0.3", "step 0.4, radius 1", "step 0.5, every 512"} <= {*names}


def contradictions(rounds, sign):
    """Ratings that only a bias beyond the range of ratings could explain.

    Most ratings are low, so the mean is. "Yes" rates high, but item z low, which takes the bias of z
    far down; "fan" rates z high all the same, which takes a bias above the range. No two high ratings
    are alike, so that no prediction meets a rating to the last bit.
    """
    stream = []
    for r in range(rounds):
        high = sign * (1.0 + 0.03 * math.sin(r))
        stream += [(f"no {r}", f"x {r}", 0.0), (f"no {r}", f"y {r}", 0.0)]
        stream += [("yes", f"i {r}", high), ("yes", "z", 0.01 * high), ("fan", "z", high)]
    return stream + [("fan", f"new {r}", 0.0) for r in range(4)]


@pytest.mark.parametrize(("fan", "sign"), [("user", 1.0), ("item", -1.0)])
@pytest.mark.parametrize("loss", LOSSES)
def test_no_bias_leaves_the_range_of_ratings(loss, sign, fan):
    completer, plain, at_limit = MatrixCompleter(loss=loss), PlainPool(loss), set()
    for user, item, rating in contradictions(25, sign):
        pair = (user, item) if fan == "user" else (item, user)
        expected = plain.learn(*pair, rating)
        assert completer.prequential([pair], [rating]) == pytest.approx(expected, abs=1e-9)
        limit = plain.high - plain.low
        for expert in plain.experts:
            at_limit.add(sign * expert.values.get((fan, "fan"), 0.0) == limit)
        for grown in completer._pool.sides:
            assert np.abs(grown.tables.biases[: grown.size]).max() <= limit
    assert True in at_limit  # so a bias that goes beyond would be seen


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 3), st.floats(-10, 10)), min_size=1, max_size=90
    ),
    st.sampled_from(LOSSES),
)
def test_so_on_any_stream(stream, loss):
    completer, plain = MatrixCompleter(loss=loss), PlainPool(loss)
    told = completer.prequential([entry[:2] for entry in stream], [entry[2] for entry in stream])
    expected = [plain.learn(*entry) for entry in stream]
    if plain.error > 1e-9:  # below, the unit is one of rounding
        assert told == pytest.approx(expected, abs=1e-6)


def test_the_mean_error_forgets_what_is_long_ago():
    # Noise grows tenfold after 20,000 ratings; the mean of all errors would follow half as far.
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, 6, (40_000, 2))
    ratings = rng.standard_normal(40_000) * np.repeat([1.0, 10.0], 20_000)
    completer = MatrixCompleter()
    errors = np.abs(completer.prequential(pairs, ratings) - ratings)
    errors[0] = 0.0  # the means start at the first rating
    mean = 0.0
    for t, error in enumerate(errors.tolist(), start=1):
        mean += (error - mean) * max(1.0 / t, 1.0 / 16_384)
    assert completer._pool.scale.numbers[0] == pytest.approx(mean, rel=1e-9)
    assert abs(mean - errors.mean()) > 0.1 * mean


@pytest.mark.parametrize("loss", LOSSES)
def test_no_sequence_of_experts_is_much_better(loss, monkeypatch):
    constants(monkeypatch, MEMORY=128)
    completer, ours, theirs, count = MatrixCompleter(loss=loss), [], [], 600
    pool = completer._pool
    for pair, rating in zip(*turning(count, seed=3), strict=True):
        (low, high), experts = pool.scale.numbers[1:3].tolist(), len(pool.experts)
        predicted = completer.predict_one(*pair)
        completer.partial_fit([pair], [rating])
        told = pool._bound.spare[:experts].clip(low, high)  # as `answers` just before
        unit = 1.33 * pool.scale.numbers[0]
        if unit > 0.0:
            ours.append(price((predicted - rating) / unit, loss))
            theirs.append([price((answer - rating) / unit, loss) for answer in told])
    table = np.full((len(ours), max(map(len, theirs))), np.inf)  # absent: infinite
    for t, row in enumerate(theirs):
        table[t, : len(row)] = row
    present = np.isfinite(table)
    ranges = np.where(present, table, -np.inf).max(axis=1) - table.min(axis=1)
    for switches, best in enumerate(best_sequences(table, 5)):
        allowed = ((switches + 1) * math.log(table.shape[1] * count) + 1 / 32) / 0.8
        assert sum(ours) - best <= allowed + 0.1 * (ranges**2).sum()


@pytest.mark.parametrize("loss", LOSSES)
def test_ratings_in_other_units_are_predicted_in_other_units(loss, monkeypatch):
    constants(monkeypatch, MEMORY=256)
    pairs, ratings = turning(1500, users=30, items=25)
    told, by_four, negated, shifted = (
        MatrixCompleter(loss=loss).prequential(pairs, each)
        for each in (ratings, 4.0 * ratings, -ratings, 3.0 * ratings - 7.0)
    )
    assert by_four.tolist() == (4.0 * told).tolist() and negated.tolist() == (-told).tolist()
    # The very first prediction is 0 in every unit.
    assert shifted[1:] == pytest.approx(3.0 * told[1:] - 7.0, abs=1e-6)


def test_ratings_of_any_size(monkeypatch):
    constants(monkeypatch, MEMORY=128)
    pairs, ratings = turning(700)
    usual = MatrixCompleter().prequential(pairs, ratings)
    for size in (1e99, 1e-100):
        told = MatrixCompleter().prequential(pairs, size * ratings)
        assert told / size == pytest.approx(usual, abs=1e-6)
    told = MatrixCompleter().partial_fit(pairs, 1e-300 * ratings).predict(pairs)
    assert np.isfinite(told).all() and told.min() >= 1e-300 and told.max() <= 5e-300
    for size in (1e-300, 1e99):  # beside others
        mixed = np.where(np.arange(700) % 5, size, ratings)
        assert np.isfinite(MatrixCompleter().prequential(pairs, mixed)).all()
    completer = MatrixCompleter().partial_fit(pairs, np.full(700, 3.5))
    assert completer.predict([(0, 0), ("new", 1), ("new", "new")]).tolist() == [3.5] * 3
    completer.partial_fit([(0, 0)], [4.0])
    assert np.isfinite(completer.predict([(0, 0)])).all()


def test_the_largest_ratings_in_the_smallest_ball(monkeypatch):
    constants(monkeypatch, RADII=(1e-6, 1e-6))
    pairs = np.random.default_rng(0).integers(0, 6, (40_000, 2))
    ratings = 1e100 * np.where(pairs.sum(axis=1) % 2, 1.0, -1.0)
    told = MatrixCompleter().prequential(pairs, ratings)
    assert np.isfinite(told).all() and np.abs(told).max() <= 1e100
