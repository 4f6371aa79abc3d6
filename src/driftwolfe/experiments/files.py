"""Files that are written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any


def write(path: Path, fill: Callable[[Path], Any]) -> None:
    """Let `fill` write a file beside `path`, and put it in its place once it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        fill(part)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_json(path: Path, content: Any) -> None:
    """Write plain data as readable JSON."""
    text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
    write(path, lambda part: part.write_text(text, encoding="utf-8"))
