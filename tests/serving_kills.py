"""Serve a log in forks that are ended with SIGKILL, then to its end; `test_serving.py` runs this alone.

Kills come while the file is written, at each stage of a write, before random lines, and by the clock, as long
as the log lasts. It prints how many.
"""

import json
import os
import signal
import sys
from collections import Counter
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from random import Random

from reliability.crash import STAGES, arm, ended, kill_by_clock, start

EXAMPLE = Path(__file__).parents[1] / "examples" / "serve_recommender.py"
LINES, EVERY, TIMES = 2_000, 50, 6


def example():
    """The example as a module."""
    spec = spec_from_file_location(EXAMPLE.stem, EXAMPLE)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main(folder):
    serving, random, kills = example(), Random(0), Counter()
    log, path, answers = folder / "log", folder / "model", folder / "answers"
    serving.write_log(log, LINES)
    source = partial(serving.read_lines, log)
    undisturbed = folder / "undisturbed"
    expected = dict(serving.serve(source, undisturbed, EVERY))

    def run(lines=LINES):
        """Serve from where the file is, and note every answer at once; end after so many lines."""

        def deadly(position):
            for count, line in enumerate(source(position)):
                if count == lines:
                    os.kill(os.getpid(), signal.SIGKILL)
                yield line

        notes = os.open(answers, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for answer in serving.serve(deadly, path, EVERY):
            os.write(notes, f"{json.dumps(answer)}\n".encode())

    def check():
        """What is in the file was learned once: every event before the offset, and no other."""
        model, position = serving.resume(path)
        lines = log.read_bytes()[:position].splitlines()
        assert model.n_events_ == sum(b'"item"' in line for line in lines), (position, model)

    for number, stage in [(number, stage) for number in (1, 3) for stage in STAGES]:

        def armed(number=number, stage=stage):
            arm(number, stage)
            run()

        assert ended(start(armed)) == -signal.SIGKILL, (number, stage)
        kills["in a write"] += 1
        check()
    for _ in range(TIMES):
        assert ended(start(partial(run, random.randrange(1, 150)))) == -signal.SIGKILL
        kills["before a line"] += 1
        check()
    for _ in range(TIMES):
        kills["by the clock"] += kill_by_clock(run, 0.1, random)
        check()
    run()
    check()
    assert serving.same_content(path, undisturbed)
    given = [json.loads(line) for line in answers.read_text().splitlines()]
    assert all(expected[offset] == items for offset, items in given)
    assert {offset for offset, _ in given} == expected.keys()
    kills["answers twice"] = len(given) - len(expected)
    print(json.dumps(kills))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
