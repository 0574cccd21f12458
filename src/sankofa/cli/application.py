"""Puts the surfaces together: `application` is what each worker of the HTTP server runs."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from sankofa import settings
from sankofa.cli.logs import configure
from sankofa.cli.publishing import SAMPLE_ISSUER
from sankofa.mcp.surface import McpSurface
from sankofa.operations.service import Service
from sankofa.rest.app import Application, Receive, RestApp, Scope, Send
from sankofa.rest.pages import html_page, open_pages
from sankofa.web.landing import landing_page


def application() -> Application:
    """One worker's application, from the environment."""
    current = settings.load()
    configure(current)
    service = Service(current)
    agents = McpSurface(service)
    pages = {**open_pages(service), "/": html_page(landing_page(current, SAMPLE_ISSUER))}
    app = RestApp(service, pages, mounted={"/mcp": agents})

    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        await service.start()
        try:
            async with agents.running():
                yield
        finally:
            await service.stop()

    async def run(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(running, receive, send)
        else:
            await app(scope, receive, send)

    return run


async def _lifespan(
    running: Callable[[], AbstractAsyncContextManager[None]], receive: Receive, send: Send
) -> None:
    """Starts and stops in one task, as the MCP surface's own tasks require."""
    await receive()
    async with running():
        await send({"type": "lifespan.startup.complete"})
        await receive()
    await send({"type": "lifespan.shutdown.complete"})
