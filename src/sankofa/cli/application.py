"""Puts the surfaces together: `application` is what each worker of the HTTP server runs."""

import asyncio
import gc
import logging
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import date
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

import msgspec

from sankofa import __version__
from sankofa.access.owner import FOLDER, LINK, token_in_path, token_in_query
from sankofa.cli.guard import KnownClients, PriorityQueue
from sankofa.cli.metrics import RequestCounter, write_counts
from sankofa.cli.process import configure, keep_freed_memory, timestamp
from sankofa.dialects.app import DialectsApp
from sankofa.mcp.surface import McpSurface
from sankofa.model.errors import SettingsError
from sankofa.operations.locked import AT, NO_DAY, PREFIX, day_of_path, without_day
from sankofa.operations.service import Application, ObservedRequest, Receive, Scope, Send, Service
from sankofa.rest.app import RestApp
from sankofa.rest.cors import Cors
from sankofa.rest.pages import open_pages
from sankofa.settings import Settings, load
from sankofa.web.app import WebApp

_MCP = "/mcp"
_LOCKED_TO = len(f"{PREFIX}2019-12-31")
_NEW_OBJECTS = 10_000
"""Number of new objects before the garbage collector looks for cycles: one answer briefly creates
hundreds.
"""

_log = logging.getLogger("sankofa.serving")

Duty = Callable[[KnownClients], Coroutine[Any, Any, None]]


def application(duties: Sequence[Duty] = (), metrics_folder: Path | None = None) -> Application:
    """The application of one worker, configured by the environment, with its background tasks.

    The worker writes its counts to `metrics_folder`; None if metrics are off.
    """
    current = load()
    configure(current)
    service = Service(current)
    agents = McpSurface(service)
    api = RestApp(service, open_pages(service), mounted={_MCP: agents})
    counter = None if metrics_folder is None else RequestCounter()
    observer = RequestObserver(counter, current)
    known = KnownClients()
    surfaces = _beside(api, WebApp(service), DialectsApp(service), service.today)
    app: Application = PriorityQueue(surfaces, current.base_url, known)
    if origins := current.cors_allowed():
        app = Cors(app, origins)

    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        await service.start()
        _settle()
        own: list[Duty] = []
        if counter is not None and metrics_folder is not None:
            own.append(lambda _: write_counts(counter, service, metrics_folder))
        if counter is not None or current.access_log == "json" or current.otlp_endpoint:
            service.observe = observer.waiting.append
            own.append(observer.work_off)
        tasks = [asyncio.create_task(_never_ending(duty, known)) for duty in (*duties, *own)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            observer.stop()
            await service.stop()

    def run(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] == "lifespan":
            return _lifespan(running, receive, send)
        return app(scope, receive, send)

    return run


def _beside(api: Application, web: WebApp, dialects: DialectsApp, today: Callable[[], date]) -> Application:
    """The surfaces on one port. API paths are matched first, without searching the pages' routes.

    `/at/DAY/PATH` is answered like `PATH`, locked to that day (contract: LOCK-1). In a path with a link,
    the link replaces the key.
    """

    def dispatch(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if b"link=" in scope["query_string"]:
            scope = token_in_query(scope)
        if scope["path"].startswith(PREFIX):
            scope = _inside(scope, today)
        if scope["path"].startswith(FOLDER):
            scope = _inside(token_in_path(scope), today)
        path: str = scope["path"]
        if path.startswith("/v1/") or path == _MCP:
            return api(scope, receive, send)
        if dialects.answers(path):
            return dialects(scope, receive, send)
        if path.startswith(PREFIX) and dialects.answers(inner := without_day(path)):
            return dialects({**scope, "path": inner, AT: NO_DAY}, receive, send)
        if LINK in scope or not web.answers(scope):
            return api(scope, receive, send)
        return web(scope, receive, send)

    return dispatch


def _inside(scope: Scope, today: Callable[[], date]) -> Scope:
    """The scope with the path inside a locked view; outside one, the same scope."""
    if (inside := day_of_path(scope["path"], today())) is not None:
        raw = (scope.get("raw_path") or b"")[_LOCKED_TO:] or b"/"
        return {**scope, AT: inside[0], "path": inside[1], "raw_path": raw}
    return scope


async def _never_ending(duty: Duty, known: KnownClients) -> None:
    try:
        await duty(known)
    except Exception:
        _log.exception("%s ended", duty)


def _settle() -> None:
    """Tune the process after loading: exempt loaded objects from garbage collection, and reuse the memory
    of one large answer for the next."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS)
    keep_freed_memory()


async def _lifespan(
    running: Callable[[], AbstractAsyncContextManager[None]], receive: Receive, send: Send
) -> None:
    await receive()
    async with running():
        await send({"type": "lifespan.startup.complete"})
        await receive()
    await send({"type": "lifespan.shutdown.complete"})


_EVERY_SECONDS: Final = 0.2
_AT_ONCE: Final = 2_000
"""Requests counted in one round of the event loop; they take two milliseconds."""
_MOST_LINES: Final = 50_000
_METHODS: Final = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
_encode = msgspec.json.Encoder().encode


class RequestObserver:
    """Counts the requests of a worker, logs and traces them.

    Each request is only appended to a list. The list is counted a few times a second, which costs far less
    than counting each request alone.
    """

    def __init__(self, counter: RequestCounter | None, settings: Settings) -> None:
        """Raises SettingsError if traces are asked for and their exporter is not installed."""
        self._counter = counter
        self._logs = settings.access_log == "json"
        self._trace, self._end_traces = _tracer(settings.otlp_endpoint)
        self.waiting: list[ObservedRequest] = []
        self._lines: list[ObservedRequest] = []
        self._lost = 0
        self._offset = time.time() - time.perf_counter()

    async def work_off(self, _: object) -> None:
        writing: asyncio.Future[None] | None = None
        while True:
            await asyncio.sleep(_EVERY_SECONDS)
            while self.waiting:
                self._take(_AT_ONCE)
                await asyncio.sleep(0)
            if self._lines and (writing is None or writing.done()):
                writing = asyncio.ensure_future(asyncio.to_thread(self._write))

    def stop(self) -> None:
        self._take(len(self.waiting))
        self._write()
        with suppress(Exception):  # nobody to tell: the service stops
            self._end_traces()

    def _take(self, most: int) -> None:
        requests = self.waiting[:most]
        del self.waiting[:most]
        if self._counter is not None:
            for request in requests:
                self._counter(request)
        for request in requests:
            self._trace(request)
        if self._logs:
            room = _MOST_LINES - len(self._lines)
            self._lines += requests[:room]
            self._lost += max(0, len(requests) - room)

    def _write(self) -> None:
        requests, self._lines = self._lines, []
        lines = b"".join(map(self._line, requests))
        if self._lost:
            lines += _encode({"lost": self._lost}) + b"\n"
            self._lost = 0
        with suppress(OSError):  # requests go on if nobody reads the log
            while lines:
                lines = lines[os.write(sys.stderr.fileno(), lines) :]

    def _line(self, request: ObservedRequest) -> bytes:
        grant = request.grant
        fields = {
            "time": timestamp(request.began + self._offset),
            "request_id": request.request_id,
            "key": grant and grant.key_id,
            "link": (grant and grant.link) or None,
            "tier": grant and grant.tier,
            "method": request.method if request.method in _METHODS else "other",
            "operation": request.operation,
            "status": request.status,
            "problem": request.problem or None,
            "bytes": request.size,
            "ms": round(request.seconds * 1000, 3),
        }
        return _encode(fields) + b"\n"


def _tracer(endpoint: str) -> tuple[Callable[[ObservedRequest], None], Callable[[], object]]:
    """Makes the span of a request, sent by OTLP over HTTP; and sends the spans that are left.

    Without an endpoint they do nothing. Raises SettingsError if the exporter is not installed.
    """
    if not endpoint:
        return lambda request: None, lambda: None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace import SpanKind, Status, StatusCode
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
    except ImportError as missing:
        raise SettingsError(
            "SANKOFA_OTLP_ENDPOINT needs an exporter: make setup EXTRAS=1, or install sankofa[tracing]"
        ) from missing
    resource = Resource.create({"service.name": "sankofa", "service.version": __version__})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint, timeout=5)))
    spans = provider.get_tracer("sankofa", __version__)
    propagator = TraceContextTextMapPropagator()
    offset = time.time_ns() - time.perf_counter_ns()

    def trace(request: ObservedRequest) -> None:
        caller = {
            name.decode(): value.decode("latin-1")
            for name, value in request.headers
            if name in (b"traceparent", b"tracestate")
        }
        began = int(request.began * 1e9) + offset
        span = spans.start_span(
            request.operation,
            context=propagator.extract(caller) if caller else None,
            kind=SpanKind.SERVER,
            start_time=began,
            attributes={
                "http.request.method": request.method,
                "http.response.status_code": request.status,
                "http.response.body.size": request.size,
                "sankofa.request_id": request.request_id,
                "sankofa.tier": request.grant.tier if request.grant else "",
                "error.type": request.problem,
            },
        )
        if request.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            span.set_status(Status(StatusCode.ERROR))
        span.end(began + int(request.seconds * 1e9))

    return trace, provider.shutdown
