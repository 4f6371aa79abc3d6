"""Records of finished games: one file each until all are done, then one for all."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from driftwolfe.storage import write_text

Record = dict[str, Any]


class Store:
    """Games that are done, in results.json and in the folder runs; a game that is there is not played.

    Parameters
    ----------
    folder
        Where both lie.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.records: dict[str, Record] = {}
        self._facts: Record | None = None  # of the machine, as long as nothing is added
        whole = folder / "results.json"
        if whole.exists():
            stored = json.loads(whole.read_text())
            self.records.update(stored["runs"])
            self._facts = stored["machine"]
        for path in sorted((folder / "runs").glob("*.json")):
            if not path.name.startswith("."):  # the part of one that was being written
                self.records[path.stem] = json.loads(path.read_text())

    def forget(self, text: str) -> None:
        """Remove the records whose names hold a text, to have them made anew."""
        for key in [key for key in self.records if text in key]:
            del self.records[key]
            (self.folder / "runs" / f"{key}.json").unlink(missing_ok=True)

    def get(self, key: str, make: Callable[[], Record]) -> Record:
        """The record of that name; made and written where there is none yet."""
        if key not in self.records:
            self.records[key] = make()
            self._facts = None
            _write(self.folder / "runs" / f"{key}.json", self.records[key])
        return self.records[key]

    def close(self, keys: list[str], facts: Record) -> list[Record]:
        """Write the records of these names as one file, and remove those of single games.

        Where no game was added, the facts about the machine stay those of the last time.
        """
        kept = {key: self.records[key] for key in keys}
        facts = self._facts or facts
        _write(self.folder / "results.json", {"machine": facts, "runs": kept})
        for path in (self.folder / "runs").glob("*.json"):
            path.unlink()
        if (self.folder / "runs").exists():
            (self.folder / "runs").rmdir()
        return list(kept.values())


def _write(path: Path, content: Record) -> None:
    write_text(path, json.dumps(content, indent=1) + "\n")
