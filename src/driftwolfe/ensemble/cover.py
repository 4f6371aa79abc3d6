"""`GeometricCover`: which intervals start, and which are active, in each round."""

from __future__ import annotations

from typing import NamedTuple

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


class GeometricCover:
    r"""All intervals :math:`[i 2^k, (i+1) 2^k - 1]`, i >= 1, k >= 0.

    In round t one starts for every k with :math:`2^k | t`, and :math:`\lfloor\log_2 t\rfloor + 1`
    are active. Every interval splits into two runs of these whose lengths at least halve outwards
    (`split`), which turns a bound on these into one on all intervals.

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
        starts = ((now >> k << k, 1 << k) for k in range(now.bit_length()))
        return [Interval(start, start + length - 1) for start, length in starts]

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
        next_start = checks.count(start, "start")
        last = checks.count(end, "end", least=next_start)
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


def _lowest_power(t: int) -> int:
    """The largest power of two that divides t."""
    now = checks.count(t, "t")
    return now & -now
