"""How many files and functions one round runs through."""

import inspect
import sys
from pathlib import Path

import numpy as np

import driftwolfe as dw
from driftwolfe.ensemble.threads import set_threads

SOURCE = str(Path(dw.__file__).parent)
#: Files, and lines of functions, at the end of a block: the median of rounds.
FILES, LINES = 19, 1300


def entered(learner, loss):
    """The functions of the library that one update runs through; compiled loops are left out."""
    found = set()

    def note(frame, event, _):
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(SOURCE) and not name.endswith("kernels.py"):
            found.add(frame.f_code)

    sys.setprofile(note)
    try:
        learner.update(loss)
    finally:
        sys.setprofile(None)
    return found


def test_a_block_of_pold_ends_in_few_files_and_lines():
    shape, rng = (120, 150), np.random.default_rng(0)
    learner = dw.POLD(dw.TraceNormBall(shape, radius=30.0), horizon=60)
    files, lines = [], []
    set_threads(1)
    try:
        for _ in range(30):
            places = [rng.integers(size, size=50) for size in shape]
            loss = dw.losses.AbsoluteEntries(*places, rng.standard_normal(50))
            ends = learner._experts.due().size > 0
            codes = entered(learner, loss)
            if not ends:
                continue
            texts = [(code.co_filename, *inspect.getsourcelines(code)) for code in codes]
            files.append(len({name for name, _, _ in texts}))
            own = {(name, first + i) for name, text, first in texts for i in range(len(text))}
            lines.append(len(own))
    finally:
        set_threads(None)
    assert len(files) > 10
    assert np.median(files) <= FILES
    assert np.median(lines) <= LINES, np.median(lines)
