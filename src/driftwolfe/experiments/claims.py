"""The paper's claims about its experiments, and what was measured."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from driftwolfe.experiments.paper import EXPERIMENTS
from driftwolfe.experiments.summary import Paired, Series, Summary, machines, paired
from driftwolfe.terminal import counted, markdown_text, number, write_table

#: Times quicker that count as significantly faster, the part of a loss that counts as slight, the
#: standard errors beyond which a difference counts, and the seeds that a verdict needs.
MUCH_FASTER, SLIGHT, ERRORS, SEEDS = 5.0, 0.10, 2.0, 3
#: By experiment: number and words of each claim, and whom it compares with whom.
_CLAIMS: dict[str, list[tuple[str, str, tuple[str, ...], str]]] = {
    "matrix-completion": [
        (
            "i",
            "projection-free methods are significantly more efficient compared to the "
            "projection-based approach (i.e. Ader), albeit with a slight compromise on cumulative loss",
            ("BOGDIP", "POLD", "POLA", "MultiOCG"),
            "Ader",
        ),
        (
            "ii",
            "our methods yield a lower cumulative loss compared to the projection-free contender "
            "Multi-OCG",
            ("BOGDIP", "POLD", "POLA"),
            "MultiOCG",
        ),
    ],
    "classification": [
        (
            "iii",
            "POLA is significantly faster than PAMO, despite a slight sacrifice of cumulative loss",
            ("POLA",),
            "PAMO",
        )
    ],
}
#: The figures of the paper, by experiment.
FIGURES: dict[str | None, str] = {"matrix-completion": "Figure 1", "classification": "Figure 2"}


@dataclass(frozen=True)
class Claim:
    """A part of a claim about two methods, what was measured, and what follows."""

    number: str  # i, ii, iii: in the order in which the paper makes them
    words: str  # the paper's, of the whole claim
    text: str
    measured: str
    held: bool | None  # None where that cannot be said
    found: str  # what was found where it did not hold, or why nothing can be said

    @property
    def verdict(self) -> str:
        if self.held is None:
            return f"not decided: {self.found}"
        return "held" if self.held else f"not held: {self.found}"

    def __str__(self) -> str:
        return f"({self.number}) {self.text}: {self.verdict}; {self.measured}"


def quotes(found: list[Claim]) -> dict[str, str]:
    """The words of the paper, by the numbers of claims."""
    return {claim.number: claim.words for claim in found}


def as_markdown(found: list[Claim]) -> str:
    """The words of the paper, and a table of what became of them."""
    words = "\n".join(f'- ({numeral}) "{text}."' for numeral, text in quotes(found).items())
    rows = ([f"({c.number})", markdown_text(c.text), c.measured, c.verdict] for c in found)
    return f"{words}\n\n{write_table(['', 'claim', 'measured', 'verdict'], rows, left=4)}"


def experiment_of(title: str) -> str | None:
    """The experiment of the paper that has the title; None for a sweep of your own."""
    for name, presets in EXPERIMENTS.items():
        if title in {experiment.title for experiment in presets.values()}:
            return name
    return None


def claims(summary: Summary, title: str) -> tuple[list[Claim], str]:
    """What became of the claims; or why nothing is said about those that there are, in a line."""
    found, seeds = list[Claim](), 0
    for numeral, words, ours, theirs in _CLAIMS.get(experiment_of(title) or "", ()):
        for one, other in product(_tuned(summary, *ours), _tuned(summary, theirs)):
            losses, times = paired(one, other, "loss"), paired(one, other, "seconds")
            if losses is None or times is None:
                continue
            seeds = max(seeds, len(losses.ours))
            if summary.notice or len(losses.ours) < SEEDS:
                continue
            parts: dict[str, tuple[str, bool | None, str]] = {}
            if numeral == "ii":
                parts["loses less than"] = _loses(losses, slightly=False)
            else:
                speed = _faster(times, machines(one), machines(other))
                parts["is significantly faster than"] = speed
                parts["loses slightly more than"] = _loses(losses, slightly=True)
            found += [
                Claim(numeral, words, f"{one.title} {verb} {other.title}", *part)
                for verb, part in parts.items()
            ]
    if found or not seeds:
        return found, ""
    needed = f"{SEEDS} orders of the data or more; this is {counted(seeds, 'order')}."
    if summary.notice:
        needed = "the real data: a synthetic twin says nothing about them."
    return [], f"The paper's claims need {needed}"


def _tuned(summary: Summary, *methods: str) -> list[Series]:
    """The methods with their chosen c."""
    chosen = [each for each in summary.chosen.values() if not each.untuned]
    return [each for method in methods for each in chosen if each.trial.method == method]


def _faster(times: Paired, ours: list[str], theirs: list[str]) -> tuple[str, bool | None, str]:
    """At least `MUCH_FASTER` times, if both ran on one machine; theirs may have had a GPU on top."""
    own, other = times.means
    ratio = other / own if own else float("inf")
    both = f"{number(own, 3)} s against {number(other, 3)} s for {times.rounds:,} rounds"
    measured = f"{both}: {number(ratio, 3)} times as fast"
    if ours != theirs or len(ours) > 1:
        gpu = theirs[0].removesuffix(f", {ours[0]}")
        handicap = len(ours) == len(theirs) == 1 and gpu != theirs[0]
        if handicap and ratio >= MUCH_FASTER:
            return f"{measured}, without the {gpu} that the other had", True, ""
        where = " and ".join(dict.fromkeys([*ours, *theirs]))
        return f"on {where}", None, "times of different machines are not comparable"
    if ratio >= MUCH_FASTER:
        return measured, True, ""
    found = "slower" if ratio < 1.0 else f"faster, but less than {MUCH_FASTER:g} times"
    return measured, False, found


def _loses(losses: Paired, slightly: bool) -> tuple[str, bool, str]:
    """Less, or more and by at most `SLIGHT`; in both cases by more than `ERRORS` standard errors."""
    (ours, theirs), (difference, error) = losses.means, losses.difference
    both = f"{number(ours, 6)} against {number(theirs, 6)} after {losses.rounds:,} rounds"
    change = f"{difference / theirs:+.1%} ± {error / abs(theirs):.1%}"
    found = ""
    if abs(difference) <= ERRORS * error:
        found = f"no difference beyond {ERRORS:g} standard errors"
    elif difference > 0.0 and not slightly:
        found = "higher, not lower"
    elif difference > SLIGHT * theirs:
        found = f"higher by more than {SLIGHT:.0%}"
    elif difference < 0.0 and slightly:
        found = "lower, not slightly higher"
    measured = f"{both}: {change}, mean and standard error over {len(losses.ours)} seeds"
    return measured, not found, found
