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

#: Licences read from the files of packages whose metadata hold a whole text or too little, or which
#: are not for this system.
KNOWN = {
    "colorama": "BSD-3-Clause",
    "cycler": "BSD-3-Clause",
    # Its metadata name the GPL for an Emacs mode, tools/editors/emacs/rst.el, that wheels do not hold.
    "docutils": "public domain, in parts BSD-2-Clause",
    "kiwisolver": "BSD-3-Clause",
    "matplotlib": "PSF-2.0 based (matplotlib licence)",
    "scipy": "BSD-3-Clause",
}


#: Packages that come with PyTorch's build for CUDA.
CUDA = re.compile("nvidia-|cuda-|triton")


def pins() -> list[Requirement]:
    """The lines of `constraints.txt`: name, version, and environment marker if any."""
    lines = PINS.read_text().splitlines()
    return [Requirement(line) for line in lines if not line.lstrip().startswith("#")]


def version(pin: Requirement) -> str:
    """The version that a pin names."""
    (exactly,) = pin.specifier
    assert exactly.operator == "==", pin
    return exactly.version


def installed(name: str) -> Distribution | None:
    """The installed distribution of a package, or None."""
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def licence(package: str) -> str:
    """A package's licence in a few words; nothing if it is not installed."""
    name = canonicalize_name(package)
    found = installed(name)
    if name in KNOWN or found is None:
        return KNOWN.get(name, "")
    about = found.metadata
    named = about.get("License-Expression") or (about.get("License") or "").strip()
    classified = [
        line.split(" :: ")[-1]
        for line in about.get_all("Classifier") or []
        if line.startswith("License :: OSI Approved :: ")
    ]
    return named if named and "\n" not in named else ", ".join(classified)


def row(pin: Requirement) -> str:
    """The page's line about a pin, up to its licence."""
    return f"| {pin.name} | {version(pin)} | "


def main() -> None:
    """Print them as a page."""
    print(
        "# Licences of dependencies\n\n"
        "All packages that `make` installs to run, test, measure and document; printed by `python -m "
        "reliability.licences`. driftwolfe itself is BSD-3-Clause and includes none of them, with these "
        "exceptions: reports contain the script of plotly (MIT), and built documentation contains "
        "MathJax (Apache-2.0) and the theme furo (MIT). Where pip chooses PyTorch's build for CUDA, as "
        "it may on Linux, NVIDIA's libraries come with it, under NVIDIA's licences.\n\n"
        "| package | version | licence |\n| --- | --- | --- |"
    )
    for pin in pins():
        if not CUDA.match(pin.name):
            found = licence(pin.name)
            assert found, (
                f"{pin.name} is not installed: make check docs test-gpu installs everything"
            )
            print(f"{row(pin)}{found} |")


if __name__ == "__main__":
    main()
