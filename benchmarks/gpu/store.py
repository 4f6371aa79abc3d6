"""results.json: one entry a section, each with what it was measured on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from driftwolfe.storage import write_json

Results = dict[str, Any]


def read(folder: Path) -> Results:
    """The sections that are there."""
    path = folder / "results.json"
    return json.loads(path.read_text()) if path.exists() else {}


def add(folder: Path, section: str, result: dict[str, Any]) -> Results:
    """Put a section's result in place of an older one; the others stay."""
    results = {**read(folder), section: result}
    write_json(folder / "results.json", results)
    return results
