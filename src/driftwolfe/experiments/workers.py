"""What runs trials, wherever that is."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from driftwolfe.experiments.result import Result, decode
from driftwolfe.experiments.run_trial import run_trial
from driftwolfe.experiments.trial import Trial


class Outcome(NamedTuple):
    """A trial with its result, or with what went wrong."""

    trial: Trial
    result: Result | None
    problem: str = ""


#: Handed out one by one; closing it stops what is under way.
Outcomes = Generator[Outcome, None, None]


class Workers(Protocol):
    """Runs trials, and hands out each outcome as soon as it is there."""

    def run(self, trials: Sequence[Trial], folder: str | None) -> Outcomes:
        """Run the trials; `folder` holds the real data."""


def work(trial: bytes, folder: str | None) -> bytes:
    """Run a trial in a worker: plain bytes in, plain bytes out.

    What goes wrong comes back as a sentence, so that a cluster does not try again what can only go
    wrong again.
    """
    try:
        return run_trial(msgspec.json.decode(trial, type=Trial), folder).encode()
    except Exception as problem:  # a learner or a loss may raise anything
        return msgspec.json.encode({"problem": sentence(problem)})


def outcome(trial: Trial, answer: bytes) -> Outcome:
    """What the answer of `work` means."""
    told: Any = msgspec.json.decode(answer)
    if "problem" in told:
        return Outcome(trial, None, told["problem"])
    try:
        result = decode(answer)
    except ValueError as problem:
        why = f"its worker, another version of driftwolfe perhaps, sent no result ({problem})"
        return Outcome(trial, None, why)
    return Outcome(trial, result)


def sentence(problem: BaseException) -> str:
    """What went wrong, on one line."""
    text = " ".join(f"{type(problem).__name__}: {problem}".split())
    return text.encode(errors="replace").decode()
