"""Licences of everything that `make` installs.

python -m reliability.licences > docs/licences.md
"""

from __future__ import annotations

import re
from importlib.metadata import Distribution, distribution
from pathlib import Path

PINS = Path(__file__).parent.parent / "constraints.txt"

#: Packages whose metadata hold a whole text or too little; read in what they ship.
TOLD = {
    "cycler": "BSD-3-Clause",
    # Its metadata name the GPL for an Emacs mode, tools/editors/emacs/rst.el, that wheels do not hold.
    "docutils": "public domain, in parts BSD-2-Clause",
    "kiwisolver": "BSD-3-Clause",
    "matplotlib": "PSF-2.0 based (matplotlib licence)",
    "scipy": "BSD-3-Clause",
}


def pinned() -> list[tuple[str, str]]:
    """Names and versions of `constraints.txt`."""
    return re.findall(r"^([\w.-]+)==(\S+)$", PINS.read_text(), re.MULTILINE)


def licence(found: Distribution) -> str:
    """What a package says of its licence, in a few words."""
    about = found.metadata
    name = about["Name"].lower()
    if name in TOLD:
        return TOLD[name]
    named = about.get("License-Expression") or (about.get("License") or "").strip()
    classified = [
        line.split(" :: ")[-1]
        for line in about.get_all("Classifier") or []
        if line.startswith("License :: OSI Approved :: ")
    ]
    return named if named and "\n" not in named else ", ".join(classified)


def main() -> None:
    """Print them as a page."""
    print(
        "# Licences of what driftwolfe stands on\n\n"
        "Everything that `make` installs, to run, test, measure and document; by `python -m "
        "reliability.licences`. driftwolfe itself is BSD-3-Clause and ships none of it, but for the "
        "script of plotly (MIT), which reports carry, and MathJax (Apache-2.0) and the looks of furo "
        "(MIT), which built pages of the documentation carry. Where pip chooses PyTorch's build for "
        "CUDA, as it may on Linux, NVIDIA's libraries come with it, under NVIDIA's licences.\n\n"
        "| package | version | licence |\n| --- | --- | --- |"
    )
    for name, version in pinned():
        print(f"| {name} | {version} | {licence(distribution(name))} |")


if __name__ == "__main__":
    main()
