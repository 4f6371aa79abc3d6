"""The service of examples/service: kills, duplicates, erasure, limits, slow clients, and nonsense."""

import asyncio
import http.client
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote
from zlib import crc32

import msgspec
import pytest

from driftwolfe.estimators import Recommender
from driftwolfe.storage import InMemory, read_archive
from reliability.children import python, same_copy

if os.name != "posix":
    pytest.skip("the service runs on systems with SIGKILL and locks", allow_module_level=True)

FOLDER = Path(__file__).parents[1] / "examples" / "service"
sys.path.insert(0, str(FOLDER))
import serve  # noqa: E402
from store import Store  # noqa: E402

sys.path.remove(str(FOLDER))


class Server:
    """The service in a process of its own; it says where it listens."""

    def __init__(self, folder, **settings):
        given = {f"SERVE_{name.upper()}": str(value) for name, value in settings.items()}
        self.settings = same_copy(SERVE_FOLDER=str(folder), SERVE_PORT="0", **given)
        self.output = folder.with_name(f"{folder.name}.output")
        self.start()

    def start(self):
        command = [sys.executable, FOLDER / "serve.py"]
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(command, env=self.settings, stderr=output)
        while not (
            found := re.search(r"running on http://127.0.0.1:(\d+)", self.output.read_text())
        ):
            assert self.process.poll() is None, self.output.read_text()
            time.sleep(0.02)
        self.port = int(found[1])

    def ask(self, method, path, content=None, connection=None):
        own = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        body = content if isinstance(content, bytes | None) else json.dumps(content).encode()
        try:
            own.request(method, path, body)
            answer = own.getresponse()
            text = answer.read()
        finally:
            if connection is None:
                own.close()
        return answer.status, json.loads(text) if text[:1] in (b"{", b"[") else text.decode()

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(30)


@contextmanager
def serving(folder, **settings):
    server = Server(folder, **settings)
    try:
        yield server
    finally:
        server.stop(signal.SIGKILL)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("service") / "data", patience=1, connections=60) as own:
        yield own


def stream(first, count, name=""):
    """Events of users who come and go."""
    draw = random.Random(f"{name}{first}")
    return [
        {
            "id": f"{name}{number}",
            "user": f"user {draw.randrange(number // 20, number // 20 + 60)}",
            "item": f"{draw.randrange(97)}",
        }
        for number in range(first, first + count)
    ]


def learned_from(events, users):
    """The model that learned events in turn, each once, and forgot users too many: written down once more."""
    model, latest, seen = Recommender(), OrderedDict(), set()
    for event in events:
        if event["id"] in seen:
            continue
        seen.add(event["id"])
        model.partial_fit([(event["user"], event["item"])])
        latest.pop(event["user"], None)
        latest[event["user"]] = True
        if len(latest) > users:
            model.forget(latest.popitem(last=False)[0])
    return model


def send(server, sent, acknowledged, done):
    """Send batches, each until it is answered, and until it is done; note what was sent, and the ids answered."""
    while not done.is_set():
        batch = stream(len(sent), 20, f"{id(sent)} ")
        sent += batch
        while True:
            with suppress(OSError, http.client.HTTPException):
                status, answer = server.ask("POST", "/events", batch)
                assert status == 200, answer
                acknowledged += [event["id"] for event in batch]
                break
            time.sleep(0.02)


def content(saved):
    """What the bytes of a model hold; the order of the metadata in them is left to chance."""
    archive = read_archive(InMemory(saved))
    return archive.settings, {name: each.tobytes() for name, each in archive.arrays.items()}


def logged(folder):
    """The events in the log, read without the code of the service."""
    lines = [
        line for path in sorted(folder.glob("log-*")) for line in path.read_bytes().splitlines()
    ]
    assert all(int(line[:8], 16) == crc32(line[9:]) for line in lines)
    names = ("id", "user", "item", "weight")
    return [dict(zip(names, each, strict=True)) for line in lines for each in json.loads(line[9:])]


def ask(app, method, path, content=b"", headers=(), client="1.2.3.4"):
    """What the application answers, without a server: the status and the content."""
    path, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": list(headers),
        "client": (client, 1),
    }
    sent = []

    async def receive():
        return {"type": "http.request", "body": content}

    async def take(message):
        sent.append(message)

    asyncio.run(app(scope, receive, take))
    return sent[0]["status"], json.loads(sent[1].get("body") or "null")


def opened(folder):
    store = Store(folder, 10, 10, 10**6)
    return store, serve.make_app(serve.Settings(), store)


def close(store):
    os.close(store.open_folder)
    os.close(store.log)


@pytest.mark.parametrize(
    ("kills", "writers", "every"),
    [
        (2, 1, 400),
        pytest.param(20, 1, 400, marks=pytest.mark.slow),
        pytest.param(20, 4, 10**9, marks=pytest.mark.slow),
    ],
)
def test_kills_lose_and_double_nothing(tmp_path, kills, writers, every):
    users, draw, done = 80, random.Random(kills + writers), threading.Event()
    sent, acknowledged = [[] for _ in range(writers)], []

    def read():
        while not done.is_set():
            with suppress(OSError, http.client.HTTPException):
                server.ask("GET", f"/users/user%20{draw.randrange(90)}/recommendations?n=3")
            time.sleep(0.01)

    with serving(tmp_path / "data", users=users, every=every) as server:
        threads = [
            threading.Thread(target=send, args=(server, own, acknowledged, done)) for own in sent
        ]
        threads.append(threading.Thread(target=read))
        for thread in threads:
            thread.start()
        for _ in range(kills):
            before = len(acknowledged)
            while len(acknowledged) < before + 100:
                time.sleep(0.005)
            time.sleep(draw.uniform(0.0, 0.4))
            server.stop(signal.SIGKILL)
            server.start()
        done.set()
        for thread in threads:
            thread.join()
        order = sent[0] if writers == 1 else logged(tmp_path / "data")
        server.stop()
    assert len(acknowledged) == len(set(acknowledged)) >= 100 * kills
    assert set(acknowledged) == {event["id"] for own in sent for event in own}
    assert set(acknowledged) == {event["id"] for event in order}
    model = learned_from(order, users)
    assert model.n_events_ == len(acknowledged)
    (saved,) = (path.read_bytes() for path in (tmp_path / "data").glob("model-*"))
    assert content(saved) == content(model.to_bytes())


def test_one_or_many_events_are_learned_once(server):
    tea = {"id": "once 1", "user": "ann", "item": "tea"}
    jam = {"id": "once 2", "user": "ann", "item": "jam", "weight": 2}
    bob = {"id": "once 3", "user": "bob/ünï?", "item": "tea"}
    assert server.ask("POST", "/events", tea) == (200, {"learned": 1, "known": 0})
    assert server.ask("POST", "/events", [tea, jam, jam, bob]) == (200, {"learned": 2, "known": 2})
    assert server.ask("POST", "/events", [tea, jam]) == (200, {"learned": 0, "known": 2})
    path = f"/users/{quote(bob['user'], safe='')}/recommendations"
    status, answer = server.ask("GET", f"{path}?n=1")
    assert (status, answer["items"]) == (200, ["jam"]) and 0.0 < answer["scores"][0] <= 1.0
    assert "jam" not in server.ask("GET", f"{path}?n=9&exclude=jam&exclude=x")[1]["items"]
    status, answer = server.ask("GET", "/items/tea/similar")
    assert status == 200 and answer == {"items": ["jam"]}
    assert server.ask("GET", "/items/tea/similar?exclude=jam&n=1") == (200, {"items": []})
    assert server.ask("GET", "/items/nobody%20has%20it/similar") == (200, {"items": []})
    assert server.ask("GET", "/health")[0] == server.ask("GET", "/ready")[0] == 200
    told = server.ask("GET", "/metrics")[1]
    for line in (
        'service_events_total{outcome="learned"} ',
        'service_events_total{outcome="known"} ',
        'service_seconds_bucket{le="0.025",route="recommendations"} ',
        "service_alarms 0.0",
        'service_expert_weight{expert="near pairs",seen="64"} 0.2',
    ):
        assert line in told


def test_an_erased_user_is_in_no_file(tmp_path):
    def held():
        return b"".join(path.read_bytes() for path in tmp_path.iterdir())

    store, app = opened(tmp_path)
    events = [{"id": f"{k} by secret", "user": f"secret {k}", "item": "tea"} for k in range(3)]
    body = json.dumps(events).encode()
    assert ask(app, "POST", "/events", body)[1]["learned"] == 3
    assert b"secret 1" in held()
    for k in range(2):
        assert ask(app, "DELETE", f"/users/secret {k}")[0] == 204
    assert b"secret 2" in held() and not re.search(rb"secret 0|secret 1|by secret", held())
    assert store.model.users_ == ["secret 2"]
    close(store)
    store, app = opened(tmp_path)
    assert store.model.users_ == ["secret 2"]
    assert ask(app, "POST", "/events", body)[1] == {"learned": 0, "known": 3}
    assert b"secret 1" in held()  # the log has what came
    for _ in range(2):  # the second time, nothing is left
        assert ask(app, "DELETE", "/users/secret 2")[0] == 204
        assert b"secret" not in held()
    close(store)
    assert opened(tmp_path)[0].model.n_users_ == 0


POISON = [
    b"", b"{", b"[]", b"null", b"3", b'"a"', b"[" * 100_000, b"[{" * 50_000, b"\xff\xfe", b"9" * 10_000,
    b'{"id":"1","user":"a"}', b'{"id":1,"user":"a","item":"b"}', b'{"id":"","user":"a","item":"b"}',
    b'{"id":"1","user":"a","item":""}', b'{"id":"1","user":"a","item":"b","weight":-1}',
    b'{"id":"1","user":"a","item":"b","weight":1e999}', b'{"id":"1","user":"a","item":"b","weight":NaN}',
    b'{"id":"1","user":"a","item":"b","weight":"1"}', b'{"id":"1","user":"a","item":"b","more":1}',
    b'{"id":"1","user":"a","item":"\\ud800"}', b'{"id":"1","user":"' + 129 * b"a" + b'","item":"b"}',
    b'{"id":"1","user":["a"],"item":"b"}', b'{"id":"1","user":"a\\n","item":"b"}',
    b'[{"id":"1","user":"a","item":"b"},{}]',
    b"[" + b",".join([b'{"id":"1","user":"a","item":"b"}'] * 1001) + b"]",
]  # fmt: skip


def test_nonsense_is_refused_with_one_sentence(server):
    events = server.ask("GET", "/metrics")[1].partition('outcome="learned"}')[2].partition("\n")[0]
    draw, whole = random.Random(0), json.dumps(stream(0, 3)).encode()
    for _ in range(150):
        where = draw.randrange(len(whole))
        broken = (
            whole[:where] + bytes([draw.randrange(256)]) * draw.randrange(3) + whole[where + 2 :]
        )
        with suppress(ValueError):
            json.loads(broken)
            continue
        POISON.append(broken)
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)) as connection:
        paths = [
            "/users/a/recommendations?" + q
            for q in ("n=0", "n=101", "n=x", "n=", "m=1", "exclude=")
        ]
        paths += ["/users/a/recommendations?n=" + 5000 * "9", f"/users/{129 * 'a'}/recommendations"]
        paths += ["/", "/users", "/users//recommendations", "/items/a", "/events", "/%ff%0a"]
        asked = [("POST", "/events", each) for each in POISON] + [
            ("GET", path, None) for path in paths
        ]
        asked += [("DELETE", "/users/", None), ("PUT", "/events", b"{}"), ("GET", "/users/a", None)]
        for each in asked:
            status, answer = server.ask(*each, connection=connection)
            assert 400 <= status < 500, (each, status, answer)
            assert list(answer) == ["error"] and 3 <= len(answer["error"]) <= 200, answer
            assert "\n" not in answer["error"] and "Traceback" not in answer["error"]
    for request in (
        b"nonsense\r\n\r\n", b"GET /health HTTP/9.9\r\n\r\n", b"GET /\xff HTTP/1.1\r\nhost: a\r\n\r\n",
        b"POST /events HTTP/1.1\r\ncontent-length: x\r\n\r\n", b"\x16\x03\x01" + 100 * b"\0",
        b"GET / HTTP/1.1\r\n" + b"a\nb: \r\n" * 9 + b"\r\n",
    ):  # fmt: skip
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as own:
            own.sendall(request)
            assert own.recv(1000).startswith(b"HTTP/1.1 400 "), request
    assert f'outcome="learned"}}{events}\n' in server.ask("GET", "/metrics")[1]
    assert all(isinstance(json.loads(line), str) for line in server.output.read_text().splitlines())


def test_slow_clients_hold_nobody_up_and_are_cut_off(server):
    slow = [socket.create_connection(("127.0.0.1", server.port), timeout=20) for _ in range(50)]
    for number, own in enumerate(slow):
        head = b"POST /events HTTP/1.1\r\nhost: a\r\ncontent-length: 900\r\n\r\n[{"
        own.sendall(head[: (len(head), 20, 0)[number % 3]])
    times = []
    for _ in range(20):
        begin = time.perf_counter()
        assert server.ask("GET", "/users/ann/recommendations")[0] == 200
        times.append(time.perf_counter() - begin)
    assert sorted(times)[10] < 0.5
    begin = time.perf_counter()
    for own in slow:
        with suppress(OSError):  # dripping keeps no connection open
            own.sendall(b"x")
        with suppress(ConnectionError):
            own.recv(1000)
        own.close()
    assert time.perf_counter() - begin < 10.0
    # One client has so many connections, and not one more.
    many = [socket.create_connection(("127.0.0.1", server.port), timeout=20) for _ in range(61)]
    with suppress(ConnectionError):
        assert many[-1].recv(1) == b""
    for own in many:
        own.close()
    time.sleep(0.1)
    assert server.ask("GET", "/health")[0] == 200


def test_a_body_without_end_is_refused(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as own:
        own.sendall(b"POST /events HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n")
        with pytest.raises(OSError):
            for _ in range(200):
                own.sendall(b"10000\r\n" + 65536 * b" " + b"\r\n")


def test_a_token_and_a_rate(tmp_path):
    settings = serve.Settings(token="gehëim", rate=5)
    app = serve.make_app(settings, Store(tmp_path, 10, 10, 10))
    good = [(b"authorization", "Bearer gehëim".encode())]
    assert ask(app, "GET", "/health")[0] == ask(app, "GET", "/ready")[0] == 200
    for headers in ([], [(b"authorization", b"Bearer geh")], [(b"authorization", b"\xff")]):
        for path in ("/metrics", "/users/a/recommendations"):
            status, answer = ask(app, "GET", path, headers=headers, client=str(headers))
            assert status == 401 and "Authorization" in answer["error"]
    path = "/users/a/recommendations"
    statuses = [ask(app, "GET", path, headers=good, client="5.6.7.8")[0] for _ in range(7)]
    assert statuses[:5] == 5 * [200] and statuses[6] == 429
    assert ask(app, "GET", path, headers=good, client="9.9.9.9")[0] == 200
    time.sleep(0.25)
    assert ask(app, "GET", path, headers=good, client="5.6.7.8")[0] == 200


def test_items_ids_and_users_have_limits(tmp_path):
    store = Store(tmp_path, most_users=2, most_ids=3, every=10**6)
    app = serve.make_app(serve.Settings(items=2), store)

    def event(number, user, item):
        content = json.dumps({"id": str(number), "user": user, "item": item}).encode()
        return ask(app, "POST", "/events", content)

    for number, pair in enumerate([("a", "x"), ("b", "x"), ("a", "y"), ("c", "x")]):
        assert event(number, *pair) == (200, {"learned": 1, "known": 0})
    assert set(store.model.users_) == {"a", "c"}  # b was not heard of for longest
    status, answer = event(4, "a", "z")
    assert status == 507 and answer["error"] == "2 items are known: no new one is taken"
    assert event(2, "a", "y")[1]["known"] == 1
    assert event(0, "a", "x")[1]["learned"] == 1  # the fourth-latest id is known no more
    assert len(store.known) == len(store.marks) == 3


def test_a_disk_that_refuses_loses_nothing(tmp_path, monkeypatch):
    store = Store(tmp_path, 10, 10, 10**6)
    app = serve.make_app(serve.Settings(), store)
    one, two = ({"id": each, "user": each, "item": "x"} for each in "12")
    assert ask(app, "POST", "/events", json.dumps(one).encode())[0] == 200
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, line: write(file, line[:20]))
    status, answer = ask(app, "POST", "/events", json.dumps(two).encode())
    assert status == 503 and answer == {"error": "the disk is full: nothing was learned"}
    monkeypatch.undo()
    assert store.model.n_events_ == 1
    assert ask(app, "POST", "/events", json.dumps(two).encode())[1] == {"learned": 1, "known": 0}
    assert [event["id"] for event in logged(tmp_path)] == ["1", "2"]
    # A file that cannot be written keeps an erasure from being acknowledged, and the log.
    monkeypatch.setattr(
        os, "fsync", lambda file: (_ for _ in ()).throw(OSError(28, "No space left"))
    )
    assert ask(app, "DELETE", "/users/1")[0] == 503
    monkeypatch.undo()
    assert ask(app, "DELETE", "/users/1") == (204, None)
    assert store.model.users_ == ["2"]


def test_a_torn_end_is_cut_and_other_damage_is_told(tmp_path):
    store, app = opened(tmp_path)
    for number in range(3):
        event = {"id": str(number), "user": "a", "item": str(number)}
        ask(app, "POST", "/events", json.dumps(event).encode())
    with pytest.raises(ValueError, match="another process uses"):
        opened(tmp_path)
    close(store)
    log = tmp_path / "log-00000001"
    whole = log.read_bytes()
    lost = whole[:-1], whole[:-9], whole[:-9] + 9 * b"\0"
    for torn in (*lost, whole + b"1", whole + 4096 * b"\0"):
        log.write_bytes(torn)
        store, _ = opened(tmp_path)
        assert store.model.n_events_ == (2 if torn in lost else 3)
        assert whole.startswith(log.read_bytes()) and log.read_bytes().endswith(b"\n")
        close(store)
    for name, content, why in [
        ("log-00000001", b"0" + whole[1:], r"broken up to byte .* restore a backup"),
        ("log-00000002", whole, "lacks a part from 1 on"),
    ]:
        folder = tmp_path / why[:5]
        folder.mkdir()
        (folder / name).write_bytes(content)
        with pytest.raises(ValueError, match=why):
            opened(folder)
        assert (folder / name).read_bytes() == content


def test_settings_that_are_wrong_are_refused(tmp_path):
    given = same_copy(SERVE_FOLDER=str(tmp_path), SERVE_TOKN="a")
    done = python(FOLDER / "serve.py", status=1, env=given)
    assert done.stderr.splitlines()[-1].endswith("Object contains unknown field `tokn`")
    for wrong in ({"port": "x"}, {"rate": "0"}, {"users": "-1"}):
        with pytest.raises(msgspec.ValidationError, match=next(iter(wrong))):
            msgspec.convert(wrong, serve.Settings, strict=False)
