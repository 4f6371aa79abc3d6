"""Packages: those that the core needs, and the extras."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import import_module, metadata

from driftwolfe.doctor.finding import Finding

#: Packages of the core and their least versions, as `pyproject.toml` has them.
CORE = {
    "numpy": "2.0",
    "scipy": "1.13",
    "numba": "0.60",
    "safetensors": "0.4",
    "threadpoolctl": "3.5",
    "tqdm": "4.66",
}


@dataclass(frozen=True, slots=True)
class Extra:
    """What an extra is for, its packages and their least versions, and the extra within it."""

    use: str
    packages: dict[str, str]
    within: str = ""


#: The extras that users install.
EXTRAS = {
    "plot": Extra("pictures of driftwolfe demo and of the examples", {"matplotlib": "3.8"}),
    "estimators": Extra("estimators of scikit-learn", {"scikit-learn": "1.6"}),
    "river": Extra("estimators of river", {"river": "0.22", "pandas": "2.2"}, "estimators"),
    "experiments": Extra(
        "driftwolfe reproduce, sweep, report",
        {"msgspec": "0.19", "plotly": "7.0", "jinja2": "3.1"},
        "plot",
    ),
    "gpu": Extra("large matrices on a GPU", {"torch": "2.6"}),
    "distributed": Extra("sweeps on a Dask cluster", {"distributed": "2024.8"}, "experiments"),
}


def core() -> list[Finding]:
    """A finding for each package of the core: there, new enough, and importable."""
    return [_examined(name, least) for name, least in CORE.items()]


def _examined(name: str, least: str) -> Finding:
    if told := fault(name, least):
        return Finding(name, told, "broken", f"pip install --upgrade '{name}>={least}'")
    try:
        import_module(name)
    except Exception as problem:  # a broken package may raise anything
        told = f"cannot be imported: {problem}"
        return Finding(name, told, "broken", f"pip install --force-reinstall {name}")
    return Finding(name, version(name) or "")


def extras() -> list[Finding]:
    """A finding for each extra: what it is for, and what is missing for it."""
    return [_extra(name) for name in EXTRAS]


def _extra(name: str) -> Finding:
    needed = _packages(name)
    use = f"for {EXTRAS[name].use}"
    faults = [told for each, least in needed.items() if (told := fault(each, least))]
    if faults:
        remedy = f"pip install 'driftwolfe[{name}]'"
        return Finding(name, f"{use}; {', '.join(faults)}", "note", remedy)
    own = ", ".join(f"{each} {version(each)}" for each in EXTRAS[name].packages)
    return Finding(name, f"{use}; {own}")


def _packages(name: str) -> dict[str, str]:
    """The packages of an extra and of those within it."""
    extra = EXTRAS[name]
    return {**(_packages(extra.within) if extra.within else {}), **extra.packages}


def fault(package: str, least: str) -> str:
    """What is wrong with a package here; empty if nothing is.

    >>> fault("numpy", "1.0"), fault("no-such-package", "1.0")
    ('', 'no-such-package is missing')
    """
    found = version(package)
    if found is None:
        return f"{package} is missing"
    return f"{package} {found} is older than {least}" if _numbers(found) < _numbers(least) else ""


def version(package: str) -> str | None:
    """The installed version of a package, or None."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _numbers(text: str) -> tuple[int, ...]:
    """The numbers that a version starts with, without zeros at its end.

    >>> _numbers("2.10.0rc1") > _numbers("2.9"), _numbers("2.0") == _numbers("2")
    (True, True)
    """
    found = re.match(r"\d+(?:\.\d+)*", text)
    numbers = [int(part) for part in found[0].split(".")] if found else []
    while numbers and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)
