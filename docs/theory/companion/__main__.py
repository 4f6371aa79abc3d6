"""The inequalities of docs/theory, each at the worst case that could be computed.

Run as ``python docs/theory/companion``: one line for each, its name, the largest ratio of left side
to right side that was found (at most 1 where it holds), the number of cases, and the worst one.
"""

from __future__ import annotations

import sys

# Each of these adds its checks to CHECKS.
import games  # noqa: F401
import lazy  # noqa: F401
import plans  # noqa: F401
import projections  # noqa: F401
import schedules  # noqa: F401
import weights  # noqa: F401
from check import CHECKS, NAMES

#: Rounding that a ratio may show.
ROUNDING = 1e-9


def main() -> int:
    """Print a line for each check; return 1 if one fails."""
    failed, width = 0, max(map(len, NAMES))
    for each in CHECKS:
        name, ratio, where, cases = each()
        failed += not ratio <= 1 + ROUNDING
        print(f"{name:<{width}} {ratio:9.6f} {cases:6d}  {where}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
