"""What sums over workers cost: `python -m benchmarks.distributed`, a few minutes and 6 GB of memory.

First, bytes per round: games against losses in two parts, on two worker processes of this machine. All that the
client sends and receives goes through a relay that counts it: points, gradients and values, and what Dask adds of
its own. Then the logistic loss of 10 million rows in four parts, beside the same loss in one process.
"""

from __future__ import annotations

import argparse
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

import driftwolfe as dw
from benchmarks.measure import medians, race
from benchmarks.output import markdown

#: Numbers of a point, and rounds of games.
POINT = 2_000
ROUNDS = {dw.BOGDIP: (64, 256, 1024, 4096), dw.POLD: (64, 256)}
#: Rows and features of the large loss, and its parts.
ROWS, FEATURES, PARTS = 10_000_000, 20, 4
#: Seconds of rest after which Dask has sent and received all that it will.
_REST = 0.3
#: Rounds that are played one by one: all are alike.
_ALIKE = 16


class Meter:
    """A relay before a server, at an address of its own, that counts the bytes of both directions."""

    def __init__(self, address: str) -> None:
        host, port = address.removeprefix("tcp://").split(":")
        self._server, self._sockets = (host, int(port)), list[socket.socket]()
        self.total = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:  # closed
                return
            far = socket.create_connection(self._server)
            self._sockets += [near, far]
            for pair in ((near, far), (far, near)):
                threading.Thread(target=self._pass_on, args=pair, daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while content := source.recv(1 << 16):
                target.sendall(content)
                self.total += len(content)  # a lost addition of the other thread: one packet
            target.shutdown(socket.SHUT_WR)
        except OSError:  # one of them has gone
            pass

    def __enter__(self) -> Meter:
        return self

    def __exit__(self, *_: object) -> None:
        for each in (self._listener, *self._sockets):
            each.close()


def counted(meter: Meter, job: Callable[[], Any]) -> int:
    """Bytes that a job sends and receives."""
    before = meter.total
    job()
    time.sleep(_REST)
    return meter.total - before


class Shard:
    """One of two parts of a stream: on the worker, 20 rows of each round, made from its number."""

    def __init__(self, part: int) -> None:
        self.part = part

    def __getitem__(self, t: int) -> Any:
        rng = np.random.default_rng([self.part, t])
        features = rng.standard_normal((20, POINT)) / POINT**0.5
        return dw.losses.LogisticLoss(features, np.sign(features[:, 0]))


def _shard(part: int) -> Callable[[], Shard]:
    return lambda: Shard(part)


class Rows:
    """A part of the 10 million rows."""

    def __init__(self, part: int, rows: int) -> None:
        self.part, self.rows = part, rows

    def table(self) -> tuple[Any, Any]:
        rng = np.random.default_rng(self.part)
        features = rng.standard_normal((self.rows, FEATURES))
        return features, np.sign(features[:, 0] + rng.standard_normal(self.rows))

    def __call__(self) -> Any:
        return dw.losses.LogisticLoss(*self.table())


def bytes_per_round(client: Any, meter: Meter, rounds: dict[Any, tuple[int, ...]]) -> str:
    """The table of bytes and milliseconds per round, against the number of rounds."""
    table = [["learner", "rounds T", "blocks", "KB, each round", "KB, blocks", "ms", "ms, blocks"]]
    for cls, number in [(cls, number) for cls, each in rounds.items() for number in each]:
        losses = dw.distributed.SumLoss.rounds(client, [_shard(0), _shard(1)], number)
        found = []
        for by_blocks in (False, True):
            learner: Any = cls(dw.L1Ball(POINT), horizon=number, lipschitz=2.0)
            blocks = learner._experts.blocks
            played = losses if by_blocks else losses[:_ALIKE]
            play = partial(dw.play, learner, played, [] if by_blocks else [_watch])
            started = time.perf_counter()
            sent = counted(meter, play)
            spent = time.perf_counter() - started - _REST
            found.append((f"{sent / len(played) / 1e3:,.1f}", f"{spent / len(played) * 1e3:,.1f}"))
        kilobytes, milliseconds = zip(*found, strict=True)
        shown = (
            f"{blocks[0]}" if len(blocks) == 1 else f"{len(blocks)} of {blocks[-1]} to {blocks[0]}"
        )
        table.append([f"`{cls.__name__}`", f"{number:,}", shown, *kilobytes, *milliseconds])
    return markdown(table)


def _watch(learner: Any, value: float) -> None:
    """A callback: rounds that are watched are played one by one."""


def large(client: Any, workers: int, rows: int, evaluations: int) -> tuple[list[list[str]], Any]:
    """The rows of the table of a loss in parts, and its value and gradient."""
    started = time.perf_counter()
    parts = [Rows(part, rows // PARTS) for part in range(PARTS)]
    loss = dw.distributed.SumLoss(client, parts, weights=[1.0 / PARTS] * PARTS)
    made = time.perf_counter() - started
    name = f"{PARTS} parts, {workers} worker{'s' * (workers > 1)}"
    return [_timed(name, loss, made, evaluations)], loss.value_and_gradient(_points()[0])


def alone(rows: int, evaluations: int) -> tuple[list[list[str]], Any]:
    """The same in this process."""
    started = time.perf_counter()
    tables = zip(*(Rows(part, rows // PARTS).table() for part in range(PARTS)), strict=True)
    loss = dw.losses.LogisticLoss(*map(np.concatenate, tables))
    made = time.perf_counter() - started
    return [_timed("one process", loss, made, evaluations)], loss.value_and_gradient(_points()[0])


def _points() -> Any:
    return np.random.default_rng(7).standard_normal((8, FEATURES)) / 10.0


def _timed(name: str, loss: Any, made: float, evaluations: int) -> list[str]:
    points, weights = _points(), np.full(8, 0.125)
    jobs = {
        "one": lambda: loss.value_and_gradient(points[0]),
        "eight": lambda: loss.stacked_round(points, weights),
    }
    found = medians(race(jobs, evaluations))
    return [name, f"{made:.1f}", f"{found['one'] * 1e3:,.0f}", f"{found['eight'] * 1e3:,.0f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--short", action="store_true", help="fewer rounds and rows, in half a minute"
    )
    short = parser.parse_args().short
    rounds, rows = (
        ({cls: each[:2] for cls, each in ROUNDS.items()}, ROWS // 100) if short else (ROUNDS, ROWS)
    )
    ask = {"threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        LocalCluster(n_workers=2, **ask) as cluster,
        Meter(cluster.scheduler_address) as meter,
        Client(meter.address, set_as_default=False) as client,
    ):
        client.wait_for_workers(2)
        print(f"Bytes per round, points of {POINT:,} numbers, two parts\n", flush=True)
        print(bytes_per_round(client, meter, rounds), flush=True)
    table = [["logistic loss", "s, made", "ms, a point", "ms, 8 points and their mean"]]
    answers = []
    for workers in (1, 2):
        with LocalCluster(n_workers=workers, **ask) as cluster, Client(cluster) as client:
            client.wait_for_workers(workers)
            lines, answer = large(client, workers, rows, 5)
            table, answers = table + lines, [*answers, answer]
    lines, answer = alone(rows, 5)
    for value, gradient in answers:
        np.testing.assert_allclose(value, answer[0], rtol=1e-10)
        np.testing.assert_allclose(gradient, answer[1], rtol=1e-8, atol=1e-12)
    print(f"\n{rows:,} rows of {FEATURES} features\n\n{markdown(table + lines)}")


if __name__ == "__main__":
    main()
