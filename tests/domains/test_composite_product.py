import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.points.ops import ProductPoint


def test_sizes():
    product = dw.ProductDomain([dw.L1Ball(2, radius=2.0), dw.Simplex(3), dw.LinfBall((2, 2))])
    assert product.shape == ((2,), (3,), (2, 2))
    assert np.isclose(product.radius, np.sqrt(4 + 2 / 3 + 4))
    assert np.isclose(product.diameter, np.sqrt(16 + 2 + 16))
    assert np.isclose(product.inner_radius, 1 / np.sqrt(6))


def test_errors_of_inexact_oracles_add_up():
    inexact = dw.LMODomain(2, lambda d: -np.sign(d), radius=2.0, error=0.1)
    product = dw.ProductDomain([inexact, inexact, dw.L1Ball(2)])
    direction = ProductPoint([np.array([3.0, 4.0]), np.array([0.0, 1.0]), np.ones(2)])
    assert np.isclose(product.lmo_with_error(direction)[1], 0.1 * 2 * (5 + 1))


def test_what_one_part_lacks_the_product_lacks():
    product = dw.ProductDomain([dw.Simplex(2), dw.BirkhoffPolytope(2)])
    assert product.can("gauge")
    assert not product.can("project")
    assert not product.cheap_projection
    with pytest.raises(NotImplementedError, match="BirkhoffPolytope has no cheap projection"):
        product.project(product.origin())


def test_products_of_products():
    inner = dw.ProductDomain([dw.L1Ball(2), dw.L2Ball(2)])
    outer = dw.ProductDomain([inner, dw.Simplex(3)])
    assert outer.shape == (((2,), (2,)), (3,))
    answer = outer.lmo(([[1.0, 2.0], [3.0, 4.0]], [1.0, 2.0, 0.0]))
    assert np.allclose(answer.parts[0].parts[1], [-0.6, -0.8])
    assert outer.contains(answer)


def test_counted_parts_count():
    parts = [dw.count_calls(dw.L1Ball(2)), dw.count_calls(dw.Simplex(3))]
    product = dw.ProductDomain(parts)
    y = ProductPoint([np.ones(2), np.full(3, 1 / 3)])
    product.lmo(y)
    product.project(y)
    product.gauge(y)
    for part in parts:
        assert part.calls == dw.OracleCalls(lmo=1, projection=1, gauge=1)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros(2), "must be a ProductPoint with 2 parts"),
        ([np.zeros(2)], "must be a ProductPoint with 2 parts"),
        ([np.zeros(2), np.zeros(2)], r"direction\[1\] must have shape \(3,\)"),
        ([np.array([0.0, np.inf]), np.zeros(3)], r"direction\[0\] has entries that are not finite"),
    ],
)
def test_bad_points_are_refused(value, message):
    with pytest.raises(ValueError, match=message):
        dw.ProductDomain([dw.L1Ball(2), dw.Simplex(3)]).lmo(value)


def test_bad_construction_is_refused():
    with pytest.raises(ValueError, match="at least one set"):
        dw.ProductDomain([])
    with pytest.raises(TypeError, match=r"domains\[1\] must be a Domain, got int"):
        dw.ProductDomain([dw.L1Ball(2), 3])
