"""Downloads that never take more than they were told to."""

from __future__ import annotations

import io
import time
import zipfile
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

#: Seconds to wait for a connection, and for each next part of the content.
PATIENCE = 10.0
#: Seconds that a whole download may take.
LONGEST = 120.0
#: Bytes of an archive, at most.
LARGEST_ARCHIVE = 16 * 2**20

_PART = 2**16


def content(url: str, most: int, member: str | None = None) -> bytes:
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
