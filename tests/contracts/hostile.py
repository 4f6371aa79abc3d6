"""Hostile losses, points and numbers."""

import numpy as np
import pandas as pd
import scipy.sparse as sp

from driftwolfe.losses import AbsoluteEntries, FunctionLoss, LinearLoss, Loss, SquaredDistance
from driftwolfe.points import FactoredMatrix
from driftwolfe.points.devices import HOST

#: Beyond what estimators take, 1e100, by little.
NAN, HUGE = float("nan"), 1.1e100


def hidden(values, hide=-1):
    """An array whose last entry, or that at `hide`, is masked."""
    array = np.ma.masked_array(np.array(values))
    array[np.unravel_index(hide % array.size, array.shape)] = np.ma.masked
    return array


#: What a function may return instead of a number.
NO_NUMBERS = {
    "nan": np.nan,
    "infinity": np.inf,
    "minus infinity": -np.inf,
    "complex": 1j,
    "text": "much",
    "none": None,
    "masked": np.ma.masked,
    "list": [1.0, 2.0],
    "empty": [],
    "object": np.array([object()]),
    "nothing of its kind": np.array(np.datetime64("2024-01-01")),
}


class BrokenError(Exception):
    """Raised by the failing losses."""


def raising(x):
    raise BrokenError


def on_call(number, good):
    """A function that fails at its n-th call."""
    calls = []

    def function(x):
        calls.append(x)
        if len(calls) == number:
            raise BrokenError
        return good(x)

    return function


def writing(x):
    """Tries to change the point it is given."""
    array = x.U if isinstance(x, FactoredMatrix) else x
    array[...] = 7.0
    return 0.0


def no_gradients(shape):
    """What a function may return instead of a gradient."""
    infinite = np.zeros(shape)
    infinite.flat[-1] = np.inf
    yield "nan", np.full(shape, np.nan)
    yield "one infinity", infinite
    yield "complex", np.full(shape, 1j)
    yield "text", np.full(shape, "a")
    yield "objects", np.full(shape, None)
    yield "none", None
    yield "masked", hidden(np.ones(shape))
    yield "number", 1.0
    yield "longer", np.zeros((shape[0] + 1, *shape[1:]))
    yield "one axis more", np.zeros((*shape, 1))
    yield "one axis less", np.zeros(shape[1:])
    yield "empty", np.zeros(0)


def bad_losses(domain):
    """Invalid losses by name; each must be refused."""
    shape = domain.shape
    zero, flat = (lambda x: 0.0), (lambda x: np.zeros(shape))
    for name, value in NO_NUMBERS.items():
        yield f"value is {name}", FunctionLoss(lambda x, value=value: value, flat)
    for name, gradient in no_gradients(shape):
        yield f"gradient is {name}", FunctionLoss(zero, lambda x, g=gradient: g)
    yield "value raises", FunctionLoss(raising, flat)
    yield "gradient raises", FunctionLoss(zero, raising)
    if domain.device is HOST:
        yield "writes to its point", FunctionLoss(writing, flat)
    yield "shape of another set", SquaredDistance(np.zeros(99))
    yield "linear on another set", LinearLoss(np.zeros((2, 2, 2)))
    yield "entries that are not there", AbsoluteEntries([500], [0], [1.0])
    yield "half a loss", type("Half", (), {"value": zero})()
    yield "a loss class", Loss
    yield "text", "loss"
    yield "none", None


def late_losses(domain):
    """Losses that raise at a later evaluation, for learners that evaluate so often."""
    shape = domain.shape
    zero, flat = (lambda x: 0.0), (lambda x: np.zeros(shape))
    for number in (2, 3, 5):
        yield f"value {number}", FunctionLoss(on_call(number, zero), flat)
        yield f"gradient {number}", FunctionLoss(zero, on_call(number, flat))


def wild_losses(domain, rng):
    """Valid losses of extreme size."""
    shape = domain.shape
    direction = rng.standard_normal(shape)
    for scale in (1e3, 1e12, 1e100, 1e-100, 1e-300, 0.0):
        yield LinearLoss(scale * direction)
        yield FunctionLoss(lambda x: 0.0, lambda x, s=scale: s * direction)
    yield SquaredDistance(1e6 * direction)
    yield SquaredDistance(direction, weight=1e-12)
    if len(shape) == 1:
        yield from [LinearLoss(4e307 * np.sign(direction))] * 5  # whose sum is no number
    else:
        twice = [0, 0, 1, 0, 0]
        yield AbsoluteEntries(twice, twice, 1e9 * rng.standard_normal(5))


# -- arguments of estimators, by kind ----------------------------------------------------------------


def nested(depth, heart=1):
    for _ in range(depth):
        heart = (heart,)
    return heart


WIDE = (1,) * 1000
#: Ids that cannot be found again, or not be written.
IDS = {
    "NaN": NAN,
    "NaN in a tuple": ("a", NAN),
    "NaN deep in a tuple": ("a", (1, (2, NAN))),
    "NaN in a frozenset": frozenset({1, NAN}),
    "NaT in a tuple": (1, pd.NaT),
    "NA in a tuple": (1, pd.NA),
    "NumPy's NaN in a tuple": (np.float64(NAN), 1),
    "nine tuples": nested(9),
    "900 tuples": nested(900),
    "a tuple of very many": (1,) * 20_000,
}
#: Of these a dict cannot be made, or it would take Python itself too long, or too deep.
NO_NAMES = {
    "300,000 tuples": nested(300_000),
    "very many in few tuples": (((WIDE,) * 1000,) * 1000,),
    "a list": [1],
    "a dict": {},
}
#: Arguments that are right, in calls with two records.
GOOD = {
    "id": 0,
    "ids": [0, 1],
    "pairs": [(0, 0), (1, 1)],
    "label": "one",
    "labels": ["one", "two"],
    "classes": ["one", "three", "two"],
    "number": 1.0,
    "numbers": [1.0, 2.0],
    "times": [1e9, 2e9],
    "weight": 1.0,
    "weights": [1.0, 2.0],
    "record": {"a": 1.0, "new": 1.0},
    "rows": [[1.0, 2.0, 3.0, 4.0], [2.0, 1.0, 0.0, 1.0]],
    "frame": pd.DataFrame({"a": [1.0, 2.0], "new": [0.5, 1.0]}),
}


def broken_table():
    table = sp.csr_array(GOOD["rows"])
    table.indices[0] = 10**9
    return table


def objects(values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def no_number(kind):
    """In place of a number, or of one in a record."""
    found = {"NaN": NAN, "infinite": np.inf, "huge": HUGE, "complex": 1j, "digits": "5"}
    found |= {"beyond floats": 10**400, "masked": np.ma.masked}
    if kind == "record":  # which may have gaps and texts
        found |= {"array": np.ones(2), "array of one": np.ones(1), "masked array": hidden([1.0])}
        return {k: v for k, v in found.items() if k not in ("NaN", "digits")} | {"list": [1.0]}
    return found | ({"negative": -1.0} if kind == "weight" else {"none": None})


def no_numbers(kind, good):
    """In place of an array of numbers."""
    good = np.array(good)
    for why, value in no_number("weight").items():
        gap = kind == "rows" and value != value
        if isinstance(value, float) and not gap and (kind == "weights" or value != -1.0):
            spoiled = good.copy()
            spoiled.flat[-1] = value
            if kind != "times" or value != HUGE:
                yield why, spoiled
    yield from {"masked": hidden(good), "text": "all"}.items()
    if kind != "rows":
        yield "words", np.full(good.shape, "a")
    yield from {"complex": good * 1j, "objects": objects([None] * len(good)), "dict": {}}.items()
    yield "shorter", good[:-1]
    if kind not in ("rows", "targets"):
        yield from {"beyond floats": [10**400] * 2, "one axis more": good[:, None]}.items()
    if kind in ("numbers", "targets", "rows"):
        yield from {"none": None, "scalar": 1.0}.items()
    if kind == "rows":
        yield from {"wide": np.ones((2, 5)), "no rows": good[:0], "one row": good[0]}.items()
        yield from {"masked rows": [*map(hidden, good)], "broken": broken_table()}.items()


def no_ids(kind):
    """In place of an id, or of a list of ids, labels or pairs of ids."""
    for why, key in (IDS | NO_NAMES).items():
        if kind == "pairs":
            yield why, [(0, 0), (key, 1)]
            yield f"{why} of an item", [(0, 0), (1, key)]
        elif kind in ("id", "label"):
            yield why, key
        else:
            given = [*GOOD[kind][:-1], key]
            yield why, objects(given) if kind == "labels" else given
    if kind == "pairs":
        yield from {"none": None, "number": 3, "text": "pairs", "one id": [(0,), (1,)]}.items()
        yield from {"three columns": np.zeros((2, 3)), "masked": hidden([[1, 2], [3, 99]])}.items()
        tables = {"sparse": sp.csr_array(np.eye(2)), "broken": broken_table(), "empty": []}
        yield from tables.items()
    elif kind == "labels":
        yield from {"none": None, "shorter": ["one"], "masked": hidden(GOOD[kind])}.items()
    elif kind == "classes":
        yield from {"others": ["one"], "masked": hidden(GOOD[kind])}.items()


def no_frames():
    for value in (np.inf, HUGE, 1j):
        yield str(value), pd.DataFrame({"a": [1.0, value], "new": 1.0})
    yield "dates", pd.DataFrame({"a": pd.to_datetime(["2024-01-01", "2024-01-02"])})
    yield from {"no frame": np.ones((2, 1)), "named NaN": pd.DataFrame({NAN: [1.0, 2.0]})}.items()


def bad_values(kind, good):
    """What must be refused in place of an argument of a kind: names and values."""
    if kind == "frame":
        yield from no_frames()
    elif kind == "record":
        for why, value in no_number(kind).items():
            yield why, {"a": value} | ({} if np.ndim(value) else {"new": 1.0})
        yield from ((why, {"a": 1.0, key: 1.0}) for why, key in IDS.items())
        yield "no dict", [1.0]
    elif kind in ("number", "weight"):
        yield from no_number(kind).items()
    elif kind in ("numbers", "targets", "times", "weights", "rows"):
        yield from no_numbers(kind, good)
    else:
        yield from no_ids(kind)


def bad_calls(calls, outputs=1):
    """Methods with one wrong argument each: what is wrong, its kind, and the method as a function of a model.

    `calls` are names of methods with the kinds of their arguments, such as "predict rows", "fit rows
    targets sample_weight=weights" or, in a pandas series, "learn_many frame series:labels".
    """
    good = GOOD | {"targets": np.ones((2, outputs))}
    for call in calls:
        method, *places = call.split()
        names, kinds = zip(*(place.rpartition("=")[::2] for place in places), strict=True)
        asked = not method.startswith(("partial", "fit", "learn", "observe", "preq"))

        def give(values, method=method, names=names, kinds=kinds):
            def called(model):
                given = [
                    pd.Series(list(value), dtype=object) if kind.startswith("series:") else value
                    for value, kind in zip(values, kinds, strict=True)
                ]
                pairs = list(zip(names, given, strict=True))
                named = {name: value for name, value in pairs if name}
                return getattr(model, method)(*(v for name, v in pairs if not name), **named)

            return called

        right = [good[kind.removeprefix("series:")] for kind in kinds]
        yield f"{call}: nothing", "", give(right)
        for k, place in enumerate(kinds):
            kind = place.removeprefix("series:")
            for why, bad in bad_values(kind, good[kind]):
                if (asked and why in ("shorter", "empty")) or (method == "fit" and why == "wide"):
                    continue  # as many rows or columns as one likes
                if kind == place or isinstance(bad, list | np.ndarray):
                    wrong = give([*right[:k], bad, *right[k + 1 :]])
                    yield f"{call}: {why} for {place}", kind, wrong
