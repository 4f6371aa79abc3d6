"""Mutants of Python source: small changes that a good test suite notices.

The changes are those that reviewers made by hand and that lived: a term dropped, max for min, floor for
ceil, a square for a root, a comparison turned round, a constant a little larger, a value no longer clipped,
only the first seed, a call or a refusal left out. Text, annotations and error messages are left alone.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

#: Calls whose name is exchanged: `min(a, b)` becomes `max(a, b)`, `np.floor(x)` becomes `np.ceil(x)`.
_OTHER_NAME = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "argmin": "argmax",
    "argmax": "argmin",
    "nanmin": "nanmax",
    "nanmax": "nanmin",
    "floor": "ceil",
    "ceil": "floor",
    "any": "all",
    "all": "any",
    "sum": "max",
}
#: Calls that are replaced by their first argument.
_DROPPED_CALLS = {
    "abs", "fabs", "sqrt", "clip", "sorted", "reversed", "exp", "log", "sign", "round", "set",
    "minimum", "maximum", "min", "max",
}  # fmt: skip
#: Options whose absence is a crash, or nothing that a test of numbers could see.
_KEPT_OPTIONS = {None, "axis", "dtype", "encoding", "strict", "help", "color", "stacklevel"}
_TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_BOUNDARY: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
_OTHER_SIGN: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
}
#: What a constant is multiplied by: enough to break an inequality, not so much that anything notices.
_LARGER = 1.2
#: Smaller constants are tolerances for rounding, and larger ones limits of what numbers can hold.
_SMALLEST, _LARGEST = 1e-6, 1e9


class Mutant(NamedTuple):
    """One change of a source.

    Attributes
    ----------
    line
        Where it begins, from 1.
    what
        The change in a few words.
    source
        The whole source with it.
    """

    line: int
    what: str
    source: str


def mutants(source: str) -> list[Mutant]:
    """Return all mutants of a source, in the order of their lines."""
    text = _Text(source)
    found = []
    for node in _code(ast.parse(source)):
        for what, replacement in _changes(node):
            changed = text.replaced(node, replacement)
            if changed != source:
                found.append(Mutant(node.lineno, what, changed))
    return sorted(found, key=lambda mutant: mutant.line)


def sample(found: list[Mutant], number: int, random: Random) -> list[Mutant]:
    """Return one mutant each of so many lines: long lines have many, but are no more important."""
    by_line: dict[int, list[Mutant]] = {}
    for mutant in found:
        by_line.setdefault(mutant.line, []).append(mutant)
    lines = random.sample(sorted(by_line), min(number, len(by_line)))
    return [random.choice(by_line[line]) for line in lines]


def difference(old: str, mutant: Mutant, path: str) -> str:
    """Return what the mutant changes, as a diff."""
    lines = difflib.unified_diff(
        old.splitlines(),
        mutant.source.splitlines(),
        path,
        f"{path} ({mutant.what})",
        n=1,
        lineterm="",
    )
    return "\n".join(lines)


class _Text:
    """A source whose nodes can be replaced; offsets of nodes count bytes."""

    def __init__(self, source: str) -> None:
        self._bytes = source.encode()
        self._starts = [0]
        for line in self._bytes.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))

    def replaced(self, node: ast.stmt | ast.expr, replacement: ast.AST) -> str:
        assert node.end_lineno is not None and node.end_col_offset is not None
        start = self._starts[node.lineno - 1] + node.col_offset
        end = self._starts[node.end_lineno - 1] + node.end_col_offset
        new = ast.unparse(ast.fix_missing_locations(replacement))
        if isinstance(node, ast.expr) and not isinstance(
            replacement, ast.Constant | ast.Name | ast.Call
        ):
            new = f"({new})"
        return (self._bytes[:start] + new.encode() + self._bytes[end:]).decode()


def _code(tree: ast.AST) -> Iterator[ast.stmt | ast.expr]:
    """The statements and expressions that compute something."""
    for name, field in ast.iter_fields(tree):
        if name in ("annotation", "returns", "decorator_list", "type_params", "bases"):
            continue
        for node in field if isinstance(field, list) else [field]:
            if not isinstance(node, ast.AST) or _is_told(node):
                continue
            if isinstance(node, ast.stmt | ast.expr):
                yield node
            yield from _code(node)


def _is_told(node: ast.AST) -> bool:
    """Whether it is there for people or for type checkers."""
    if isinstance(node, ast.FunctionDef):
        return node.name in ("__repr__", "__str__")
    if isinstance(node, ast.keyword):
        return node.arg == "strict"  # a check of our own code
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(
        node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom
    ) or (isinstance(node, ast.Name) and node.id == "TYPE_CHECKING")


def _changes(node: ast.stmt | ast.expr) -> Iterator[tuple[str, ast.AST]]:
    """What may stand in the place of a node, and how that is called."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield from _comparison(node)
    elif isinstance(node, ast.BinOp):
        yield from _arithmetic(node)
    elif isinstance(node, ast.Call):
        yield from _call(node)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        if not isinstance(node.operand, ast.Constant):
            yield "sign dropped", node.operand
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "and for or", ast.BoolOp(other, node.values)
        for kept in (node.values[:-1], node.values[1:]):
            yield "condition dropped", kept[0] if len(kept) == 1 else ast.BoolOp(node.op, kept)
    elif isinstance(node, ast.IfExp):
        yield "branches exchanged", ast.IfExp(node.test, node.orelse, node.body)
    elif isinstance(node, ast.Constant):
        yield from _constant(node)
    elif isinstance(node, ast.stmt):
        yield from _statement(node)


def _comparison(node: ast.Compare) -> Iterator[tuple[str, ast.AST]]:
    (op,), (right,) = node.ops, node.comparators
    yield "comparison turned round", ast.Compare(node.left, [_TURNED[type(op)]()], [right])
    whole = any(
        isinstance(each, ast.Constant) and type(each.value) is int for each in (node.left, right)
    )
    if whole and type(op) in _BOUNDARY:
        yield "boundary moved", ast.Compare(node.left, [_BOUNDARY[type(op)]()], [right])


def _arithmetic(node: ast.BinOp) -> Iterator[tuple[str, ast.AST]]:
    parts = (node.left, node.right)
    told = any(isinstance(part, ast.JoinedStr) or _is_text(part) for part in parts)
    if told or isinstance(node.op, ast.BitOr):
        return
    if type(node.op) in _OTHER_SIGN:
        yield "operator exchanged", ast.BinOp(node.left, _OTHER_SIGN[type(node.op)](), node.right)
    if not isinstance(node.op, ast.MatMult):
        yield "right operand dropped", node.left
    if isinstance(node.op, ast.Add | ast.Mult):
        yield "left operand dropped", node.right


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def _call(node: ast.Call) -> Iterator[tuple[str, ast.AST]]:
    name, function = _name(node.func), node.func
    if name == "fsum":
        yield "max for fsum", ast.Call(ast.Name("max"), node.args, node.keywords)
    elif name in _OTHER_NAME:
        other = _OTHER_NAME[name]
        if isinstance(function, ast.Attribute):
            yield (
                f"{other} for {name}",
                ast.Call(ast.Attribute(function.value, other), node.args, node.keywords),
            )
        elif name not in ("floor", "ceil"):  # `floor(...)` alone is a function of ours
            yield f"{other} for {name}", ast.Call(ast.Name(other), node.args, node.keywords)
    if name == "sqrt" and node.args:
        yield "square for sqrt", ast.BinOp(node.args[0], ast.Pow(), ast.Constant(2))
    if name in _DROPPED_CALLS and node.args and not isinstance(node.args[0], ast.GeneratorExp):
        yield f"{name} dropped", node.args[0]
    if name == "copy" and isinstance(node.func, ast.Attribute) and not node.args:
        yield "copy dropped", node.func.value
    for k, keyword in enumerate(node.keywords):
        if keyword.arg not in _KEPT_OPTIONS:
            fewer = node.keywords[:k] + node.keywords[k + 1 :]
            yield f"{keyword.arg}= dropped", ast.Call(node.func, node.args, fewer)


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _constant(node: ast.Constant) -> Iterator[tuple[str, ast.AST]]:
    value = node.value
    if isinstance(value, bool):
        yield f"{not value} for {value}", ast.Constant(not value)
    elif isinstance(value, int):
        yield f"{value + 1} for {value}", ast.Constant(value + 1)
    elif isinstance(value, float) and _SMALLEST <= value <= _LARGEST:
        larger = float(f"{_LARGER * value:.6g}")
        yield f"{larger:g} for {value:g}", ast.Constant(larger)


def _statement(node: ast.stmt) -> Iterator[tuple[str, ast.AST]]:
    stored = isinstance(node, ast.Assign) and isinstance(
        node.targets[0], ast.Attribute | ast.Subscript
    )
    done = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    if stored or done or isinstance(node, ast.AugAssign | ast.Continue | ast.Break | ast.Delete):
        yield "statement dropped", ast.Pass()
    if isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], ast.Raise):
        yield "guard dropped", ast.Pass()
    if isinstance(node, ast.AugAssign) and type(node.op) in _OTHER_SIGN:
        yield (
            "operator exchanged",
            ast.AugAssign(node.target, _OTHER_SIGN[type(node.op)](), node.value),
        )
