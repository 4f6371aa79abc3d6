"""A count of matrix-vector products, of each thread: the work of oracles on trace-norm balls."""

from __future__ import annotations

from threading import local


class _Count(local):
    made = 0


_count = _Count()


def count(number: int) -> None:
    """Add products with a matrix or its transpose; a product with a block counts column by column."""
    _count.made += number


def counted() -> int:
    """Return the products that this thread has made.

    Lanczos makes two per step, and block power iteration two per column and round. A decomposition in full
    counts the columns of its Gram matrix and the vectors that are then formed, and one of factors their
    columns: no fewer products would do.
    """
    return _count.made
