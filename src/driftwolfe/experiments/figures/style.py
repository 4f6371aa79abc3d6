"""`Look`: how a method is drawn, the same in every figure and in the report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product


@dataclass(frozen=True, slots=True)
class Look:
    """A colour, a dash and a marker; any two of them tell methods apart, in grey as well.

    Attributes
    ----------
    colour
        As ``#rrggbb``.
    dash
        Lengths of strokes and gaps in units of the line's width; empty for a solid line.
    marker
        As matplotlib names it.
    """

    colour: str
    dash: tuple[float, ...]
    marker: str


#: Okabe and Ito's colours without black and yellow, which a dark and a white page swallow, and a grey.
COLOURS = ("#0072B2", "#D55E00", "#767676", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES: tuple[tuple[float, ...], ...] = (
    (),
    (7.0, 1.6),
    (1.0, 1.3),
    (4.5, 1.4, 1.0, 1.4),
    (3.2, 1.4),
    (4.5, 1.3, 1.0, 1.3, 1.0, 1.3),
    (1.8, 1.8),
)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
KNOWN = ("POLD", "POLA", "BOGD_IP", "Multi-OCG", "Ader", "PAMO", "PAMO, exact gauge")
#: Line styles where they stand for the kind of oracle call.
CALL_DASHES: dict[str, tuple[float, ...]] = {
    "lmo": (),
    "projection": (4.0, 1.6),
    "gauge": (1.0, 1.3),
    "membership": (4.0, 1.3, 1.0, 1.3),
}


def looks(titles: Iterable[str]) -> dict[str, Look]:
    """Give each title a look; the paper's methods always have their own.

    Others take, by the alphabet, what is left: first colours that nothing else has, then other dashes.

    >>> found = looks(["POLD", "OGD", "BOGDIP"])
    >>> found["POLD"].colour, found["BOGDIP"].colour
    ('#0072B2', '#767676')
    >>> found["OGD"] == looks(["OGD", "POLD", "BOGDIP"])["OGD"]
    True
    """
    wanted = list(dict.fromkeys(titles))
    found: dict[str, Look] = {}
    for title in wanted:
        look = _FIXED.get(_plain(title))
        if look is not None and look not in found.values():
            found[title] = look
    for title in sorted(set(wanted) - found.keys()):
        found[title] = _spare(found.values())
    return {title: found[title] for title in wanted}


def _plain(title: str) -> str:
    """The letters and digits: ``BOGDIP`` and ``BOGD_IP`` are the same method."""
    return "".join(letter for letter in title.lower() if letter.isalnum())


def _candidates() -> Iterator[Look]:
    for turn, start in product(range(len(MARKERS)), range(len(COLOURS))):
        yield Look(
            COLOURS[start],
            DASHES[(start + turn) % len(DASHES)],
            MARKERS[(start + 2 * turn) % len(MARKERS)],
        )


def _spare(taken: Iterable[Look]) -> Look:
    used = set(taken)
    free = [look for look in _candidates() if look not in used]
    colours = {look.colour for look in used}
    fresh = [look for look in free if look.colour not in colours]
    everything = list(_candidates())
    return (fresh or free or everything[len(used) % len(everything) :])[0]


_FIXED = {
    _plain(title): Look(colour, dash, marker)
    for title, colour, dash, marker in zip(KNOWN, COLOURS, DASHES, MARKERS, strict=True)
}
