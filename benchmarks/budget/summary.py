"""The tables of summary.md; every row has a name of its own, so that pages can quote it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from benchmarks.budget.settings import TITLES, ZERO
from benchmarks.budget.store import Record
from benchmarks.budget.streams import SETS

Rows = list[list[str]]
#: Order of the rows of one learner.
KINDS = (
    "one a round",
    "budget",
    "corrective",
    "own c",
    "block",
    "unlimited",
    "exact",
    "even",
    "certified",
)

HEAD = """# Regret against linear minimisations

Made by `python -m benchmarks.budget`; every game is in results.json. What the rows mean, and what is
seen in them: [README.md](README.md). Mean ± standard deviation of three seeds; without ±, one seed.
"""


def summary(records: Sequence[Record]) -> str:
    """All tables."""
    parts = [HEAD]
    for name, words in SETS.items():
        chosen = _part(records, "sets", name)
        if chosen:
            parts += [f"## {name.capitalize()}: {words}", _set_table(name, chosen)]
    parts += ["## MovieLens 100K", _rating_table(_part(records, "ratings"))]
    parts += ["## Known vertices tried first", _lazy_table(_part(records, "lazy"))]
    parts += ["## Against an oracle that resists", _bound_table(_part(records, "bounds"))]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def setting(record: Record) -> str:
    """A learner and what it was told, in words."""
    kind, budget, options = record["kind"], record["budget"], record["options"]
    words = [record["learner"]]
    if kind == "zero":
        return record["learner"]
    if kind == "lazy":
        return f"{words[0]}, {options['lazy']} known vertices"
    words += [kind] if kind in ("corrective", "block", "even", "certified", "own c") else []
    words += ["exact projections"] if kind == "exact" else []
    words += [f"{budget:g} per round"] if budget else ["no limit"] if kind != "exact" else []
    return ", ".join(words)


def grouped(records: Iterable[Record]) -> dict[str, list[Record]]:
    """The seeds of each setting together, the learners one after the other."""
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(setting(record), []).append(record)
    return dict(sorted(found.items(), key=lambda item: _order(item[1][0])))


def _order(record: Record) -> tuple[int, int, float]:
    kind, budget = record["kind"], record["budget"]
    place = KINDS.index(kind) if kind in KINDS else 0
    return [*TITLES, ZERO].index(record["learner"]), place, budget or math.inf


def _part(records: Iterable[Record], part: str, stream: str | None = None) -> list[Record]:
    chosen = [record for record in records if record.get("part") == part]
    return [record for record in chosen if stream in (None, record["stream"])]


def _set_table(name: str, records: Sequence[Record]) -> str:
    head = ["game", "LMO calls", "most in a round", "static regret", "dynamic regret"]
    rows = [[*head, "worst window", "seconds"]]
    for words, each in grouped(records).items():
        row = [f"{name}: {words}", _mean(each, "lmo_calls")]
        row.append(f"{max(record['worst_round'] for record in each):,}")
        regrets = ("static_regret", "dynamic_regret", "window_regret")
        row += [_spread(each, column) for column in regrets]
        rows.append([*row, _short(np.mean([record["seconds"] for record in each]))])
    return _markdown(rows)


def _rating_table(records: Sequence[Record]) -> str:
    rows = [["game", "loss a rating", "LMO calls", "most in a round", "seconds"]]
    for words, (record,) in grouped(records).items():
        row = [f"MovieLens: {words}", f"{record['loss_a_rating']:.3f}"]
        row += [f"{record['lmo_calls']:,}", f"{record['worst_round']:,}"]
        rows.append([*row, _short(record["seconds"])])
    return _markdown(rows)


def _lazy_table(records: Sequence[Record]) -> str:
    rows = [["game", "rounds", "seeds", "LMO calls", "dynamic regret", "seconds"]]
    for name in SETS:
        mine = [record for record in records if record["stream"] == name]
        for words, each in grouped(mine).items():
            row = [f"{name}: {words}", f"{each[0]['rounds']:,}", str(len(each))]
            row += [_mean(each, "lmo_calls"), _spread(each, "dynamic_regret")]
            rows.append([*row, _short(np.mean([record["seconds"] for record in each]))])
    return _markdown(rows)


def _bound_table(records: Sequence[Record]) -> str:
    rows = [["game", "LMO calls", "lower bound", "regret", "upper bound", "regret / lower bound"]]
    for record in records:
        name = f"b = {record['budget']:g}, T = {record['rounds']:,}: {record['title']}"
        row = [name, f"{record['lmo_calls']:,}"]
        row += [_short(record[c]) for c in ("guarantee", "static_regret", "bound")]
        rows.append([*row, f"{record['static_regret'] / record['guarantee']:.3f}"])
    return _markdown(rows)


def _mean(records: Sequence[Record], column: str) -> str:
    return f"{np.mean([record[column] for record in records]):,.0f}"


def _spread(records: Sequence[Record], column: str) -> str:
    values = np.array([record[column] for record in records])
    digits = 0 if abs(values.mean()) >= 1000 else 1
    mean = f"{values.mean():,.{digits}f}"
    return mean if values.size == 1 else f"{mean} ± {values.std(ddof=1):,.{digits}f}"


def _short(value: float) -> str:
    """Three digits, or all before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _markdown(rows: Rows) -> str:
    head, *rest = (f"| {' | '.join(row)} |" for row in rows)
    rule = f"| --- |{' ---: |' * (len(rows[0]) - 1)}"
    return "\n".join([head, rule, *rest])
