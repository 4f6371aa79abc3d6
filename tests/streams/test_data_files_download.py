"""Downloads from a real server on this machine: good, broken, endless, or none at all."""

from __future__ import annotations

import hashlib
import io
import socket
import threading
import time
import zipfile
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from driftwolfe.streams import DataUnavailable, datasets
from streams.test_data_files import FILE

CONTENT = b"1\t2\t3\n" * 5000
HUGE = 10 * len(CONTENT)


def archive(**members):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in members.items():
            opened.writestr(name, content)
    return packed.getvalue()


GOOD_ZIP = archive(**{"top/where.txt": CONTENT, "top/README": b"hello", "../../evil": b"evil"})


def send(handler, body, length, status=200, **headers):
    handler.send_response(status)
    for name, value in headers.items() if length is None else [("Content-Length", length)]:
        handler.send_header(name, str(value))
    handler.end_headers()
    handler.wfile.write(body)


def endless(handler):
    send(handler, b"", None)
    while True:
        handler.wfile.write(CONTENT)


def dripping(handler):
    send(handler, b"", len(CONTENT))
    for byte in CONTENT:
        handler.wfile.write(bytes([byte]))
        time.sleep(0.02)


ANSWERS = {
    "/good": lambda h: send(h, CONTENT, len(CONTENT)),
    "/no-length": lambda h: send(h, CONTENT, None),
    "/redirect": lambda h: send(h, b"", None, 302, Location="/good"),
    "/truncated": lambda h: send(h, CONTENT[:-100], len(CONTENT)),
    "/wrong": lambda h: send(h, CONTENT.replace(b"3", b"4"), len(CONTENT)),
    "/long": lambda h: send(h, CONTENT * 10, HUGE),
    "/says-huge": lambda h: send(h, CONTENT, 10**15),
    "/says-little": lambda h: send(h, CONTENT * 10, 10),
    "/endless": endless,
    "/dripping": dripping,
    "/silent": lambda h: time.sleep(1.0),
    "/not-http": lambda h: h.wfile.write(b"what?\r\n\r\n"),
    "/good.zip": lambda h: send(h, GOOD_ZIP, len(GOOD_ZIP)),
    "/cut.zip": lambda h: send(h, GOOD_ZIP[:-40], len(GOOD_ZIP) - 40),
    "/bent.zip": lambda h: send(h, GOOD_ZIP[:60] + bytes(20) + GOOD_ZIP[80:], len(GOOD_ZIP)),
    "/other.zip": lambda h: send(h, archive(**{"../top/where.txt": CONTENT, "a": b""}), None),
    "/wrong.zip": lambda h: send(h, archive(**{"top/where.txt": CONTENT[1:]}), None),
    "/bomb.zip": lambda h: send(h, archive(**{"top/where.txt": bytes(50_000_000)}), None),
}


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked += 1
        if self.path not in ANSWERS:
            self.send_error(404)
            return
        with suppress(BrokenPipeError, ConnectionResetError):  # the client has had enough
            ANSWERS[self.path](self)

    def log_message(self, *args):
        pass


@contextmanager
def serving():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.asked = 0
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="module")
def server():
    with serving() as running:
        yield running


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The cache; nothing else is set, and no proxy stands between."""
    for name in ("DRIFTWOLFE_DATA", "DRIFTWOLFE_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DRIFTWOLFE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "*")
    return tmp_path / "cache"


def data_file(server, path):
    url = f"http://127.0.0.1:{server.server_port}{path}"
    member = "top/where.txt" if path.endswith(".zip") else None
    known = {"size": len(CONTENT), "sha256": hashlib.sha256(CONTENT).hexdigest()}
    return replace(FILE, url=url, member=member, **known)


def files(folder):
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )


@pytest.mark.parametrize("path", ["/good", "/no-length", "/redirect", "/good.zip"])
def test_a_good_file_is_downloaded_once(server, folder, path):
    file = data_file(server, path)
    assert file.find() is None
    assert file.read() == CONTENT
    assert files(folder) == ["some/where.txt"]
    assert file.find() is not None
    asked = server.asked
    assert file.read() == CONTENT
    assert server.asked == asked


def mismatch(content):
    """What is said of a download of other content, of which no more is read than needed."""
    return f"does not match the known hash: .* got {hashlib.sha256(content).hexdigest()}"


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/missing", "HTTP Error 404: Not Found"),
        ("/truncated", mismatch(CONTENT[:-100])),
        ("/wrong", mismatch(CONTENT.replace(b"3", b"4"))),
        ("/long", f"announces {HUGE} bytes, more than {len(CONTENT) + 1}"),
        ("/says-huge", "announces 1000000000000000 bytes"),
        ("/says-little", mismatch(CONTENT[:10])),
        ("/endless", mismatch((CONTENT * 2)[: len(CONTENT) + 1])),
        ("/not-http", "BadStatusLine"),
        ("/cut.zip", "BadZipFile: File is not a zip file"),
        ("/bent.zip", "error: Error|BadZipFile"),
        ("/other.zip", "no item named 'top/where.txt'"),
        ("/wrong.zip", mismatch(CONTENT[1:])),
        ("/bomb.zip", mismatch(bytes(len(CONTENT) + 1))),
    ],
)
def test_a_bad_download_leaves_nothing_and_says_what_to_do(server, folder, path, why):
    file = data_file(server, path)
    with pytest.raises(DataUnavailable, match=why) as refusal:
        file.read()
    assert isinstance(refusal.value, FileNotFoundError)
    line, (message,) = str(refusal.value), refusal.value.__notes__
    assert line.startswith("download of some/where.txt failed: ") and len(line) <= 100
    assert line.endswith("; set DRIFTWOLFE_DATA") and "\n" not in line
    assert refusal.value.__cause__ is None is refusal.value.__context__  # no second traceback
    assert message.startswith(f"some/where.txt is not in the cache folder {folder}")
    assert file.url in message
    for remedy in ("pass data=...", "DRIFTWOLFE_DATA", "https://example.org", "synthetic twin"):
        assert remedy in message
    assert files(folder) == []


def test_patience_and_sizes_end(server, folder, monkeypatch):
    monkeypatch.setattr(datasets, "CONNECT_SECONDS", 0.1)
    with pytest.raises(DataUnavailable, match="timed out"):
        data_file(server, "/silent").read()
    monkeypatch.setattr(datasets, "TOTAL_SECONDS", 0.1)
    with pytest.raises(DataUnavailable, match=r"longer than 0\.1 seconds"):
        data_file(server, "/dripping").read()
    monkeypatch.setattr(datasets, "MAX_ARCHIVE_BYTES", len(GOOD_ZIP) - 1)
    with pytest.raises(DataUnavailable, match="announces"):
        data_file(server, "/good.zip").read()


def test_no_server_and_no_cache(server, folder):
    folder.write_bytes(b"a file where the folder should be")
    with pytest.raises(DataUnavailable, match=r"DRIFTWOLFE_CACHE sets.*Error: \[Errno .*cache"):
        data_file(server, "/good").read()
    folder.unlink()
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/good"
        with pytest.raises(DataUnavailable, match="Connection refused"):
            replace(data_file(server, "/good"), url=url).read()


def test_nothing_is_downloaded_where_a_folder_is_named_or_downloads_are_forbidden(
    server, folder, tmp_path, monkeypatch
):
    file, asked = data_file(server, "/good"), server.asked
    with pytest.raises(FileNotFoundError, match="neither"):
        file.read(tmp_path)
    monkeypatch.setenv("DRIFTWOLFE_OFFLINE", "1")
    with pytest.raises(DataUnavailable, match="DRIFTWOLFE_OFFLINE"):
        file.read()
    monkeypatch.setenv("DRIFTWOLFE_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="neither"):
        file.read()
    assert server.asked == asked
    monkeypatch.delenv("DRIFTWOLFE_DATA")
    monkeypatch.setenv("DRIFTWOLFE_OFFLINE", "0")
    assert file.read() == CONTENT
