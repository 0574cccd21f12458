"""Puts the surfaces together: `application` is what each worker of the HTTP server runs."""

from collections.abc import Awaitable, Callable

from sankofa import settings
from sankofa.operations.service import Service
from sankofa.rest.app import Application, Receive, RestApp, Scope, Send
from sankofa.rest.pages import open_pages


def application() -> Application:
    """One worker's application, from the environment."""
    service = Service(settings.load())
    app = RestApp(service, open_pages(service))

    async def run(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(service.start, service.stop, receive, send)
        else:
            await app(scope, receive, send)

    return run


async def _lifespan(
    start: Callable[[], Awaitable[None]], stop: Callable[[], Awaitable[None]], receive: Receive, send: Send
) -> None:
    while True:
        message = await receive()
        if message["type"] == "lifespan.startup":
            await start()
            await send({"type": "lifespan.startup.complete"})
        else:
            await stop()
            await send({"type": "lifespan.shutdown.complete"})
            return
