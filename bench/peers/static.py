"""The ceiling: the server of `sankofa serve` with the same settings, answering with constant bytes.

    python -m bench.peers.static PORT

The path gives the size of the body; BENCH_HEADERS (JSON) gives its header fields.
"""

import json
import os
import sys
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any

from sankofa import settings
from sankofa.cli import serving

_HEADERS = [(name, value) for name, value in json.loads(os.environ.get("BENCH_HEADERS", "[]"))]
_AS_BYTES = [(name.encode(), value.encode()) for name, value in _HEADERS]


@cache
def _body(path: str) -> bytes:
    return b"x" * int(path[1:] or 0)


async def asgi(scope: dict[str, Any], receive: object, send: Callable[[Any], Awaitable[None]]) -> None:
    if scope["type"] != "http":
        return
    body = _body(scope["path"])
    headers = [(b"content-length", b"%d" % len(body)), *_AS_BYTES]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def main() -> None:
    """Run `sankofa serve` unchanged, except for the application that its workers load."""
    vars(serving)["_load"] = lambda *_: asgi
    serving.run_server(settings.load(), "127.0.0.1", int(sys.argv[1]), 1, sign_in=False)


if __name__ == "__main__":
    main()
