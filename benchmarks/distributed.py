"""What sums over workers cost: `python -m benchmarks.distributed`, a few minutes and 6 GB of memory.

First, bytes per round: games against losses in two parts, on two worker processes of this machine. All that the client
sends and receives goes through a relay that counts it: points, gradients and values, and what Dask adds of its own.
Then the logistic loss of 10 million rows in four parts, beside the same loss in one process.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import driftwolfe as dw
from benchmarks.output import markdown

#: Numbers of a point, and rounds of games.
POINT, ROUNDS = 2_000, (64, 256, 1024, 4096)
#: Rows and features of the large loss, and its parts.
ROWS, FEATURES, PARTS = 10_000_000, 20, 4
#: Seconds of rest after which Dask has sent and received all that it will.
_REST = 0.3


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

    def __call__(self) -> Any:
        rng = np.random.default_rng(self.part)
        features = rng.standard_normal((self.rows, FEATURES))
        labels = np.sign(features[:, 0] + rng.standard_normal(self.rows))
        return dw.losses.LogisticLoss(features, labels)


def bytes_per_round(client: Any, meter: Meter, rounds: tuple[int, ...]) -> str:
    """The table of bytes, and of seconds, against the number of rounds."""
    table = [["learner", "T", "rounds of a block", "KB, one by one", "KB, by blocks", "ms", "ms"]]
    for cls in (dw.BOGDIP, dw.POLD):
        for number in rounds:
            losses = dw.distributed.SumLoss.rounds(client, [_shard(0), _shard(1)], number)
            found = []
            for played in (min(number, 256), number):  # those of single rounds are all alike
                learner: Any = cls(dw.L1Ball(POINT), horizon=number, lipschitz=2.0)
                blocks = learner._experts.blocks
                if not found:
                    job: Callable[[], Any] = lambda: [learner.update(f) for f in losses[:256]]  # noqa: B023, E731
                else:
                    job = lambda: dw.play(learner, losses)  # noqa: B023, E731
                started = time.perf_counter()
                sent = counted(meter, job)
                spent = time.perf_counter() - started - _REST
                found.append((sent / played / 1e3, spent / played * 1e3))
            (one, slow), (many, quick) = found
            shown = [f"{blocks.min()} to {blocks.max()}" if len(blocks) > 1 else f"{blocks[0]}"]
            numbers = [f"{one:,.1f}", f"{many:,.1f}", f"{slow:.1f}", f"{quick:.1f}"]
            table.append([f"`{cls.__name__}`", f"{number:,}", *shown, *numbers])
            print(table[-1], flush=True)
    return markdown(table)
