"""A process that reads hostile files, with little memory and little time: `python -m reliability.pen`.

It takes lines "specimen number" and answers each with a line of JSON. Mutations are made from their
number alone, so any of them can be looked at again:

    python -m reliability.pen "game" 17
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from reliability.specimens import SPECIMENS, Specimen

#: Bytes beyond what the process has when it is ready, and processor seconds for one file.
MEMORY, SECONDS = 1 << 30, 5.0
#: No refusal says more.
LONGEST = 2000


class TooLongError(BaseException):
    """No `except` of the code under test is to catch it."""


def _too_long(*_: Any) -> None:
    raise TooLongError


class Pen:
    """Loads mutations, one after the other, and says what came of each.

    Parameters
    ----------
    folder
        Where the files go.
    """

    def __init__(self, folder: Path) -> None:
        self.canary = folder / "canary"
        self.folder = folder
        self._originals: dict[str, Path] = {}

    def outcome(self, specimen: Specimen, number: int, show: bool = False) -> tuple[str, str]:
        """Return "refused", "sound", "refused later" or "fault", and what was said."""
        original = self._original(specimen)
        rng = np.random.default_rng([number, *specimen.name.encode()])
        path = self.folder / "mutated" / specimen.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(specimen.mutation(original, rng, str(self.canary)))
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            return self._judged(specimen, path, show)
        except TooLongError:
            return "fault", "it took too long"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            path.unlink(missing_ok=True)

    def check(self, specimen: Specimen) -> None:
        """The file as it was written loads and goes on; this also compiles what it needs."""
        specimen.use(specimen.load(self._original(specimen)))

    def _original(self, specimen: Specimen) -> Path:
        if specimen.name not in self._originals:
            path = self.folder / specimen.name.replace(":", "") / specimen.file
            path.parent.mkdir(parents=True)
            specimen.make(path)
            self._originals[specimen.name] = path
        return self._originals[specimen.name]

    def _judged(self, specimen: Specimen, path: Path, show: bool) -> tuple[str, str]:
        stage = "refused"
        try:
            loaded = specimen.load(path)
            stage = "refused later"
            specimen.use(loaded)
        except (ValueError, OSError) as error:
            if show:
                traceback.print_exc()
            fault = _fault(error)
            return ("fault", f"{stage}: {fault}") if fault else (stage, str(error))
        except Exception as error:
            if show:
                traceback.print_exc()
            return "fault", f"{stage}: {type(error).__name__}: {error}"[:300]
        if self.canary.exists():
            return "fault", "code in the file was run"
        return "sound", ""


def _fault(error: BaseException) -> str:
    """What is wrong with a refusal: it is one sentence, and said by driftwolfe."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    told = str(error)
    if "driftwolfe" not in Path(frame.filename).parts:
        return f"{type(error).__name__} from {Path(frame.filename).name}: {told}"[:300]
    if not 10 <= len(told) <= LONGEST or "\n" in told.strip():
        return f"not one sentence: {told!r}"[:300]
    return ""


def _limit_memory() -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * os.sysconf("SC_PAGE_SIZE") + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    """Answer lines, or show one mutation."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGPROF, _too_long)
    by_name = {specimen.name: specimen for specimen in SPECIMENS}
    with tempfile.TemporaryDirectory() as folder:
        pen = Pen(Path(folder))
        if len(sys.argv) == 3:
            specimen = by_name[sys.argv[1]]
            pen.check(specimen)
            _limit_memory()
            print(*pen.outcome(specimen, int(sys.argv[2]), show=True))
            return
        answers = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)  # whatever else is printed is no answer
        for specimen in SPECIMENS:
            pen.check(specimen)
        _limit_memory()
        print("ready", file=answers, flush=True)
        for line in sys.stdin:
            name, _, number = line.strip().rpartition(" ")
            print(json.dumps(pen.outcome(by_name[name], int(number))), file=answers, flush=True)


if __name__ == "__main__":
    main()
