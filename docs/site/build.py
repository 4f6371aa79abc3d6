"""Build the site: python docs/site/build.py (or `make docs`).

Writes sources to build/site and pages to build/docs. A second run builds only what changed.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import links
from contents import ROOT
from sphinx.cmd.build import main as sphinx
from stage import reports, stage

WORK, SITE = ROOT / "build/site", ROOT / "build/docs"


def main() -> int:
    """Build the site, check every link, and print where it is."""
    start = time.monotonic()
    everything = stage(WORK / "source", WORK)
    reports(WORK / "extra")
    settings = ["-c", str(Path(__file__).parent), "-d", str(WORK / "doctrees")]
    settings += ["-a"] if everything else []
    status = sphinx(
        ["-b", "html", "-W", "--keep-going", "-q", *settings, str(WORK / "source"), str(SITE)]
    )
    if status:
        return status
    faults = [f"broken link: {each}" for each in links.broken(SITE)]
    faults += [f"needs the network: {each}" for each in links.outside(SITE)]
    if faults:
        print("\n".join(faults), file=sys.stderr)
        return 1
    print(f"built in {time.monotonic() - start:.0f} s, every link checked:")
    print(SITE / "index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
