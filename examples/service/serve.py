"""A recommender over HTTP: `python serve.py`. README.md says how; docs/howto/service.md what it promises."""

import asyncio
import gc
import hmac
import json
import logging
import os
import sys
import time
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated

import msgspec
import uvicorn
from prometheus_client import Counter, Gauge, Histogram, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Route
from store import Erasure, Event, Id, Store
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

#: Most records that wait to be written, and how many are learned before others get a turn.
WAITING, SLICE = 20_000, 20
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
SECONDS = Histogram("service_seconds", "Time of answers", ["route", "status"], buckets=BUCKETS)
EVENTS = Counter("service_events", "Events answered", ["outcome"])
WEIGHT = Gauge("service_expert_weight", "For users by how many items seen", ["expert", "seen"])
Count = Annotated[int, msgspec.Meta(ge=1)]
Events = Annotated[list[Event], msgspec.Meta(min_length=1, max_length=1000)]


class Settings(msgspec.Struct, forbid_unknown_fields=True):
    """What can be set, as environment variables: SERVE_HOST and so on."""

    host: str = "127.0.0.1"
    port: int = 8000
    folder: str = "data"
    token: str = ""  # which requests must bear, unless it is empty
    body: Count = 1 << 20  # most bytes of a request
    rate: Annotated[float, msgspec.Meta(ge=1)] = 5000.0  # requests of a client per second
    connections: Count = 250  # most of a client
    patience: float = 10.0  # seconds for a request to come, and for its answer to be taken
    users: Count = 100_000  # most that are known
    items: Count = 20_000
    ids: Count = 500_000  # latest events that are not learned again
    every: Count = 50_000  # events between two files


class Query(msgspec.Struct, forbid_unknown_fields=True):
    """What may follow the path of a question."""

    n: Annotated[int, msgspec.Meta(ge=1, le=100)] = 10
    exclude: Annotated[list[Id], msgspec.Meta(max_length=100)] = []


class Impatient(HttpToolsProtocol):
    """Closes connections on which no request came to its end for too long, or that are too many."""

    settings, moved, size, timer = Settings(), True, 0, None

    def connection_made(self, transport):
        super().connection_made(transport)
        host = self.client and self.client[0]
        same = sum(each.client is not None and each.client[0] == host for each in self.connections)
        self.moved = same <= self.settings.connections
        self.look()

    def look(self):
        if not self.moved:
            return self.transport.abort()
        self.moved = False
        self.timer = self.loop.call_later(self.settings.patience, self.look)

    def data_received(self, data):
        self.size += len(data)
        super().data_received(data)
        if self.size > self.settings.body + (1 << 16):
            self.transport.abort()

    def on_message_complete(self):
        self.moved, self.size = True, 0
        super().on_message_complete()

    def connection_lost(self, exc):
        if self.timer:
            self.timer.cancel()
        super().connection_lost(exc)


class Writer:
    """Writes what comes while others are being written as one group, then learns and answers it."""

    def __init__(self, store, every):
        self.store, self.every, self.since, self.begun, self.trouble = store, every, 0, 0, ""
        self.waiting, self.size, self.wake, self.task = [], 0, asyncio.Event(), None
        self.writing, self.saving = asyncio.Lock(), asyncio.Lock()

    async def add(self, records):
        """Return how many of these are new, once they are on the disk and learned."""
        if self.size > WAITING:
            raise HTTPException(503, "too much waits to be written: try again later")
        answer = asyncio.get_running_loop().create_future()
        self.waiting.append((records, answer))
        self.size += len(records)
        self.wake.set()
        return await answer

    async def run(self):
        """Write group after group."""
        while await self.wake.wait():
            self.wake.clear()
            group, self.waiting, self.size = self.waiting, [], 0
            async with self.writing:
                await self.write(group)
            if self.since >= self.every and not self.saving.locked():
                self.since, self.task = 0, asyncio.create_task(self.checkpoint())

    async def write(self, group):
        marks, fresh = set(), []
        for records, _ in group:
            fresh.append(self.store.fresh(records, marks))
        try:
            if lines := [record for part in fresh for record in part]:
                await asyncio.to_thread(self.store.append, lines)
            self.trouble = ""
        except OSError as error:
            self.trouble = f"the log cannot be written, nothing was learned: {error.strerror}"
            logging.error(self.trouble)
        for part, (_, answer) in zip(fresh, group, strict=True):
            if self.trouble:
                answer.set_exception(HTTPException(503, self.trouble))
                continue
            for number, record in enumerate(part, start=1):
                self.store.learn(record)
                if number % SLICE == 0:
                    await asyncio.sleep(0)
            self.since += len(part)
            answer.set_result(len(part))

    async def checkpoint(self):
        """Save a state that is later than this call, and remove the log before it."""
        asked = self.begun
        async with self.saving:
            if self.begun == asked:
                async with self.writing:
                    self.begun += 1
                    self.store.begin(self.store.part + 1)
                    state = self.store.frozen()
                await asyncio.to_thread(self.store.save, *state)


class Service:
    """Answers to requests."""

    def __init__(self, settings, store):
        self.settings, self.store, self.clients = settings, store, {}
        self.writer = Writer(store, settings.every)
        for what in ("n_users_", "n_items_", "n_events_"):
            Gauge(f"service_{what[2:-1]}_known", "").set_function(
                partial(getattr, store.model, what)
            )
        Gauge("service_alarms", "Alarms so far").set_function(lambda: len(store.model.changes_))

    @asynccontextmanager
    async def running(self, app):
        task = asyncio.create_task(self.writer.run())
        task.add_done_callback(lambda task: task.cancelled() or os.abort())  # the log has it all
        yield
        task.cancel()
        await self.writer.checkpoint()

    def app(self):
        name, routes = "{name:path}", []
        for path, handle, method in [
            ("/events", self.events, "POST"),
            (f"/users/{name}/recommendations", self.recommendations, "GET"),
            (f"/users/{name}", self.erase, "DELETE"),
            (f"/items/{name}/similar", self.similar, "GET"),
            ("/health", self.health, "GET"),
            ("/ready", self.ready, "GET"),
            ("/metrics", self.metrics, "GET"),
        ]:
            routes.append(Route(path, partial(self.guarded, handle), methods=[method]))
        errors = {HTTPException: lambda request, error: told(error.status_code, error.detail)}
        app = Starlette(routes=routes, lifespan=self.running, exception_handlers=errors)
        app.router.redirect_slashes = False
        return app

    async def guarded(self, handle, request):
        """Let a request in by rate and token, answer errors with a sentence, and measure the time."""
        begin = time.perf_counter()
        try:
            self.admit(request)
            answer = await handle(request)
        except HTTPException as error:
            answer = told(error.status_code, error.detail)
        except (msgspec.MsgspecError, UnicodeError, RecursionError, ClientDisconnect) as error:
            answer = told(400, str(error) or "the request has no end")
        except Exception:
            logging.exception("could not answer")
            answer = told(503, "this could not be done: the output of the service says why")
        seconds = time.perf_counter() - begin
        SECONDS.labels(handle.__name__, answer.status_code).observe(seconds)
        return answer

    def admit(self, request):
        now, client = time.monotonic(), request.client and request.client.host
        rate, bearer = self.settings.rate, f"Bearer {self.settings.token}".encode()
        left, then = self.clients.get(client, (rate, now))
        left = min(rate, left + rate * (now - then))
        if len(self.clients) > WAITING:
            self.clients.clear()
        self.clients[client] = max(0.0, left - 1.0), now
        if left < 1.0:
            raise HTTPException(429, f"send at most {rate:g} requests per second")
        free = not self.settings.token or request.url.path in ("/health", "/ready")
        given = request.headers.get("authorization", "").encode("latin-1")
        if not free and not hmac.compare_digest(given, bearer):
            raise HTTPException(401, "send the header Authorization: Bearer, and the token")

    async def events(self, request):
        content, most, store = bytearray(), self.settings.body, self.store
        async for part in request.stream():
            content += part
            if len(content) > most:
                raise HTTPException(413, f"send at most {most} bytes at once")
        given = msgspec.json.decode(content, type=Event | Events)
        given = given if isinstance(given, list) else [given]
        full = len(store.items) >= self.settings.items
        if full and not store.items.issuperset(event.item for event in given):
            raise HTTPException(507, f"there are {self.settings.items} items: no new one is taken")
        learned = await self.writer.add(given)
        answer = {"learned": learned, "known": len(given) - learned}
        for outcome, count in answer.items():
            EVENTS.labels(outcome).inc(count)
        return told(200, answer)

    async def recommendations(self, request):
        user, query = asked(request)
        model, most = self.store.model, query.n
        items, scores = model.recommend(user, most, exclude=query.exclude, return_scores=True)
        return told(200, {"items": items, "scores": scores.tolist()})

    async def similar(self, request):
        item, query = asked(request)
        if item not in self.store.items:
            raise HTTPException(404, "no item of this id is known")
        found = self.store.model.similar_items(item, query.n + len(query.exclude))
        return told(
            200, {"items": [each for each in found if each not in query.exclude][: query.n]}
        )

    async def erase(self, request):
        user, _ = asked(request)
        await self.writer.add([Erasure(user)])
        await self.writer.checkpoint()
        return Response(status_code=204)

    async def health(self, request):
        return told(200, {"health": "ok"})

    async def ready(self, request):
        return told(503 if self.writer.trouble else 200, {"ready": self.writer.trouble or "yes"})

    async def metrics(self, request):
        model = self.store.model
        for seen, row in enumerate(model.expert_weights_.tolist()):
            for expert, weight in zip(model.expert_names_, row, strict=True):
                WEIGHT.labels(expert, 1 << seen >> 1).set(weight)
        return Response(generate_latest(), media_type="text/plain; version=0.0.4")


def asked(request):
    """Return the user or item of a path, and what follows it."""
    query = request.query_params
    given = {each: query.getlist(each) if each == "exclude" else query[each] for each in query}
    name = msgspec.convert(request.path_params["name"], Id)
    return name, msgspec.convert(given, Query, strict=False)


def told(status, content):
    """Return an answer; after an error the rest of a request is not waited for."""
    if isinstance(content, str):
        content = {"error": content[:200]}
    headers = {"connection": "close"} if status >= 400 else {}
    return Response(msgspec.json.encode(content), status, headers, "application/json")


class OneLine(logging.Formatter):
    """Each record is one line of JSON, so nothing in it can look like another."""

    def format(self, record):
        return json.dumps({"level": record.levelname, "message": super().format(record)})


def main():
    """Serve until SIGTERM."""
    handler = logging.StreamHandler()
    handler.setFormatter(OneLine("%(asctime)s %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.INFO)
    given = {name[6:].lower(): os.environ[name] for name in os.environ if name[:6] == "SERVE_"}
    try:
        settings = Impatient.settings = msgspec.convert(given, Settings, strict=False)
        store = Store(settings.folder, settings.users, settings.ids)
    except (ValueError, OSError) as error:
        sys.exit(f"serve.py: {error}")
    store.model.recommend("", 1)  # loads compiled code
    gc.freeze()  # what is there stays
    where = {"host": settings.host, "port": settings.port, "http": Impatient, "ws": "none"}
    limits = {"limit_concurrency": 1000, "timeout_graceful_shutdown": 5, "log_config": None}
    less = dict.fromkeys(("access_log", "server_header", "proxy_headers"), False)
    uvicorn.run(Service(settings, store).app(), **where, **limits, **less, loop="asyncio")


if __name__ == "__main__":
    main()
