"""Recommenders as ONNX files, for any runtime that reads them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from driftwolfe.estimators.completer import MatrixCompleter
from driftwolfe.estimators.recommender import Recommender
from driftwolfe.estimators.recommender_tables import OF_KIND, RankingTables
from driftwolfe.points.kinds import Array
from driftwolfe.storage import write_bytes

__all__ = ["write_onnx"]

#: Versions of operators and files that onnxruntime reads from 1.17 on.
OPSET, IR_VERSION = 20, 9
#: The end of any axis.
LAST = 2**31 - 1


def write_onnx(model: MatrixCompleter | Recommender, path: str | os.PathLike[str]) -> None:
    """Write what a recommender predicts now to an ONNX file, in single precision.

    Needs ``pip install 'driftwolfe[onnx]'``. Numbers of users and items are their places in `users_` and
    `items_`.

    Parameters
    ----------
    model
        A `MatrixCompleter`: the file has inputs `users` and `items`, where -1 is a new one, and the
        output `ratings`, those of `factors`, clipped to the range of ratings. Or a `Recommender`: the
        file has the input `seen`, what somebody has seen, as `RankingTables.seen_by` returns it, and
        the output `scores` of all items, as `RankingTables.scores` computes them.
    path
        The file, which is replaced as a whole.

    Examples
    --------
    >>> from driftwolfe.estimators import Recommender
    >>> model = Recommender().partial_fit([("ann", "tea"), ("ann", "jam"), ("bob", "tea")])
    >>> write_onnx(model, "scores.onnx")  # doctest: +SKIP
    >>> session = onnxruntime.InferenceSession("scores.onnx")  # doctest: +SKIP
    >>> session.run(None, {"seen": model.tables().seen_by(1)})  # doctest: +SKIP
    [array([0., 1.], dtype=float32)]
    """
    if not (isinstance(model, MatrixCompleter | Recommender) and model.n_items_):
        raise ValueError(f"model must be a recommender that has learned something, got {model!r}")
    if isinstance(model, MatrixCompleter):
        write_bytes(Path(path), _ratings(model))
    else:
        write_bytes(Path(path), _scores(model.tables()))


class _Graph:
    """Collects nodes and constants of a graph; every result has a name of its own."""

    def __init__(self) -> None:
        try:
            import onnx
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "write_onnx needs onnx; install it with: pip install 'driftwolfe[onnx]'",
                name="onnx",
            ) from error
        self.onnx: Any = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, value: Any, kind: Any = np.float32) -> str:
        """Add a constant."""
        name = f"constant{len(self.constants)}"
        array = np.asarray(value, dtype=kind)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def whole(self, *values: int) -> str:
        """Add a list of whole numbers."""
        return self.constant(values, np.int64)

    def __call__(self, operator: str, *inputs: str, result: str = "", **options: Any) -> str:
        """Add a node; return the name of its result."""
        name = result or f"{operator}{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, [name], **options))
        return name

    def file(self, name: str, inputs: tuple[str, ...], output: str, size: Any) -> bytes:
        """Return the file, with inputs that are whole numbers and an output that is not."""
        helper, kinds = self.onnx.helper, self.onnx.TensorProto
        given = [helper.make_tensor_value_info(each, kinds.INT64, ["n"]) for each in inputs]
        found = helper.make_tensor_value_info(output, kinds.FLOAT, [size])
        graph = helper.make_graph(self.nodes, name, given, [found], self.constants)
        opset = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opset, producer_name="driftwolfe")
        model.ir_version = IR_VERSION
        self.onnx.checker.check_model(model, full_check=True)
        content: bytes = model.SerializeToString()
        return content


def _ratings(model: MatrixCompleter) -> bytes:
    """Return the file of mean + b_u + c_i + <p_u, q_i>, clipped; the last row, of new ones, is 0."""
    add, factors = _Graph(), model.factors()
    sums, parts = [add.constant(factors.mean)], []
    for side, biases, rows in (
        ("users", factors.user_biases, factors.users),
        ("items", factors.item_biases, factors.items),
    ):
        sums.append(add("Gather", add.constant(np.append(biases, 0.0)), side))
        parts.append(add("Gather", add.constant(np.pad(rows, ((0, 1), (0, 0)))), side))
    product = add("ReduceSum", add("Mul", *parts), add.whole(1), keepdims=0)
    total = add("Add", add("Add", add("Add", sums[0], sums[1]), sums[2]), product)
    _, low, high, _ = model._pool.scale.numbers.tolist()
    add("Clip", total, add.constant(low), add.constant(high), result="ratings")
    return add.file("MatrixCompleter", ("users", "items"), "ratings", "n")


def _scores(tables: RankingTables) -> bytes:
    """Return the file of `RankingTables.scores`, with neighbours in rows of one length."""
    add, number = _Graph(), tables.powers.shape[1]
    first, step = add.whole(0), add.whole(1)
    # The history: the latest that were liked, the last first, and how much each counts.
    recent = add("Slice", "seen", add.whole(-64), add.whole(LAST), first)
    liked = add("Compress", recent, add("GreaterOrEqual", recent, add.whole(0)), axis=0)
    length = tables.fading.shape[1]
    history = add("Slice", liked, add.whole(-1), add.whole(-1 - length), first, add.whole(-1))
    # Sums of the neighbours' counts; spare places count for an item after the last.
    neighbours, pairs = _padded(tables, number)
    chosen = add("Gather", add.constant(neighbours, np.int64), history)
    flat = add("Mul", add("Shape", history), add.whole(neighbours.shape[1]))
    places = add("Reshape", chosen, flat, allowzero=1)
    rows = [add.constant(tables.popularity)]
    for kind, power in enumerate(tables.powers):
        fading = add.constant(tables.fading[kind])
        column = add("Unsqueeze", add("Slice", fading, first, add("Shape", history), first), step)
        counts = add("Gather", add.constant(pairs[..., OF_KIND[kind]]), history)
        counts = add("Mul", counts, column)
        counts = add("Reshape", counts, flat, allowzero=1)
        empty = add.constant(np.zeros(number + 1))
        sums = add("ScatterElements", empty, places, counts, axis=0, reduction="add")
        sums = add("Slice", sums, first, add.whole(number), first)
        product = add("Mul", add.constant(power[None]), sums)
        rows.append(add("Mul", product, product))
    # Probabilities: what was seen has none, and experts without an opinion say what popularity says.
    negative = add("Less", "seen", add.whole(0))
    items = add("Where", negative, add("Sub", add.whole(-1), "seen"), "seen")
    none = add("Expand", add.constant([0.0]), add("Shape", "seen"))
    open_ = add("ScatterElements", add.constant(np.ones(number)), items, none, axis=0)
    table = add("Mul", add("Concat", *rows, axis=0), open_)
    totals = add("ReduceSum", table, step, keepdims=1)
    known = add("Greater", totals, add.constant(0.0))
    table = add("Div", table, add("Where", known, totals, add.constant(1.0)))
    popular = add("Slice", table, first, add.whole(1), first)
    table = add("Where", known, table, popular)
    smoothing = float(tables.smoothing)
    smooth = add("Mul", add.constant(1.0 - smoothing), table)
    table = add("Add", smooth, add("Mul", add.constant(smoothing), popular))
    # The weights of the user's bucket: the bits of the number of items seen.
    ends = add.constant(2 ** np.arange(len(tables.weights) - 1), np.int64)
    reached = add(
        "Cast", add("GreaterOrEqual", add("Shape", "seen"), ends), to=add.onnx.TensorProto.INT64
    )
    bucket = add("ReduceSum", reached, first, keepdims=0)
    weights = add("Gather", add.constant(tables.weights), bucket)
    add("MatMul", weights, table, result="scores")
    return add.file("Recommender", ("seen",), "scores", number)


def _padded(tables: RankingTables, number: int) -> tuple[Array, Array]:
    """Return neighbours and their counts in rows of one length; spare places have the number of items."""
    sizes = np.diff(tables.starts)
    width = int(sizes.max(initial=1))
    rows = np.repeat(np.arange(number), sizes)
    places = np.arange(rows.size) - tables.starts[rows]
    neighbours = np.full((number, width), number)
    pairs = np.zeros((number, width, tables.pairs.shape[1]))
    neighbours[rows, places], pairs[rows, places] = tables.neighbours, tables.pairs
    return neighbours, pairs
