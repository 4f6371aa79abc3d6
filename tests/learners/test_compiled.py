"""Rounds of dense learners: loops are compiled once, whatever arrays a loss or a set returns."""

import numpy as np
import pytest

import driftwolfe as dw
from driftwolfe.domains import set_kernels
from driftwolfe.ensemble import expert_kernels
from driftwolfe.losses import FunctionLoss, LinearLoss, MulticlassLogistic, SquaredDistance
from driftwolfe.points import kernels
from learners.families import play_all

KERNELS = [
    value
    for module in (expert_kernels, kernels, set_kernels)
    for value in vars(module).values()
    if hasattr(value, "signatures")
]
LEARNERS = [dw.POLD, dw.POLA, dw.POLAR, dw.Ader, dw.learners.SAOL, dw.learners.PAMO, dw.BOGDIP]


class Strided(LinearLoss):
    """Values and gradients that do not lie side by side, or may not be written to."""

    def stacked_round(self, stack, weights):
        values, gradients, value = super().stacked_round(stack, weights)
        wide = np.repeat(gradients, 2, axis=-1)
        wide.flags.writeable = False
        return np.repeat(values, 2)[::2], wide[..., ::2], value


def losses(shape, seed):
    rng = np.random.default_rng(seed)
    given = rng.standard_normal(shape)
    yield LinearLoss(given)
    yield SquaredDistance(given)
    yield SquaredDistance(np.asfortranarray(given), weight=2.0)
    yield Strided(given)
    yield FunctionLoss(lambda x: float((x**2).sum()), lambda x: 2.0 * x)
    if len(shape) == 2:
        features = np.asfortranarray(rng.standard_normal((4, shape[1])))
        yield MulticlassLogistic(features, rng.integers(0, shape[0], 4), shape[0])


@pytest.mark.parametrize("cls", LEARNERS)
@pytest.mark.parametrize(
    "domain", [dw.L1Ball(5), dw.Simplex(5), dw.L2Ball(1), dw.TraceNormBall((3, 4), radius=2.0)]
)
def test_nothing_is_compiled_twice(cls, domain):
    for kernel in KERNELS:
        getattr(kernel, "ready", int)()
    before = [len(kernel.signatures) for kernel in KERNELS]
    learner = cls(domain)
    for seed in range(12):
        play_all(learner, losses(domain.shape, seed))
    assert domain.contains(learner.decision)
    assert [len(kernel.signatures) for kernel in KERNELS] == before


def test_large_logistic_losses_are_left_to_blas():
    rng = np.random.default_rng(0)
    stack, weights = rng.standard_normal((6, 20, 30)), np.full(6, 1 / 6)
    features, labels = rng.standard_normal((400, 30)), rng.integers(0, 20, 400)
    loss = MulticlassLogistic(features, labels, 20)
    parts = [
        MulticlassLogistic(features[k : k + 10], labels[k : k + 10], 20) for k in range(0, 400, 10)
    ]
    together = loss.stacked_round(stack, weights)
    small = [part.stacked_round(stack, weights) for part in parts]
    for whole, pieces in zip(together, zip(*small, strict=True), strict=True):
        np.testing.assert_allclose(whole, np.mean(pieces, axis=0), rtol=1e-10, atol=1e-12)
