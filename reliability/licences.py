"""Licences of everything that `make` installs.

python -m reliability.licences > docs/licences.md
"""

from __future__ import annotations

import re
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PINS = Path(__file__).parent.parent / "constraints.txt"

#: Packages whose metadata hold a whole text or too little, or which are not for this system; read in
#: what they ship.
TOLD = {
    "colorama": "BSD-3-Clause",
    "cycler": "BSD-3-Clause",
    # Its metadata name the GPL for an Emacs mode, tools/editors/emacs/rst.el, that wheels do not hold.
    "docutils": "public domain, in parts BSD-2-Clause",
    "kiwisolver": "BSD-3-Clause",
    "matplotlib": "PSF-2.0 based (matplotlib licence)",
    "scipy": "BSD-3-Clause",
}


#: What PyTorch's build for CUDA brings.
CUDA = re.compile("nvidia-|cuda-|triton")


def pins() -> list[Requirement]:
    """Lines of `constraints.txt`: a name, a version, and where it is for, if not for everywhere."""
    lines = PINS.read_text().splitlines()
    return [Requirement(line) for line in lines if not line.lstrip().startswith("#")]


def version(pin: Requirement) -> str:
    """The version that a pin names."""
    (exactly,) = pin.specifier
    assert exactly.operator == "==", pin
    return exactly.version


def installed(name: str) -> Distribution | None:
    """What is installed of a package, or None."""
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def licence(package: str) -> str:
    """What a package says of its licence, in a few words; nothing if it is not installed."""
    name = canonicalize_name(package)
    found = installed(name)
    if name in TOLD or found is None:
        return TOLD.get(name, "")
    about = found.metadata
    named = about.get("License-Expression") or (about.get("License") or "").strip()
    classified = [
        line.split(" :: ")[-1]
        for line in about.get_all("Classifier") or []
        if line.startswith("License :: OSI Approved :: ")
    ]
    return named if named and "\n" not in named else ", ".join(classified)


def row(pin: Requirement) -> str:
    """The line of the page about a pin, without its licence."""
    return f"| {pin.name} | {version(pin)} | "


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
    for pin in pins():
        if not CUDA.match(pin.name):
            told = licence(pin.name)
            assert told, (
                f"{pin.name} is not installed: make check docs test-gpu installs everything"
            )
            print(f"{row(pin)}{told} |")


if __name__ == "__main__":
    main()
