"""Projections that ask for linear minimisations, so that several can ask at once."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TypeAlias

from driftwolfe.domains import Domain
from driftwolfe.oracles.result import InfeasibleProjection
from driftwolfe.points.kinds import Point

#: Yields a direction and the relative accuracy that will do, is sent a vertex and its error, and
#: returns a result; as `Domain.lmo_with_error` has them.
Asking: TypeAlias = Generator[tuple[Point, float], tuple[Point, float], InfeasibleProjection]


def answered(domain: Domain, projections: Sequence[Asking]) -> list[InfeasibleProjection]:
    """Run projections to their ends, answering in each turn what all that are left ask for."""
    results: dict[int, InfeasibleProjection] = {}
    answers: dict[int, tuple[Point, float] | None] = dict.fromkeys(range(len(projections)))
    while answers:
        asked: dict[int, tuple[Point, float]] = {}
        for i, answer in answers.items():
            try:
                asked[i] = projections[i].send(answer)  # type: ignore[arg-type]
            except StopIteration as end:
                results[i] = end.value
        answers = {}
        if asked:
            directions, accuracies = zip(*asked.values(), strict=True)
            found = domain.lmo_many_with_error(directions, accuracies)
            answers.update(zip(asked, found, strict=True))
    return [results[i] for i in range(len(projections))]
