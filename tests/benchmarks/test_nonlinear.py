"""Classifiers on streams that are linear or not: the models played, and the settings chosen for them."""

import pytest

from benchmarks import nonlinear, streams


def test_other_models_have_the_settings_of_the_page_on_which_model():
    # AMF once had 0.7045 on one page and 0.889 on another, for want of one of its settings.
    rows = [({"a": 1.0}, True), ({"a": 2.0}, False)]
    ours = dict(nonlinear.contestants(rows, seed=3))
    theirs = dict(streams.classifiers("", rows))
    assert [make().seed for make in ours[nonlinear.OURS]] == [3]
    assert ours.keys() - theirs.keys() == {nonlinear.LINEAR}
    for who in theirs.keys() - {nonlinear.OURS}:
        assert [repr(make()) for make in ours[who]] == [repr(make()) for make in theirs[who]]


def test_the_setting_with_the_best_mean_over_seeds_is_chosen():
    several = [{"a": [(0.9, 5.0), (0.5, 1.0)], "b": [(0.4, 2.0)]}]
    several.append({"a": [(0.1, 7.0), (0.7, 3.0)], "b": [(0.6, 4.0)]})
    assert nonlinear.best_means(several) == {
        "a": (pytest.approx(0.6), 2.0),
        "b": (pytest.approx(0.5), 3.0),
    }


def test_models_left_out_are_not_played(monkeypatch):
    monkeypatch.setitem(nonlinear.STREAMS, "few", (lambda seed: nonlinear.moons(seed)[:60], 1))
    found = nonlinear.played(
        ("few", 0), without=("ARF", "AMF", nonlinear.LINEAR), random_features=1
    )
    assert found.keys() == {nonlinear.OURS, "tuned logistic", nonlinear.BATCH}
    assert len(found["tuned logistic"]) == 6
    assert all(
        0.0 <= share <= 1.0 and time > 0.0 for each in found.values() for share, time in each
    )
