"""Portfolio weights in changing markets: POLA follows the leading sector.

Every day a fund splits its money over six assets: a point w of the simplex. Then the returns r are
known, and the loss is -log(w . r), so a smaller total loss is a larger fund. Every two years another
sector leads. POLA follows within a few months, without knowing how long a lead lasts. Betting
everything on the winner of the last 120 days is far better here, because leads are long and clear. The
returns are synthetic and trading is free. With leads half as strong, POLA ends at less than twice the
value of equal weights, and sometimes no higher. The example shows how weights follow a change; it is
not investment advice.
"""

from pathlib import Path

import numpy as np

import driftwolfe as dw

ASSETS = ("energy", "health", "banks", "retail", "tech", "bonds")
DAYS, REGIME = 2500, 500  # ten years; each of the first five assets leads for two
rng = np.random.default_rng(0)

# Sectors share the market's moves and have their own; the leader gains another 0.2 % per day.
leaders = np.eye(6)[np.arange(DAYS) // REGIME]
drift = leaders * 0.002 + ([0.0002] * 5 + [0.0001])
market = 0.008 * rng.standard_normal((DAYS, 1)) * ([1] * 5 + [0])
own = rng.standard_normal((DAYS, 6)) * ([0.012] * 5 + [0.003])
returns = np.exp(drift + market + own)


def log_loss(r):
    """Minus the logarithmic growth of the fund, averaged over the days of returns r."""
    # The gradient is -r / (w . r). Weights sum to one, so adding 1 to every coordinate changes nothing
    # on the simplex; the rest is small, so that learners take larger steps.
    return dw.losses.FunctionLoss(
        lambda w: -np.log(r @ w).mean(), lambda w: 1 - (r / (r @ w)[:, None]).mean(axis=0)
    )


stream = [log_loss(returns[day : day + 1]) for day in range(DAYS)]
simplex = dw.Simplex(6)
fixed = dw.regret.offline_minimum(simplex, [log_loss(returns)]).point
winner = np.eye(6)[returns.prod(axis=0).argmax()]
recent = [returns[max(0, day - 120) : day].prod(axis=0).argmax() for day in range(DAYS)]
learners = {"POLD": dw.POLD(simplex, horizon=DAYS), "POLA": dw.POLA(simplex)}
weights = {
    "equal weights": [np.full(6, 1 / 6)] * DAYS,
    **{n: dw.play(one, stream, record_decisions=True).decisions for n, one in learners.items()},
    "best constant weights, in hindsight": [fixed] * DAYS,
    "best single asset, in hindsight": [winner] * DAYS,
    "winner of the last 120 days": np.eye(6)[recent],
    "leaders known in advance": leaders,
}
fund = {}
print(f"{'value of an initial 1':38}{'after 10 years':>15}{'worst drop':>12}")
for name, w in weights.items():
    fund[name] = np.cumprod((np.array(w) * returns).sum(axis=1))
    fall = 1 - (fund[name] / np.maximum.accumulate(fund[name])).min()
    print(f"{name:38}{fund[name][-1]:15.2f}{fall:12.0%}")
assert fund["POLA"][-1] > fund["equal weights"][-1]

try:
    from matplotlib.figure import Figure
except ImportError:
    print("no figure: it needs pip install 'driftwolfe[plot]'")
    raise SystemExit from None

figure = Figure(figsize=(9, 6), layout="constrained")
above, below = figure.subplots(2, sharex=True)
years = np.arange(1, DAYS + 1) / 250
shown = {
    "leaders known in advance": "#222222",
    "winner of the last 120 days": "#0072B2",
    "best single asset, in hindsight": "#767676",
    "POLA": "#D55E00",
    "equal weights": "#009E73",
}
for name, colour in shown.items():
    above.plot(years, fund[name], color=colour, linewidth=1.3)
    above.text(10.1, fund[name][-1], name, color=colour, fontweight="bold", va="center")
above.set(yscale="log", xlim=(0, 10), ylim=(0.7, 1500))
above.yaxis.set_major_formatter("{x:g}")
above.set_title("value of an initial 1", loc="left", fontsize=10)
colours = ("#E69F00", "#56B4E9", "#009E73", "#CC79A7", "#0072B2", "#aaaaaa")
month = [np.convolve(w, np.ones(20) / 20, "valid") for w in np.transpose(weights["POLA"])]
below.stackplot(years[19:], month, colors=colours)
below.set(ylim=(0, 1), xlabel="year")
below.set_title("POLA's weights, mean of the last 20 days", loc="left", fontsize=10)
for asset, colour, height in zip(ASSETS, colours, np.linspace(0.08, 0.92, 6), strict=True):
    below.text(10.1, height, asset, color=colour, fontweight="bold", va="center")
for start, leader in zip(range(0, 10, 2), ASSETS, strict=False):
    above.text(start + 1, 900, f"{leader} leads", color="#666666", ha="center")
    above.axvline(start, color="#8c8c8c", linestyle=":", linewidth=0.9, zorder=0)
    below.axvline(start, color="#222222", linestyle=":", linewidth=0.9)
for axis in (above, below):
    axis.spines[["top", "right"]].set_visible(False)
Path("results/examples").mkdir(parents=True, exist_ok=True)
figure.savefig("results/examples/portfolio.png", dpi=150)
print("figure: results/examples/portfolio.png")
