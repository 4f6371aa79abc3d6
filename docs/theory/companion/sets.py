"""Sets and points on which the checks are made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

import driftwolfe as dw

#: 2.6 of oracles.md, written down here once more.
C = 2.6


class Scene(NamedTuple):
    """A polytope by its vertices, a point x in it, a target y in its ball, and D."""

    vertices: np.ndarray
    x: np.ndarray
    y: np.ndarray
    D: float
    name: str

    @property
    def hull(self) -> dw.ConvexHull:
        """The set as the library knows it."""
        return dw.ConvexHull(self.vertices)


def scenes(number: int = 30, seed: int = 0) -> Iterator[Scene]:
    """Yield random polytopes; targets lie in the set, near it, or far away on the ball."""
    rng = np.random.default_rng(seed)
    for k in range(number):
        n, many = int(rng.integers(2, 9)), int(rng.integers(3, 30))
        vertices = rng.normal(size=(many, n)) * rng.uniform(0.1, 2.0, size=n)
        center = vertices.mean(axis=0)
        R = float(np.linalg.norm(vertices - center, axis=1).max())
        x = rng.dirichlet(np.ones(many)) @ vertices
        kind = ("inside", "outside", "on the ball")[k % 3]
        y = rng.dirichlet(np.full(many, 0.3)) @ vertices
        if kind != "inside":
            away = rng.normal(size=n)
            y = center + away * (R / np.linalg.norm(away)) * (1 if k % 3 == 2 else rng.uniform())
        yield Scene(vertices, x, y, 2 * R, f"polytope {k}, {many} vertices in R^{n}, y {kind}")


def simplex(n: int) -> Scene:
    """Return the way from a vertex of the simplex to its centre: every step is short."""
    vertices = np.eye(n)
    center = np.full(n, 1 / n)
    return Scene(vertices, vertices[0], center, 2 * np.sqrt(1 - 1 / n), f"simplex of {n}")


def segment(share: float) -> Scene:
    """Return the way along a diameter: x at one end, y at that share of it."""
    vertices = np.array([[-1.0], [1.0]])
    return Scene(vertices, vertices[0], vertices[0] + 2 * share, 2.0, f"segment, y at {share:g}")


def zigzag(height: float) -> Scene:
    """Return a triangle, x at its top and y inside its base: steps go from corner to corner."""
    vertices = np.array([[-1.0, 0.0], [1.0, 0.0], [0.1, height]])
    R = float(np.linalg.norm(vertices - vertices.mean(axis=0), axis=1).max())
    return Scene(vertices, vertices[2], np.array([0.1, 0.0]), 2 * R, f"triangle of {height:g}")


def gap(vertices: np.ndarray, x: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the Frank-Wolfe gap at x and the vertex that attains it."""
    vertex = vertices[(vertices @ (x - y)).argmin()]
    return float((x - y) @ (x - vertex)), vertex


def frank_wolfe(scene: Scene, tol: float, known: bool = False) -> tuple[np.ndarray, int, int]:
    """Run line-search Frank-Wolfe, written anew; return x, oracle calls and free steps.

    It ends where d^2 <= tol or g <= sqrt(tol) d. With `known`, vertices found before are tried
    first, as `Atoms` does.
    """
    x, y, calls, free, found = scene.x.copy(), scene.y, 0, 0, scene.vertices[:0]
    while (d2 := float((x - y) @ (x - y))) > tol:
        enough = np.sqrt(tol * d2)
        if known and len(found):
            g, vertex = gap(found, x, y)
            if g > enough:
                x, free = line_search(x, y, vertex), free + 1
                continue
        g, vertex = gap(scene.vertices, x, y)
        calls, found = calls + 1, np.vstack((found, vertex))
        if g <= enough:
            break
        x = line_search(x, y, vertex)
    return x, calls, free


def line_search(x: np.ndarray, y: np.ndarray, vertex: np.ndarray) -> np.ndarray:
    """Return the nearest point to y on the segment from x to the vertex."""
    move = vertex - x
    share = float((y - x) @ move) / float(move @ move)
    return x + min(1.0, max(0.0, share)) * move
