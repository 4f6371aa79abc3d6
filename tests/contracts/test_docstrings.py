"""Every public name says what it is, what it takes, and shows it."""

import inspect
import re
from importlib import import_module

import pytest

#: Packages and modules whose public names a user may call.
PUBLIC = (
    "driftwolfe",
    "driftwolfe.points",
    "driftwolfe.domains",
    "driftwolfe.losses",
    "driftwolfe.oracles",
    "driftwolfe.ensemble",
    "driftwolfe.learners",
    "driftwolfe.contrib",
    "driftwolfe.reference",
    "driftwolfe.regret",
    "driftwolfe.streams",
    "driftwolfe.streams.synthetic",
    "driftwolfe.streams.drift",
    "driftwolfe.estimators",
    "driftwolfe.estimators.onnx",
    "driftwolfe.estimators.recommender_tables",
    "driftwolfe.distributed",
    "driftwolfe.evaluate",
    "driftwolfe.comparison",
    "driftwolfe.plot",
)

#: Names without an example, and why.
NO_EXAMPLE = {
    "driftwolfe.ensemble.SleepingMeta": "abstract: see AdaNormalHedge and MultiplicativeWeights",
    "driftwolfe.losses.from_torch": "needs PyTorch: see from_jax",
}

#: A class with documented fields, such as a NamedTuple, has them as parameters too.
_TOLD = ("Parameters", "Attributes")


def names_of(module):
    """Those of its list; without one, the functions that it defines."""
    if (listed := getattr(module, "__all__", None)) is not None:
        return listed
    own = (name for name, value in vars(module).items() if _is_own_function(value, module))
    return [name for name in own if not name.startswith("_")]


def _is_own_function(value, module):
    return inspect.isfunction(value) and value.__module__ == module.__name__


def public_things():
    """Classes and functions by their full names, each once: where it is listed last."""
    found = {}
    for place in PUBLIC:
        module = import_module(place)
        for name in names_of(module):
            value = getattr(module, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                found[id(value)] = (f"{place}.{name}", value)
    return dict(found.values())


THINGS = public_things()
CLASSES = {name: value for name, value in THINGS.items() if inspect.isclass(value)}
every_thing = pytest.mark.parametrize("name", THINGS)


def section(text, title):
    """The lines below a heading of numpydoc."""
    found = re.search(rf"(?ms)^{title}\n-+\n(.*?)(?=^\S[^\n]*\n---+\n|\Z)", text)
    return found.group(1) if found else ""


def told(text):
    """The parameters that a docstring explains; several may share a line."""
    lines = "".join(section(text, title) for title in _TOLD).splitlines()
    heads = (line.split(":")[0] for line in lines if line[:1].strip())
    return {name.strip() for head in heads for name in head.split(",")}


def parameters(thing):
    """What a call takes, by name; ``*args`` and ``**kwargs`` stand for what is named elsewhere."""
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return []
    made = inspect.isclass(thing) and inspect.isfunction(thing.__init__)
    plain = made and "__signature__" not in dir(thing)
    taken = inspect.signature(thing.__init__ if plain else thing).parameters.values()
    loose = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [each.name for each in taken if each.kind not in loose and each.name != "self"]


#: The most parameters of anything public, and records with more fields, which the library fills.
MOST_PARAMETERS = 11
RECORDS = ("driftwolfe.History",)


@every_thing
def test_nothing_has_many_parameters(name):
    assert name in RECORDS or len(parameters(THINGS[name])) <= MOST_PARAMETERS


def test_no_package_is_forgotten():
    root = import_module("driftwolfe")
    rooms = [
        value.__name__ for name in root.__all__ if inspect.ismodule(value := getattr(root, name))
    ]
    assert set(rooms) <= set(PUBLIC)
    assert set(NO_EXAMPLE) <= set(THINGS)
    assert all(import_module(place).__doc__ for place in PUBLIC)


@every_thing
def test_says_what_it_is_and_what_it_takes(name):
    text = inspect.cleandoc(THINGS[name].__doc__ or "")
    assert text.partition("\n\n")[0].endswith((".", ":")), "one sentence first"
    assert set(parameters(THINGS[name])) <= told(text)


@every_thing
def test_shows_an_example(name):
    shown = ">>> " in section(inspect.cleandoc(THINGS[name].__doc__), "Examples")
    assert shown != (name in NO_EXAMPLE)


@pytest.mark.parametrize("name", CLASSES)
def test_every_method_and_property_says_what_it_is(name):
    silent = []
    for base in CLASSES[name].__mro__:
        if not base.__module__.startswith("driftwolfe"):
            continue
        for key, value in vars(base).items():
            inside = value.fget if isinstance(value, property) else value
            inside = getattr(inside, "__func__", inside)  # class methods
            if key.startswith("_") or not inspect.isfunction(inside):
                continue
            if not inspect.getdoc(getattr(base, key)):  # its own, or that of what it overrides
                silent.append(f"{base.__name__}.{key}")
    assert not silent
