"""The tables of summary.md; every row has a unique name, so that pages can quote it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.output import markdown
from benchmarks.output import short_number as number

Results = dict[str, Any]
Rows = list[list[str]]
#: Names of the games.
GAMES = {"wide": "POLD, wide ranks", "low": "POLD, low ranks"}


def part(section: str, results: Results) -> str:
    """A section's heading, machine and command, and its tables."""
    title, tables = TABLES[section]
    made = results[section]["made"]
    short = " --short" if made["short"] else ""
    command = f"python -m benchmarks.gpu --device {made['option']}{short} --sections {section}"
    commit = f", commit {made['commit']}" if made["commit"] else ""
    where = (
        f"By `{command}` on {made['device']} (host: {made['cpu']}, {made['cores']} cores; "
        f"torch {made['torch']}), {made['date'][:10]}{commit}."
    )
    shown = [table if isinstance(table, str) else markdown(table) for table in tables(results)]
    return "\n\n".join([f"## {title}", where, *shown]) + "\n"


def _bandwidth(results: Results) -> list[Rows]:
    found = results["bandwidth"]
    copy, transfer = (
        f"copy of {_size(found['copied_bytes'])}",
        f"{found['from_host_bytes']:,} bytes",
    )
    rows = [["transfer", "ms", "GB/s"]]
    rows.append([copy, number(found["copy_ms"]), number(found["bytes_a_second"] / 1e9)])
    speed = found["from_host_bytes_a_second"] / 1e9
    rows.append([f"{transfer} from the host", number(found["from_host_ms"]), number(speed)])
    return [rows]


def _libraries(results: Results) -> list[Rows]:
    found = results["libraries"]
    versions = found["versions"]
    head = [f"{name} {version}, ms" for name, version in versions.items()]
    rows = [["primitive", *head, *(["cupy / torch"] if "cupy" in versions else [])]]
    for row in found["milliseconds"]:
        cells = [row["name"], *(number(row[name]) for name in versions)]
        rows.append([*cells, *([number(row["cupy"] / row["torch"])] if "cupy" in row else [])])
    return [rows]


def _stream(results: Results) -> list[Rows]:
    head = ["game", "seconds", "projections", "ms per projection", "loss per rating", "of zero"]
    rows, experts = [[*head, "peak GiB"]], [["game: expert", "block", "rank at the end"]]
    for name, title in GAMES.items():
        game = results["stream"][name]
        m, n = game["shape"]
        peak = number(game["peak_gib"]) if "peak_gib" in game else ""
        row = [f"{title}, {game['rounds']:,} rounds on {m:,} x {n:,}", number(game["seconds"])]
        row += [f"{game['projections']:,}", number(game["projection_ms"])]
        row += [f"{game['mean_loss']:.4f}", f"{game['mean_loss_of_zero']:.4f}", peak]
        rows.append(row)
        for i, pair in enumerate(zip(game["blocks"], game["ranks"], strict=True), start=1):
            experts.append([f"{title}: expert {i}", *map(str, pair)])
    return [rows, experts]


def _learning(results: Results) -> list[Rows | str]:
    found = results["learning"]
    m, n = found["shape"]
    head = ["learner", "seconds", "ms per round", "projections", "calls per projection"]
    rows = [[*head, "loss per rating", "first tenth", "last tenth", "peak GiB", "largest rank"]]
    curves = [["loss per rating", *(f"tenth {i}" for i in range(1, 11))]]
    for name, each in found["learners"].items():
        title = f"{name}, {found['rounds']:,} rounds of low rank plus noise on {m:,} x {n:,}"
        row = [title, number(each["seconds"]), number(1e3 * each["seconds"] / found["rounds"])]
        row += [f"{each['projections']:,}", number(each["calls"])]
        tenths = [f"{loss:.4f}" for loss in each["tenths"]]
        row += [f"{each['mean_loss']:.4f}", tenths[0], tenths[-1]]
        rows.append(
            [*row, number(each["peak_gib"]) if "peak_gib" in each else "", str(max(each["ranks"]))]
        )
        curves.append([name, *tenths])
    told = (
        f"{found['entries_a_round']:,} ratings per round; the zero matrix has "
        f"{found['mean_loss_of_zero']:.4f} per rating, the truth {found['mean_loss_of_truth']:.4f}."
    )
    return [rows, curves, told]


def _kernels(results: Results) -> list[Rows | str]:
    tables: list[Rows | str] = []
    for name, title in GAMES.items():
        game = results["kernels"]["games"][name]
        head = [
            "work",
            "calls per projection",
            "device ms per projection",
            "floor ms per projection",
        ]
        rows = [[*head, "ratio"]]
        kinds = game["kinds"]
        for kind, each in kinds.items():
            cells = [f"{title}: {kind}", number(each["calls"])]
            rows.append([*cells, *_against(each["device_ms"], each["floor_ms"])])
        calls, busy, floor = (
            sum(each[column] for each in kinds.values())
            for column in ("calls", "device_ms", "floor_ms")
        )
        rows.append([f"{title}: all kernels", number(calls), *_against(busy, floor)])
        rows.append([f"{title}: wall clock", number(calls), *_against(game["wall_ms"], floor)])
        tables.append(rows)
    return [*tables, _whole(results)]


def _whole(results: Results) -> str:
    """The floor of the whole wide game in a sentence, and its time if that was measured."""
    found, stream = results["kernels"]["whole wide"], results.get("stream")
    text = (
        f"{GAMES['wide']}, all {found['rounds']:,} rounds: {_size(found['bytes'])} to move, "
        f"which takes {number(found['floor_seconds'])} s at the speed of a copy"
    )
    if stream is None or stream["wide"]["rounds"] != found["rounds"]:
        return f"{text}."
    took = stream["wide"]["seconds"]
    ratio = number(took / found["floor_seconds"])
    return f"{text}; the game took {number(took)} s, {ratio} times as long."


def _projection(results: Results) -> list[Rows | str]:
    found = results["projection"]
    rows = [["where", "seconds", "projections", "ms per projection", "total loss"]]
    for side, title in (("host", "two cores"), ("device", "device")):
        each = found[side]
        row = [f"{title}, {found['rounds']} rounds from {found['opening']:,}"]
        row += [number(each["seconds"]), f"{each['projections']:,}"]
        rows.append([*row, number(each["projection_ms"]), f"{each['loss']:,.2f}"])
    told = (
        f"A projection takes {number(found['ratio'])} times as long on two cores; "
        f"the total losses differ by {found['difference_of_losses']:.1e} of themselves."
    )
    return [rows, told]


def _movielens(results: Results) -> list[Rows]:
    found = results["movielens"]
    rows = [["game", "seconds", "total loss", "difference"]]
    for side, title in (("host", "two cores"), ("device", "device")):
        each = found[side]
        difference = "" if side == "host" else f"{found['difference_of_losses']:.1e}"
        name = f"MovieLens 100K, {found['rounds']:,} rounds, {title}"
        rows.append([name, number(each["seconds"]), f"{each['loss']:,.2f}", difference])
    return [rows]


def _crossover(results: Results) -> list[Rows]:
    found = results["crossover"]
    rows = [["m", "entries", "host ms", "device ms", "host / device"]]
    for each in found["projections"]:
        m = each["size"]
        rows.append([f"m = {m:,}", f"{m * m:,}", *_against(each["host_ms"], each["device_ms"])])
    vectors = [["d", "host ms per round", "device ms per round", "host / device"]]
    for each in found["rounds"]:
        vectors.append([f"d = {each['size']:,}", *_against(each["host_ms"], each["device_ms"])])
    return [rows, vectors]


def _auto(results: Results) -> list[Rows | str]:
    found = results["auto"]
    rows = [["game", "host ms per round", "device ms per round", "host / device"]]
    for each in found["games"]:
        rows.append([each["name"], *_against(each["host_ms"], each["device_ms"])])
    told = f"Vectors of {found['length']:,} coordinates; matrices of {found['side']:,} x {found['side']:,}."
    return [told, rows]


#: Every section's title, and the function that makes its tables.
TABLES: dict[str, tuple[str, Callable[[Results], list[Any]]]] = {
    "bandwidth": ("Memory bandwidth", _bandwidth),
    "libraries": ("PyTorch and CuPy", _libraries),
    "stream": ("The large stream", _stream),
    "learning": ("The large stream, made learnable", _learning),
    "kernels": ("Time against the floor of memory bandwidth", _kernels),
    "projection": ("A projection against two cores", _projection),
    "movielens": ("MovieLens 100K", _movielens),
    "crossover": ("Where a GPU pays", _crossover),
    "auto": ("The smallest sizes that `auto` takes to a GPU", _auto),
}
SECTIONS = tuple(TABLES)


def _against(one: float, other: float) -> list[str]:
    """Two numbers and their ratio."""
    return [number(one), number(other), number(one / other) if other else ""]


def _size(count: float) -> str:
    """Bytes in a unit of suitable size."""
    for unit, size in (("TiB", 2**40), ("GiB", 2**30)):
        if count >= size:
            return f"{number(count / size)} {unit}"
    return f"{number(count / 2**20)} MiB"
