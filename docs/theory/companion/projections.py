"""Inequalities of oracles.md, and of section 1 of budget.md."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from check import Case, check
from sets import C, Scene, frank_wolfe, gap, line_search, scenes, segment, simplex, zigzag

import driftwolfe as dw


@check("(1): |x - z|^2 <= |y - z|^2 - d^2 + 2g")
def one_inequality() -> Iterator[Case]:
    """Distances to every vertex against the gap from the library's oracle; tight at the vertex."""
    for scene in scenes(60):
        x, y, V = scene.x, scene.y, scene.vertices
        vertex = scene.hull.lmo(x - y)
        g = float((x - y) @ (x - vertex))
        d2 = ((x - y) ** 2).sum()
        left = (((x - V) ** 2).sum(axis=1) - ((y - V) ** 2).sum(axis=1) + d2).max()
        yield float(left), 2 * g, scene.name


@check("collapse: |x - z| <= |y - z| if g <= d^2/2")
def collapse() -> Iterator[Case]:
    """Targets at the distance from x where the gap is just half the squared distance."""
    rng = np.random.default_rng(1)
    for scene in scenes(60):
        x, V = scene.x, scene.vertices
        normal = rng.normal(size=x.size)
        normal /= np.linalg.norm(normal)
        y = x + 2 * ((V - x) @ normal).max() * normal
        ratio = ((x - V) ** 2).sum(axis=1) / ((y - V) ** 2).sum(axis=1)
        yield float(ratio.max()), 1.0, scene.name


def _projections(method: str) -> Iterator[tuple[Scene, float, dw.oracles.InfeasibleProjection]]:
    for k, scene in enumerate(scenes(60, seed=2)):
        tol = scene.D**2 * (0.3, 0.03, 0.003)[k % 3]
        far = scene.y + (k % 2) * (scene.y - scene.x)
        yield (
            scene._replace(y=far),
            tol,
            dw.infeasible_projection(scene.hull, scene.x, far, tol, method),
        )


@check("half-space: |y' - z| <= |y - z| at the worst z")
def half_space() -> Iterator[Case]:
    """The contract's point 3 at z = lmo(y' - y), where its two sides differ least."""
    for scene, _, answer in _projections("halfspace"):
        moved = answer.infeasible
        z = scene.vertices[(scene.vertices @ (moved - scene.y)).argmin()]
        left, right = np.linalg.norm(moved - z), np.linalg.norm(scene.y - z)
        yield float(left), float(right), scene.name


@check("half-space: |x' - y'|^2 <= tol")
def near() -> Iterator[Case]:
    """Point 2 of the contract."""
    for scene, tol, answer in _projections("halfspace"):
        apart = answer.feasible - answer.infeasible
        yield float(apart @ apart), tol, scene.name


@check("half-space: y' in the ball")
def in_ball() -> Iterator[Case]:
    """Point 4 of the contract."""
    for scene, _, answer in _projections("halfspace"):
        outward = np.linalg.norm(answer.infeasible - scene.vertices.mean(axis=0))
        yield float(outward), scene.D / 2, scene.name


@check("hull and ball: no point of K farther than before")
def hull_and_ball() -> Iterator[Case]:
    """Targets off the simplex' affine hull, with no call allowed: only the two moves are left."""
    rng = np.random.default_rng(3)
    for n in (2, 3, 10, 50):
        for _ in range(10):
            K, y = dw.Simplex(n), rng.normal(size=n) * rng.choice([0.1, 1.0, 10.0])
            answer = dw.infeasible_projection(K, K.origin(), y, 1e-6, "halfspace", max_lmo_calls=0)
            z = np.eye(n)[(answer.infeasible - y).argmin()]
            left, right = np.linalg.norm(answer.infeasible - z), np.linalg.norm(y - z)
            yield float(left), float(right), f"simplex of {n}"


@check("cut short: (x, y) keep points 3 and 4 after any number of calls")
def cut_short() -> Iterator[Case]:
    """Runs that end after 1, 2 or 3 calls."""
    for k, scene in enumerate(scenes(60, seed=4)):
        answer = dw.infeasible_projection(
            scene.hull, scene.x, scene.y, 1e-9, "halfspace", max_lmo_calls=1 + k % 3
        )
        moved = answer.infeasible
        z = scene.vertices[(scene.vertices @ (moved - scene.y)).argmin()]
        yield float(np.linalg.norm(moved - z)), float(np.linalg.norm(scene.y - z)), scene.name


@check("a step: g^2/D^2 <= fall of d^2, clipped or not")
def one_step() -> Iterator[Case]:
    """Steps to the best vertex and to others with a positive gap, as free steps are."""
    for scene in (*scenes(60, seed=5), segment(0.3), segment(1.0)):
        x, y = scene.x, scene.y
        for vertex in scene.vertices:
            g = float((x - y) @ (x - vertex))
            if g > 0:
                after = line_search(x, y, vertex)
                fall = ((x - y) ** 2).sum() - ((after - y) ** 2).sum()
                yield g * g / scene.D**2, float(fall), scene.name


@check("a gap: h <= g")
def gap_bounds_h() -> Iterator[Case]:
    """Against the distance that the library's projection finds."""
    for scene in scenes(60, seed=6):
        g, _ = gap(scene.vertices, scene.x, scene.y)
        nearest = scene.hull.project(scene.y)
        h = (((scene.x - scene.y) ** 2).sum() - ((nearest - scene.y) ** 2).sum()) / 2
        yield float(h), g, scene.name


@check("h_k <= 2 D^2/(k + 4)")
def rate() -> Iterator[Case]:
    """Line-search runs without an end; the distance is the library's, or 0 where y is in the set."""
    for scene in (*scenes(12, seed=7), simplex(3), simplex(300), zigzag(1.0), segment(1.0)):
        x, y = scene.x, scene.y
        nearest = scene.hull.project(y) if scene.name.startswith("polytope") else y
        dist2 = float(((nearest - y) ** 2).sum())
        for k in range(60):
            h = (((x - y) ** 2).sum() - dist2) / 2
            yield float(h), 2 * scene.D**2 / (k + 4), f"{scene.name}, k = {k}"
            x = line_search(x, y, gap(scene.vertices, x, y)[1])


def _hard() -> Iterator[tuple[Scene, float]]:
    hard = [*(simplex(n) for n in (2, 5, 20, 100, 400)), *(zigzag(a) for a in (0.1, 0.5, 1.0, 3.0))]
    for scene in (*hard, *scenes(24, seed=8)):
        for share in (0.9, 0.5, 0.25, 0.1, 0.01, 0.003):
            yield scene, share * scene.D**2


@check("calls of halfspace <= 2.6 D^2/tol")
def calls() -> Iterator[Case]:
    """The library's runs, on the simplex from a vertex to the centre and on random polytopes."""
    for scene, tol in _hard():
        K = dw.Simplex(scene.x.size) if scene.name.startswith("simplex") else scene.hull
        answer = dw.infeasible_projection(K, scene.x, scene.y, tol, "halfspace")
        most = np.floor(C * scene.D**2 / tol)
        yield answer.lmo_calls, float(most), f"{scene.name}, tol = {tol / scene.D**2:.3g} D^2"


@check("calls with an inexact oracle <= 6.66 D^2/tol")
def sloppy_calls() -> Iterator[Case]:
    """The oracle gives the worst vertex that its error, 3/8 sqrt(tol) d, allows, and tells the error."""
    for scene, tol in _hard():
        x, y, V, calls = scene.x, scene.y, scene.vertices, 0
        while (d2 := float((x - y) @ (x - y))) > tol:
            error = 0.375 * np.sqrt(tol * d2)
            values = V @ (x - y)
            vertex = V[np.where(values <= values.min() + error, values, -np.inf).argmax()]
            calls += 1
            if float((x - y) @ (x - vertex)) + error <= np.sqrt(tol * d2):
                break
            x = line_search(x, y, vertex)
        most = np.floor(6.66 * scene.D**2 / tol)
        yield calls, float(most), f"{scene.name}, tol = {tol / scene.D**2:.3g} D^2"


@check("true calls with known vertices <= 2.6 D^2/tol")
def calls_with_atoms() -> Iterator[Case]:
    """The library's runs with vertices kept from run to run, and the same written anew."""
    for scene, tol in _hard():
        K, atoms = scene.hull, dw.oracles.Atoms(50)
        most = float(np.floor(C * scene.D**2 / tol))
        for start in (scene.x, scene.vertices[-1]):
            answer = dw.infeasible_projection(K, start, scene.y, tol, "halfspace", atoms=atoms)
            yield answer.lmo_calls, most, f"{scene.name}, tol = {tol / scene.D**2:.3g} D^2"
        yield frank_wolfe(scene, tol, known=True)[1], most, f"{scene.name}, written anew"


@check("all steps with known vertices <= 1 + (D^2/tol) ln(D^2/tol)")
def free_steps() -> Iterator[Case]:
    """Free steps are finitely many: each lowers d^2 by a factor."""
    for scene, tol in _hard():
        _, made, free = frank_wolfe(scene, tol, known=True)
        many = scene.D**2 / tol
        yield made + free - 1, 1 + many * np.log(many), f"{scene.name}, D^2/tol = {many:.3g}"
