"""The service of examples/service under load, over loopback: `python -m benchmarks.service`, two minutes.

It learns a stream and is started again: the time to the first recommendation. Then recommendations and events, in
batches of 50, are sent side by side, each at its time whatever became of those before, by another process; a
delay counts from that time. "Processor" is the share of one core that the service took. `--memory 10` sends ten
million events as fast as they are taken, of users who come and go, and prints the memory of the service after each
million; it takes half an hour.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from reliability.children import ROOT, same_copy

SERVE = ROOT / "examples" / "service" / "serve.py"
ITEMS, STAY, ACTIVE, BATCH = 5_000, 50, 60_000, 50
#: When it is due, what it is, and its bytes.
Request = tuple[float, str, bytes]


def start(folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    """Start the service with its default settings, in a folder; return it and its port."""
    output = folder / "output"
    given = same_copy(SERVE_FOLDER=str(folder / "data"), SERVE_PORT="0")
    with output.open("wb") as file:
        service = subprocess.Popen([sys.executable, SERVE], env=given, stdout=file, stderr=file)
    while not (found := re.search(r"running on http://127.0.0.1:(\d+)", output.read_text())):
        if service.poll() is not None:
            raise SystemExit(output.read_text())
        time.sleep(0.005)
    return service, int(found[1])


def stop(service: subprocess.Popen[bytes]) -> None:
    service.terminate()
    service.wait()


def posted(events: list[Any]) -> bytes:
    body = json.dumps(events).encode()
    head = f"POST /events HTTP/1.1\r\nhost: a\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


def batches(first: int, count: int, size: int) -> Iterator[bytes]:
    """Events of users who come, stay for some `STAY` events, and go; popular items more often."""
    draw = random.Random(first)
    for begin in range(first, first + count, size):
        events = [
            {
                "id": f"{number:x}",
                "user": f"user {number // STAY + int(draw.random() * ACTIVE)}",
                "item": f"item {int(ITEMS * draw.random() ** 3)}",
            }
            for number in range(begin, begin + size)
        ]
        yield posted(events)


def connected(port: int, ready: selectors.BaseSelector) -> socket.socket:
    own = socket.create_connection(("127.0.0.1", port))
    own.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    ready.register(own, selectors.EVENT_READ)
    return own


def drive(port: int, requests: Iterable[Request], connections: int) -> dict[str, list[float]]:
    """Send each request when it is due, on a connection that is free; return delays in milliseconds."""
    ready = selectors.DefaultSelector()
    free, delays = [connected(port, ready) for _ in range(connections)], defaultdict(list)
    waiting, busy, begin = iter(requests), {}, time.perf_counter()
    following = next(waiting, None)
    while following is not None or busy:
        now = time.perf_counter() - begin
        while following is not None and following[0] <= now and free:
            own = free.pop()
            own.sendall(following[2])
            busy[own] = following, b""
            following = next(waiting, None)
        until = following[0] - now if following is not None and free else None
        for key, _ in ready.select(until):
            own = key.fileobj
            if own not in busy:  # the service closes connections on which nothing happens
                ready.unregister(own)
                free.remove(own)
                own.close()
                free.append(connected(port, ready))
                continue
            request, content = busy.pop(own)
            content += own.recv(1 << 16)
            head, end, body = content.partition(b"\r\n\r\n")
            found = re.search(rb"content-length: (\d+)", head)
            if end and found and len(body) >= int(found[1]):
                if not head.startswith(b"HTTP/1.1 200"):
                    raise SystemExit(content.decode())
                delays[request[1]].append(1e3 * (time.perf_counter() - begin - request[0]))
                free.append(own)
            else:
                busy[own] = request, content
    for own in free:
        own.close()
    return delays


def side_by_side(first: int, seconds: float, asks: int, events: int) -> list[Request]:
    """Recommendations and batches of events, each at even times."""
    count = int(seconds * events / BATCH)
    plan = [
        (BATCH * number / events, "events", content)
        for number, content in enumerate(batches(first, BATCH * count, BATCH))
    ]
    draw = random.Random(first)
    for number in range(int(seconds * asks)):
        user = f"user%20{first // STAY + int(draw.random() * ACTIVE)}"
        content = f"GET /users/{user}/recommendations?n=10 HTTP/1.1\r\nhost: a\r\n\r\n".encode()
        plan.append((number / asks, "recommendations", content))
    return sorted(plan)


def memory(service: subprocess.Popen[bytes]) -> float:
    """Megabytes that the process takes; Linux only."""
    status = Path(f"/proc/{service.pid}/status").read_text()
    (kilobytes,) = re.findall(r"VmRSS:\s+(\d+)", status)
    return int(kilobytes) / 1024


def processor(service: subprocess.Popen[bytes]) -> float:
    """Seconds of processor time that the process has taken; Linux only."""
    fields = Path(f"/proc/{service.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def quantile(delays: list[float], share: float) -> float:
    return sorted(delays)[int(share * (len(delays) - 1))]


def first_answer(folder: Path) -> tuple[float, subprocess.Popen[bytes], int]:
    """Seconds from the start to the first recommendation, and what was started."""
    begin = time.perf_counter()
    service, port = start(folder)
    ask = b"GET /users/a/recommendations HTTP/1.1\r\nhost: a\r\n\r\n"
    drive(port, [(0.0, "recommendations", ask)], 1)
    return time.perf_counter() - begin, service, port


def measure(folder: Path, known: int, repeat: int, seconds: float, asks: int, events: int) -> None:
    service, port = start(folder)
    drive(port, ((0.0, "events", each) for each in batches(0, known, 1000)), 2)
    stop(service)
    for number in range(repeat):
        taken, service, port = first_answer(folder)
        print(
            f"first answer after {taken:.2f} s, {processor(service):.2f} s of a processor",
            flush=True,
        )
        if number < repeat - 1:
            stop(service)
    print("| recommendations/s | p50 (ms) | p99 | events/s | p50 of a batch | p99 | processor |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for number in range(repeat):
        plan = side_by_side(known + 1_000_000 * (number + 1), seconds, asks, events)
        begin, used = time.perf_counter(), processor(service)
        delays = drive(port, plan, 64)
        took = time.perf_counter() - begin
        told = []
        for kind, size in (("recommendations", 1), ("events", BATCH)):
            told.append(f"{size * len(delays[kind]) / took:,.0f}")
            told += [f"{quantile(delays[kind], share):.1f}" for share in (0.5, 0.99)]
        told.append(f"{100 * (processor(service) - used) / took:.0f} %")
        print(f"| {' | '.join(told)} |", flush=True)
    stop(service)


def grow(folder: Path, millions: int) -> None:
    service, port = start(folder)
    print(
        f"| million events | MB | events/s |\n| ---: | ---: | ---: |\n| 0 | {memory(service):.0f} | |"
    )
    for million in range(millions):
        begin = time.perf_counter()
        content = batches(1_000_000 * million, 1_000_000, 500)
        drive(port, ((0.0, "events", each) for each in content), 4)
        rate = 1e6 / (time.perf_counter() - begin)
        print(f"| {million + 1} | {memory(service):.0f} | {rate:,.0f} |", flush=True)
    stop(service)


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--known", type=int, default=200_000, help="events learned before")
    parser.add_argument("--seconds", type=float, default=10.0, help="of a run")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--asks", type=int, default=1_050, help="recommendations per second")
    parser.add_argument("--events", type=int, default=5_250, help="events per second")
    parser.add_argument("--memory", type=int, default=0, help="millions of events")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if given.memory:
            grow(Path(folder), given.memory)
        else:
            measure(
                Path(folder), given.known, given.repeat, given.seconds, given.asks, given.events
            )


if __name__ == "__main__":
    main()
