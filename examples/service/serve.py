"""A recommender over HTTP: `python serve.py`; README.md says how, docs/howto/service.md what it promises."""

import asyncio
import gc
import hmac
import json
import logging
import os
import time
from contextlib import asynccontextmanager
from itertools import chain
from typing import Annotated
from uuid import uuid4

import msgspec
import uvicorn
from prometheus_client import Counter, Gauge, Histogram, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Route
from store import Event, Id, Store
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

#: Most requests that wait to be written, and events that are learned before others get a turn.
WAITING, SLICE = 200, 20
SECONDS = Histogram("service_seconds", "Until the answer", ["route", "status"])
EVENTS = Counter("service_events", "Events answered", ["outcome"])
MODEL = Gauge("service_model", "Users and items known, and alarms", ["what"])
WEIGHTS = Gauge("service_expert_weight", "By items that users have seen", ["expert", "seen"])
Count = Annotated[int, msgspec.Meta(ge=1)]
Events = Annotated[list[Event], msgspec.Meta(min_length=1, max_length=1000)]
MISTAKES = msgspec.MsgspecError, UnicodeError, RecursionError, ClientDisconnect


class Settings(msgspec.Struct, forbid_unknown_fields=True):
    """What environment variables set: SERVE_HOST and so on."""

    host: str = "127.0.0.1"
    port: int = 8000
    folder: str = "data"
    token: str = ""  # which requests must bear, unless it is empty
    body: Count = 1 << 20  # most bytes of a request
    rate: Annotated[float, msgspec.Meta(ge=1)] = 5000.0  # requests of a client per second
    connections: Count = 250  # most of a client
    patience: Annotated[float, msgspec.Meta(gt=0)] = 10.0  # seconds for a request to come
    users: Count = 100_000  # most that are known
    items: Count = 20_000
    ids: Count = 500_000  # latest events that are not learned again
    every: Count = 50_000  # events between two files


class Query(msgspec.Struct, forbid_unknown_fields=True):
    """What may follow the path of a user or an item."""

    n: Annotated[int, msgspec.Meta(ge=1, le=100)] = 10
    exclude: Annotated[list[Id], msgspec.Meta(max_length=100)] = []


class Impatient(HttpToolsProtocol):
    """Closes connections that are too many, bring too much, or on which no request ends for too long."""

    settings = Settings()

    def connection_made(self, transport):
        super().connection_made(transport)
        self.size, hosts = 0, [each.client and each.client[0] for each in self.connections]
        self.look(hosts.count(self.client and self.client[0]) <= self.settings.connections)

    def look(self, ended):
        self.ended = False
        if not ended:
            self.transport.abort()
        elif not self.transport.is_closing():
            self.loop.call_later(self.settings.patience, lambda: self.look(self.ended))

    def data_received(self, data):
        self.size += len(data)
        super().data_received(data)
        if self.size > self.settings.body:
            self.send_400_response(f"Send at most {self.settings.body} bytes at once.")

    def on_message_complete(self):
        self.ended, self.size = True, 0
        super().on_message_complete()


class Writer:
    """Writes what came meanwhile as one group, learns it, answers, and begins again."""

    def __init__(self, store, every):
        self.store, self.every, self.begun, self.trouble, self.task = store, every, 0, "", None
        self.waiting, self.writing, self.saving = (
            asyncio.Queue(WAITING),
            asyncio.Lock(),
            asyncio.Lock(),
        )

    async def add(self, events):
        """Return how many of these are new, once they are on the disk and learned."""
        if self.waiting.full():
            raise HTTPException(503, "too much waits to be written: try again later")
        answer = asyncio.get_running_loop().create_future()
        self.waiting.put_nowait((events, answer))
        return await answer

    async def run(self):
        while True:
            group = [await self.waiting.get()]
            while not self.waiting.empty():
                group.append(self.waiting.get_nowait())
            async with self.writing:
                await self.write(*zip(*group, strict=True))
            if self.store.since >= self.every and not self.saving.locked():
                self.task = asyncio.create_task(self.checkpoint())

    async def write(self, given, answers):
        ids, self.trouble = set(), ""
        fresh = [self.store.fresh(events, ids) for events in given]
        try:
            if ids:
                await asyncio.to_thread(self.store.append, list(chain(*fresh)))
        except OSError as error:
            self.trouble = f"the log cannot be written: {error.strerror}; nothing was learned"
            logging.error(self.trouble)
        for events, answer in zip(fresh, answers, strict=True):
            if self.trouble:
                answer.set_exception(HTTPException(503, self.trouble))
                continue
            for number, event in enumerate(events, start=1):
                self.store.learn(event)
                if number % SLICE == 0:
                    await asyncio.sleep(0)
            answer.set_result(len(events))

    async def checkpoint(self):
        """Save a state later than this call, and remove the log before it."""
        begun = self.begun
        async with self.saving:
            if self.begun == begun:
                async with self.writing:
                    self.begun += 1
                    state = self.store.begin(self.store.part + 1)
                await asyncio.to_thread(self.store.save, *state)


def told(status, content):
    """Return an answer in JSON, a sentence as an error; after one, the rest of a request is not waited for."""
    headers = {"connection": "close"} if status >= 400 else {}
    content = {"error": content[:200]} if isinstance(content, str) else content
    return Response(msgspec.json.encode(content), status, headers, "application/json")


def asked(request):
    """Return the user or item in a path, and what follows it."""
    name, query = msgspec.convert(request.path_params["name"], Id), request.query_params
    given = {each: query.getlist(each) if each == "exclude" else query[each] for each in query}
    return name, msgspec.convert(given, Query, strict=False)


def make_app(settings, store):
    model, writer, clients, routes = store.model, Writer(store, settings.every), {}, []

    def admit(request):
        now, client = time.monotonic(), request.client and request.client.host
        left, then = clients.pop(client, (settings.rate, now))
        left = min(settings.rate, left + settings.rate * (now - then))
        clients[client] = max(0.0, left - 1.0), now
        if len(clients) > 10_000:
            del clients[next(iter(clients))]
        if left < 1.0:
            raise HTTPException(429, f"send at most {settings.rate:g} requests per second")
        given = request.headers.get("authorization", "").encode("latin-1")
        free = not settings.token or request.url.path in ("/health", "/ready")
        if not free and not hmac.compare_digest(given, f"Bearer {settings.token}".encode()):
            raise HTTPException(401, "send the header Authorization: Bearer, and the token")

    def route(path, method="GET"):
        """Let a function answer; errors are answered with one sentence."""

        def routed(handle):
            async def endpoint(request):
                begin = time.perf_counter()
                try:
                    admit(request)
                    answer = await handle(request)
                except (HTTPException, *MISTAKES) as error:
                    status = getattr(error, "status_code", 400)
                    answer = told(status, getattr(error, "detail", "") or str(error))
                except Exception:
                    logging.exception("could not answer")
                    answer = told(503, "the service failed: its output says how")
                seconds = time.perf_counter() - begin
                SECONDS.labels(handle.__name__, answer.status_code).observe(seconds)
                return answer

            routes.append(Route(path, endpoint, methods=[method]))

        return routed

    @route("/events", "POST")
    async def events(request):
        given = msgspec.json.decode(await request.body(), type=Event | Events)
        given = given if isinstance(given, list) else [given]
        full = len(store.items) >= settings.items
        if full and not store.items.issuperset(event.item for event in given):
            raise HTTPException(507, f"{settings.items} items are known: no new one is taken")
        learned = await writer.add(given)
        EVENTS.labels("learned").inc(learned)
        EVENTS.labels("known").inc(len(given) - learned)
        return told(200, {"learned": learned, "known": len(given) - learned})

    @route("/users/{name:path}/recommendations")
    async def recommendations(request):
        user, query = asked(request)
        found = model.recommend(user, query.n, exclude=query.exclude, return_scores=True)
        return told(200, {"items": found[0], "scores": found[1].tolist()})

    @route("/items/{name:path}/similar")
    async def similar(request):
        item, query = asked(request)
        if item not in store.items:
            raise HTTPException(404, "no item of this id is known")
        found = model.similar_items(item, query.n + len(query.exclude))
        return told(
            200, {"items": [each for each in found if each not in query.exclude][: query.n]}
        )

    @route("/users/{name:path}", "DELETE")
    async def erase(request):
        await writer.add([Event(uuid4().hex, asked(request)[0], "")])
        await writer.checkpoint()
        return Response(status_code=204)

    @route("/health")
    async def health(request):
        return told(200, {"healthy": True})

    @route("/ready")
    async def ready(request):
        return told(503, writer.trouble) if writer.trouble else told(200, {"ready": True})

    @route("/metrics")
    async def metrics(request):
        sizes = {"users": model.n_users_, "items": model.n_items_, "alarms": len(model.changes_)}
        for what, size in sizes.items():
            MODEL.labels(what).set(size)
        for seen, row in enumerate(model.expert_weights_.tolist()):
            for expert, weight in zip(model.expert_names_, row, strict=True):
                WEIGHTS.labels(expert, 1 << seen >> 1).set(weight)
        return Response(generate_latest(), media_type="text/plain; version=0.0.4")

    @asynccontextmanager
    async def running(app):
        task = asyncio.create_task(writer.run())
        task.add_done_callback(lambda task: task.cancelled() or os.abort())  # the log has all
        yield
        task.cancel()
        await writer.checkpoint()

    errors = {HTTPException: lambda request, error: told(error.status_code, error.detail)}
    app = Starlette(routes=routes, lifespan=running, exception_handlers=errors)
    app.router.redirect_slashes = False
    return app


class OneLine(logging.Formatter):
    """Each record is one line of JSON, so nothing in it can look like another."""

    def format(self, record):
        return json.dumps({"level": record.levelname, "message": super().format(record)})


def main():
    handler = logging.StreamHandler()
    handler.setFormatter(OneLine("%(asctime)s %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.INFO)
    given = {name[6:].lower(): os.environ[name] for name in os.environ if name[:6] == "SERVE_"}
    settings = Impatient.settings = msgspec.convert(given, Settings, strict=False)
    store = Store(settings.folder, settings.users, settings.ids)
    store.model.recommend("", 1)  # loads compiled code
    gc.freeze()  # what is there stays
    where = {"host": settings.host, "port": settings.port, "http": Impatient, "ws": "none"}
    limits = {"limit_concurrency": 1000, "timeout_graceful_shutdown": 5, "log_config": None}
    less = dict.fromkeys(("access_log", "server_header", "proxy_headers"), False)
    uvicorn.run(make_app(settings, store), **where, **limits, **less, loop="asyncio")


if __name__ == "__main__":
    main()
