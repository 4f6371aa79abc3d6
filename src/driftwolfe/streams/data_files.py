"""Published data files: searched for, downloaded into a cache by pooch, and checked."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import time
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten

from driftwolfe.terminal import Output

#: Environment variables: the data folder, the cache folder, and whether downloads are forbidden.
DATA_VARIABLE = "DRIFTWOLFE_DATA"
CACHE_VARIABLE = "DRIFTWOLFE_CACHE"
OFFLINE_VARIABLE = "DRIFTWOLFE_OFFLINE"

#: Seconds to wait for a connection and for each next part; seconds for the whole download.
CONNECT_SECONDS, TOTAL_SECONDS = 10.0, 120.0
MAX_ARCHIVE_BYTES = 16 * 2**20  # of a zip archive, at most

Folder = str | os.PathLike[str]


class DataUnavailable(FileNotFoundError):  # noqa: N818 - named like FileNotFoundError
    """A published file is not on this machine and could not be downloaded.

    Examples
    --------
    >>> issubclass(DataUnavailable, FileNotFoundError)
    True
    """


def named_folder(folder: Folder | None = None) -> Path | None:
    """Return the data folder given as an argument or by DRIFTWOLFE_DATA, or None."""
    given = folder if folder is not None else os.environ.get(DATA_VARIABLE)
    return Path(given) if given else None


def cache_folder() -> Path | None:
    """Return $DRIFTWOLFE_CACHE, else ``driftwolfe`` in the system's cache; None without a home."""
    if given := os.environ.get(CACHE_VARIABLE):
        return Path(given).expanduser()
    import pooch  # here and below: slow to import, and seldom needed

    try:
        folder: Path = pooch.os_cache("driftwolfe")
    except RuntimeError:  # no home; older versions of platformdirs return "~/..." instead
        return None
    return folder if folder.is_absolute() else None


def offline() -> bool:
    """Return whether DRIFTWOLFE_OFFLINE forbids downloads."""
    return os.environ.get(OFFLINE_VARIABLE, "") not in ("", "0")


def _remedy() -> str:
    """How to name a folder, on the command line or in a program."""
    way = "set --data" if Output.command_line else "pass data=..."
    return f"{way}, or set {DATA_VARIABLE}"


@dataclass(frozen=True, slots=True)
class DataFile:
    """A published file, read from the named data folder, or else from the cache or its publisher."""

    path: str  # in the folder, as it is or compressed with .gz after its name
    size: int  # of its content, in bytes
    sha256: str  # of its content
    source: str  # the page where people get it
    url: str  # where programs get it
    member: str | None = None  # its name in the zip archive at `url`, if that is one

    def read(self, folder: Folder | None = None) -> bytes:
        """Return the content, checked by its checksum; never unpacks more than the known size."""
        named = named_folder(folder)
        found = self.find(folder)
        if found is None and named is not None:
            place, holds = named.resolve(), f"neither {self.path} nor {self.path}.gz is in"
            raise FileNotFoundError(
                (f"{holds} {place}" if place.is_dir() else f"there is no folder {place}")
                + f"; {_remedy()}, to the folder that holds {self.path}[.gz] from {self.source}"
            )
        path = found or self._download()
        try:
            with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
                content = file.read(self.size + 1)
            actual = hashlib.sha256(content).hexdigest()
            if actual == self.sha256:
                return content
            size = f"more than {self.size}" if len(content) > self.size else str(len(content))
            fault = (
                f"is not the published file: {size} bytes of content with SHA-256 {actual}, "
                f"expected {self.size} bytes with {self.sha256}"
            )
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            fault = f"cannot be unpacked ({error})"
        again = f"get it again from {self.source}"
        remedy = again if named else f"delete {path}, and it is downloaded again"
        raise ValueError(f"{path} {fault}; it is truncated or altered: {remedy}")

    def find(self, folder: Folder | None = None) -> Path | None:
        """Return the file's place on this machine, or None; reads and downloads nothing."""
        place = named_folder(folder) or cache_folder()
        if place is None:
            return None
        names = (self.path, f"{self.path}.gz")
        return next((place / name for name in names if (place / name).is_file()), None)

    def _download(self) -> Path:
        """Download the file into the cache; return its place there."""
        folder = cache_folder()
        try:
            if offline():
                raise OSError(f"{OFFLINE_VARIABLE} forbids it")
            if folder is None:
                raise OSError("this user has no home folder")
            import pooch

            pooch.get_logger().setLevel("WARNING")  # by default it prints every download
            target = folder / self.path
            place = {"fname": target.name, "path": target.parent}
            # pooch writes a temporary file, checks it and renames it: no kill leaves half a file.
            pooch.retrieve(self.url, self.sha256, **place, downloader=self._write_download)
            return target
        except Exception as error:  # no connection, a broken archive, a read-only cache, ...
            message, end = f"download of {self.path} failed: ", f"; set {DATA_VARIABLE}"
            why = str(error).removeprefix("<urlopen error ").removesuffix(">")
            message += shorten(why, 100 - len(message) - len(end), placeholder="...") + end
            unavailable = DataUnavailable(message)
            unavailable.add_note(
                f"{self.path} is not in the cache folder {folder} (which {CACHE_VARIABLE} sets), and "
                f"downloading {self.url} failed: {type(error).__name__}: {error}; {_remedy()}, to the "
                f"folder of {self.path}[.gz] from {self.source}, or use the synthetic twin"
            )
        raise unavailable

    def _write_download(self, url: str, target: str, _pooch: object) -> None:
        """Download the content into a file; pooch calls this."""
        content = downloaded(url, MAX_ARCHIVE_BYTES if self.member else self.size + 1)
        if self.member:  # unpacked in memory: no name leads elsewhere
            with zipfile.ZipFile(io.BytesIO(content)).open(self.member) as packed:
                content = packed.read(self.size + 1)
        Path(target).write_bytes(content)


def downloaded(url: str, limit: int) -> bytes:
    """Return the first `limit` bytes of a file; pooch's own downloader limits neither size nor time."""
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    end, content = time.monotonic() + TOTAL_SECONDS, bytearray()
    request = Request(url, headers={"User-Agent": "driftwolfe"})
    try:
        opened = urlopen(request, timeout=CONNECT_SECONDS)
    except HTTPError as error:
        error.close()  # it holds the connection
        raise
    with opened as answer:
        if (answer.length or 0) > limit:
            raise OSError(f"the server announces {answer.length} bytes, more than {limit}")
        while part := answer.read1(min(2**16, limit - len(content))):
            content += part
            if time.monotonic() > end:
                raise OSError(f"it took longer than {TOTAL_SECONDS:g} seconds")
    return bytes(content)
