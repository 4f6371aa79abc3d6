"""The paper's claims, held against what was measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from driftwolfe.experiments import numbers
from driftwolfe.experiments.series import Curve, Series
from driftwolfe.experiments.summary import Summary

#: Times quicker that count as much faster, and the share of loss that counts as slight.
MUCH_FASTER, SLIGHT = 5.0, 0.10
PROJECTION_FREE = ("BOGD_IP", "POLD", "POLA")


@dataclass(frozen=True)
class Claim:
    """A claim, what was measured, and whether it held.

    Attributes
    ----------
    number
        As they are told: (i), (ii), (iii).
    text
        The claim, as we understand it.
    measured
        The numbers.
    held
        Whether they bear it out.
    """

    number: str
    text: str
    measured: str
    held: bool

    def __str__(self) -> str:
        verdict = "held" if self.held else "DID NOT HOLD"
        return f"({self.number}) {self.text}\n     {self.measured}\n     {verdict}"


def claims(summary: Summary) -> list[Claim]:
    """The claims that the methods of a summary allow to check."""
    return [*_against_ader(summary), *_against_multi_ocg(summary), *_against_pamo(summary)]


def as_markdown(found: list[Claim]) -> str:
    """The claims as a table."""
    lines = ["| claim | | measured | held |", "| --- | --- | --- | --- |"]
    lines += [
        f"| ({c.number}) | {c.text} | {c.measured} | {'yes' if c.held else '**no**'} |"
        for c in found
    ]
    return "\n".join(lines)


def _against_ader(summary: Summary) -> Iterator[Claim]:
    for name in PROJECTION_FREE:
        yield from _quicker_at_slight_cost("i", summary, name, "Ader")


def _against_pamo(summary: Summary) -> Iterator[Claim]:
    for ours in ("POLA", "POLA, paper's oracle"):
        for theirs in ("PAMO", "PAMO, exact gauge"):
            yield from _quicker_at_slight_cost("iii", summary, ours, theirs)


def _against_multi_ocg(summary: Summary) -> Iterator[Claim]:
    for name in PROJECTION_FREE:
        if pair := _pair(summary, name, "Multi-OCG"):
            ours, theirs, rounds = _at_end(*pair, "loss")
            yield Claim(
                "ii",
                f"{name} has a lower cumulative loss than Multi-OCG",
                f"{ours:,.0f} against {theirs:,.0f} after {rounds:,} rounds",
                ours < theirs,
            )


def _quicker_at_slight_cost(
    number: str, summary: Summary, name: str, against: str
) -> Iterator[Claim]:
    pair = _pair(summary, name, against)
    if pair is None:
        return
    ours, theirs, rounds = _at_end(*pair, "seconds")
    yield Claim(
        number,
        f"{name} is much faster than {against} (at least {MUCH_FASTER:g} times)",
        f"{numbers.number(ours, 3)} s against {numbers.number(theirs, 3)} s for {rounds:,} rounds: "
        f"{numbers.number(theirs / ours, 3)} times",
        theirs >= MUCH_FASTER * ours,
    )
    ours, theirs, rounds = _at_end(*pair, "loss")
    more = ours / theirs - 1.0
    yield Claim(
        number,
        f"{name} pays for it with a slightly higher loss than {against} (at most {SLIGHT:.0%})",
        f"{numbers.number(ours, 6)} against {numbers.number(theirs, 6)} after {rounds:,} rounds: "
        f"{more:+.1%}",
        more <= SLIGHT,
    )


def _pair(summary: Summary, one: str, other: str) -> tuple[Series, Series] | None:
    chosen = summary.chosen
    return (chosen[one], chosen[other]) if one in chosen and other in chosen else None


def _at_end(one: Series, other: Series, name: Curve) -> tuple[float, float, int]:
    """Both means after the last round that both were read at, over the seeds that both have."""
    rounds = int(np.intersect1d(one.rounds, other.rounds)[-1])
    shared = {r.trial.seed for r in one.results} & {r.trial.seed for r in other.results}
    means = []
    for series in (one, other):
        kept = Series(tuple(r for r in series.results if r.trial.seed in shared))
        at = int(np.searchsorted(kept.rounds, rounds))
        means.append(float(kept.curve(name)[:, at].mean()))
    return means[0], means[1], rounds
