"""A target that jumps: gradient descent loses it, POLA follows.

Each round a point of the L1 ball is played and then pays its squared distance to a target, which
jumps every 250 rounds. OGD with the step that is best for a fixed target slows down; POLA runs an
expert for every interval of a geometric cover and needs no step size.
"""

import numpy as np

import driftwolfe as dw

ROUNDS, JUMP = 2000, 250
rng = np.random.default_rng(0)
ball = dw.L1Ball(50)

targets = [ball.lmo(rng.standard_normal(50)) for _ in range(ROUNDS // JUMP)]
stream = [
    dw.losses.SquaredDistance(targets[t // JUMP] + 0.3 * rng.standard_normal(50))
    for t in range(ROUNDS)
]
best = [targets[t // JUMP] for t in range(ROUNDS)]

learners = {
    "OGD": dw.OGD(ball),
    "online Frank-Wolfe": dw.OnlineFrankWolfe(ball, horizon=ROUNDS),
    "BOGD_IP": dw.BOGDIP(ball, horizon=ROUNDS),
    "POLD": dw.POLD(ball, horizon=ROUNDS),
    "POLA": dw.POLA(ball),
}
print(f"{'learner':20}{'mean loss':>12}{'regret against the jumping target':>36}")
for name, learner in learners.items():
    history = dw.play(learner, stream)
    regret = sum(f.value(x) for f, x in zip(stream, best, strict=True))
    print(f"{name:20}{history.losses.mean():12.4f}{history.losses.sum() - regret:36.1f}")
