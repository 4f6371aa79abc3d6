"""Learn a keyed stream in forks that are ended with SIGKILL, then to its end; `test_keyed.py` runs this alone.

Kills come in the middle of a transaction, before random events, and by the clock. After each, the file must hold
the models of the events up to its offset. It prints how many kills there were.
"""

import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from random import Random

import driftwolfe as dw
from keyed_cases import contents, events, factory, learned
from reliability.crash import ended, kill_by_clock, start


def main(folder, times, with_prior):
    random, kills, stream = Random(times), Counter(), events(300 + 30 * times)
    path = folder / "models"

    def opened():
        return dw.Keyed(factory, path, 7, factory() if with_prior else None, every=40)

    def run(last=None, write=None):
        """Learn from where the file is, or somewhat earlier; die before an event, or while it is written."""
        models, writes = opened(), 0
        if write is not None:
            content = models._content

            def deadly(model):
                nonlocal writes
                writes += 1
                if writes == write:
                    os.kill(os.getpid(), signal.SIGKILL)
                return content(model)

            models._content = deadly
        first = max(0, models.offset + 1 - random.randrange(20))
        for offset, event in enumerate(stream[first:], first):
            if last is not None and offset == models.offset + 1 == last:
                os.kill(os.getpid(), signal.SIGKILL)
            models.learn(*event, offset=offset)
        models.close()

    def check():
        with opened() as models:
            held, offset = contents(models), models.offset
            prior = factory() if with_prior else None
            assert held == learned(stream[: offset + 1], prior), offset
            if with_prior:
                assert models.prior.to_bytes() == prior.to_bytes()
        return offset

    done = -1
    for number in range(times):
        before = done
        if number % 3 == 0:
            write = random.randrange(1, 30)
            assert ended(start(lambda write=write: run(write=write))) == -signal.SIGKILL
            kills["in a transaction"] += 1
        elif number % 3 == 1:
            last = before + 1 + random.randrange(1, 80)
            assert ended(start(lambda last=last: run(last))) == -signal.SIGKILL
            kills["before an event"] += 1
        else:
            kills["by the clock"] += kill_by_clock(run, 0.3, random)
        done = check()
        assert done >= before
        if done == len(stream) - 1:  # the clock was slow: from the start again
            path.unlink()
            done = -1
    run()
    assert check() == len(stream) - 1
    print(json.dumps(kills))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "prior")
