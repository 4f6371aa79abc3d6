"""A target that jumps: POLAR follows, gradient descent falls behind.

In each round the loss of a point of the L1 ball is its squared distance to a target, which jumps every
250 rounds. POLAR runs experts that restart after 8, 16, 32, ... rounds and needs no step size. OGD, with
the step sizes that are best for a fixed target, becomes slower and slower.
"""

from pathlib import Path

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
    "POLAR": dw.POLAR(ball),
    "POLA": dw.POLA(ball),
    "POLD": dw.POLD(ball, horizon=ROUNDS),
    "OGD": dw.OGD(ball),
    "online Frank-Wolfe": dw.OnlineFrankWolfe(ball, horizon=ROUNDS),
    "BOGD_IP": dw.BOGDIP(ball, horizon=ROUNDS),
}
excess = {}
print(f"{'learner':20}{'mean loss':>12}{'regret against the jumping target':>36}")
for name, learner in learners.items():
    losses = dw.play(learner, stream).losses
    excess[name] = losses - [loss.value(x) for loss, x in zip(stream, best, strict=True)]
    print(f"{name:20}{losses.mean():12.4f}{excess[name].sum():36.1f}")
assert min(excess, key=lambda name: excess[name].sum()) == "POLAR"

try:
    from matplotlib.figure import Figure
except ImportError:
    print("no figure: it needs pip install 'driftwolfe[plot]'")
    raise SystemExit from None

figure = Figure(figsize=(9, 3.6), layout="constrained")
axis = figure.subplots()
heights = {
    "BOGD_IP": 0.34,
    "online Frank-Wolfe": 0.27,
    "OGD": 0.18,
    "POLD": 0.11,
    "POLA": 0.04,
    "POLAR": -0.03,
}
for name, colour in dw.plot.colours(heights).items():
    height, mean = heights[name], np.convolve(excess[name], np.ones(20) / 20, "valid")
    axis.plot(np.arange(20, ROUNDS + 1), mean, color=colour, linewidth=1.3)
    axis.text(ROUNDS + 15, height, name, color=colour, fontweight="bold", va="center")
for jump in range(0, ROUNDS, JUMP):
    axis.axvline(jump, color="#8c8c8c", linestyle=":", linewidth=0.9, zorder=0)
axis.set(xlim=(0, ROUNDS), xlabel="round; the target jumps at the dotted lines")
axis.set_title("loss above the target's, mean of the last 20 rounds", loc="left", fontsize=10)
axis.spines[["top", "right"]].set_visible(False)
Path("results/examples").mkdir(parents=True, exist_ok=True)
figure.savefig("results/examples/following_drift.png", dpi=150)
print("figure: results/examples/following_drift.png")
