import itertools

import cvxpy as cp
import numpy as np
import pytest

import driftwolfe as dw
from domains.set_checks import check_set

PARTS, CAPACITIES = [[0, 4, 2], [1, 3], [5, 7, 6]], [2, 1, 1]


def zero_one(n, allowed):
    corners = (np.array(corner, dtype=float) for corner in itertools.product([0, 1], repeat=n))
    return [corner for corner in corners if allowed(corner)]


def uniform_case(n, k, kind):
    if kind == "base":
        vertices = zero_one(n, lambda x: x.sum() == k)
        return dw.UniformMatroidPolytope(n, k), vertices, lambda x: [x >= 0, x <= 1, cp.sum(x) == k]
    vertices = zero_one(n, lambda x: x.sum() <= k)
    domain = dw.UniformMatroidPolytope(n, k, kind="independent")
    return domain, vertices, lambda x: [x >= 0, x <= 1, cp.sum(x) <= k]


def partition_case(kind, capacities=CAPACITIES):
    compare = np.equal if kind == "base" else np.less_equal

    def allowed(x):
        sums = [x[part].sum() for part in PARTS]
        return bool(compare(sums, capacities).all())

    def constraints(x):
        sums = [cp.sum(x[part]) for part in PARTS]
        pairs = zip(sums, capacities, strict=True)
        limits = [s == c if kind == "base" else s <= c for s, c in pairs]
        return [x >= 0, x <= 1, *limits]

    domain = dw.PartitionMatroidPolytope(PARTS, capacities, kind)
    return domain, zero_one(8, allowed), constraints


CASES = {
    "3 of 5": uniform_case(5, 3, "base"),
    "1 of 2": uniform_case(2, 1, "base"),
    "up to 2 of 5": uniform_case(5, 2, "independent"),
    "up to 4 of 4": uniform_case(4, 4, "independent"),
    "partition bases": partition_case("base"),
    "partition bases, one part full": partition_case("base", [2, 2, 1]),
    "partition independent": partition_case("independent"),
    "partition independent, one part full": partition_case("independent", [2, 2, 1]),
}


@pytest.mark.parametrize("name", CASES)
def test_sets_against_their_vertices_and_a_conic_solver(name, rng):
    check_set(CASES[name][0], rng, *CASES[name][1:], reach=0.5)


def test_gauge_of_bases_is_infinite_off_the_affine_hull():
    domain, vertices, _ = CASES["partition bases, one part full"]
    sum_moved, fixed_moved = np.zeros(8), np.zeros(8)
    sum_moved[0], fixed_moved[[1, 3]] = 1e-6, [1e-6, -1e-6]
    assert np.isclose(domain.gauge(vertices[0]), 1.0)
    assert domain.gauge(vertices[0] + sum_moved) == np.inf
    assert domain.gauge(vertices[0] + fixed_moved) == np.inf


def test_labels_and_index_lists_are_the_same_partition(rng):
    labels = np.empty(8, dtype=object)
    for name, part in zip("abc", PARTS, strict=True):
        labels[part] = name
    by_label = dw.PartitionMatroidPolytope(labels.astype(str), CAPACITIES)
    y = rng.normal(size=8)
    assert np.array_equal(by_label.project(y), CASES["partition bases"][0].project(y))
    assert np.array_equal(by_label.lmo(y), CASES["partition bases"][0].lmo(y))


def test_one_capacity_for_all_parts_and_many_parts_at_once(rng):
    domain = dw.PartitionMatroidPolytope(np.repeat(np.arange(300), 4), 2)
    y = rng.normal(size=1200)
    alone = dw.UniformMatroidPolytope(4, 2)
    assert np.allclose(
        domain.project(y).reshape(300, 4), [alone.project(r) for r in y.reshape(-1, 4)]
    )
    assert np.array_equal(domain.lmo(y).reshape(300, 4), [alone.lmo(r) for r in y.reshape(-1, 4)])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: dw.UniformMatroidPolytope(4, 4), 'from 1 to 3 for n = 4 and kind "base", got 4'),
        (lambda: dw.UniformMatroidPolytope(4, 5, "independent"), "from 1 to 4"),
        (lambda: dw.UniformMatroidPolytope(4, 0), "k must be a whole number >= 1"),
        (lambda: dw.UniformMatroidPolytope(4, 2, kind="bases"), 'kind must be one of "base"'),
        (lambda: dw.PartitionMatroidPolytope([0, 0, 1], [1]), "one entry per part, 2, got 1"),
        (lambda: dw.PartitionMatroidPolytope([0, 0, 1], [1, 2]), "part 1 has 1 coordinates"),
        (lambda: dw.PartitionMatroidPolytope([0, 0, 1], [0, 1]), "capacity must be a whole number"),
        (lambda: dw.PartitionMatroidPolytope([0, 1], 1), "there is one base"),
        (lambda: dw.PartitionMatroidPolytope([[0], [0]], 1), "parts must be .* hold each of 0, 1"),
    ],
)
def test_bad_input_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
