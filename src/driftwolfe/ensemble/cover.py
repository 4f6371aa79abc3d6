"""Covers of time: which intervals start, and which are under way, in each round."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from driftwolfe.points import checks


class Interval(NamedTuple):
    """An interval of rounds.

    Attributes
    ----------
    start, end
        The first and the last round, both included; rounds count from 1.

    Examples
    --------
    >>> Interval(4, 7).length
    4
    """

    start: int
    end: int

    @property
    def length(self) -> int:
        """Number of rounds."""
        return self.end - self.start + 1


class Cover(Protocol):
    """A set of intervals; an adaptive learner runs one expert on each."""

    def starting(self, t: int) -> list[int]:
        """Return the lengths of the intervals that start in round t, shortest first."""

    def active(self, t: int) -> list[Interval]:
        """Return the intervals that hold round t, shortest first."""

    def created(self, t: int) -> int:
        """Return how many intervals start in rounds 1 to t."""


class GeometricCover:
    r"""All intervals :math:`[i 2^k, (i+1) 2^k - 1]`, i >= 1, k >= 0.

    In round t one starts for every k with :math:`2^k | t`, and :math:`\lfloor\log_2 t\rfloor + 1`
    are active. Every interval splits into two runs of these whose lengths at least halve outwards
    (`split`), which is how a bound on these becomes one on all intervals.

    Examples
    --------
    >>> cover = GeometricCover()
    >>> cover.starting(12)
    [1, 2, 4]
    >>> [tuple(interval) for interval in cover.active(6)]
    [(6, 6), (6, 7), (4, 7)]

    References
    ----------
    Daniely, Gonen and Shalev-Shwartz (2015), Strongly adaptive online learning, ICML.
    """

    def starting(self, t: int) -> list[int]:
        """Return the lengths of the intervals that start in round t: 1, 2, 4, ..."""
        return [1 << k for k in range(_lowest_power(t).bit_length())]

    def active(self, t: int) -> list[Interval]:
        """Return the intervals that hold round t, shortest first."""
        now = checks.count(t, "t")
        return [_aligned(now, k) for k in range(now.bit_length())]

    def created(self, t: int) -> int:
        r"""Return :math:`\sum_k \lfloor t/2^k \rfloor`, how many intervals start in rounds 1 to t.

        >>> GeometricCover().created(4)
        7
        """
        now = checks.count(t, "t", least=0)
        return 2 * now - now.bit_count()

    def split(self, start: int, end: int) -> tuple[list[Interval], list[Interval]]:
        """Return consecutive intervals of the cover that make up [start, end], as two runs.

        Lengths at least double along the first run and at least halve along the second.

        >>> rising, falling = GeometricCover().split(3, 13)
        >>> [piece.length for piece in rising], [piece.length for piece in falling]
        ([1, 4], [4, 2])
        """
        next_start, last = _checked_ends(start, end)
        rising = []
        while next_start + (length := _lowest_power(next_start)) - 1 <= last:
            rising.append(Interval(next_start, next_start + length - 1))
            next_start += length
        # What is left is shorter than the power of two that divides its start, so its binary
        # digits, highest first, are lengths that keep every piece aligned.
        falling = []
        while next_start <= last:
            length = 1 << ((last - next_start + 1).bit_length() - 1)
            falling.append(Interval(next_start, next_start + length - 1))
            next_start += length
        return rising, falling


class CompactCover:
    r"""The intervals :math:`[i 2^k, (i+1) 2^k - 1]` with i odd.

    In round t exactly one starts, of the largest power of two that divides t; as many are active as
    t has binary ones. Half the experts of the `GeometricCover` on average, for constants that are
    larger: a `chain` covers any interval, but its last piece may reach beyond.

    Examples
    --------
    >>> cover = CompactCover()
    >>> cover.starting(12)
    [4]
    >>> [tuple(interval) for interval in cover.active(6)]
    [(6, 7), (4, 7)]

    References
    ----------
    Zhang, Liu and Zhou (2019), Adaptive regret of convex and smooth functions, ICML.
    """

    def starting(self, t: int) -> list[int]:
        """Return the length of the one interval that starts in round t."""
        return [_lowest_power(t)]

    def active(self, t: int) -> list[Interval]:
        """Return the intervals that hold round t, shortest first."""
        now = checks.count(t, "t")
        return [_aligned(now, k) for k in range(now.bit_length()) if now >> k & 1]

    def created(self, t: int) -> int:
        """Return t: one interval starts in each round."""
        return checks.count(t, "t", least=0)

    def chain(self, start: int, end: int) -> list[Interval]:
        """Return consecutive intervals of the cover from `start` until `end` is reached.

        Lengths at least double, so there are at most ceil(log2(end - start + 2)) of them.

        >>> [tuple(piece) for piece in CompactCover().chain(3, 13)]
        [(3, 3), (4, 7), (8, 15)]
        """
        next_start, last = _checked_ends(start, end)
        pieces = []
        while next_start <= last:
            pieces.append(Interval(next_start, next_start + _lowest_power(next_start) - 1))
            next_start = pieces[-1].end + 1
        return pieces


def _lowest_power(t: int) -> int:
    """The largest power of two that divides t."""
    now = checks.count(t, "t")
    return now & -now


def _aligned(t: int, k: int) -> Interval:
    """The interval of length 2^k, starting at a multiple of it, that holds t."""
    start = t >> k << k
    return Interval(start, start + (1 << k) - 1)


def _checked_ends(start: int, end: int) -> tuple[int, int]:
    first = checks.count(start, "start")
    return first, checks.count(end, "end", least=first)
