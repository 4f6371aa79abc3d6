"""Draw the figures of docs/tour.md with the library's own code: python docs/figures/tour.py."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from style import (
    AMBER,
    BLUE,
    FAINT,
    GREEN,
    HERE,
    INK,
    ORANGE,
    PAPER,
    PINK,
    SKY,
    SOFT,
    arrow,
    canvas,
    colours,
    save,
)

import driftwolfe as dw

#: A set in the plane: the hull of seven points.
CORNERS = np.array(
    [[-1.5, -0.9], [0.2, -1.5], [1.6, -0.9], [2.0, 0.4], [1.2, 1.5], [-0.5, 1.7], [-1.8, 0.6]]
)
ROUNDS, JUMP = 600, 200


def plane(axis: Any, x: tuple[float, float], y: tuple[float, float]) -> None:
    """A panel without axes that shows the set."""
    axis.add_patch(Polygon(CORNERS, closed=True, facecolor="#e8eef2", edgecolor=INK, lw=1.4))
    axis.text(-1.05, 0.0, "K", fontsize=14, style="italic", color=SOFT)
    axis.set(xlim=x, ylim=y, aspect="equal")
    axis.set_axis_off()


def dot(axis: Any, point: Any, name: str, colour: str, shift: tuple[float, float]) -> None:
    """A named point."""
    axis.plot(*point, "o", color=colour, markersize=7, zorder=5)
    axis.text(
        point[0] + shift[0],
        point[1] + shift[1],
        name,
        color=colour,
        fontsize=11,
        ha="center",
        va="center",
        zorder=6,
    )


def lmo() -> Figure:
    """Three directions, and the vertex that each finds."""
    hull = dw.ConvexHull(CORNERS)
    figure = canvas(9, 2.5)
    for axis, angle in zip(figure.subplots(1, 3), (205, 95, -20), strict=True):
        plane(axis, (-3.2, 3.2), (-2.5, 2.5))
        g = np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle))])
        vertex, across = hull.lmo(g), np.array([-g[1], g[0]])
        for level in np.arange(0.0, 4.0, 0.6):
            line = np.array([vertex + level * g - 5 * across, vertex + level * g + 5 * across])
            first = level == 0.0
            axis.plot(*line.T, color=ORANGE if first else FAINT, lw=1.3 if first else 1, zorder=1)
        arrow(axis, (0, 0), 1.1 * g, BLUE)
        axis.text(*(1.35 * g), "g", color=BLUE, fontsize=12, ha="center", va="center")
        dot(axis, vertex, "lmo(g)", ORANGE, (-0.85 * g[0], -0.45 * g[1]))
    return figure


def fejer() -> Figure:
    """An exact projection beside an infeasible one."""
    hull = dw.ConvexHull(CORNERS)
    # A larger ball around the set than need be: the oracle would first move y into it.
    known = dw.LMODomain(2, hull.lmo, radius=3.2, center=hull.origin())
    y, z = np.array([2.7, 1.4]), np.array([-0.3, 1.0])
    figure = canvas(9, 3.7)
    left, right = figure.subplots(1, 2)
    for axis in (left, right):
        plane(axis, (-2.2, 3.9), (-1.9, 2.7))
        dot(axis, y, "y", BLUE, (0.2, 0.18))
    nearest = hull.project(y)
    left.plot(*np.array([y, nearest]).T, color=BLUE, lw=1.3, ls="--")
    dot(left, nearest, "nearest point", ORANGE, (-0.95, -0.05))
    left.set_title("exact: the nearest point of K", fontsize=11, color=INK)

    found = dw.infeasible_projection(known, known.origin(), y, tolerance=0.2, method="halfspace")
    x, moved = found.feasible, found.infeasible
    vertex = hull.lmo(x - y)
    normal = (y - x) / np.linalg.norm(y - x)
    across = np.array([-normal[1], normal[0]])
    edge = np.array([vertex - 6 * across, vertex + 6 * across])
    beyond = np.vstack([edge, edge[::-1] + 6 * normal])
    right.fill(*beyond.T, color="#fbeadd", zorder=0, linewidth=0)
    right.plot(*edge.T, color=ORANGE, lw=1.2, zorder=1)
    right.plot(*np.array([moved, x]).T, color=BLUE, lw=1.2, ls="--", zorder=2)
    arrow(right, y, moved + 0.07 * normal, BLUE)
    for point, colour in ((y, BLUE), (moved, GREEN)):
        right.plot(*np.array([z, point]).T, color=colour, lw=1.1, ls=":", zorder=2)
    dot(right, x, "x′", ORANGE, (0.27, -0.1))
    dot(right, moved, "y′", GREEN, (0.3, -0.06))
    dot(right, z, "z", INK, (-0.22, 0))
    right.text(3.8, 2.15, "no point of K here", color=ORANGE, fontsize=9.5, ha="right")
    right.set_title("infeasible: y′ is nearer to every z of K", fontsize=11, color=INK)
    assert dw.points.distance(moved, z) < dw.points.distance(y, z)
    return figure


def lazy() -> Figure:
    """The same noisy gradients, taken by an agile and by a lazy expert."""
    hull, rng, eta = dw.ConvexHull(CORNERS), np.random.default_rng(3), 0.5
    gradients = np.array([-1.0, -0.2]) + [0.4, 1.3] * rng.standard_normal((10, 2))
    figure = canvas(9, 3.4)
    left, right = figure.subplots(1, 2)
    for axis in (left, right):
        plane(axis, (-2.0, 6.0), (-1.7, 3.0))

    x = hull.origin()
    played = [x]
    for g in gradients:
        target = x - eta * g
        arrow(left, x, target, BLUE, lw=1.1, mutation_scale=8)
        x = hull.project(target)
        left.plot(*np.array([target, x]).T, color=SOFT, lw=0.8, ls=":")
        played.append(x)
    left.plot(*np.array(played).T, "o", color=ORANGE, markersize=5, zorder=5)
    left.set_title("agile: step from the last projection", fontsize=11, color=INK)

    thetas = hull.origin() - eta * np.cumsum(np.vstack([[0.0, 0.0], gradients]), axis=0)
    points = np.array([hull.project(theta) for theta in thetas])
    right.plot(*thetas.T, color=BLUE, lw=1.2)
    right.plot(*thetas.T, ".", color=BLUE, markersize=4)
    for theta, point in zip(thetas, points, strict=True):
        right.plot(*np.array([theta, point]).T, color=SOFT, lw=0.8, ls=":")
    right.plot(*points.T, "o", color=ORANGE, markersize=5, zorder=5)
    dot(right, thetas[-1], "sum of all steps", BLUE, (-1.0, 0.32))
    right.set_title("lazy: project the sum of all steps", fontsize=11, color=INK)
    return figure


def game() -> tuple[list[Any], np.ndarray]:
    """Losses around a target that jumps twice, and the targets."""
    rng = np.random.default_rng(4)
    ball = dw.L1Ball(20)
    places = [ball.lmo(-np.eye(20)[0]), ball.lmo(np.eye(20)[0]), ball.lmo(-np.eye(20)[1])]
    targets = np.repeat(places, JUMP, axis=0)
    noise = 0.25 * rng.standard_normal(targets.shape)
    return [dw.losses.SquaredDistance(each) for each in targets + noise], targets


def regret() -> Figure:
    """What three kinds of regret compare with, on one game."""
    stream, targets = game()
    ball = dw.L1Ball(20)
    learners = {"POLAR": dw.POLAR(ball), "OGD": dw.OGD(ball, horizon=ROUNDS)}
    games = {n: dw.play(one, stream, record_decisions=True) for n, one in learners.items()}
    figure = canvas(9, 6.6)
    above, middle, below = figure.subplots(3, sharex=True, height_ratios=[1, 1, 1])
    rounds = np.arange(1, ROUNDS + 1)
    shades = colours(learners)

    fixed = dw.regret.static_regret(games["POLAR"]).comparators[0]
    above.plot(rounds, targets[:, 0], color=INK, lw=1.2)
    above.axhline(fixed[0], color=GREEN, lw=1.2, ls="--")
    for name, played in games.items():
        above.plot(rounds, np.array(played.decisions)[:, 0], color=shades[name], lw=1.2)
    above.set(ylim=(-1.15, 1.15))
    above.set_title("first coordinate of what is played", loc="left", fontsize=10)
    for height, words, colour in (
        (0.75, "moving comparator", INK),
        *((0.42 - 0.33 * i, name, shade) for i, (name, shade) in enumerate(shades.items())),
        (-0.24, "best fixed point", GREEN),
    ):
        above.text(ROUNDS * 1.015, height, words, color=colour, va="center")

    moving = np.array([loss.value(u) for loss, u in zip(stream, targets, strict=True)])
    still = np.array([loss.value(fixed) for loss in stream])
    ends = []
    for name, played in games.items():
        for against, dash, words in ((moving, "-", "moving"), (still, "--", "fixed")):
            curve = np.cumsum(played.losses - against)
            middle.plot(rounds, curve, color=shades[name], ls=dash, lw=1.3)
            ends.append((curve[-1], f"{name}, against {words}", shades[name]))
        total = dw.regret.dynamic_regret(played, targets)
        assert np.isclose(np.sum(played.losses - moving), float(total))
    middle.axhline(0, color=FAINT, lw=1)
    spread(middle, ends, 30)
    middle.set_title("regret so far", loc="left", fontsize=10)

    tau = 50
    for name, played in games.items():
        lost = [_window(played, stream, s, tau, ball) for s in range(ROUNDS - tau + 1)]
        below.plot(rounds[tau - 1 :], lost, color=shades[name], lw=1.3)
        worst = float(dw.regret.adaptive_regret(played, tau))
        place = int(np.argmax(lost))
        assert abs(lost[place] - worst) < 1e-2 * worst
        below.plot(rounds[tau - 1 + place], worst, "o", color=shades[name], markersize=6)
        words = f"{name}, worst: {worst:.0f}"
        shift = 22 if name == "POLAR" else 8  # beside OGD's curve, not on it
        below.text(rounds[tau - 1 + place] + shift, worst, words, color=shades[name], va="center")
    below.set_title(
        f"regret inside the last {tau} rounds, against the best fixed point of those {tau}",
        loc="left",
        fontsize=10,
    )
    below.set(xlabel="round; the target jumps at the dotted lines", xlim=(0, ROUNDS))
    for axis in (above, middle, below):
        for jump in (JUMP, 2 * JUMP):
            axis.axvline(jump, color=SOFT, ls=":", lw=0.9, zorder=0)
    return figure


def _window(played: dw.History, stream: list[Any], start: int, tau: int, ball: Any) -> float:
    """Regret over one window; the best point for squared distances is the mean's projection."""
    here = stream[start : start + tau]
    best = ball.project(np.mean([loss.target for loss in here], axis=0))
    return float(played.losses[start : start + tau].sum() - sum(loss.value(best) for loss in here))


def spread(axis: Any, ends: list[tuple[float, str, str]], apart: float) -> None:
    """Names at the ends of curves that do not cover each other."""
    height = -np.inf
    for end, words, colour in sorted(ends):
        height = max(end, height + apart)
        axis.text(ROUNDS * 1.015, height, words, color=colour, va="center")


def cover() -> Figure:
    """The geometric cover, the experts awake in one round, and how it makes up a window."""
    last, now, window = 31, 13, (5, 27)
    figure = canvas(9, 3.5)
    axis = figure.subplots()
    geometric = dw.ensemble.GeometricCover()
    pieces, first = list[tuple[int, int]](), window[0]
    while first <= window[1]:  # the longest interval that fits
        length = min(first & -first, 1 << ((window[1] - first + 1).bit_length() - 1))
        pieces.append((first, first + length - 1))
        first += length
    for t in range(1, last + 1):
        for k, length in enumerate(geometric.starting(t)):
            piece = t, t + length - 1
            awake = piece in geometric.active(now)
            colour = ORANGE if piece in pieces else "#9fc3d9" if awake else FAINT
            right = min(piece[1], last) + 0.42
            axis.plot([t - 0.42, right], [k, k], color=colour, lw=8, solid_capstyle="butt")
    axis.axvspan(now - 0.5, now + 0.5, color=SKY, alpha=0.22, lw=0, zorder=0)
    axis.text(now, 5.25, f"awake in round {now}", ha="center", color=BLUE, fontsize=9.5)
    axis.plot([window[0] - 0.42, window[1] + 0.42], [-0.9, -0.9], color=ORANGE, lw=2)
    axis.text(
        sum(window) / 2,
        -1.45,
        f"rounds {window[0]} to {window[1]}, made up of {len(pieces)} intervals",
        color=ORANGE,
        ha="center",
        va="center",
        fontsize=9.5,
    )
    axis.set_yticks(range(5), [f"{1 << k}" for k in range(5)])
    axis.set(xlim=(0.3, last + 0.7), ylim=(-1.9, 5.7), ylabel="length of interval", xlabel="round")
    axis.set_xticks([1, *range(4, last + 1, 4)])
    return figure


def grouped(expert: str) -> str:
    """The name of an expert, or of the few that are shown as one."""
    kind, _, rounds = expert.partition(", ")
    if kind not in ("lazy", "adaptive", "agile"):
        return kind
    return f"{kind}, {'at most 32 rounds' if int(rounds.split()[0]) <= 32 else 'longer'}"


def weights() -> Figure:
    """Weights of POLAR's, POLD's and POLA's experts over one game."""
    stream, _ = game()
    ball = dw.L1Ball(20)
    figure = canvas(9, 7.8)
    axes = figure.subplots(3, sharex=True)
    horizon = {"horizon": ROUNDS}
    learners = {"POLAR": dw.POLAR(ball), "POLD": dw.POLD(ball, **horizon), "POLA": dw.POLA(ball)}
    kinds = ("kinds and epochs", "steps, from small to large", "interval lengths")
    for axis, what, (name, learner) in zip(axes, kinds, learners.items(), strict=True):
        shares: dict[str, np.ndarray] = {}
        for t, loss in enumerate(stream):
            for expert, weight in zip(learner.expert_names, learner.expert_weights, strict=True):
                shares.setdefault(grouped(expert), np.zeros(ROUNDS))[t] += weight
            learner.update(loss)
        smooth = [np.convolve(each, np.ones(8) / 8, "same") for each in shares.values()]
        map_ = ["#08306b", BLUE, SKY, GREEN, "#8fbf6a", AMBER, ORANGE, PINK, "#7b3f8f", "#444444"]
        shown = [each[::3] for each in smooth]
        axis.stackplot(np.arange(1, ROUNDS + 1, 3), shown, colors=map_[: len(shown)], lw=0)
        axis.set(xlim=(4, ROUNDS - 4), ylim=(0, 1))
        for height, (expert, colour) in zip(
            np.linspace(0.03, 0.97, len(shares)), zip(shares, map_, strict=False), strict=True
        ):
            axis.text(ROUNDS * 1.01, height, expert, color=colour, va="center", fontsize=9)
        axis.set_title(f"{name}: weights of its experts, by {what}", loc="left", fontsize=10)
        for jump in (JUMP, 2 * JUMP):
            axis.axvline(jump, color=PAPER, ls=":", lw=1.4)
    axes[-1].set_xlabel("round; the target jumps at the dotted lines")
    return figure


FIGURES = {
    "lmo": lmo,
    "fejer": fejer,
    "regret": regret,
    "cover": cover,
    "weights": weights,
    "lazy": lazy,
}


def main() -> None:
    """Draw them all, into the folder given or beside this file."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE
    for name, draw in FIGURES.items():
        save(draw(), name, folder)


if __name__ == "__main__":
    main()
