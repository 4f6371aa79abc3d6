"""Data files that must be exactly the published ones."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from dataclasses import dataclass
from pathlib import Path

#: Names the folder with the data, where no function is told it.
ENVIRONMENT_VARIABLE = "DRIFTWOLFE_DATA"

Folder = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class DataFile:
    """A published file.

    Attributes
    ----------
    path
        Where it lies in the data folder, as itself or compressed with ``.gz`` after its name.
    size
        Bytes of its content.
    sha256
        Of its content.
    source
        Where people get it.
    """

    path: str
    size: int
    sha256: str
    source: str

    def read(self, folder: Folder | None = None) -> bytes:
        """Return the content, checked to be what was published.

        Looks in `folder`, else in the one that the environment variable DRIFTWOLFE_DATA names.
        Never unpacks more than the known size, whatever a compressed file claims to hold.
        """
        found = self.find(folder)
        content = _content(found, self.size + 1)
        actual = hashlib.sha256(content).hexdigest()
        if actual != self.sha256:
            shown = f"more than {self.size}" if len(content) > self.size else str(len(content))
            raise ValueError(
                f"{found} is not the published file: {shown} bytes of content with SHA-256 {actual}, "
                f"expected {self.size} bytes with {self.sha256}; it is truncated or altered, "
                f"get it again from {self.source}"
            )
        return content

    def find(self, folder: Folder | None = None) -> Path:
        """Return where the file lies, or raise `FileNotFoundError` saying where it was sought."""
        given = folder if folder is not None else os.environ.get(ENVIRONMENT_VARIABLE)
        if not given:
            raise FileNotFoundError(
                f"no folder to look for {self.path} in: pass data=..., or set the environment "
                f"variable {ENVIRONMENT_VARIABLE} to the folder that holds {self.path}[.gz]; "
                f"the file comes from {self.source}"
            )
        for name in (self.path, f"{self.path}.gz"):
            if (candidate := Path(given) / name).is_file():
                return candidate
        raise FileNotFoundError(
            f"neither {self.path} nor {self.path}.gz is in {Path(given).resolve()}; pass data=..., "
            f"or set {ENVIRONMENT_VARIABLE}, to the folder that holds it; the file comes from "
            f"{self.source}"
        )


def _content(path: Path, most: int) -> bytes:
    """The first `most` bytes of a file's content, unpacked if its name ends in .gz."""
    if path.suffix != ".gz":
        with path.open("rb") as plain:
            return plain.read(most)
    try:
        with gzip.open(path, "rb") as packed:
            return packed.read(most)
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(
            f"{path} cannot be unpacked ({error}): it is truncated or not a gzip file; get it again"
        ) from error
