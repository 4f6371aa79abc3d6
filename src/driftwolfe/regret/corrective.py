"""Frank-Wolfe steps that re-optimise over all vertices found, for sets without a projection."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence

import numpy as np

from driftwolfe.domains import Simplex
from driftwolfe.points import inner
from driftwolfe.points.kinds import Array, Point
from driftwolfe.regret.accelerated import accelerated
from driftwolfe.regret.bracket import Bracket
from driftwolfe.regret.newton import newton
from driftwolfe.regret.objective import Evaluation, Objective

#: Gap over the found vertices, as a share of the last gap over the set.
_INNER_ACCURACY = 0.1
_INNER_LOOKS = 100
#: Weight below which a vertex is forgotten.
_IDLE = 1e-12


def corrective(objective: Objective, x: Point, bracket: Bracket) -> Point:
    r"""Minimise by fully corrective Frank-Wolfe.

    Every oracle answer joins the vertices found so far, and x becomes a minimiser over their convex
    hull: a problem in as many weights, over a simplex. Needs nothing of the set but its oracle, and
    far fewer calls of it than line search. Ends like the other methods; returns the last point.
    """
    atoms, weights = [x], np.ones(1)
    while bracket.has_work():
        seen = objective.evaluate(x)
        look = bracket.look(objective, x, seen)
        if not bracket.has_work():
            break
        atoms.append(look.vertex)
        mixture = Mixture(objective, atoms)
        weights = _best_weights(mixture, np.append(weights, 0.0), bracket, look.gap)
        if not mixture.value(weights) < seen.value:
            break
        atoms = [atom for atom, weight in zip(atoms, weights, strict=True) if weight > _IDLE]
        weights = weights[weights > _IDLE] / weights[weights > _IDLE].sum()
        x = mix(atoms, weights)
    return x


def _best_weights(mixture: Mixture, weights: Array, bracket: Bracket, gap: float) -> Array:
    """The minimiser over the hull, to a share of the gap over the set; its looks count as well."""
    inside = Bracket(Simplex(len(weights)), allowed=_INNER_ACCURACY * gap, limit=_INNER_LOOKS)
    if mixture.has_hessian(len(weights)):
        weights = newton(mixture, weights, inside)
    accelerated(mixture, weights, inside)
    bracket.looks += inside.looks
    return np.asarray(inside.point)


def mix(atoms: Sequence[Point], weights: Array) -> Point:
    """Return the combination of the points with these weights."""
    parts = (atom * float(weight) for atom, weight in zip(atoms, weights, strict=True))
    return functools.reduce(operator.add, parts)


class Mixture(Objective):
    """An objective as a function of the weights of some points."""

    def __init__(self, objective: Objective, atoms: Sequence[Point]) -> None:
        super().__init__(objective.terms, objective.constant)
        self._objective = objective
        self._atoms = atoms

    def has_hessian(self, size: int) -> bool:
        """Whether the objective has one for the points themselves."""
        first = self._atoms[0]
        return isinstance(first, np.ndarray) and self._objective.has_hessian(first.size)

    def value(self, x: Array) -> float:
        """Return the value at the combination with weights x."""
        return self._objective.value(mix(self._atoms, x))

    def evaluate(self, x: Array) -> Evaluation:
        """Return value and gradient, as a function of the weights."""
        seen = self._objective.evaluate(mix(self._atoms, x))
        gradient = np.array([inner(seen.gradient, atom) for atom in self._atoms])
        return Evaluation(seen.value, gradient, 0.0)

    def hessian(self, x: Array) -> Array:
        """Return the second derivatives by the weights."""
        rows = np.array([atom.ravel() for atom in self._atoms])
        product: Array = rows @ self._objective.hessian(mix(self._atoms, x)) @ rows.T
        return product
