"""Delivery vans on a road network: bridges close one after the other, and POLAR reroutes the fleet.

A firm sends its vans from a depot in the west to a market in the east, through a synthetic town with
250 one-way roads and three bridges. Every hour it splits the fleet over the roads; afterwards the
travel time of every road is known. Vans slow each other down, so the best plan is a mixture of routes:
a point of the flow polytope. Projecting on that set is slow, but minimising a linear function over it
is a shortest path.
"""

from itertools import combinations
from pathlib import Path

import numpy as np
from scipy.spatial import Delaunay

import driftwolfe as dw

HOURS, REPAIR, BRIDGES = 1500, 500, {"centre": 3.0, "south": 0.8, "north": 5.2}
rng = np.random.default_rng(7)

# The town: junctions on a perturbed grid, eastward roads between neighbours.
grid = np.stack(np.meshgrid(np.arange(14.0), np.arange(7.0)), axis=-1).reshape(-1, 2)
places = np.vstack([[(-1.2, 3.0), (14.2, 3.0)], grid + rng.uniform(-0.32, 0.32, grid.shape)])
pairs = {pair for triangle in Delaunay(places).simplices for pair in combinations(triangle, 2)}
pairs = sorted({tuple(sorted(pair, key=lambda place: places[place, 0])) for pair in pairs})
west = places[:, 0] < 6.5 + 0.4 * np.sin(places[:, 1])  # west of the river
wet = [(a, b) for a, b in pairs if west[a] != west[b]]
bridges = [min(wet, key=lambda pair: abs(places[pair, 1] - y).sum()) for y in BRIDGES.values()]
miles = {pair: np.linalg.norm(places[pair[0]] - places[pair[1]]) for pair in pairs}
roads = [pair for pair in pairs if miles[pair] < 1.9 and (pair in bridges or pair not in wet)]
town = dw.FlowPolytope(roads, source=0, target=1)

# Minutes on each road in each hour; the bridge under repair takes 20 more.
usual = np.array([miles[road] for road in roads]) * rng.uniform(1.4, 3.2, len(roads))
minutes = usual * rng.lognormal(0.0, 0.3, (HOURS, len(roads)))
repairs = [slice(start, start + REPAIR) for start in range(0, HOURS, REPAIR)]
for repair, bridge in zip(repairs, bridges, strict=True):
    minutes[repair, roads.index(bridge)] += 20


def travel_time(road):
    """Mean minutes per van: a road with the share x of the fleet takes 1 + x times as long."""
    return dw.losses.FunctionLoss(lambda x: road @ (x + x * x), lambda x: road * (1 + 2 * x))


def best_split(road):
    """The best plan for known minutes: Frank-Wolfe with shortest paths."""
    x = town.center
    for _ in range(1000):
        slope = road * (1 + 2 * x)
        move = town.lmo(slope) - x
        x = x + min(1.0, -(slope @ move) / (2 * road @ move**2 + 1e-9)) * move
    return x


learners = {
    "POLAR": dw.POLAR(town),
    "BOGD_IP": dw.BOGDIP(town, horizon=HOURS),
    "online Frank-Wolfe": dw.OnlineFrankWolfe(town, horizon=HOURS),
}
stream = [travel_time(road) for road in minutes]
recent = [minutes[max(0, hour - 10) : hour].sum(axis=0) for hour in range(HOURS)]
plans = {
    **{n: dw.play(one, stream, record_decisions=True).decisions for n, one in learners.items()},
    "best fixed split in hindsight": [best_split(minutes.mean(axis=0))] * HOURS,
    "quickest route of the last 10 hours, for all": [town.lmo(road) for road in recent],
    "best split of each repair in hindsight": [
        plan for repair in repairs for plan in [best_split(minutes[repair].mean(axis=0))] * REPAIR
    ],
}
took = {}
print(f"{'minutes per van, by closed bridge:':44}", *(f"{n:>7}" for n in [*BRIDGES, "all"]))
for name, plan in plans.items():
    took[name] = np.array([loss.value(x) for loss, x in zip(stream, plan, strict=True)])
    print(f"{name:44}", *(f"{took[name][part].mean():7.1f}" for part in [*repairs, slice(None)]))
assert took["POLAR"].mean() < took["best fixed split in hindsight"].mean()

try:
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure
except ImportError:
    print("no figure: it needs pip install 'driftwolfe[plot]'")
    raise SystemExit from None

figure = Figure(figsize=(9, 6), layout="constrained")
axes = figure.subplot_mosaic([["centre", "south"], ["time", "time"]], height_ratios=[1, 1.2])
colours = dw.plot.colours(plans) | {"best split of each repair in hindsight": "#222222"}
lines, bank = places[np.array(roads)], np.linspace(-0.6, 6.6)
time = axes["time"]
for repair, bridge, name in zip(repairs, bridges, BRIDGES, strict=True):
    time.axvline(repair.start, color="#8c8c8c", linestyle=":", linewidth=0.9, zorder=0)
    time.text(repair.start + 250, 80, f"{name} bridge closed", color="#666666", ha="center")
    if axis := axes.get(name):
        axis.plot(6.5 + 0.4 * np.sin(bank), bank, color="#cfe8f7", linewidth=11, zorder=0)
        axis.add_collection(LineCollection(lines, colors="#cccccc", linewidths=0.6))
        vans = 8 * plans["POLAR"][repair.stop - 1]
        axis.add_collection(LineCollection(lines, colors=colours["POLAR"], linewidths=vans))
        axis.plot(*places[:2].T, "o", color="#222222")
        axis.plot(*places[list(bridge)].mean(axis=0), "X", color="#222222", markersize=9)
        for place, word in zip(places[:2], ("depot", "market"), strict=True):
            axis.text(*place, f"{word}\n\n", ha="center", va="center")
        axis.set_title(f"POLAR's vans in hour {repair.stop:,}, {name} bridge closed", fontsize=10)
        axis.set_aspect("equal")
        axis.set_axis_off()
labels = {
    "quickest route of the last 10 hours, for all": (1480, 73.5),
    "best fixed split in hindsight": (490, 58.8),
    "online Frank-Wolfe": (1330, 61.5),
    "BOGD_IP": (215, 64.0),
    "POLAR": (110, 51.8),
    "best split of each repair in hindsight": (1480, 45.8),
}
for name, (hour, height) in labels.items():
    mean = np.convolve(took[name], np.ones(20) / 20, "valid")
    time.plot(np.arange(20, HOURS + 1), mean, color=colours[name], linewidth=1.3)
    time.text(hour, height, name, color=colours[name], fontsize=9, fontweight="bold", ha="right")
time.set(xlim=(0, HOURS), ylim=(45, 82), xlabel="hour")
time.set_title("minutes per van, mean of the last 20 hours", loc="left", fontsize=10)
time.spines[["top", "right"]].set_visible(False)
Path("results/examples").mkdir(parents=True, exist_ok=True)
figure.savefig("results/examples/shortest_paths.png", dpi=150)
print("figure: results/examples/shortest_paths.png")
