"""Pages of the reference: one for each group, one for each public name."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Group:
    """A group of public names.

    Attributes
    ----------
    title, about
        Heading and first words of the page.
    parts
        Names by the module that they are shown under.
    base
        The class that most of them extend, shown first.
    """

    title: str
    about: str
    parts: dict[str, list[str]]
    base: str | None = None


def _public(module: str) -> list[str]:
    return sorted(import_module(module).__all__, key=str.lower)


def groups() -> dict[str, Group]:
    """All groups by the name of their page."""
    top, learners = _public("driftwolfe"), _public("driftwolfe.learners")
    first, more = ([name for name in learners if (name in top) is there] for there in (True, False))
    streams = [name for name in _public("driftwolfe.streams") if name not in ("drift", "synthetic")]
    root = ["infeasible_projection", "Oracle"]
    oracle = [name for name in _public("driftwolfe.oracles") if name not in root]
    points = [name for name in _public("driftwolfe.points") if name != "FactoredMatrix"]
    return {
        "learners": Group(
            "Learners",
            "Each plays one point per round and then gets the loss. Start with `POLAR`.",
            {"driftwolfe": first, "driftwolfe.learners": more},
            "Learner",
        ),
        "contrib": Group(
            "Learners beyond the paper",
            "For other structure, less feedback and constraints; and mixtures of learners.",
            {"driftwolfe.contrib": _public("driftwolfe.contrib")},
            "Learner",
        ),
        "sets": Group(
            "Sets",
            "A set minimises linear functions: `lmo`.",
            {"driftwolfe": _public("driftwolfe.domains")},
            "Domain",
        ),
        "losses": Group(
            "Losses",
            "Convex functions of a linear map of the point.",
            {"driftwolfe.losses": _public("driftwolfe.losses")},
            "Loss",
        ),
        "oracle": Group(
            "The oracle",
            "Infeasible projections, built from LMO calls.",
            {"driftwolfe": root, "driftwolfe.oracles": oracle},
        ),
        "game": Group(
            "Playing and saving",
            "Games, their records, saved files, and threads.",
            {"driftwolfe": ["play", "History", "load", "from_bytes", "set_threads"]},
        ),
        "compare": Group(
            "Comparing and drawing",
            "Several learners on the same streams, in one table and in pictures.",
            {
                "driftwolfe": ["compare"],
                "driftwolfe.comparison": ["Comparison"],
                "driftwolfe.plot": _public("driftwolfe.plot"),
            },
        ),
        "regret": Group(
            "Regret",
            "Loss minus that of comparators; every offline minimum has a certified gap.",
            {
                "driftwolfe.regret": _public("driftwolfe.regret"),
            },
        ),
        "streams": Group(
            "Streams",
            "Sequences of losses: synthetic with known comparators, with drift, or from real data.",
            {
                "driftwolfe.streams": streams,
                "driftwolfe.streams.synthetic": _public("driftwolfe.streams.synthetic"),
                "driftwolfe.streams.drift": _public("driftwolfe.streams.drift"),
            },
        ),
        "estimators": Group(
            "Estimators",
            "Classifier, regressor, completer, recommender and intervals, with scikit-learn and river APIs.",
            {
                module: _public(module)
                for module in (
                    "driftwolfe.estimators",
                    "driftwolfe.evaluate",
                    "driftwolfe.estimators.recommender_tables",
                    "driftwolfe.estimators.onnx",
                )
            },
        ),
        "distributed": Group(
            "Many models, many machines",
            "One model per key, and the workers of a Dask cluster.",
            {"driftwolfe": ["Keyed"], "driftwolfe.distributed": _public("driftwolfe.distributed")},
        ),
        "points": Group(
            "Points",
            "Decisions: arrays, low-rank plus sparse matrices, products.",
            {"driftwolfe": ["FactoredMatrix"], "driftwolfe.points": points},
        ),
        "algorithms": Group(
            "The algorithms as plain loops",
            "To read beside the paper, and to compare your own code with.",
            {"driftwolfe.reference": _public("driftwolfe.reference")},
        ),
        "ensemble": Group(
            "Parts of ensembles",
            "Weights, step-size grids and interval covers, for your own learners.",
            {"driftwolfe.ensemble": _public("driftwolfe.ensemble")},
        ),
    }


def full_names() -> list[str]:
    """Every name of the reference, with its module."""
    return [
        f"{module}.{name}"
        for group in groups().values()
        for module, names in group.parts.items()
        for name in names
    ]


def pages() -> dict[str, str]:
    """The text of every page (reStructuredText) by its path."""
    found = {"api/index.rst": _index()}
    for place, group in groups().items():
        found[f"api/{place}.rst"] = _group_page(group)
        for module, names in group.parts.items():
            for name in names:
                found[f"api/{module}.{name}.rst"] = _name_page(module, name, group)
    return found


def _heading(text: str, mark: str = "=") -> str:
    return f"{text}\n{mark * len(text)}\n\n"


def _index() -> str:
    lines = "".join(f"   {place}\n" for place in groups())
    table = "".join(
        f"* :doc:`{group.title} <{place}>`: {group.about}\n" for place, group in groups().items()
    )
    words = "Every public name. ``import driftwolfe as dw`` is how examples spell it.\n\n"
    return f"{_heading('Reference')}{words}{table}\n.. toctree::\n   :hidden:\n\n{lines}"


def _group_page(group: Group) -> str:
    text = _heading(group.title) + f"{group.about}\n\n"
    for module, names in group.parts.items():
        ordered = sorted(names, key=lambda name: name != group.base)
        if len(group.parts) > 1:
            text += _heading(f"``{module}``", "-")
        text += f".. currentmodule:: {module}\n\n.. autosummary::\n   :nosignatures:\n\n"
        text += "".join(f"   {name}\n" for name in ordered) + "\n"
    text += ".. toctree::\n   :hidden:\n\n"
    return text + "".join(
        f"   {name} <{module}.{name}>\n" for module, names in group.parts.items() for name in names
    )


def _name_page(module: str, name: str, group: Group) -> str:
    value: Any = getattr(import_module(module), name)
    text = _heading(name) + f".. currentmodule:: {module}\n\n"
    if inspect.isclass(value):
        text += f".. autoclass:: {name}\n   :members:\n"
        if group.base in [base.__name__ for base in value.__mro__[1:]]:
            # `decision` and `update` of POLA are those of a class between it and `Learner`.
            text += f"   :inherited-members: {group.base}\n"
            text += f"\nBeside these, all that every `{group.base}` has.\n"
        return text
    kind = "autofunction" if callable(value) else "autodata"
    return text + f".. {kind}:: {name}\n"
