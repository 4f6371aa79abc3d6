"""A recommender that serves: it reads a log of events, learns, answers, and survives kill -9.

    python examples/serve_recommender.py LOG MODEL     # serve a log of JSON lines
    python examples/serve_recommender.py               # show it: serve, kill, go on, compare

A line of the log is an event, {"user": "ann", "item": "tea"}, with a "weight" if it does not count as 1,
or a request, {"user": "ann", "recommend": 3}. The model and the offset of the next line are one file,
which is replaced as a whole, every `EVERY` lines. So after a kill at any moment the two fit: lines since
the last file are read again, and none is lost or learned twice. As learning is deterministic, answers
that are given twice are the same. Each save writes the whole model: saving after every line would cost far
more than learning it.

Any source of (offset, bytes) with rising offsets will do; for a partition of Kafka:

    def source(position):
        consumer.seek(partition, position)
        for message in consumer:
            yield message.offset, message.value
"""

import json
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left
from functools import partial
from pathlib import Path

import numpy as np

from driftwolfe.estimators import Recommender
from driftwolfe.storage import read_archive

EVERY = 200
#: What lines raise that are no events: the last two for numbers beyond all range, and `[[[[[[...`.
UNREADABLE = (ValueError, TypeError, LookupError, ArithmeticError, RecursionError)


def read_lines(log, position=0):
    """Yield the offset of the last byte of each complete line from a position on, and the line."""
    with open(log, "rb") as file:
        file.seek(position)
        while (line := file.readline()).endswith(b"\n"):  # the last one may still be written
            position += len(line)
            yield position - 1, line


def resume(path):
    """Return the model of a file and the offset of the next event; a new one if there is no file."""
    if not path.exists():
        return Recommender(), 0
    model = Recommender.load(path)
    return model, model.note_["offset"]


def serve(source, path, every=EVERY):
    """Learn the events of a source and yield the answers to its requests, each with its offset."""
    model, position = resume(path)
    for count, (offset, line) in enumerate(source(position), start=1):
        if offset < position:  # delivered once more
            continue
        try:
            event = json.loads(line)
            if "recommend" in event:
                yield offset, model.recommend(event["user"], event["recommend"])
            else:
                pair = (event["user"], event["item"])
                model.partial_fit([pair], weights=[event.get("weight", 1.0)])
        except UNREADABLE as error:  # what cannot be learned is not tried again
            print(f"skipped the line that ends at {offset}: {error!r:.200}", file=sys.stderr)
        position = offset + 1
        if count % every == 0:
            model.save(path, note={"offset": position})
    model.save(path, note={"offset": position})


def write_log(log, lines, seed=0):
    """Write a log of users who walk from item to item, with a request now and then."""
    rng, places = np.random.default_rng(seed), {}
    with open(log, "w") as file:
        for number in range(lines):
            user = int(rng.integers(400))
            if number % 70 == 69:
                file.write(json.dumps({"user": user, "recommend": 3}) + "\n")
                continue
            item = places[user] = (places.get(user, 17 * user) + int(rng.integers(1, 9))) % 300
            file.write(json.dumps({"user": user, "item": f"item {item}"}) + "\n")


def serve_until_killed(log, path, answers):
    """Serve a log in another process, and kill it some time after that many answers; return them all."""
    given = {}
    command = [sys.executable, __file__, str(log), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        for line in child.stdout:
            offset, items = json.loads(line)
            given[offset] = items
            if len(given) == answers:
                time.sleep(np.random.default_rng(answers).uniform(0.0, 0.03))
                child.kill()  # SIGKILL: it cannot be caught, and nothing is cleaned up
    return given


def same_content(*paths):
    """Whether two files hold the same model and offset, to the last bit."""
    one, two = map(read_archive, paths)
    pairs = ((one.arrays[name], two.arrays.get(name)) for name in one.arrays)
    return one.settings == two.settings and all(a.tobytes() == b.tobytes() for a, b in pairs)


def show(lines=8_000, kills=3):
    """Serve one log twice, once undisturbed and once with kills, and compare."""
    with tempfile.TemporaryDirectory() as folder:
        log, path, undisturbed = (Path(folder) / name for name in ("log", "model", "undisturbed"))
        write_log(log, lines)
        expected = dict(serve(partial(read_lines, log), undisturbed))
        ends = [offset for offset, _ in read_lines(log)]
        print("kill   answered up to line   resumes after line")
        for kill in range(1, kills + 1):
            given = serve_until_killed(log, path, answers=len(expected) // (kills + 1))
            same = all(expected[offset] == items for offset, items in given.items())
            position = resume(path)[1]
            reached, resumed = (bisect_left(ends, end) for end in (max(given) + 1, position))
            print(f"{kill:4}   {reached:21,}   {resumed:18,}{'' if same else '   OTHER ANSWERS'}")
        given = serve_until_killed(log, path, answers=None)
        same = max(given) == max(expected) and given.items() <= expected.items()
        print(f"answers of the last run: {'as expected' if same else 'OTHERS'}")
        same = same_content(path, undisturbed)
        print(
            f"model after {kills} kills: {'' if same else 'NOT '}bit-identical to that of an undisturbed run"
        )


if __name__ == "__main__":
    if sys.argv[1:]:
        for answer in serve(partial(read_lines, sys.argv[1]), Path(sys.argv[2])):
            print(json.dumps(answer), flush=True)
    else:
        show()
