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
#: Weight below which a vertex is forgotten.
_IDLE = 1e-12


def corrective(objective: Objective, x: Point, bracket: Bracket) -> Point:
    r"""Minimise by fully corrective Frank-Wolfe.

    Every oracle answer joins the vertices found so far, and x becomes a minimiser over their convex
    hull: a problem in as many weights, over a simplex. Needs nothing of the set but its oracle, and
    far fewer calls of it than line search. Ends like the other methods; returns the last point.
    """
    atoms, weights = [x], np.ones(1)
    while bracket.working:
        seen = objective.evaluate(x)
        look = bracket.look(objective, x, seen)
        if not bracket.working:
            break
        atoms.append(look.vertex)
        mixture = Mixture(objective, atoms)
        inside = Bracket(Simplex(len(atoms)), 0.0, 0.0, allowed=_INNER_ACCURACY * look.gap)
        method = newton if mixture.has_hessian(len(atoms)) else accelerated
        weights = method(mixture, np.append(weights, 0.0), inside)
        if mixture.value(weights) >= seen.value:
            break
        atoms = [atom for atom, weight in zip(atoms, weights, strict=True) if weight > _IDLE]
        weights = weights[weights > _IDLE] / weights[weights > _IDLE].sum()
        x = mix(atoms, weights)
    return x


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
