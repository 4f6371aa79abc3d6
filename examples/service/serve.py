"""A recommender over HTTP: `python serve.py`; README.md says how, docs/howto/service.md what it promises."""

import hmac
import logging
import os
import sys
import time
from contextlib import asynccontextmanager
from typing import Annotated

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

SECONDS = Histogram("service_seconds", "Until the answer", ["route"])
EVENTS = Counter("service_events", "Events answered", ["outcome"])
ALARMS = Gauge("service_alarms", "Alarms of the model")
WEIGHTS = Gauge("service_expert_weight", "By items that users have seen", ["expert", "seen"])
ERRORS = (HTTPException, OSError, ClientDisconnect, msgspec.MsgspecError, UnicodeError)
Count = Annotated[int, msgspec.Meta(ge=1)]
Events = Annotated[list[Event], msgspec.Meta(min_length=1, max_length=1000)]


class Settings(msgspec.Struct, forbid_unknown_fields=True):
    host: str = "127.0.0.1"  # from SERVE_HOST, and so on
    port: int = 8000
    folder: str = "data"
    token: str = ""  # which requests must bear, unless it is empty
    body: Count = 1 << 20  # most bytes of a request, with its head
    rate: Count = 5000  # most requests of a client per second
    connections: Count = 250  # most of a client
    patience: Count = 10  # seconds for a request to come
    users: Count = 100_000  # most that are known
    items: Count = 20_000
    ids: Count = 500_000  # latest events that are not learned again
    every: Count = 50_000  # events between two files


class Query(msgspec.Struct, forbid_unknown_fields=True):
    name: Id
    n: Annotated[int, msgspec.Meta(ge=1, le=100)] = 10
    exclude: Annotated[list[Id], msgspec.Meta(max_length=100)] = []


#: Closes connections that are too many, bring too much, or on which no request ends for too long.
class Impatient(HttpToolsProtocol):
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
        if self.size > self.settings.body and not self.transport.is_closing():
            self.send_400_response(f"Send at most {self.settings.body} bytes at once.")

    def on_message_complete(self):
        self.ended, self.size = True, 0
        super().on_message_complete()


def answer(content, status=200, headers=None):
    return Response(msgspec.json.encode(content), status, headers, "application/json")


def refuse(request, error):
    """Answer an error with one sentence; the rest of the request is not waited for."""
    status = getattr(error, "status_code", 503 if isinstance(error, OSError) else 400)
    logging.log(logging.ERROR if status == 503 else logging.DEBUG, "%s", error)
    sentence = getattr(error, "detail", str(error))[:200]
    return answer({"error": sentence}, status, {"connection": "close"})


def asked(request):
    given = {**request.query_params, **request.path_params}
    given["exclude"] = request.query_params.getlist("exclude")
    return msgspec.convert(given, Query, strict=False)


def make_app(settings, store):
    model, clients, routes = store.model, {}, []

    def admit(request):
        now, client = time.monotonic(), request.client and request.client.host
        used = max(clients.pop(client, 0.0), now - 1.0)  # until when it has used its rate up
        in_time = used + 1.0 / settings.rate <= now
        clients[client] = used + in_time / settings.rate
        if len(clients) > 10_000:
            del clients[next(iter(clients))]
        if not in_time:
            raise HTTPException(429, f"send at most {settings.rate} requests per second")
        if settings.token and request.scope["path"] not in ("/health", "/ready"):
            given = request.headers.get("authorization", "").encode("latin-1")
            if not hmac.compare_digest(given, f"Bearer {settings.token}".encode()):
                raise HTTPException(401, "send the header Authorization: Bearer, and the token")

    def route(path, method="GET"):
        def routed(handle):
            async def endpoint(request):
                with SECONDS.labels(handle.__name__).time():
                    admit(request)
                    return await handle(request)

            routes.append(Route(path, endpoint, methods=[method]))
            return handle

        return routed

    @route("/events", "POST")
    async def events(request):
        given = msgspec.json.decode(await request.body(), type=Event | Events)
        given = given if isinstance(given, list) else [given]
        if len(store.items) >= settings.items and not store.items.issuperset(e.item for e in given):
            raise HTTPException(507, f"{settings.items} items are known: no new one is taken")
        learned = await store.add(given)
        EVENTS.labels("learned").inc(learned)
        EVENTS.labels("known").inc(len(given) - learned)
        return answer({"learned": learned, "known": len(given) - learned})

    @route("/users/{name:path}/recommendations")
    async def recommendations(request):
        query = asked(request)
        found = model.recommend(query.name, query.n, exclude=query.exclude, return_scores=True)
        return answer({"items": found[0], "scores": found[1].tolist()})

    @route("/items/{name:path}/similar")
    async def similar(request):
        query = asked(request)
        found = model.similar_items(query.name, query.n + len(query.exclude))
        return answer({"items": [i for i in found if i not in query.exclude][: query.n]})

    @route("/users/{name:path}", "DELETE")
    async def erase(request):
        await store.add([Event(os.urandom(16).hex(), asked(request).name, "")])
        await store.checkpoint()
        return Response(status_code=204)

    @route("/health")
    @route("/ready")
    async def health(request):
        busy = request.scope["path"] == "/ready" and len(store.waiting) >= 100
        return answer({"busy": busy}, 503 if busy else 200)

    @route("/metrics")
    async def metrics(request):
        ALARMS.set(len(model.changes_))
        for seen, row in enumerate(model.expert_weights_.tolist()):
            for expert, weight in zip(model.expert_names_, row, strict=True):
                WEIGHTS.labels(expert, 1 << seen >> 1).set(weight)
        return Response(generate_latest(), media_type="text/plain; version=0.0.4")

    @asynccontextmanager
    async def live(app):
        yield
        await store.checkpoint()

    app = Starlette(routes=routes, lifespan=live, exception_handlers=dict.fromkeys(ERRORS, refuse))
    app.router.redirect_slashes = False
    return app


if __name__ == "__main__":
    plain, output = logging.Formatter("%(asctime)s %(message)s"), logging.StreamHandler()
    output.format = lambda each: msgspec.json.encode(plain.format(each)).decode()  # one line
    logging.basicConfig(level=logging.INFO, handlers=[output])
    given = {name[6:].lower(): os.environ[name] for name in os.environ if name[:6] == "SERVE_"}
    settings = Impatient.settings = msgspec.convert(given, Settings, strict=False)
    store = Store(settings.folder, settings.users, settings.ids, settings.every)
    store.model.recommend("", 1)  # loads compiled code
    sys.setswitchinterval(0.0005)  # requests go before a file that is written
    where = {"host": settings.host, "port": settings.port, "http": Impatient, "log_config": None}
    limits = {"limit_concurrency": 1000, "timeout_graceful_shutdown": 5}
    uvicorn.run(make_app(settings, store), access_log=False, proxy_headers=False, **where, **limits)
