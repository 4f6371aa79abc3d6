"""Step-size grids and covers: their formulas, and that they reach every best step and any interval."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from driftwolfe.ensemble import GeometricCover, ader_grid, pold_grid
from driftwolfe.ensemble.plan import (
    block_length,
    budgeted_grid,
    experiment_grid,
    paper_grid,
    projection_eps,
)

HORIZONS = [1, 2, 3, 4, 7, 10, 100, 999, 3000, 4350, 10**6]
GRIDS = [pold_grid, paper_grid, experiment_grid, ader_grid]
every_horizon = pytest.mark.parametrize("T", HORIZONS)


def doubled(first, number):
    return [2 ** (i - 1) * first for i in range(1, number + 1)]


@every_horizon
def test_formulas(T):
    for v0 in (0.5, 0.125):
        number = math.floor(0.75 * math.log2(1 + (T - 1) / (2 * v0))) + 1
        np.testing.assert_allclose(pold_grid(T, v0), doubled((1.344 * v0 / T) ** 0.75, number))
    number = math.ceil(0.75 * math.log2(1 + 4 * T / 7)) + 1
    kept = [h for h in doubled((7 / (2 * T)) ** 0.75, number) if h <= 1]
    np.testing.assert_allclose(paper_grid(T), kept or [1.0])
    kept = [h for h in doubled(T**-0.75, number) if h <= 1]
    np.testing.assert_allclose(experiment_grid(T), kept)
    number = math.ceil(0.5 * math.log2(1 + 4 * T / 7)) + 1
    np.testing.assert_allclose(ader_grid(T), doubled(math.sqrt(3.5 / T), number))


@every_horizon
@pytest.mark.parametrize("v0", [0.5, 0.125])
def test_pold_grid_has_every_best_step_within_a_factor_of_two(T, v0):
    grid = pold_grid(T, v0)
    path_lengths = np.unique(np.concatenate((np.linspace(0, T - 1, 2000), [0, T - 1])))
    best = (1.344 * (v0 + path_lengths / 2) / T) ** 0.75
    nearest_below = grid[np.searchsorted(grid, best * (1 + 1e-12), side="right") - 1]
    ratio = best / nearest_below
    assert (ratio >= 1 - 1e-9).all()
    assert (ratio <= 2 + 1e-9).all()
    assert grid[-1] <= 0.75


def test_a_bad_horizon_or_start_is_refused():
    for grid, horizon in itertools.product((pold_grid, ader_grid), (0, -3, 2.5)):
        with pytest.raises(ValueError, match="horizon"):
            grid(horizon)
    with pytest.raises(ValueError, match="v0"):
        pold_grid(10, v0=0.0)


def test_block_length_of_the_static_step_is_the_root_of_the_horizon():
    for T in range(1, 3000):
        assert block_length(T**-0.75) == math.isqrt(T)
    for root in (10**3, 10**6):
        assert block_length((root**2) ** -0.75) == root


def test_blocks_and_accuracies():
    assert block_length(1.0) == block_length(5.0) == 1
    assert projection_eps(0.125) == pytest.approx(0.25)
    for h in np.geomspace(1e-6, 1.0, 50):
        assert block_length(h) * projection_eps(h) <= 1 + 1e-9
        assert (block_length(h) + 1) * projection_eps(h) > 1


def test_powers_of_two_are_counted_exactly():
    """In whole numbers: 2^j <= T^3 decides where a grid of j + 1 quarter steps ends."""
    for k in range(1, 11):
        T = 16**k  # 3/4 log2(T) is 3k
        assert pold_grid(T, 0.5).size == 3 * k + 1
        steps = [j for j in range(200) if (1 << 4 * j) <= T**3]  # 2^j T^(-3/4) <= 1
        assert experiment_grid(T).size == len(steps) == 3 * k + 1
        assert experiment_grid(T)[-1] == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("error", [-2e-15, 0.0, 2e-15])
def test_block_lengths_of_squares_do_not_hang_on_the_last_bit(error):
    for root in (2, 3, 4, 9, 16, 64, 100, 999, 1000):
        for doublings in (0, 3, 6):
            h = 2**doublings * float(root * root) ** -0.75 * (1.0 + error)
            expected = math.isqrt(root * root) // 4 ** (doublings // 3)
            assert block_length(h) == max(1, expected)


@pytest.mark.parametrize("nudge", [0.0, math.inf, -math.inf])
def test_grids_do_not_hang_on_the_last_bit_of_a_logarithm(nudge, monkeypatch):
    """Another library may round log2 and powers the other way."""
    plain = math.log2
    if nudge:
        monkeypatch.setattr(math, "log2", lambda x: math.nextafter(plain(x), nudge))
    assert pold_grid(4096, 0.5).size == 10
    assert [plan.reserved > 0 for plan in budgeted_grid(4096, 0.5, 1.0)] == [True] * 10


LAST = 300
#: All [i 2^k, (i+1) 2^k - 1] with i >= 1 that start by 2 LAST.
GEOMETRIC = {
    (i << k, ((i + 1) << k) - 1)
    for k in range((2 * LAST).bit_length())
    for i in range(1, (2 * LAST >> k) + 1)
}


def test_starting_active_and_created_agree_with_the_definition():
    cover = GeometricCover()
    for t in range(1, 2 * LAST + 1):
        assert cover.starting(t) == sorted(end - s + 1 for s, end in GEOMETRIC if s == t)
        active = sorted((i for i in GEOMETRIC if i[0] <= t <= i[1]), key=lambda i: i[1] - i[0])
        assert cover.active(t) == active
        assert cover.created(t) == sum(start <= t for start, _ in GEOMETRIC)


def test_how_many_are_active_and_were_created():
    for t in [*range(1, 1000), 2**20 + 5, 2**40, 2**40 - 1, 3**30]:
        assert len(GeometricCover().active(t)) == math.floor(math.log2(t)) + 1
        assert GeometricCover().created(t) == sum(t // 2**k for k in range(t.bit_length()))
    assert GeometricCover().created(0) == 0


def test_rounds_count_from_one():
    cover = GeometricCover()
    for method, t in itertools.product((cover.starting, cover.active), (0, -1, 1.5)):
        with pytest.raises(ValueError, match="whole number >= 1"):
            method(t)
