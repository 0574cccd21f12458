"""Puts the surfaces together: `application` is what each worker of the HTTP server runs."""

import asyncio
import ctypes
import gc
import logging
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

from sankofa import settings
from sankofa.cli.connections import KnownClients
from sankofa.cli.lanes import Lanes
from sankofa.cli.logs import configure
from sankofa.mcp.surface import McpSurface
from sankofa.operations.service import Service
from sankofa.rest.app import Application, Receive, RestApp, Scope, Send
from sankofa.rest.pages import open_pages
from sankofa.web.app import WebApp

_SWITCH_SECONDS = 0.0005
"""The server's own thread takes requests in and needs the interpreter for each: under a crowd it would wait
for the default of 5 ms ten times as long, and everybody's next request with it."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of glibc's malloc.h


_log = logging.getLogger("sankofa.serving")

Duty = Callable[[KnownClients], Coroutine[Any, Any, None]]


def application(duties: Sequence[Duty] = ()) -> Application:
    """The application of one worker, from the environment; the duties run beside it."""
    current = settings.load()
    configure(current)
    service = Service(current)
    agents = McpSurface(service)
    api = RestApp(service, open_pages(service), mounted={"/mcp": agents})
    known = KnownClients()
    app = Lanes(_beside(api, WebApp(service)), current.base_url, known)

    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        await service.start()
        _settle()
        tasks = [asyncio.create_task(_never_ending(duty, known)) for duty in duties]
        try:
            async with agents.running():
                yield
        finally:
            for task in tasks:
                task.cancel()
            await service.stop()

    def run(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] == "lifespan":
            return _lifespan(running, receive, send)
        return app(scope, receive, send)

    return run


def _beside(api: Application, web: WebApp) -> Application:
    """The API and the pages on one port: a path of the API never waits for the pages' routes."""

    def dispatch(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["path"].startswith("/v1/") or not web.answers(scope):
            return api(scope, receive, send)
        return web(scope, receive, send)

    return dispatch


async def _never_ending(duty: Duty, known: KnownClients) -> None:
    try:
        await duty(known)
    except Exception:
        _log.exception("%s ended", duty)


def _settle() -> None:
    """Tune the process once it has loaded: what is loaded is exempt from garbage collection.

    With glibc, memory freed by one large answer is kept for the next: if it were returned, every page of an
    answer of half a megabyte would be faulted in again, which costs more than filling it.
    """
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(_SWITCH_SECONDS)
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_THRESHOLD, 32 * 1024 * 1024)
        library.mallopt(_M_TRIM_THRESHOLD, 256 * 1024 * 1024)


async def _lifespan(
    running: Callable[[], AbstractAsyncContextManager[None]], receive: Receive, send: Send
) -> None:
    """Starts and stops in one task, as the MCP surface's own tasks require."""
    await receive()
    async with running():
        await send({"type": "lifespan.startup.complete"})
        await receive()
    await send({"type": "lifespan.shutdown.complete"})
