"""How much of the data a shorter stream plays."""

from __future__ import annotations

from driftwolfe.points import checks


def rounds_of(rows: int, per_round: int) -> int:
    """Return how many rounds so many rows make, the last of which holds what is left.

    >>> rounds_of(25, per_round=10)
    3
    """
    return -(-rows // checks.count(per_round, "per_round"))


def rows_played(rows: int, per_round: int, rounds: int | None, copies: int = 1) -> int:
    """Return how many rows every copy holds, so that all copies together make `rounds` rounds.

    >>> rows_played(1000, per_round=10, rounds=30, copies=3)
    100
    >>> rows_played(1000, per_round=10, rounds=None, copies=3)
    1000
    >>> rows_played(1000, per_round=10, rounds=31, copies=3)
    Traceback (most recent call last):
        ...
    ValueError: rounds must be a multiple of the 3 copies, at most 300, got 31
    """
    if rows < 1:
        raise ValueError("there are no rows to play: the file is empty")
    most = copies * rounds_of(rows, per_round)
    wanted = most if rounds is None else checks.count(rounds, "rounds")
    if wanted > most or wanted % copies:
        kind = "" if copies == 1 else f"a multiple of the {copies} copies, "
        raise ValueError(f"rounds must be {kind}at most {most}, got {rounds}")
    return min(rows, wanted // copies * per_round)
