"""`Finding`: one thing that the doctor looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: "ok"; "note": something that not everybody needs is missing; "broken": the core does not work.
State = Literal["ok", "note", "broken"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's report.

    Attributes
    ----------
    name
        What was looked at.
    told
        What was found.
    state
        How it is.
    remedy
        What to do about it; empty where nothing needs to be done.
    """

    name: str
    told: str
    state: State = "ok"
    remedy: str = ""
