"""Gauges by membership tests alone."""

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.oracles import gauge_by_bisection
from driftwolfe.points import norm


def test_gauge_by_bisection():
    rng = np.random.default_rng(0)
    for domain in (dw.L1Ball(5, 2.0), dw.LinfBall(4), dw.TraceNormBall((3, 4), 2.0), dw.Simplex(4)):
        for _ in range(5):
            y = domain.lmo(rng.standard_normal(domain.shape)) * 0.5
            y = y + domain.lmo(rng.standard_normal(domain.shape)) * 0.5
            y = domain.origin() + (y - domain.origin()) * rng.uniform(0.1, 5.0)
            assert gauge_by_bisection(domain, y) == pytest.approx(domain.gauge(y), rel=1e-6)
            # A coarse answer errs on the safe side: c + (y - c)/t is in the set, and no farther in
            # than the last interval for 1/t is wide.
            length, true = norm(y - domain.origin()), domain.gauge(y)
            for accuracy in (0.3, 0.01) if length > 0 else ():
                coarse = gauge_by_bisection(domain, y, accuracy)
                width = (domain.radius - domain.inner_radius) / length
                assert true * (1 - 1e-12) <= coarse
                assert 1 / coarse >= 1 / true - accuracy * width * (1 + 1e-9)
    assert gauge_by_bisection(dw.L1Ball(3), np.zeros(3)) == 0.0
    with pytest.raises(ValueError, match="inner_radius"):
        gauge_by_bisection(dw.LMODomain(2, dw.L1Ball(2).lmo, 1.0), np.ones(2))
