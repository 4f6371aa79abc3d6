"""Losses whose gradients PyTorch, JAX or differences find, against closed forms."""

import sys

import numpy as np
import pytest

import driftwolfe as dw
from devices import needs_torch
from driftwolfe import losses
from driftwolfe.points.factored import FactoredMatrix
from driftwolfe.points.ops import ProductPoint

LIBRARIES = [pytest.param("torch", marks=needs_torch), "jax"]
by_both = pytest.mark.parametrize("name", LIBRARIES)


def tools(name):
    """The maker of losses, and functions that both libraries name alike."""
    if name == "torch":
        import torch

        return losses.from_torch, torch
    import jax

    return lambda f, *places: losses.from_jax(jax.jit(f), *places), jax.numpy


def closed_forms(name):
    """Pairs of a loss by autograd and the library's own, on vectors, matrices and entries."""
    make, xp = tools(name)
    rng = np.random.default_rng(0)
    z, Z = rng.standard_normal(5), rng.standard_normal((3, 4))
    A, b = rng.standard_normal((7, 5)), rng.choice([-1.0, 1.0], 7)
    M = np.array([1.0, -2.0, 0.5])
    rows, cols = [0, 2, 0], [1, 3, 1]
    own = [xp.asarray(each) if name == "torch" else each for each in (z, Z, A * b[:, None], M)]
    yield make(lambda x: 0.5 * ((x - own[0]) ** 2).sum()), losses.SquaredDistance(z), (5,)
    yield make(lambda x: 0.5 * ((x - own[1]) ** 2).sum()), losses.SquaredDistance(Z), (3, 4)
    by_hand = losses.LogisticLoss(A, b)
    yield make(lambda x: xp.log1p(xp.exp(-(own[2] @ x))).mean()), by_hand, (5,)
    by_hand = losses.SquaredEntries(rows, cols, M)
    yield make(lambda v: ((v - own[3]) ** 2).sum(), rows, cols), by_hand, (3, 4)


@by_both
def test_values_and_gradients_are_those_of_closed_forms(name):
    rng = np.random.default_rng(1)
    for loss, exact, shape in closed_forms(name):
        for x in rng.standard_normal((3, *shape)):
            value, gradient = loss.value_and_gradient(x)
            assert gradient.dtype == np.float64
            np.testing.assert_allclose(value, exact.value(x), rtol=1e-13)
            np.testing.assert_allclose(gradient, exact.gradient(x), rtol=1e-12, atol=1e-14)


@by_both
def test_at_a_factored_matrix_the_gradient_is_sparse(name):
    *_, (loss, exact, _) = closed_forms(name)
    X = FactoredMatrix(np.eye(3, 2), np.array([2.0, 1.0]), np.eye(4, 2))
    gradient = loss.gradient(X)
    assert (gradient.rank, gradient.sparse.nnz) == (0, 2)
    assert np.array_equal(gradient.toarray(), exact.gradient(X).toarray())
    for point in (X, ProductPoint([np.ones(2)])):
        with pytest.raises(ValueError, match=r"takes arrays, got .*: give the entries"):
            tools(name)[0](lambda x: (x**2).sum()).value_and_gradient(point)


@by_both
@pytest.mark.parametrize("make", [dw.POLD, dw.POLAR, dw.OnlineFrankWolfe])
def test_learners_play_as_on_the_closed_form(name, make):
    matrices = dw.TraceNormBall((3, 4), 2.0, representation="factored")
    pairs = [*closed_forms(name)]
    for domain, (loss, exact, _) in ((dw.L1Ball(5), pairs[2]), (matrices, pairs[3])):
        ours, theirs = (make(domain, lipschitz=10.0) for _ in range(2))
        for _ in range(20):
            assert ours.update(loss) == pytest.approx(theirs.update(exact), rel=1e-9)
        np.testing.assert_allclose(
            *(np.asarray(dense(x.decision)) for x in (ours, theirs)), atol=1e-9
        )


def dense(point):
    return point.toarray() if isinstance(point, FactoredMatrix) else point


@by_both
def test_bad_functions_are_refused(name):
    make, (_, xp) = getattr(losses, f"from_{name}"), tools(name)
    rng = np.random.default_rng(0)
    x = np.array([1.0, 2.0])
    with pytest.raises(TypeError, match="function must be callable, got float"):
        make(3.0)
    with pytest.raises(ValueError, match="cols must hold 2 numbers"):
        make(lambda v: v.sum(), [0, 1], [0])
    for function, message in {
        (lambda x: x): "must return a finite number",
        (lambda x: x.sum() * float("nan")): "must return a finite number",
        (lambda x: xp.sqrt(x - 1.0).sum()): "has entries that are not finite",
        (lambda x: (x * rng.random()).sum()): "for one decision the function returned .*, then",
    }.items():
        for ask in (make(function).value_and_gradient, make(function).gradient):
            with pytest.raises(ValueError, match=message):
                ask(x)


@needs_torch
def test_a_result_that_pytorch_does_not_follow_is_refused():
    import torch

    weight = torch.ones(2, dtype=torch.float64, requires_grad=True)
    for function in (
        lambda x: 3.0,
        lambda x: x.sum().item(),
        lambda x: (x.detach() * weight).sum(),
        lambda x: float(np.sum(x.detach().numpy())),
    ):
        with pytest.raises(ValueError, match="sees no way from the decision to the result"):
            losses.from_torch(function).gradient([1.0, 2.0])
    losses.from_torch(lambda x: (x * weight).sum()).value_and_gradient([1.0, 2.0])
    assert weight.grad is None  # the user's own parameters gather nothing


def test_what_jax_does_not_follow_is_refused_and_its_settings_stay():
    import jax

    with pytest.raises(TypeError):
        losses.from_jax(lambda x: np.sum(np.asarray(x))).gradient([1.0, 2.0])
    before = jax.config.jax_enable_x64
    loss = losses.from_jax(jax.jit(lambda x: (x**2).sum()))
    assert loss.value_and_gradient([1.0, 1e-9])[1][1] == 2e-9
    assert jax.config.jax_enable_x64 == before


def test_without_jax_it_is_said_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(ImportError, match=r'pip install "driftwolfe\[jax\]"'):
        losses.from_jax(lambda x: x.sum())


# -- a value alone -----------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(6,), (2, 3)])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_differences_have_eight_digits(shape, scale):
    calls = []

    def value(x):
        calls.append(x)
        return np.logaddexp(0.0, x / scale).sum() + ((x / scale) ** 2).sum()

    loss = losses.FunctionLoss(value)
    x = scale * np.random.default_rng(0).standard_normal(shape)
    with pytest.warns(UserWarning, match="differences of 12 values for each gradient"):
        gradient = loss.gradient(x)
    assert len(calls) == 12
    exact = 1.0 / (1.0 + np.exp(-x / scale)) + 2.0 * x / scale
    np.testing.assert_allclose(scale * gradient, exact, rtol=1e-8, atol=1e-9)
    loss.gradient(x)  # warns no more
    assert loss.value(x) == value(x)


@pytest.mark.filterwarnings("ignore:FunctionLoss takes differences")
def test_a_value_alone_is_enough_for_a_learner_and_not_on_factored_points():
    target = np.array([0.3, 0.2, 0.5])
    ours, theirs = dw.POLAR(dw.Simplex(3)), dw.POLAR(dw.Simplex(3))
    exact = losses.SquaredDistance(target)
    for _ in range(50):
        value = ours.update(losses.FunctionLoss(lambda x: 0.5 * ((x - target) ** 2).sum()))
        assert value == pytest.approx(theirs.update(exact), abs=1e-7)
    with pytest.raises(ValueError, match="takes arrays, got FactoredMatrix: give gradient="):
        losses.FunctionLoss(lambda x: 1.0).gradient(FactoredMatrix.zeros((2, 3)))
    loss = losses.FunctionLoss(lambda x: 1.0)
    assert loss.gradient(np.zeros(3)).tolist() == [0.0, 0.0, 0.0]
