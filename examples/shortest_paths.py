"""Ways home through a whole city: forty commuters, 30,000 streets, and every day other ones are slow.

In the evening forty people drive home from one place. Streets have their own usual speed, which nobody
knows, vary from day to day, and 1 % of them take ten times as long; half of those are back to normal on
the next day. Ways are chosen before the day's times are known; the loss is the minutes per commuter. A
decision is a flow, one number per street, and the oracle of the flow polytope is Dijkstra's method.

Most people would take the quickest ways for yesterday's times. That is fast, and it falls for what was
quick by chance. Online Frank-Wolfe averages over days, and pays for it with time and with its first
weeks. POLAR loses here: its steps suit the width of the set, which holds flows in circles all over the
city.

The streets of Coquimbo, Chile, are read from the folder that DRIFTWOLFE_DATA names
(networks/coquimbo_links.csv.gz); without it, a made-up city takes their place.
"""

import csv
import gzip
import os
from pathlib import Path
from time import perf_counter

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra

import driftwolfe as dw

DAYS, COMMUTERS, RECENT, WINDOW = 120, 40, 10, 20
SPEEDS = {"motorway": 90, "trunk": 70, "primary": 50, "secondary": 45, "tertiary": 40}  # km/h
rng = np.random.default_rng(0)

try:
    path = Path(os.environ.get("DRIFTWOLFE_DATA", "")) / "networks" / "coquimbo_links.csv.gz"
    with gzip.open(path, "rt") as file:
        rows = list(csv.reader(file))[1:]
    tails, heads = np.array([[int(a), int(b)] for a, b, *_ in rows]).T
    meters, kinds = np.array([float(row[2]) for row in rows]), [row[3] for row in rows]
    city = "Coquimbo"
except FileNotFoundError:  # blocks of about 100 m, every sixth street a larger one, some missing
    side = 60
    corners = np.arange(side**2).reshape(side, side)
    ways = [(corners[:, :-1], corners[:, 1:]), (corners[:-1], corners[1:])]
    pairs = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in ways])
    pairs = pairs[rng.random(len(pairs)) < 0.9]
    tails, heads = np.concatenate([pairs, pairs[:, ::-1]]).T
    meters = np.tile(rng.uniform(60, 140, len(pairs)), 2)
    line = np.where(np.abs(tails - heads) == 1, tails // side, tails % side)
    kinds = np.where(line % 6 == 0, "primary", "residential").tolist()
    city = "a made-up city (set DRIFTWOLFE_DATA for Coquimbo)"
numbers, ends = np.unique([tails, heads], return_inverse=True)
tails, heads = ends.reshape(2, -1)
minutes = 0.06 * np.maximum(meters, 1.0) / np.array([SPEEDS.get(kind, 30) for kind in kinds])


def distances(lengths, start):
    """How far it is from some junctions to all."""
    graph = csr_array((lengths, (tails, heads)), shape=(numbers.size, numbers.size))
    return dijkstra(graph, indices=start)


# Where people work and live, and the streets that are on ways at most 30 % longer than the quickest.
streets = csr_array((minutes, (tails, heads)), shape=(numbers.size, numbers.size))
_, piece = connected_components(streets, connection="strong")
inside = np.flatnonzero(piece == np.bincount(piece).argmax())
work = rng.choice(inside)
homes = rng.choice(np.setdiff1d(inside, [work]), COMMUTERS, replace=False)
out, back = dijkstra(streets, indices=work), dijkstra(streets.T.tocsr(), indices=homes)
useful = (out[tails] + minutes + back[:, heads] <= 1.3 * out[homes, None]).any(axis=0)
tails, heads, minutes, meters = tails[useful], heads[useful], minutes[useful], meters[useful]
start = perf_counter()
town = dw.FlowPolytope(
    np.stack([tails, heads], axis=1), demands={(work, home): 1.0 for home in homes}
)
print(f"{city}: {tails.size:,} streets; their set was built in {perf_counter() - start:.1f} s")

# The days.
usual = minutes * rng.lognormal(0.0, 0.4, minutes.size)
slow, days = np.zeros(minutes.size, dtype=bool), []
for _ in range(DAYS):
    slow = np.where(rng.random(slow.size) < 0.5, slow, rng.random(slow.size) < 0.01)
    days.append(usual * rng.lognormal(0.0, 0.6, slow.size) * np.where(slow, 10, 1) / COMMUTERS)
losses = [dw.losses.LinearLoss(day) for day in days]


def play(learner):
    return dw.play(learner, losses, record_decisions=True).decisions


def recompute(number):
    """The quickest ways for the mean times of the last days."""
    return [
        town.lmo(np.mean(days[max(0, t - number) : t] or [minutes], axis=0)) for t in range(DAYS)
    ]


plans, seconds = {}, {}
for title, make in {
    "quickest ways of yesterday": lambda: recompute(1),
    f"quickest ways of the last {RECENT} days": lambda: recompute(RECENT),
    "online Frank-Wolfe": lambda: play(dw.OnlineFrankWolfe(town, horizon=DAYS)),
    "POLAR": lambda: play(dw.POLAR(town)),
    "best fixed ways in hindsight": lambda: [town.lmo(np.mean(days, axis=0))] * DAYS,
}.items():
    start = perf_counter()
    plans[title] = make()
    seconds[title] = (perf_counter() - start) / DAYS
took = {}
half = DAYS // 2
print(f"{'minutes per commuter':34}{f'1-{half}':>8}{f'-{DAYS}':>8}{'all':>8}   ms per round")
for title, plan in plans.items():
    took[title] = np.array([day @ x for day, x in zip(days, plan, strict=True)])
    parts = [took[title][:half].mean(), took[title][half:].mean(), took[title].mean()]
    print(f"{title:34}", *(f"{part:7.2f}" for part in parts), f"{1e3 * seconds[title]:12.1f}")
assert took["online Frank-Wolfe"][half:].mean() < took["quickest ways of yesterday"][half:].mean()

try:
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure
except ImportError:
    print("no figure: it needs pip install 'driftwolfe[plot]'")
    raise SystemExit from None

# No junction's place is known. Distances to a hundred of them suffice for a map (landmark scaling).
marks = rng.choice(np.append(homes, np.unique(tails)), 100)
squares = np.minimum(distances(meters, marks), 1e5) ** 2
among = squares[:, marks]
centred = among - among.mean(axis=0) - among.mean(axis=1)[:, None] + among.mean()
sizes, axes = np.linalg.eigh(-0.5 * centred)
places = -0.5 * (squares - among.mean(axis=1)[:, None]).T @ axes[:, :-3:-1] / np.sqrt(sizes[:-3:-1])

figure = Figure(figsize=(9.5, 4.8), layout="constrained")
city_map, panel = figure.subplots(1, 2, width_ratios=[1, 1.15])
colours, lines = dw.plot.colours(plans), places[np.stack([tails, heads], axis=1)]
city_map.add_collection(LineCollection(lines, colors="#d9d9d9", linewidths=0.4))
city_map.add_collection(LineCollection(lines[slow], colors="#d62728", linewidths=1.2))
widths = 0.9 * np.sqrt(plans["online Frank-Wolfe"][-1])
home_colour = colours["online Frank-Wolfe"]
city_map.add_collection(
    LineCollection(lines, colors=home_colour, linewidths=widths, capstyle="round")
)
city_map.plot(*places[homes].T, "o", color=home_colour, markersize=3)
city_map.plot(*places[work], "o", color="#222222", markersize=7)
city_map.set_title(f"ways home on day {DAYS};  red: slow streets", fontsize=10, loc="left")
city_map.set_aspect("equal")
city_map.autoscale_view()
city_map.set_axis_off()
for title in plans:
    mean = np.convolve(took[title], np.ones(WINDOW) / WINDOW, "valid")
    panel.plot(np.arange(WINDOW, DAYS + 1), mean, color=colours[title], linewidth=1.5)
heights = sorted((took[title][-WINDOW:].mean(), title) for title in plans)
bottom, top = panel.get_ylim()
place = -np.inf
for height, title in heights:  # each name at the end of its line, or above the last one
    place = max(height, place + 0.05 * (top - bottom))
    where = {"xytext": (DAYS + 2, place), "va": "center", "fontsize": 8.5, "weight": "bold"}
    panel.annotate(title, (DAYS, height), color=colours[title], **where)
panel.set(xlim=(1, DAYS * 1.75), xlabel="day", xticks=[1, 40, 80, 120])
panel.set_title(f"minutes per commuter, mean of {WINDOW} days", fontsize=10, loc="left")
panel.spines[["top", "right"]].set_visible(False)
Path("results/examples").mkdir(parents=True, exist_ok=True)
figure.savefig("results/examples/shortest_paths.png", dpi=150)
print("figure: results/examples/shortest_paths.png")
