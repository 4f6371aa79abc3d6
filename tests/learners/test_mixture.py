"""A mixture of whole learners: its promise against each of them, yours among them."""

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.losses import LinearLoss, PortfolioLoss, SquaredDistance
from driftwolfe.state import State


class Mine(dw.Learner):
    """A learner of a user's own: the vertex that was best in the last round."""

    _x: State[object]

    def __init__(self, domain, horizon=None, lipschitz="auto"):
        super().__init__(domain)
        self._x = domain.origin()

    @property
    def decision(self):
        return self._x.copy()

    def update(self, loss):
        value, gradient = loss.value_and_gradient(self._x)
        self._x = self._counted.lmo(gradient)
        self.t += 1
        return value


def days(rounds=120, n=4, seed=0):
    return np.exp(0.1 * np.random.default_rng(seed).standard_normal((rounds, n)))


@pytest.mark.parametrize("prior", [None, [5.0, 1.0, 1.0]])
def test_with_natural_weights_the_wealth_is_that_of_a_fund_of_funds(prior):
    simplex = dw.Simplex(4)
    alone = [dw.learners.Constant(simplex), dw.POLAR(simplex), Mine(simplex)]
    fund = dw.contrib.Mixture(simplex, alone, weights="natural", prior=prior)
    losses = [PortfolioLoss(day) for day in days()]
    totals = [sum(learner.update(loss) for loss in losses) for learner in alone]
    total = sum(fund.update(loss) for loss in losses)
    shares = np.ones(3) / 3 if prior is None else np.array(prior) / 7
    assert np.exp(-total) == pytest.approx(shares @ np.exp(-np.array(totals)))
    assert fund.oracle_calls.lmo == alone[2].lmo_calls == 120
    assert fund.oracle_calls.projection == alone[1].oracle_calls.projection


def test_shared_weights_follow_the_best_and_keep_their_bound():
    ball, rng = dw.L2Ball(3), np.random.default_rng(0)
    mixture = dw.contrib.Mixture(
        ball, [dw.learners.Constant, dw.OGD, Mine], lipschitz=2.0, horizon=400
    )
    total, own, target = 0.0, np.zeros(3), np.array([0.6, 0.0, 0.3])
    for _ in range(400):
        loss = SquaredDistance(target + 0.1 * rng.standard_normal(3))
        before = [each.decision for each in mixture.learners]
        own += [loss.value(x) for x in before]
        total += mixture.update(loss)
    assert total - own.min() <= mixture._meta.regret_bound()
    best = dw.regret.offline_minimum(ball, [SquaredDistance(target)]).point
    assert mixture.expert_weights.argmax() == own.argmin() == 1
    np.testing.assert_allclose(mixture.decision, best, atol=0.2)
    price = mixture._meta.regret_bound()
    assert mixture.bound() == pytest.approx(mixture.learners[1].bound() + price)


def test_the_bound_is_the_smallest_of_the_learners_plus_the_price_of_weights():
    simplex = dw.Simplex(4)
    newton = dw.contrib.OnlineNewtonStep(simplex, lipschitz=1.5, alpha=1.0)
    fund = dw.contrib.Mixture(
        simplex, [dw.learners.Constant, newton], weights="natural", prior=[9.0, 1.0]
    )
    total, seen = 0.0, days()
    for day in seen:
        total += fund.update(PortfolioLoss(day))
    assert fund.bound() == pytest.approx(fund.learners[1].bound() + np.log(10.0))
    best = len(seen) * dw.regret.offline_minimum(simplex, [PortfolioLoss(seen)]).value
    assert total - best <= fund.bound()
    for asked in ({"tau": 5}, {"path_length": 1.0}):
        with pytest.raises(NotImplementedError):
            fund.bound(**asked)


class Stubborn(Mine):
    """Refuses what it does not like, after the others have seen it."""

    t: State[int]

    def update(self, loss):
        if isinstance(loss, SquaredDistance):
            raise ValueError("not that one")
        return super().update(loss)


def test_where_one_learner_refuses_none_has_seen_the_loss():
    ball = dw.L1Ball(3)
    disturbed, calm = (dw.contrib.Mixture(ball, [dw.POLAR, dw.POLD, Stubborn]) for _ in "12")
    rng = np.random.default_rng(0)
    for _ in range(40):
        loss = LinearLoss(rng.standard_normal(3))
        with pytest.raises(ValueError, match="not that one"):
            disturbed.update(SquaredDistance(rng.standard_normal(3)))
        assert disturbed.update(loss) == calm.update(loss)
    np.testing.assert_array_equal(disturbed.decision, calm.decision)
    assert disturbed.oracle_calls == calm.oracle_calls


def test_given_learners_are_copied():
    ball = dw.L1Ball(3)
    mine = dw.OGD(ball)
    mixture = dw.contrib.Mixture(ball, [mine, dw.learners.Constant(ball, point=[0.0, 0.5, 0.0])])
    mixture.update(LinearLoss([1.0, 0.0, 0.0]))
    assert (mine.t, mixture.learners[0].t, mixture.t) == (0, 1, 1)
    mine.update(LinearLoss([0.0, 1.0, 0.0]))
    assert mixture.learners[0].decision[1] == 0.0
    assert mixture.expert_names == ["OGD", "Constant"]


@pytest.mark.parametrize(
    ("learners", "why"),
    [
        (lambda ball: [dw.OGD(dw.L1Ball(3))], "on its own set"),
        (lambda ball: [played(ball)], "no round"),
        (lambda ball: [lambda domain, **given: "no learner"], "on its own set"),
        (lambda ball: [], "list of learners"),
        (lambda ball: dw.OGD(ball), "list of learners"),
    ],
)
def test_what_cannot_take_part_is_refused(learners, why):
    ball = dw.L1Ball(3)
    with pytest.raises((ValueError, TypeError), match=why):
        dw.contrib.Mixture(ball, learners(ball))


def played(ball):
    learner = dw.OGD(ball)
    learner.update(LinearLoss([1.0, 0.0, 0.0]))
    return learner


def test_settings_that_do_not_go_together_are_refused():
    ball = dw.L1Ball(3)
    for given in (
        {"prior": [1.0, 1.0]},
        {"weights": "heavy"},
        {"weights": "natural", "prior": [1.0]},
    ):
        with pytest.raises(ValueError, match=r"prior|weights"):
            dw.contrib.Mixture(ball, **given)
    with pytest.raises(ValueError, match="point must lie"):
        dw.learners.Constant(ball, point=[2.0, 0.0, 0.0])


def test_a_mixture_with_a_learner_of_your_own_is_not_saved(tmp_path):
    with pytest.raises(TypeError, match="a Mine cannot be written"):
        dw.contrib.Mixture(dw.L1Ball(3), [dw.learners.Constant, Mine]).save(
            tmp_path / "mixture.safetensors"
        )


def test_a_file_cannot_name_a_learner_that_is_none(tmp_path):
    from driftwolfe import storage

    path = tmp_path / "mixture.safetensors"
    dw.contrib.Mixture(dw.L1Ball(3)).save(path)
    archive = storage.read_archive(path, lambda archive: None)
    for name in ("Learner", "load", "Mine"):
        archive.settings["arguments"]["learners"]["tuple"][0]["made"]["kind"] = name
        storage.write_archive(path, archive.kind, archive.settings, archive.arrays)
        with pytest.raises(ValueError, match="no learner to load"):
            dw.load(path)
