"""Linear losses and squared distances."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from driftwolfe.losses import LinearLoss, SquaredDistance
from driftwolfe.points.factored import FactoredMatrix
from losses.loss_cases import factored


@pytest.mark.parametrize("kind", [LinearLoss, SquaredDistance])
def test_both_kinds_of_given_point_meet_both_kinds_of_point(kind):
    rng = np.random.default_rng(0)
    given, point = factored(rng), factored(rng)
    expected_value, expected = kind(given.toarray()).value_and_gradient(point.toarray())
    for g in (given, given.toarray()):
        for x in (point, point.toarray()):
            value, gradient = kind(g).value_and_gradient(x)
            assert type(gradient) is type(x)
            array = gradient.toarray() if isinstance(x, FactoredMatrix) else gradient
            assert value == pytest.approx(expected_value)
            np.testing.assert_allclose(array, expected, atol=1e-12)


def test_known_values():
    assert LinearLoss([[1.0, 2.0]], constant=-1.0).value([[3.0, 4.0]]) == 10.0
    assert SquaredDistance([1.0, 1.0], weight=2.0).value([0.0, 3.0]) == 10.0
    assert LinearLoss([3.0, 4.0]).lipschitz(None) == 5.0
    ball = SimpleNamespace(center=None, radius=2.0)
    assert SquaredDistance([3.0, 4.0]).lipschitz(ball) == 7.0
    off_center = SimpleNamespace(center=np.array([3.0, 3.0]), radius=2.0)
    assert SquaredDistance([3.0, 4.0], weight=1.0).lipschitz(off_center) == 6.0


@pytest.mark.parametrize("kind", [LinearLoss, SquaredDistance])
def test_bad_input_is_refused(kind):
    with pytest.raises(ValueError, match="not finite"):
        kind([1.0, np.nan])
    with pytest.raises(ValueError, match="real numbers"):
        kind("abc")


def test_bad_numbers_are_refused():
    with pytest.raises(ValueError, match="constant"):
        LinearLoss([1.0], constant=np.nan)
    with pytest.raises(ValueError, match="weight"):
        SquaredDistance([1.0], weight=-1.0)
