"""Numbers as people read them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from driftwolfe.experiments.series import Spread


def number(value: float, digits: int = 4) -> str:
    """A number with so many significant digits and thousands separators.

    >>> number(1234.56), number(0.0123456), number(1000000.0), number(3.0)
    ('1,235', '0.01235', '1,000,000', '3')
    """
    if value == 0.0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def spread_text(spread: Spread) -> str:
    """A mean and its deviation, to two digits of the deviation; the mean alone where there is none.

    >>> spread_text(Spread(0.81234, 0.0123)), spread_text(Spread(2345.6, 78.9))
    ('0.812 ± 0.012', '2,346 ± 79')
    """
    if not spread.deviation:
        return number(spread.mean)
    decimals = max(0, 1 - math.floor(math.log10(spread.deviation)))
    return f"{spread.mean:,.{decimals}f} ± {spread.deviation:,.{decimals}f}"


def brief(values: Iterable[Any], digits: int = 6) -> list[float | None]:
    """Numbers for a chart: rounded, so that they take little room; None for nan.

    >>> brief([1 / 3, 2.0, float("nan")])
    [0.333333, 2, None]
    """
    rounded = [float(f"{value:.{digits}g}") for value in values]
    return [
        None if math.isnan(value) else int(value) if value.is_integer() else value
        for value in rounded
    ]
