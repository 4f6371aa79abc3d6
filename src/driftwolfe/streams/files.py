"""Data files that must be exactly the published ones."""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from dataclasses import dataclass
from pathlib import Path

from driftwolfe.streams import cache

#: Names the folder with the data, where no function is told it.
ENVIRONMENT_VARIABLE = "DRIFTWOLFE_DATA"
#: Forbids downloads, unless empty or 0.
OFFLINE_VARIABLE = "DRIFTWOLFE_OFFLINE"

Folder = str | os.PathLike[str]


class DataUnavailable(FileNotFoundError):  # noqa: N818 - says what is, like FileNotFoundError
    """A published file is not on this machine and could not be downloaded.

    Not raised where a folder was named that does not hold it: that is a FileNotFoundError, and surely
    a mistake.

    Examples
    --------
    >>> issubclass(DataUnavailable, FileNotFoundError)
    True
    """


@dataclass(frozen=True, slots=True)
class DataFile:
    """A published file, sought in a folder, else in the cache, else downloaded.

    Where a folder is named, by an argument or by the environment variable DRIFTWOLFE_DATA, the file
    is sought only there. Otherwise it is taken from the cache, or downloaded into it.

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
    url
        Where programs get it.
    member
        Its name in the zip archive at `url`; None where `url` is the file itself.
    """

    path: str
    size: int
    sha256: str
    source: str
    url: str
    member: str | None = None

    def read(self, folder: Folder | None = None) -> bytes:
        """Return the content, checked to be what was published.

        Never unpacks more than the known size, whatever a compressed file claims to hold.
        """
        found = self.find(folder)
        if found is None:
            return self._fetch(_named(folder))
        content = _content(found, self.size + 1)
        if strange := self._fault(content):
            remedy = (
                f"delete {found}, and it is downloaded again"
                if _named(folder) is None
                else f"get it again from {self.source}"
            )
            raise ValueError(f"{found} {strange}; it is truncated or altered: {remedy}")
        return content

    def find(self, folder: Folder | None = None) -> Path | None:
        """Return where the file lies on this machine, or None.

        Its content is not looked at, and nothing is downloaded.
        """
        place = _named(folder) or cache.folder()
        if place is None:
            return None
        names = (self.path, f"{self.path}.gz")
        return next((place / name for name in names if (place / name).is_file()), None)

    def _fetch(self, named: Path | None) -> bytes:
        """The content, downloaded and put into the cache; an error where a folder was named."""
        if named is not None:
            raise FileNotFoundError(
                f"neither {self.path} nor {self.path}.gz is in {named.resolve()}; pass data=..., "
                f"or set {ENVIRONMENT_VARIABLE}, to the folder that holds it; the file comes from "
                f"{self.source}"
            )
        if os.environ.get(OFFLINE_VARIABLE, "") not in ("", "0"):
            raise self._unavailable(f"{OFFLINE_VARIABLE} forbids downloading it")
        from driftwolfe.streams import download  # the web is slow to import and seldom needed

        try:
            content = download.content(self.url, self.size + 1, self.member)
        except OSError as error:
            raise self._unavailable(f"downloading {self.url} failed: {error}") from error
        if strange := self._fault(content):
            raise self._unavailable(f"what {self.url} sends {strange}")
        try:
            cache.keep(self.path, content)
        except OSError as error:
            raise self._unavailable(
                f"the download cannot be kept ({error}; {cache.VARIABLE} names another cache folder)"
            ) from error
        return content

    def _fault(self, content: bytes) -> str:
        """What is wrong with the content, or nothing."""
        actual = hashlib.sha256(content).hexdigest()
        if actual == self.sha256:
            return ""
        shown = f"more than {self.size}" if len(content) > self.size else str(len(content))
        return (
            f"is not the published file: {shown} bytes of content with SHA-256 {actual}, "
            f"expected {self.size} bytes with {self.sha256}"
        )

    def _unavailable(self, reason: str) -> DataUnavailable:
        return DataUnavailable(
            f"{self.path} is not in the cache folder {cache.folder()}, and {reason}; pass data=..., or "
            f"set {ENVIRONMENT_VARIABLE}, to the folder that holds {self.path}[.gz] from "
            f"{self.source}, or use the synthetic twin in driftwolfe.streams"
        )


def _named(folder: Folder | None) -> Path | None:
    """The folder that an argument or the environment names."""
    given = folder if folder is not None else os.environ.get(ENVIRONMENT_VARIABLE)
    return Path(given) if given else None


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
            f"{path} cannot be unpacked ({error}): it is truncated or not a gzip file; "
            "delete it and get it again"
        ) from error
