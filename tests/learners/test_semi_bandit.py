"""Semi-bandit feedback: vertices drawn, estimates, and bounds in expectation."""

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.losses import LinearLoss
from learners.families import listener

EDGES = [("s", "a"), ("s", "b"), ("a", "b"), ("a", "t"), ("b", "t"), ("s", "t"), ("t", "x")]
SETS = {
    "paths": dw.FlowPolytope(EDGES, "s", "t"),  # the last edge is on none
    "assignments": dw.BirkhoffPolytope(3),
    "trees": dw.SpanningTreePolytope(4),
    "subsets": dw.UniformMatroidPolytope(6, 2),
    "independent": dw.PartitionMatroidPolytope([0, 0, 0, 1, 1], [2, 1], kind="independent"),
}


def usable(domain):
    """Components that some vertex has, by asking for each."""
    units = np.eye(np.prod(domain.shape)).reshape(-1, *domain.shape)
    return np.array([domain.lmo(-unit).ravel()[i] > 0 for i, unit in enumerate(units)]).reshape(
        domain.shape
    )


def seen_by(domain, loss, seeds, **options):
    """Vertices played and estimates after the first round, one per seed."""
    vertices, (listening, seen) = [], listener()
    for seed in range(seeds):
        learner = dw.contrib.SemiBandit(domain, listening, seed=seed, **options)
        vertices.append(learner.query())
        learner.update(LinearLoss(loss))
    return np.array(vertices), np.array(seen)


@pytest.mark.parametrize("name", SETS)
def test_vertices_and_estimates_have_the_right_means(name):
    domain, seeds = SETS[name], 120
    loss = np.linspace(-1.0, 1.0, np.prod(domain.shape)).reshape(domain.shape)
    options = {"horizon": 64, "lipschitz": 5.0, "exploration": 0.25}
    vertices, seen = seen_by(domain, loss, seeds, **options)
    assert set(np.unique(vertices)) <= {0.0, 1.0}
    assert all(domain.contains(vertex) for vertex in vertices[:50])
    cover = dw.contrib.SemiBandit(domain, **options)._cover
    mean = 0.75 * domain.origin() + 0.25 * cover.mean(axis=0)
    np.testing.assert_allclose(vertices.mean(axis=0), mean, atol=5 * 0.5 / np.sqrt(seeds))
    noise = 5 * np.abs(seen).max(axis=0) / np.sqrt(seeds)
    np.testing.assert_array_less(
        np.abs(seen.mean(axis=0) - np.where(usable(domain), loss / 5.0, 0.0)), noise + 1e-12
    )
    assert ((cover != 0).any(axis=0) == usable(domain)).all()
    largest = max(np.linalg.norm(each) for each in seen) / np.linalg.norm(loss)
    assert largest <= (1 + 2 * len(cover) / 0.25) / 5.0


@pytest.mark.parametrize("name", SETS)
def test_only_chosen_components_are_read(name):
    domain = SETS[name]
    plain, masked, whole = (dw.contrib.SemiBandit(domain, horizon=40) for _ in range(3))
    rng = np.random.default_rng(0)
    for _ in range(12):
        vertex, loss = plain.query(), rng.standard_normal(domain.shape)
        suffered = plain.update(np.where(vertex != 0, loss, np.nan))
        assert suffered == pytest.approx(float(np.vdot(loss, vertex)))
        assert masked.update(np.where(vertex != 0, loss, 1e9)) == suffered
        assert whole.update(LinearLoss(loss)) == pytest.approx(suffered)
    np.testing.assert_array_equal(plain.decision, masked.decision)
    np.testing.assert_allclose(plain.decision, whole.decision, atol=1e-12)
    assert plain.oracle_calls == masked.oracle_calls


def adversary(domain, rounds, seed):
    """Losses of norm at most 1 that favour one vertex, then, after a while, another."""
    rng = np.random.default_rng(seed)
    favoured = [domain.lmo(rng.standard_normal(domain.shape)) for _ in range(2)]
    for t in range(rounds):
        loss = rng.random(domain.shape) - 0.9 * favoured[2 * t // rounds]
        yield loss / np.sqrt(loss.size)


@pytest.mark.parametrize(
    ("learner", "name"),
    [
        *((dw.POLD, name) for name in SETS),
        *((dw.POLA, name) for name in ("trees", "subsets")),
        *((dw.POLAR, name) for name in ("paths", "assignments", "independent")),
    ],
)
def test_the_mean_regret_is_within_the_bound(learner, name):
    domain, rounds = SETS[name], 40
    losses = list(adversary(domain, rounds, seed=1))
    halves = [np.sum(losses[:20], axis=0), np.sum(losses[20:], axis=0)]
    best, parts = sum(halves), [domain.lmo(half) for half in halves]
    path = float(np.linalg.norm(parts[1] - parts[0]))
    static = float(np.vdot(best, domain.lmo(best)))
    moving = sum(float(np.vdot(half, part)) for half, part in zip(halves, parts, strict=True))
    suffered = []
    tuning = "certified" if learner is dw.POLAR else "practical"
    for seed in range(2):
        player = dw.contrib.SemiBandit(
            domain, learner, horizon=rounds, lipschitz=1.0, seed=seed, tuning=tuning
        )
        suffered.append(sum(player.update(LinearLoss(loss)) for loss in losses))
    assert np.mean(suffered) - static <= player.bound()
    assert np.mean(suffered) - moving <= player.bound(path_length=path)


def test_the_bound_by_hand():
    domain, rounds, G = dw.UniformMatroidPolytope(6, 2), 64, 2.0
    player = dw.contrib.SemiBandit(
        domain, dw.BOGDIP, horizon=rounds, lipschitz=G, tuning="certified"
    )
    for _ in range(rounds):
        player.update(np.full(6, 0.5))
    m, D = 3, 2 * domain.radius  # three pairs choose all six
    gamma = (m / rounds) ** (1 / 3)
    assert player.exploration == pytest.approx(gamma)
    spread, block, h = 2 * np.sqrt(m / gamma), 8, rounds**-0.75
    eta = D / (1.0 + spread * rounds**-0.25) * h
    inner = rounds * np.sqrt(3 * D**2 * h ** (2 / 3)) + D**2 / 8 / eta
    inner += eta * block * rounds * (1.0 + spread / np.sqrt(block)) ** 2 / 2
    assert player.bound() == pytest.approx(G * inner + gamma * G * domain.diameter * rounds)


def test_what_is_refused():
    subsets = SETS["subsets"]
    with pytest.raises(ValueError, match="arrays"):
        dw.contrib.SemiBandit(dw.TraceNormBall((3, 4), representation="factored"))
    player = dw.contrib.SemiBandit(subsets, horizon=10, lipschitz=1.0)
    for wrong in (np.ones(5), np.full(6, np.nan), ["a"] * 6):
        with pytest.raises(ValueError, match="observed"):
            player.update(wrong)
    for wrong in (None, "losses", 1.0):
        with pytest.raises(TypeError, match="update takes"):
            player.update(wrong)
    for G in (1.0, "auto"):  # of a finite value, and too long
        other = dw.contrib.SemiBandit(subsets, horizon=10, lipschitz=G)
        first, second = np.flatnonzero(other.query())
        with pytest.raises(ValueError, match="not finite"):
            other.update(1.7e308 * (np.eye(6)[first] - np.eye(6)[second]))
    assert player.t == 0
    player.update(np.full(6, 0.9))  # two of them have the norm 1.27
    with pytest.raises(NotImplementedError, match="lipschitz"):
        player.bound()
    with pytest.raises(NotImplementedError):
        dw.contrib.SemiBandit(subsets, horizon=10).bound()
