"""The experts of `MatrixCompleter`: against plain Python, against their guarantee, in other units."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driftwolfe.estimators import MatrixCompleter
from estimators.plain_ratings import PlainPool
from estimators.rating_streams import best_sequences, state_of, turning

LOSSES = ("absolute", "huber", "squared")


@pytest.mark.parametrize("learner", ["both", "pold"])
@pytest.mark.parametrize("loss", LOSSES)
def test_mean_and_biases_are_those_of_plain_python(loss, learner):
    pairs, ratings = turning(620, users=15, items=11, new=20)
    ratings[300] = 40.0  # far out of range, so that clipping and the largest slopes matter
    completer = MatrixCompleter(loss=loss, learner=learner, radii=())
    plain = PlainPool(loss, first_level=6 if learner == "both" else 99)
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
    assert len(plain.experts) == (6 if learner == "both" else 2)
    assert len(completer.expert_names_) == len(plain.experts)


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


@pytest.mark.parametrize("fan", ["user", "item"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_no_bias_leaves_the_range_of_ratings(loss, sign, fan):
    completer = MatrixCompleter(loss=loss, learner="pold", radii=())
    plain, at_limit = PlainPool(loss, first_level=99), set()
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
    completer, plain = MatrixCompleter(loss=loss, radii=()), PlainPool(loss)
    told = completer.prequential([entry[:2] for entry in stream], [entry[2] for entry in stream])
    expected = [plain.learn(*entry) for entry in stream]
    if plain.error > 1e-9:  # below, the unit is one of rounding
        assert told == pytest.approx(expected, abs=1e-6)


def test_the_mean_error_forgets_what_is_long_ago():
    # Noise grows tenfold after 20,000 ratings; the mean of all errors would follow half as far.
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, 6, (40_000, 2))
    ratings = rng.standard_normal(40_000) * np.repeat([1.0, 10.0], 20_000)
    completer = MatrixCompleter(radii=(), learner="pold")
    errors = np.abs(completer.prequential(pairs, ratings) - ratings)
    errors[0] = 0.0  # the means start at the first rating
    mean = 0.0
    for t, error in enumerate(errors.tolist(), start=1):
        mean += (error - mean) * max(1.0 / t, 1.0 / 16_384)
    assert completer._pool.scale.numbers[0] == pytest.approx(mean, rel=1e-9)
    assert abs(mean - errors.mean()) > 0.1 * mean


def played(loss, learner, count, **options):
    """Losses of the combination and of each expert, in units, round by round; absent: infinite."""
    completer = MatrixCompleter(loss=loss, learner=learner, memory=128, **options)
    plain, ours, theirs = PlainPool(loss), [], []
    for pair, rating in zip(*turning(count, seed=3), strict=True):
        answers = completer.expert_predictions([pair])[0]
        predicted = completer.predict_one(*pair)
        completer.partial_fit([pair], [rating])
        unit = 1.33 * completer._pool.scale.numbers[0]
        if unit > 0.0:
            ours.append(plain.price((predicted - rating) / unit))
            theirs.append([plain.price((answer - rating) / unit) for answer in answers])
    widest = max(map(len, theirs))
    table = np.full((len(ours), widest), np.inf)
    for t, row in enumerate(theirs):
        table[t, : len(row)] = row
    return np.array(ours), table


@pytest.mark.parametrize("learner", ["both", "pold"])
@pytest.mark.parametrize("loss", LOSSES)
def test_no_sequence_of_experts_is_much_better(loss, learner):
    count = 600
    ours, table = played(loss, learner, count, radii=(0.3, 1.0))
    present = np.isfinite(table)
    ranges = np.where(present, table, -np.inf).max(axis=1) - table.min(axis=1)
    experts = table.shape[1]
    for switches, best in enumerate(best_sequences(table, 5)):
        price = ((switches + 1) * math.log(experts * count) + 1 / 32) / 0.8
        assert ours.sum() - best <= price + 0.1 * (ranges**2).sum()


@given(st.integers(1, 12), st.integers(2, 5), st.integers(0, 2), st.integers(0, 1000))
def test_the_table_of_best_sequences_is_right(rounds, experts, switches, seed):
    table = np.random.default_rng(seed).random((min(rounds, 5), min(experts, 3)))
    sequences = np.stack(np.meshgrid(*[range(table.shape[1])] * len(table)), -1)
    sequences = sequences.reshape(-1, len(table))
    totals = table[np.arange(len(table)), sequences].sum(axis=1)
    few = (np.diff(sequences, axis=1) != 0).sum(axis=1) <= switches
    assert min(best_sequences(table, switches)) == pytest.approx(totals[few].min())


def test_weights_follow_who_is_right():
    completer = MatrixCompleter(radii=())
    pairs, ratings = turning(2000, seed=1)
    completer.partial_fit(pairs, ratings)
    assert completer.expert_weights_.sum() == pytest.approx(1.0)
    assert completer.expert_weights_.min() >= 1.0 / (2001 * len(completer.expert_names_))
    # Tastes turn at rating 1,000: right after it those that have restarted since do better.
    fresh = MatrixCompleter(radii=()).partial_fit(pairs[:1100], ratings[:1100])
    restarted = ["every" in name for name in fresh.expert_names_]
    assert fresh.expert_weights_[restarted].sum() > 0.5


@pytest.mark.parametrize("loss", LOSSES)
def test_ratings_in_other_units_are_predicted_in_other_units(loss):
    pairs, ratings = turning(1500, users=30, items=25)
    told = MatrixCompleter(loss=loss, memory=256).prequential(pairs, ratings)
    by_four = MatrixCompleter(loss=loss, memory=256).prequential(pairs, 4.0 * ratings)
    assert by_four.tolist() == (4.0 * told).tolist()
    negated = MatrixCompleter(loss=loss, memory=256).prequential(pairs, -ratings)
    assert negated.tolist() == (-told).tolist()
    shifted = MatrixCompleter(loss=loss, memory=256).prequential(pairs, 3.0 * ratings - 7.0)
    # The very first prediction is 0 in every unit.
    assert shifted[1:] == pytest.approx(3.0 * told[1:] - 7.0, abs=1e-6)


@settings(max_examples=8)
@given(st.permutations(range(12)), st.permutations(range(9)))
def test_names_do_not_matter(users, items):
    pairs, ratings = turning(300)
    renamed = [(users[u], items[i]) for u, i in pairs]
    one, two = (
        MatrixCompleter(memory=64, radii=(0.3,)).partial_fit(each, ratings)
        for each in (pairs, renamed)
    )
    assert state_of(one)[:2] == state_of(two)[:2]


@pytest.mark.parametrize("size", [1e99, 1e-100])
def test_ratings_of_any_size(size):
    pairs, ratings = turning(1200)
    told = MatrixCompleter(memory=128).prequential(pairs, size * ratings)
    usual = MatrixCompleter(memory=128).prequential(pairs, ratings)
    assert told / size == pytest.approx(usual, abs=1e-6)


def test_ratings_of_extreme_sizes():
    completer = MatrixCompleter(memory=128).partial_fit(turning(600)[0], 1e-300 * turning(600)[1])
    told = completer.predict([(u, i) for u in range(12) for i in range(9)])
    assert np.isfinite(told).all() and told.min() >= 1e-300 and told.max() <= 5e-300
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, 6, (40_000, 2))
    ratings = 1e100 * np.where(pairs.sum(axis=1) % 2, 1.0, -1.0)
    completer = MatrixCompleter(radii=(1e-6,), learner="pold", memory=100_000)
    told = completer.prequential(pairs, ratings)
    assert np.isfinite(told).all() and np.abs(told).max() <= 1e100
    completer = MatrixCompleter(memory=64).partial_fit(turning(700)[0], np.full(700, 3.5))
    assert completer.predict([(0, 0), ("new", 1), ("new", "new")]).tolist() == [3.5] * 3
    with pytest.raises(ValueError, match="two different ratings"):
        _ = completer.domain_
    completer.partial_fit([(0, 0)], [4.0])
    assert np.isfinite(completer.predict([(0, 0)])).all()
