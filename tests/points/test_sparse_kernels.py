"""No round waits for a compiler."""

import numpy as np

import driftwolfe as dw
from driftwolfe.points import sparse_kernels

KERNELS = [value for value in vars(sparse_kernels).values() if hasattr(value, "signatures")]


def test_everything_is_compiled_before_the_first_round():
    called = [kernel.ready() for kernel in KERNELS if hasattr(kernel, "ready")]
    assert len(called) >= 2
    assert all(len(kernel.signatures) == 1 for kernel in called)
    compiled = {kernel: list(kernel.signatures) for kernel in KERNELS}
    rng = np.random.default_rng(0)
    for shape in ((130, 110), (110, 130)):
        ball = dw.TraceNormBall(shape, radius=30.0)
        learners = [
            dw.POLD(ball, horizon=30, lipschitz=3.0),
            dw.POLA(ball),
            dw.Ader(ball, horizon=30),
            dw.OnlineFrankWolfe(ball, horizon=30),
            dw.learners.MultiOCG(ball, horizon=30),
        ]
        for _ in range(15):
            places = rng.integers(0, 110, (2, 8))
            loss = dw.losses.AbsoluteEntries(*places, rng.standard_normal(8), shape=shape)
            for learner in learners:
                learner.update(loss)
        for learner in learners:
            learner.decision.norm()
    assert compiled == {kernel: list(kernel.signatures) for kernel in KERNELS}
