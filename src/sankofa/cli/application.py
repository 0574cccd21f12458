"""Puts the surfaces together: `application` is what each worker of the HTTP server runs."""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import date
from pathlib import Path
from typing import Any

from sankofa import settings
from sankofa.access.owner import FOLDER, LINK, token_in_path, token_in_query
from sankofa.cli.guard import KnownClients, PriorityQueue
from sankofa.cli.observers import observe_requests
from sankofa.cli.process import configure, keep_freed_memory
from sankofa.dialects.app import DialectsApp
from sankofa.mcp.surface import McpSurface
from sankofa.operations.locked import AT, NO_DAY, PREFIX, day_of_path, without_day
from sankofa.operations.service import Application, Receive, Scope, Send, Service
from sankofa.rest.app import RestApp
from sankofa.rest.cors import Cors
from sankofa.rest.pages import open_pages
from sankofa.web.app import WebApp

_MCP = "/mcp"
_LOCKED_TO = len(f"{PREFIX}2019-12-31")
_NEW_OBJECTS = 10_000
"""How many objects more there must be before cycles are looked for: an answer has hundreds for a moment."""

_log = logging.getLogger("sankofa.serving")

Duty = Callable[[KnownClients], Coroutine[Any, Any, None]]


def application(duties: Sequence[Duty] = (), metrics_folder: Path | None = None) -> Application:
    """The application of one worker, from the environment; the duties run beside it.

    `metrics_folder` is where the worker tells what it counts; None if nobody asks.
    """
    current = settings.load()
    configure(current)
    service = Service(current)
    agents = McpSurface(service)
    api = RestApp(service, open_pages(service), mounted={_MCP: agents})
    known = KnownClients()
    surfaces = _beside(api, WebApp(service), DialectsApp(service), service.today)
    app: Application = PriorityQueue(surfaces, current.base_url, known)
    if origins := current.cors_allowed():
        app = Cors(app, origins)

    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        await service.start()
        _settle()
        observing = observe_requests(service, metrics_folder)
        tasks = [asyncio.create_task(_never_ending(duty, known)) for duty in (*duties, *observing.duties)]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            observing.stop()
            await service.stop()

    def run(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] == "lifespan":
            return _lifespan(running, receive, send)
        return app(scope, receive, send)

    return run


def _beside(api: Application, web: WebApp, dialects: DialectsApp, today: Callable[[], date]) -> Application:
    """The surfaces on one port: a path of the API never waits for the pages' routes.

    A path under `/at/DAY/` is answered like the path behind it, locked to that day (contract: LOCK-1); one
    with a link like the same without it, with the link in the place of a key.
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
    """The scope of the path inside of a locked view; itself outside of one."""
    if (inside := day_of_path(scope["path"], today())) is not None:
        scope = dict(scope)
        scope[AT], scope["path"] = inside
        scope["raw_path"] = (scope.get("raw_path") or b"")[_LOCKED_TO:] or b"/"
    return scope


async def _never_ending(duty: Duty, known: KnownClients) -> None:
    try:
        await duty(known)
    except Exception:
        _log.exception("%s ended", duty)


def _settle() -> None:
    """Tune the process once it has loaded: what is loaded is exempt from garbage collection, and the memory
    of one large answer is kept for the next."""
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
