"""Files of data sets: where they are looked for, and how they are downloaded."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import sys
import tempfile
import time
import zipfile
import zlib
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

#: Names the cache folder, where it should not be the usual one.
VARIABLE = "DRIFTWOLFE_CACHE"


def default_folder() -> Path | None:
    """Return the cache folder, whether or not it exists; None for a user without a home.

    It is what the environment variable DRIFTWOLFE_CACHE names, else ``driftwolfe`` where the system
    keeps caches: ``$XDG_CACHE_HOME`` or ``~/.cache``, ``~/Library/Caches`` on macOS,
    ``%LOCALAPPDATA%`` on Windows.
    """
    if given := os.environ.get(VARIABLE):
        return Path(given).expanduser()
    system = Path(os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME", ""))
    if system.is_absolute():
        return system / "driftwolfe"
    usual = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
    try:
        return Path(usual).expanduser() / "driftwolfe"
    except RuntimeError:
        return None


def keep(path: str, content: bytes) -> None:
    """Write a file into the cache, all of it or nothing.

    The content goes to a file of its own name beside the target, which then takes the target's place
    at once: neither a kill nor another process that keeps the same file can leave half of it.
    """
    place = default_folder()
    if place is None:
        raise OSError("this user has no home folder")
    target = place / path
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(suffix=".part", prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as part:
            part.write(content)
            part.flush()
            os.fsync(handle)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


#: Seconds to wait for a connection, and for each next part of the content.
PATIENCE = 10.0
#: Seconds that a whole download may take.
LONGEST = 120.0
#: Bytes of an archive, at most.
LARGEST_ARCHIVE = 16 * 2**20

_PART = 2**16


def downloaded(url: str, most: int, member: str | None = None) -> bytes:
    """Return the first `most` bytes of a file's content.

    Parameters
    ----------
    url
        The file, or the zip archive that holds it.
    most
        Bytes to return at most; a file that is longer is refused before it is downloaded, where the
        server says so.
    member
        The file's name in the archive. It is unpacked in memory and only under exactly this name,
        so no name in an archive can lead to another place.

    Raises
    ------
    OSError
        With one sentence on what went wrong.
    """
    if member is None:
        return _download(url, most)
    return _unpacked(_download(url, LARGEST_ARCHIVE), member, most)


def _download(url: str, most: int) -> bytes:
    """What the server sends, at most so many bytes."""
    try:
        return _received(Request(url, headers={"User-Agent": "driftwolfe"}), most)
    except HTTPError as error:
        error.close()
        raise OSError(f"the server answers {error.code} {error.reason}") from error
    except URLError as error:
        raise OSError(f"no connection: {error.reason}") from error
    except HTTPException as error:
        raise OSError(f"the answer is not HTTP: {error!r}") from error


def _received(request: Request, most: int) -> bytes:
    end = time.monotonic() + LONGEST
    received = io.BytesIO()
    with urlopen(request, timeout=PATIENCE) as answer:
        if (answer.length or 0) > most:
            raise OSError(f"the server announces {answer.length} bytes, more than {most}")
        while received.tell() < most:
            part = answer.read1(min(_PART, most - received.tell()))
            if not part:
                break
            received.write(part)
            if time.monotonic() > end:
                raise OSError(f"it took longer than {LONGEST:g} seconds")
    return received.getvalue()


def _unpacked(archive: bytes, member: str, most: int) -> bytes:
    """The first bytes of the file of that name in a zip archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened, opened.open(member) as packed:
            return packed.read(most)
    except KeyError:
        raise OSError(f"the archive holds no {member}") from None
    except Exception as error:  # a broken archive ends in one of many, from many modules
        raise OSError(f"the archive of {len(archive)} bytes cannot be unpacked: {error}") from error


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
        place = _named(folder) or default_folder()
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
        # the web is slow to import and seldom needed

        try:
            content = downloaded(self.url, self.size + 1, self.member)
        except OSError as error:
            raise self._unavailable(f"downloading {self.url} failed: {error}") from error
        if strange := self._fault(content):
            raise self._unavailable(f"what {self.url} sends {strange}")
        try:
            keep(self.path, content)
        except OSError as error:
            raise self._unavailable(
                f"the download cannot be kept ({error}; {VARIABLE} names another cache folder)"
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
            f"{self.path} is not in the cache folder {default_folder()}, and {reason}; pass data=..., or "
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
