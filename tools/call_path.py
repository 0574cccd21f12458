"""Print the function calls of one warm request, in order, and how often they change package.

    python -m tools.call_path HOME [PATH]

The request goes through the application in process, so the HTTP server is not part of the count.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

PACKAGE = Path(__file__).parents[1] / "src" / "sankofa"
EXAMPLE = "/v1/fundamentals/DC46AF1B1AAA424B58D1368176?as_of=2024-06-30"
KEY = b"sankofa-sandbox"
_WARM_UP = 5

Message = MutableMapping[str, Any]
Application = Callable[..., Awaitable[None]]


def call_path(application: Application, address: str = EXAMPLE) -> list[str]:
    """The calls of one request: `package/module:function`, in order.

    Starts the application, sends the same request until it is warm, and records the last one.
    """
    calls: list[str] = []

    def record(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(str(PACKAGE)):
            calls.append(f"{Path(name).relative_to(PACKAGE)}:{frame.f_code.co_qualname}")

    async def run() -> None:
        over = asyncio.Event()
        serving = asyncio.create_task(_lifespan(application, started := asyncio.Event(), over))
        await started.wait()
        for _ in range(_WARM_UP):
            await _ask(application, address)
        sys.setprofile(record)
        try:
            await _ask(application, address)
        finally:
            sys.setprofile(None)
        over.set()
        await serving

    asyncio.run(run())
    return calls


async def _lifespan(application: Application, started: asyncio.Event, over: asyncio.Event) -> None:
    async def receive() -> Message:
        if started.is_set():
            await over.wait()
        return {}

    async def send(message: Message) -> None:
        started.set()

    await application({"type": "lifespan"}, receive, send)


async def _ask(application: Application, address: str) -> None:
    path, _, query = address.partition("?")
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b""}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(b"host", b"127.0.0.1:8000"), (b"x-api-key", KEY), (b"accept-encoding", b"gzip")],
        "client": ("127.0.0.1", 1),
    }
    await application(scope, receive, send)
    if sent[0]["status"] != 200:
        raise ValueError(f"{address}: {sent[0]['status']}")


def main() -> None:
    os.environ["SANKOFA_HOME"] = sys.argv[1]
    from sankofa.cli.application import application

    calls = call_path(application(), *sys.argv[2:])
    packages = [call.partition("/")[0] for call in calls]
    moves = sum(before != after for before, after in pairwise(packages))
    lines = [f"{number:4}  {call}" for number, call in enumerate(calls, 1)]
    lines.append(f"{len(calls)} calls, {moves} moves between packages")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
