"""Files that are written whole or not at all."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any


def write(path: Path, fill: Callable[[Path], Any]) -> None:
    """Let `fill` write a file beside `path`, and put it in its place once it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.stem[:100]}.{secrets.token_hex(8)}{path.suffix}")
    try:
        fill(part)
        with part.open("r+b") as complete:
            os.fsync(complete.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes) -> None:
    """Write bytes."""
    write(path, lambda part: part.write_bytes(content))


def write_text(path: Path, content: str) -> None:
    """Write text."""
    write_bytes(path, content.encode())


def write_json(path: Path, content: Any) -> None:
    """Write plain data as readable JSON."""
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
