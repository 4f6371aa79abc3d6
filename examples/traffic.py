"""Traffic through a town with incidents: a routing for each day, before its capacities are known.

Sioux Falls, the test network of traffic assignment (LeBlanc, Morlok and Pierskalla 1975), has 24
junctions, 76 roads and 360,600 trips. Every morning all trips are routed; then the day's capacities
are seen: they vary by 5 %, and every 100 days six other roads lose 60 % of theirs. The loss is the
time that all drivers spend. A decision is the flow on each road, summed over all trips; the set of
these is a flow polytope, on which only a shortest path for each trip is cheap. Online Frank-Wolfe,
which is told the number of days, does as well as POLAR, which is not.

The network is read from the folder that DRIFTWOLFE_DATA names (networks/sioux_falls_links.csv and
networks/sioux_falls_demand.csv); without it, a made-up town of that size takes its place.
"""

import csv
import os
from pathlib import Path
from time import perf_counter

import numpy as np

import driftwolfe as dw

DAYS, PERIOD, PUBLISHED = 300, 100, 4_231_335.287  # Beckmann's optimum
# Where to draw the junctions 1 to 24.
PLACES = np.array(
    [
        *((0, 9), (5, 9), (0, 7.8), (1.5, 7.8), (3, 7.8), (5, 7.8), (6.7, 6.6), (5, 6.6)),
        *((3, 6.6), (3, 5.4), (1.5, 5.4), (0, 5.4), (0, 0), (1.5, 2.7), (3, 2.7), (5, 5.4)),
        *((5, 4), (6.7, 5.4), (5, 2.7), (5, 0), (3, 0), (3, 1.4), (1.5, 1.4), (1.5, 0)),
    ]
)


def read(name):
    """The rows of a table, as numbers."""
    path = Path(os.environ.get("DRIFTWOLFE_DATA", "")) / "networks" / name
    with path.open() as file:
        return np.array([[float(cell) for cell in row] for row in list(csv.reader(file))[1:]])


def made_up_town():
    """Roads between junctions that no third one lies between, and trips that fall with distance."""
    rng, far = np.random.default_rng(0), np.linalg.norm(PLACES[:, None] - PLACES, axis=2)
    between = (far[:, None] ** 2 + far[None] ** 2).min(axis=2)  # 0 + far^2 at the ends themselves
    pairs = [(i, j) for i, j in np.argwhere((far > 0) & (between >= far**2 - 1e-9)).tolist()]
    minutes = np.array([1.0 + far[pair] for pair in pairs])
    capacity = rng.uniform(0.5, 2.5, len(pairs))
    trips = {(i, j): 0.45 / far[i, j] for i in range(24) for j in range(24) if i != j}
    return pairs, capacity, minutes, trips


# Junctions count from 0; flows and capacities are in 10,000 vehicles.
try:
    links, demand = read("sioux_falls_links.csv"), read("sioux_falls_demand.csv")
    roads = [(int(a) - 1, int(b) - 1) for a, b in links[:, :2]]
    capacity, minutes = links[:, 2] / 1e4, links[:, 3]
    trips = {(int(a) - 1, int(b) - 1): number / 1e4 for a, b, number in demand}
    name = "Sioux Falls"
except FileNotFoundError:
    roads, capacity, minutes, trips = made_up_town()
    name = "a made-up town (set DRIFTWOLFE_DATA for Sioux Falls)"
town = dw.FlowPolytope(roads, demands=trips)


def travel_time(capacity):
    """The time of all drivers, if a road with flow x takes minutes * (1 + 0.15 (x/capacity)^4)."""
    factor = 0.15 * minutes / capacity**4
    return dw.losses.FunctionLoss(
        lambda x: minutes @ x + factor @ x**5, lambda x: minutes + 5 * factor * x**4
    )


# The same network, where each driver is out for his own good: an optimum that is published.
selfish = dw.losses.FunctionLoss(
    lambda x: minutes @ x + 0.03 * (minutes / capacity**4) @ x**5,
    lambda x: minutes + 0.15 * minutes / capacity**4 * x**4,
)
equilibrium = dw.minimise(selfish, town, gap=1e-4)
print(f"{name}: Beckmann's objective {1e4 * equilibrium.value:,.0f}", end="")
print(f" at a gap of {1e4 * equilibrium.gap:,.0f}, by {equilibrium.lmo_calls} LMO calls")
if name == "Sioux Falls":
    assert abs(1e4 * equilibrium.value / PUBLISHED - 1) < 1e-4

# The days.
rng, days, closed = np.random.default_rng(0), [], []
for day in range(DAYS):
    if day % PERIOD == 0:
        closed.append(rng.choice(len(roads), 6, replace=False))
        today = capacity.copy()
        today[closed[-1]] *= 0.4
    days.append(today * np.exp(0.05 * rng.standard_normal(len(roads))))
losses = [travel_time(each) for each in days]


def best(days):
    """The best fixed routing in hindsight: that for capacities which have the mean effect."""
    mean = np.mean([each**-4 for each in days], axis=0) ** -0.25
    return dw.minimise(travel_time(mean), town, gap=1e-3).point


def steps(share):
    """Plain Frank-Wolfe: every night, a share of the traffic moves to the day's quickest ways."""
    x, played = town.lmo(minutes), []
    for t, loss in enumerate(losses):
        played.append(x)
        x = x + share(t) * (town.lmo(loss.gradient(x)) - x)
    return played


plans, seconds = {}, {}
for title, learner in {
    "POLAR": dw.POLAR(town),
    "online Frank-Wolfe": dw.OnlineFrankWolfe(town, horizon=DAYS),
}.items():
    start = perf_counter()
    plans[title] = dw.play(learner, losses, record_decisions=True).decisions
    seconds[title] = perf_counter() - start
plans["successive averages (1/t)"] = steps(lambda t: 1 / (t + 2))
plans["steps of 0.05"] = steps(lambda t: 0.05)
periods = [days[start : start + PERIOD] for start in range(0, DAYS, PERIOD)]
plans["best fixed routing in hindsight"] = [best(days)] * DAYS
plans["best routing of each period"] = [x for part in periods for x in [best(part)] * PERIOD]

took = {}
print(f"{'total travel time per day':34}{'1-100':>8}{'-200':>8}{'-300':>8}{'all':>8}")
for title, plan in plans.items():
    took[title] = np.array([loss.value(x) for loss, x in zip(losses, plan, strict=True)])
    parts = [*took[title].reshape(-1, PERIOD).mean(axis=1), took[title].mean()]
    print(f"{title:34}", *(f"{part:7.0f}" for part in parts), end="")
    print(f"   {seconds[title]:.1f} s" if title in seconds else "")
assert took["POLAR"].mean() < 1.15 * took["best fixed routing in hindsight"].mean()

try:
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure
except ImportError:
    print("no figure: it needs pip install 'driftwolfe[plot]'")
    raise SystemExit from None


def draw(axis, day, colours, crosses, title):
    """A map: the traffic of each road beside its middle line, on the right, as wide as its flow."""
    flow = plans["POLAR"][day]
    along = ends[:, 1] - ends[:, 0]
    right = np.stack([along[:, 1], -along[:, 0]], axis=1) / np.linalg.norm(along, axis=1)[:, None]
    inner, outer = (
        ends + 0.03 * right[:, None],
        ends + (0.05 + 0.3 * flow / flow.max())[:, None, None] * right[:, None],
    )
    shapes = np.concatenate([inner, outer[:, ::-1]], axis=1)
    axis.add_collection(PolyCollection(shapes, facecolors=colours, linewidths=0, zorder=2))
    axis.plot(*shapes.mean(axis=1)[crosses].T, "kx", markersize=7, markeredgewidth=1.8, zorder=4)
    axis.scatter(*PLACES.T, s=130, color="#333333", zorder=3)
    for number, place in enumerate(PLACES, 1):
        axis.annotate(str(number), place, color="white", fontsize=7, ha="center", va="center")
    axis.set_title(title, fontsize=10, loc="left")
    axis.set_aspect("equal")
    axis.set_axis_off()


figure = Figure(figsize=(9.5, 9.2), layout="constrained")
axes = figure.subplot_mosaic([["before", "after"], ["time", "time"]], height_ratios=[2, 1])
ends, before, after = PLACES[np.array(roads)], PERIOD - 1, 2 * PERIOD - 1
moved = plans["POLAR"][after] - plans["POLAR"][before]
load, change = Normalize(0, 2.5), Normalize(-0.6, 0.6)
maps = {
    "before": (before, plans["POLAR"][before] / days[before], load, "YlOrRd", "flow / capacity"),
    "after": (after, moved, change, "coolwarm", "change of flow since day 100 (10,000 vehicles)"),
}
for key, (day, values, scale, name, label) in maps.items():
    colour = ScalarMappable(scale, name)
    title = f"POLAR's routing on day {day + 1}  (x: roads at 40 %)"
    draw(axes[key], day, colour.to_rgba(values), closed[day // PERIOD], title)
    figure.colorbar(colour, ax=axes[key], location="bottom", shrink=0.7, pad=0.02, label=label)

panel, known = axes["time"], took.pop("best routing of each period")
colours, labels = dw.plot.colours(took), {}
for title in took:
    mean = np.convolve(took[title] - known, np.ones(10) / 10, "valid")
    panel.plot(np.arange(10, DAYS + 1), mean, color=colours[title], linewidth=1.4)
    labels[title] = np.log10(mean[-1])
panel.set(yscale="log", xlim=(1, DAYS * 1.35), xlabel="day")
apart = 0.08 * np.diff(np.log10(panel.get_ylim()))[0]
height = -np.inf
for title in sorted(labels, key=labels.get):  # each name at the end of its line, or above the last
    height = max(labels[title], height + apart)
    where = {"xytext": (DAYS + 4, 10**height), "va": "center", "fontsize": 9}
    panel.annotate(title, (DAYS, 10 ** labels[title]), color=colours[title], weight="bold", **where)
for start in range(PERIOD, DAYS, PERIOD):
    panel.axvline(start + 1, color="#8c8c8c", linestyle=":", linewidth=0.9, zorder=0)
    where = {"transform": panel.get_xaxis_transform(), "fontsize": 9, "va": "top"}
    panel.text(start + 3, 0.98, "other roads", color="#666666", **where)
panel.set_xticks([1, 100, 200, 300])
panel.set_title(
    "travel time above the best routing of each period, last 10 days", loc="left", fontsize=10
)
panel.spines[["top", "right"]].set_visible(False)
Path("results/examples").mkdir(parents=True, exist_ok=True)
figure.savefig("results/examples/traffic.png", dpi=150)
print("figure: results/examples/traffic.png")
