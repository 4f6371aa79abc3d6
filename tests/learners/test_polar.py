"""POLAR against a plain loop, dense against sparse, and when its experts join and restart."""

import math

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe import reference
from driftwolfe.ensemble.dense import DenseDescent
from driftwolfe.learners import polar as module
from driftwolfe.losses import AbsoluteEntries, LinearLoss, SquaredDistance, SquaredEntries
from driftwolfe.points import FactoredMatrix
from learners.families import turning_entries

ALL = ("lazy", "origin", "adaptive", "agile", "vertex")
SETS = {"simplex": dw.Simplex(4), "ball": dw.L2Ball(4, radius=2.0)}


def stream(rounds, size=4, seed=0):
    """Targets and slopes that jump off the dyadic grid."""
    rng = np.random.default_rng(seed)
    given = rng.standard_normal((rounds, size)) + 1.5 * np.sin(np.arange(rounds) // 27)[:, None]
    return [LinearLoss(g) if t % 3 else SquaredDistance(g) for t, g in enumerate(given)]


def block(length):
    """The root of a quarter of an epoch's rounds, where points are dense."""
    return max(1, math.isqrt(length // 4))


def agrees(learner, plain, losses, atol):
    for t, (loss, x) in enumerate(zip(losses, plain, strict=True), start=1):
        np.testing.assert_allclose(learner.decision, x, rtol=0, atol=atol, err_msg=str(t))
        learner.update(loss)


@pytest.mark.in_turn(
    "kinds weights", "kinds G", "weights G", "name kinds", "name weights", "name G"
)
@pytest.mark.parametrize("G", [None, 5.0], ids=["learned", "given"])
@pytest.mark.parametrize("weights", ["adahedge", "sleeping"])
@pytest.mark.parametrize(
    "kinds", [("lazy",), ("origin",), ("adaptive",), ("agile",), ("vertex",), ALL], ids="-".join
)
@pytest.mark.parametrize("name", SETS)
def test_polar_is_the_reference(name, kinds, weights, G):
    """Rounding is 1e-16 of numbers below 100, in weights that a rate of at most 100 multiplies."""
    domain, losses, B = SETS[name], stream(90), 40.0
    plain = reference.polar(domain, losses, G, kinds, B if weights == "sleeping" else None)
    learner = dw.POLAR(domain, None, G or "auto", experts=kinds, weights=weights, loss_scale=B)
    agrees(learner, plain, losses, atol=1e-9)
    assert bool(learner.oracle_calls.lmo) == ("vertex" in kinds)


@pytest.mark.parametrize("weights", ["adahedge", "sleeping"])
def test_linear_feedback_is_one_gradient_for_all(weights):
    domain, losses = SETS["ball"], stream(100, seed=1)
    B = 40.0 if weights == "sleeping" else None
    plain = reference.polar(domain, losses, 5.0, ALL, B, linear=True)
    learner = dw.POLAR(
        domain, lipschitz=5.0, experts=ALL, weights=weights, loss_scale=40.0, feedback="linear"
    )
    agrees(learner, plain, losses, atol=1e-9)


def test_blocks_of_experts_that_project_by_lmo_calls():
    """Corrective steps on a simplex end at the projection; what is left of the gap is 1e-10 D^2."""
    domain, losses = SETS["simplex"], stream(80, seed=2)
    plain = reference.polar(domain, losses, 5.0, ALL, block=block)
    oracle = dw.Oracle("corrective", accuracy=1e-10, tolerance_scale=1e-12)
    learner = dw.POLAR(domain, lipschitz=5.0, experts=ALL, oracle=oracle)
    agrees(learner, plain, losses, atol=1e-4)
    assert learner.lmo_calls > 0 == learner.oracle_calls.projection


# -- entries ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "kind", "atol"), [("exact", AbsoluteEntries, 1e-8), ("block", SquaredEntries, 1e-3)]
)
def test_sparse_sums_are_dense_sums(method, kind, atol, monkeypatch):
    """A factored ball against a dense one with exact projections; on both, after every round."""
    plan = dw.POLAR._plan
    monkeypatch.setattr(module, "SHORTEST_FACTORED", module.SHORTEST)
    monkeypatch.setattr(dw.POLAR, "_plan", lambda *given: plan(*given)._replace(block=1))
    # Where points are factored, leaders restart at what the heaviest expert plays.
    monkeypatch.setattr(DenseDescent, "restart_point", lambda self, w, pick: self.point(pick(w)))
    sparse, dense = (
        dw.TraceNormBall((14, 12), 20.0, representation=how) for how in ("factored", "dense")
    )
    options = {"lipschitz": 3.0, "experts": ("lazy", "origin")}
    one = dw.POLAR(
        sparse, oracle=dw.Oracle(method, accuracy=1e-10, tolerance_scale=1e-10), **options
    )
    other = dw.POLAR(dense, oracle="exact", **options)
    for loss in turning_entries(kind, 50, (14, 12)):
        np.testing.assert_allclose(one.decision.toarray(), other.decision, rtol=0, atol=atol)
        one.update(loss)
        other.update(loss)
    held = one._experts.sums
    assert all(each.rest.rank == 0 and each.rest.sparse.nnz <= 14 * 12 for each in held[:3])


def test_agile_experts_of_factored_points_expect_nothing():
    """Plain projected gradient descent on dense matrices, with the step D / (G sqrt(32))."""
    sparse, dense = (
        dw.TraceNormBall((14, 12), 20.0, representation=how) for how in ("factored", "dense")
    )
    learner = dw.POLAR(sparse, lipschitz=3.0, experts=("agile",), oracle="exact")
    x = np.zeros((14, 12))
    for loss in turning_entries(AbsoluteEntries, 50, (14, 12)):
        learner.update(loss)
        x = dense.project(x - 40.0 / (3.0 * math.sqrt(32)) * loss.gradient(x))
    assert learner.expert_names == ["whole game", "agile, 32 rounds"]
    np.testing.assert_allclose(learner._experts.x[1].toarray(), x, rtol=0, atol=1e-9)


@pytest.mark.parametrize("settings", [{}, {"oracle": dw.Oracle(lmo_budget=1.0)}])
def test_sums_of_low_rank_gradients_stay_narrow(settings):
    """All in one plane: after 120 rounds the sum of an epoch has not 240 columns."""
    rng = np.random.default_rng(0)
    ball = dw.TraceNormBall((120, 100), 5.0, representation="factored")
    U, V = (np.linalg.qr(rng.standard_normal((size, 2)))[0] for size in (120, 100))
    learner = dw.POLAR(ball, **settings)
    widest = 0
    for _ in range(120):
        learner.update(LinearLoss(FactoredMatrix(U, rng.standard_normal(2), V @ rotation(rng))))
        widest = max(widest, *(0 if s.rest is None else s.rest.rank for s in learner._experts.sums))
    # Those of 65 columns are recompressed when their block of at most 16 rounds ends.
    assert 50 <= widest <= 64 + 2 * 16
    assert learner.decision.nuclear_norm() <= 5.0 * (1 + 1e-9)


def rotation(rng):
    angle = rng.uniform(0.0, 2.0 * np.pi)
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


# -- joining and restarting ------------------------------------------------------------------------


def test_lengths_join_when_a_round_reaches_them():
    learner, losses = dw.POLAR(dw.L2Ball(4), experts=("agile", "lazy")), stream(70)
    for loss in losses:
        names, t = learner.expert_names, learner.t
        lengths = [n for n in (8, 16, 32, 64) if n <= t + 1]
        agile = [f"agile, {n} rounds" for n in (16, 64)]
        each = [f"{kind}, {n} rounds" for n in lengths for kind in ("lazy", "agile")]
        each = [name for name in each if name in agile or "lazy" in name]
        assert names == ["whole game", "agile, 4 rounds", *each]
        assert len(names) == learner.expert_weights.size == learner._experts.size
        learner.update(loss)
    factored = dw.POLAR(dw.TraceNormBall((300, 200)))
    for _ in range(63):
        assert factored.expert_names == ["whole game"]
        factored.update(AbsoluteEntries([0], [1], [1.0]))
    assert factored.expert_names == ["whole game", "lazy, 64 rounds", "origin, 64 rounds"]


# -- settings --------------------------------------------------------------------------------------


def test_kinds_come_once_and_in_one_order():
    assert dw.POLAR(dw.L1Ball(3), experts=["agile", "lazy", "lazy"]).kinds == ("lazy", "agile")
    factored, dense = (
        dw.TraceNormBall((300, 200), representation=how) for how in ("factored", "dense")
    )
    budget = dw.Oracle(lmo_budget=1.0)
    for learner, kinds in (
        (dw.POLAR(dw.L1Ball(3)), ("lazy", "adaptive", "agile")),
        (dw.POLAR(dw.L1Ball(3), oracle="corrective"), ("lazy",)),
        (dw.POLAR(dw.LMODomain(3, dw.L1Ball(3).lmo, 1.0)), ("lazy", "vertex")),
        (dw.POLAR(dw.L1Ball(3), oracle=budget), ("lazy",)),
        (dw.POLAR(dense, oracle="block"), ("lazy",)),
        (dw.POLAR(factored), ("lazy", "origin")),
    ):
        assert learner.kinds == kinds
    for domain, kind, more in ((factored, "adaptive", "auto"), (dw.L1Ball(3), "vertex", budget)):
        with pytest.raises(ValueError, match="each of experts must be one of"):
            dw.POLAR(domain, experts=(kind,), oracle=more)
