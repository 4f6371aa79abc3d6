"""`AdaptiveSets`, and coverage by group: what is promised, exactly, whatever comes."""

import copy
import math

import numpy as np
import pytest
from river import datasets, naive_bayes
from sklearn.linear_model import SGDClassifier, SGDRegressor

import driftwolfe as dw
from driftwolfe.estimators import AdaptiveIntervals, AdaptiveSets, intervals
from driftwolfe.estimators.intervals import FIRST, LAST_STEP, LEAST


def told(rows, seed=0):
    """Probabilities, and labels that are drawn from others: of the same order at first, then not."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(4, 0.3), rows)
    true = np.where((np.arange(rows) < rows // 2)[:, None], 0.5 * p + 0.125, p[:, ::-1])
    return p, np.array([rng.choice(4, p=row / row.sum()) for row in true])


def evil(found, p, y):
    """The most probable label that is not in the set."""
    outside = [k for k in np.argsort(-p) if k not in found]
    return int(outside[0]) if outside else y


def kind(found, p, y):
    """The least probable label of the set."""
    return found[-1] if found else y


def unchanged(found, p, y):
    return y


@pytest.mark.in_turn
@pytest.mark.parametrize("choose", [unchanged, evil, kind])
@pytest.mark.parametrize("coverage, gain", [(0.5, 0.0), (0.9, 2.0), (0.95, 8.0)])
def test_coverage_is_what_the_offset_says_of_all_rows_and_of_each_group(choose, coverage, gain):
    p, y = told(900)
    groups = np.random.default_rng(1).choice(["a", "b", None], 900, p=[0.6, 0.3, 0.1])
    model, inside, full, starts = AdaptiveSets(coverage=coverage, gain=gain), [], [], {}
    virtual = []  # of all rows as if there were no groups
    for k in range(900):
        (found,) = model.around(p[k : k + 1], groups[k : k + 1], allow_empty=True)
        (more,) = model.around(p[k : k + 1], groups[k : k + 1])
        label = choose(found, p[k], int(y[k]))
        virtual.append(label in model.around(p[k : k + 1], allow_empty=True)[0])
        inside.append(label in found)
        full.append(label in more)
        assert found == more[: len(found)] and len(more) == max(1, len(found))
        assert found == sorted(range(4), key=lambda each, row=p[k]: -row[each])[: len(found)]
        if k >= FIRST:
            starts.setdefault(groups[k], model.group_offset(groups[k]))
        model.observe(p[k : k + 1], [label], groups[k : k + 1])
    moved = (model.offset_, np.array(virtual)[FIRST:], 0.0)
    rows = {g: np.array(inside)[FIRST:][groups[FIRST:] == g] for g in ("a", "b")}
    for end, hits, start in [moved, *((model.group_offset(g), rows[g], starts[g]) for g in rows)]:
        assert abs(end) < 2.0
        assert hits.mean() == pytest.approx(coverage - (end - start) / LAST_STEP / hits.size)
    assert (np.array(full) >= inside).all()


@pytest.mark.parametrize("form", [lambda p: p, lambda p: [dict(enumerate(row)) for row in p]])
def test_a_fraction_of_labels_is_inside_small_sets(form):
    p, y = told(1600)
    model, sets = AdaptiveSets(coverage=0.8), []
    for k in range(1600):
        sets += model.around(form(p[k : k + 1]))
        model.observe(form(p[k : k + 1]), y[k : k + 1])
    for part in (slice(100, 800), slice(900, 1600)):
        hits = [label in found for label, found in zip(y[part], sets[part], strict=True)]
        assert np.mean(hits) == pytest.approx(0.8, abs=0.04)
    # The smallest sets of this kind: one probability is the least for all rows of the part.
    true, sizes = np.sort(p[np.arange(800), y[:800]]), [len(each) for each in sets[100:800]]
    assert np.mean(sizes) < 1.1 * (p[:800] >= true[160]).sum(axis=1).mean()


@pytest.mark.parametrize("ratio", [10.0, pytest.param(0.1, marks=pytest.mark.slow)])
def test_a_group_that_is_ten_times_as_noisy_is_covered_alike(ratio):
    rng = np.random.default_rng(3)
    X = np.column_stack((rng.random(1500) < 0.3, rng.standard_normal(1500)))
    y = np.where(X[:, 0] > 0.0, ratio, 1.0) * rng.standard_normal(1500)
    together, apart = [], []
    for model, found in ((AdaptiveIntervals(), together), (AdaptiveIntervals(), apart)):
        for k in range(1500):
            groups = X[k : k + 1, 0] if found is apart else None
            lower, upper = model.around([0.0], groups)
            found.append((lower[0] <= y[k] <= upper[0], upper[0] - lower[0]))
            model.observe([0.0], y[k : k + 1], groups)
    for group, scale in ((0.0, 1.0), (1.0, ratio)):
        rows = (X[:, 0] == group) & (np.arange(1500) >= 300)
        coverage, width = np.mean(np.array(apart)[rows], axis=0)
        assert coverage == pytest.approx(0.9, abs=0.03)
        assert width == pytest.approx(2.0 * 1.645 * scale, rel=0.15)
        assert abs(np.array(together)[rows, 0].mean() - 0.9) > 0.04  # without groups


def test_groups_are_found_in_rows(tmp_path):
    rng = np.random.default_rng(0)
    X = np.column_stack((rng.integers(0, 2, 60), rng.standard_normal(60)))
    y = rng.standard_normal(60)
    for group in (0, lambda row: row[0]):
        model = AdaptiveIntervals(SGDRegressor(random_state=0), group=group)
        by_hand, plain = AdaptiveIntervals(), SGDRegressor(random_state=0)
        for rows in (slice(0, 20), slice(20, 40), slice(40, 60)):
            if rows.start:
                by_hand.observe(plain.predict(X[rows]), y[rows], X[rows, 0])
            plain.partial_fit(X[rows], y[rows])
            model.partial_fit(X[rows], y[rows])
        around = by_hand.around(plain.predict(X), X[:, 0])
        assert np.array_equal(model.predict_interval(X), around)
        model.save(tmp_path / "model")
        loaded = AdaptiveIntervals.load(tmp_path / "model", model.model, group)
        assert np.array_equal(loaded.predict_interval(X), around)
        assert loaded.group_offset(1.0) == model.group_offset(1.0) != model.offset_
    before = copy.deepcopy(vars(model.model))
    model.group = "no such"
    with pytest.raises(ValueError, match="must be a feature of every row"):
        model.partial_fit(X, y)
    assert model.n_rows_ == 40 and np.array_equal(model.model.coef_, before["coef_"])


def test_new_and_forgotten_groups_start_with_all_rows(monkeypatch):
    monkeypatch.setattr(intervals, "MOST_GROUPS", 3)
    p, y = told(60)
    model = AdaptiveSets().observe(p, y, ["a", "b", "c"] * 20)
    assert model.around(p, ["new"] * 60) == model.around(p) == model.around(p, [None] * 60)
    offsets = [model.group_offset(group) for group in "abc"]
    model.observe(p[:2], y[:2], ["d", "b"])  # the first is forgotten, "b" learns
    assert [*model._groups] == ["c", "d", "b"] and model.group_offset("a") == model.offset_
    assert model.group_offset("b") != offsets[1] and model.group_offset("c") == offsets[2]
    for wrong in (["a"], "ab", [math.nan, "a"], [[], "a"]):
        with pytest.raises((ValueError, TypeError), match="group"):
            model.observe(p[:2], y[:2], wrong)
    assert model.n_rows_ == 62


def test_models_of_scikit_learn_and_river():
    sets, inside, sizes = AdaptiveSets(naive_bayes.GaussianNB()), [], []
    rows = [*datasets.Phishing().take(900)]
    for x, y in rows:
        inside.append(y in sets.predict_set(x))
        sizes.append(len(sets.predict_set(x)))
        assert sets.learn_one(x, y) is None
    assert sizes[0] == 0  # of a model that knows no label
    assert 0.88 < np.mean(inside[100:]) < 0.96 and np.mean(sizes[100:]) < 1.5
    assert sets.predict_set([x, x]) == [sets.predict_set(x)] * 2
    X, y = np.array([[*x.values()] for x, _ in rows]), [("no", "yes")[y] for _, y in rows]
    model, inside = AdaptiveSets(SGDClassifier(loss="log_loss", random_state=0)), []
    for k in range(0, 900, 30):
        if k:
            inside += [
                label in found
                for found, label in zip(model.predict_set(X[k : k + 30]), y[k:], strict=False)
            ]
        assert model.partial_fit(X[k : k + 30], y[k : k + 30], classes=["no", "yes"]) is model
    assert model.n_rows_ == 870 and 0.87 < np.mean(inside) < 0.97
    with pytest.raises(
        TypeError, match="give a model with predict_proba and partial_fit, or predict_proba_one"
    ):
        AdaptiveSets(3).predict_set(X)


def test_unknown_labels_are_missed_and_zeros_are_small():
    p, y = told(40)
    one, other = AdaptiveSets().observe(p, y), AdaptiveSets().observe(p, y)
    one.observe([[0.5, 0.5, 0.0, 0.0]], ["new"])
    assert one.offset_ == other.offset_ + 0.9 * LAST_STEP
    other.observe([[0.5, 0.5, 0.0, 0.0]], [2])
    assert np.array_equal(one._sizes, other._sizes) and -math.log(LEAST) > one._sizes[0]


def test_files_with_wrong_numbers_are_refused(tmp_path):
    path, (p, y) = tmp_path / "sets", told(40)
    model = AdaptiveSets().observe(p, y, [0, 1, 2, 3] * 10)
    wrong = [("offset_", 2.1), ("recent_", math.nan), ("n_rows_", -1), ("_levels", np.full(4, 9.0))]
    wrong += [("_sizes", np.full(4, -1.0)), ("_means", np.full(4, math.nan)), ("recent_", -2.0)]
    of_all = [*wrong, ("n_rows_", 39), ("_levels", np.zeros(3))]
    for group, changes in ((None, of_all), (2, wrong)):
        for name, value in changes:
            broken = copy.deepcopy(model)
            setattr(broken._groups.get(group, broken), name, value)
            broken.save(path)
            with pytest.raises(ValueError, match="archive"):
                AdaptiveSets.load(path)
    model.save(path)
    loaded = dw.load(path)
    for each in (loaded, model):
        each.observe(p, y, [3] * 40)
    assert loaded.around(p, [3] * 40) == model.around(p, [3] * 40)
    assert loaded.group_offset(3) == model.group_offset(3)
