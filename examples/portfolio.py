"""Portfolio weights in changing markets: a fund of three learners.

Every day a fund splits its money over six assets: a point w of the simplex. Then the returns r are
known, and the loss is -log(w . r), so a smaller total loss is a larger fund. Every two years another
sector leads. The fund is a mixture of three learners: one holds equal weights, one bets on assets that
fell, POLAR follows what rises. For this loss a mixture with natural weights is a fund of funds: it has the
sum of what its learners have made of their shares. Here POLAR is right and ends with two thirds of the
money; on real markets others may be (`python -m benchmarks.portfolio`). The last column charges 0.5 % of
every trade. Betting everything on the winner of the last 120 days is far better here, because leads are
long and clear. The returns are synthetic. The example shows how weights follow a change; it is not
investment advice.
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


# Centred: gradients without the part that all weights share, so that POLAR takes larger steps.
stream = [dw.losses.PortfolioLoss(day, centred=True) for day in returns]
simplex = dw.Simplex(6)
reversal = dw.contrib.OnlineNewtonStep(simplex, rate=-0.75, ridge=1.0)
pool = dw.contrib.Mixture(
    simplex, [dw.learners.Constant, reversal, dw.POLAR], weights="natural", prior=[2, 2, 1]
)
learners = {"bet on reversals": reversal, "POLA": dw.POLA(simplex), "POLAR": dw.POLAR(simplex)}
learners["fund of three"] = pool
fixed = dw.regret.offline_minimum(simplex, [dw.losses.PortfolioLoss(returns)]).point
winner = np.eye(6)[returns.prod(axis=0).argmax()]
recent = [returns[max(0, day - 120) : day].prod(axis=0).argmax() for day in range(DAYS)]
games = {name: dw.play(one, stream, record_decisions=True) for name, one in learners.items()}
weights = {
    "equal weights": [np.full(6, 1 / 6)] * DAYS,
    **{name: game.decisions for name, game in games.items()},
    "best constant weights, in hindsight": [fixed] * DAYS,
    "best single asset, in hindsight": [winner] * DAYS,
    "winner of the last 120 days": np.eye(6)[recent],
    "leaders known in advance": leaders,
}
fund = {}
print(
    f"{'value of an initial 1':38}{'after 10 years':>15}{'worst drop':>12}{'turnover':>10}{'with costs':>12}"
)
for name, held in weights.items():
    w = np.array(held)
    growth = (w * returns).sum(axis=1)
    fund[name] = np.cumprod(growth)
    fall = 1 - (fund[name] / np.maximum.accumulate(fund[name])).min()
    traded = np.abs(w[1:] - (w * returns / growth[:, None])[:-1]).sum(axis=1)
    net = fund[name][-1] * np.prod(1 - 0.005 * traded)
    print(f"{name:38}{fund[name][-1]:15.2f}{fall:12.0%}{traded.mean() / 2:10.2%}{net:12.2f}")
shares = np.array([0.4, 0.4, 0.2])
alone = [fund[name][-1] for name in ("equal weights", "bet on reversals", "POLAR")]
assert np.isclose(fund["fund of three"][-1], shares @ alone)
assert fund["fund of three"][-1] > fund["equal weights"][-1]

try:
    from matplotlib.figure import Figure
except ImportError:
    print("no figure: it needs pip install 'driftwolfe[plot]'")
    raise SystemExit from None

figure = Figure(figsize=(9, 6), layout="constrained")
above, below = figure.subplots(2, sharex=True)
years = np.arange(1, DAYS + 1) / 250
shown = ("POLAR", "fund of three", "equal weights", "winner of the last 120 days")
shades = dw.plot.colours(shown) | {"leaders known in advance": "#222222"}
for name, colour in shades.items():
    above.plot(years, fund[name], color=colour, linewidth=1.3)
    above.text(10.1, fund[name][-1], name, color=colour, fontweight="bold", va="center")
above.set(yscale="log", xlim=(0, 10), ylim=(0.7, 1500))
above.yaxis.set_major_formatter("{x:g}")
above.set_title("value of an initial 1", loc="left", fontsize=10)
colours = ("#E69F00", "#56B4E9", "#009E73", "#CC79A7", "#0072B2", "#aaaaaa")
month = [np.convolve(w, np.ones(20) / 20, "valid") for w in np.transpose(weights["fund of three"])]
below.stackplot(years[19:], month, colors=colours)
below.set(ylim=(0, 1), xlabel="year")
below.set_title(
    "the weights of the fund of three, mean of the last 20 days", loc="left", fontsize=10
)
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
