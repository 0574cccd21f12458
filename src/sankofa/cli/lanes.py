"""Priority under load: clients whose key was valid before are served first.

A request without a key, or with a key that this worker has not yet seen to be valid, waits in a queue: a few
begin in each round of the event loop, those with a key first. Requests with a proven key begin at once. Under
a crowd the others are told to reconnect, so that requests they pipelined are not even read; and only so many
large answers without a key are sent at once, each as fast as its client reads.
"""

import asyncio
import sys
from collections import deque
from collections.abc import Awaitable
from typing import Final
from urllib.parse import quote

from starlette.types import Message

from sankofa.cli.connections import KnownClients
from sankofa.model.errors import RateLimited
from sankofa.model.limits import limit
from sankofa.operations.answers import NO_STORE, PROBLEM_JSON, Headers, problem_body, problem_headers
from sankofa.rest.app import Application, Receive, Scope, Send

AT_ONCE: Final = 4
"""Requests without a proven key that begin in one round."""
LARGE_BYTES: Final = 64 * 1024
MOST_LARGE: Final = limit("large answers without a key", 256, "at once, for each worker", "429")
"""Answers above LARGE_BYTES without a key that are under way in one worker."""
_CROWD: Final = 64
_SWITCH_SECONDS: Final = sys.getswitchinterval()
_CROWDED_SWITCH_SECONDS: Final = 0.0005
"""The server's own thread takes requests in and needs the interpreter for each. While requests wait it would
wait ten times as long for it, and everybody's next request with it; otherwise the short one only costs."""
_MOST_PROVEN: Final = 65_536
_CLOSE: Final = (b"connection", b"close")


class Lanes:
    """An ASGI application in front of another."""

    def __init__(self, inner: Application, base_url: str, known: KnownClients) -> None:
        self._inner = inner
        self._known = known
        self._base_url = base_url
        # Hashes with this process's own secret seed: a hint of who comes first, and no key is kept.
        self._proven: set[int] = set()
        self._keyed: deque[asyncio.Future[None]] = deque()
        self._keyless: deque[asyncio.Future[None]] = deque()
        self._begun = 0
        self.large = 0

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        key = None
        for name, value in scope["headers"]:
            if name in (b"x-api-key", b"authorization"):
                key = hash(value)
                break
        if key in self._proven:
            self._known.add(scope["client"])
            return self._inner(scope, receive, send)
        return self._in_turn(key, scope, receive, send)

    async def _in_turn(self, key: int | None, scope: Scope, receive: Receive, send: Send) -> None:
        await self._turn(self._keyless if key is None else self._keyed)
        answer = _Answer(self, key, scope, send)
        try:
            await self._inner(scope, receive, answer)
        finally:
            self.large -= answer.large

    async def _turn(self, queue: deque[asyncio.Future[None]]) -> None:
        loop = asyncio.get_running_loop()
        if not self._begun:
            loop.call_soon(self._next_round)
        if self._begun < AT_ONCE and not self.crowd:
            self._begun += 1
            return
        turn: asyncio.Future[None] = loop.create_future()
        if not self.crowd:
            sys.setswitchinterval(_CROWDED_SWITCH_SECONDS)
        queue.append(turn)
        await turn

    def _next_round(self) -> None:
        self._begun = 0
        while self.crowd and self._begun < AT_ONCE:
            turn = (self._keyed or self._keyless).popleft()
            if not turn.done():
                turn.set_result(None)
                self._begun += 1
            if not self.crowd:
                sys.setswitchinterval(_SWITCH_SECONDS)
        if self._begun:
            asyncio.get_running_loop().call_soon(self._next_round)

    @property
    def crowd(self) -> int:
        """How many requests wait in the queues."""
        return len(self._keyed) + len(self._keyless)

    def prove(self, key: int, client: tuple[str, int]) -> None:
        self._known.add(client)
        if len(self._proven) >= _MOST_PROVEN:
            self._proven.clear()
        self._proven.add(key)

    def refusal(self, path: str, request_id: str) -> tuple[int, Headers, bytes]:
        problem = RateLimited("Too many clients without a key are reading at once; retry.", 2)
        body = problem_body(problem, self._base_url, quote(path, safe="/"), request_id)
        return problem.status, [PROBLEM_JSON, NO_STORE, *problem_headers(problem)], body


class _Answer:
    """The ASGI `send` of a request whose key is not proven."""

    def __init__(self, lanes: Lanes, key: int | None, scope: Scope, send: Send) -> None:
        self._lanes = lanes
        self._key = key
        self._scope = scope
        self._send = send
        self._refused = False
        self._counted = False
        self.large = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            await self._start(message)
        elif not self._refused:
            await self._body(message)

    async def _start(self, message: Message) -> None:
        """A response with RateLimit fields was counted, which shows that the key is valid."""
        headers = dict(message["headers"])
        lanes = self._lanes
        if b"ratelimit" in headers:
            self._counted = True
            if self._key is not None:
                lanes.prove(self._key, self._scope["client"])
            await self._send(message)
            return
        close = [_CLOSE] if lanes.crowd > _CROWD and b"connection" not in headers else []
        if int(headers.get(b"content-length", 0)) > LARGE_BYTES:
            if lanes.large >= MOST_LARGE:
                self._refused = True
                await self._refuse(headers)
                return
            self.large = True
            lanes.large += 1
        await self._send({**message, "headers": [*message["headers"], *close]})

    async def _refuse(self, headers: dict[bytes, bytes]) -> None:
        copied = {
            name: headers[name] for name in (b"x-service-api-version", b"x-request-id") if name in headers
        }
        status, more, body = self._lanes.refusal(
            self._scope["path"], copied.get(b"x-request-id", b"").decode()
        )
        more += [*copied.items(), (b"content-length", b"%d" % len(body)), _CLOSE]
        await self._send({"type": "http.response.start", "status": status, "headers": more})
        await self._send({"type": "http.response.body", "body": body})

    async def _body(self, message: Message) -> None:
        """A large body goes out in parts, each when the client took the one before."""
        body: bytes = message.get("body", b"")
        if self._counted or len(body) <= LARGE_BYTES:
            await self._send(message)
            return
        for start in range(0, len(body), LARGE_BYTES):
            part = body[start : start + LARGE_BYTES]
            more = start + LARGE_BYTES < len(body) or message.get("more_body", False)
            await self._send({"type": "http.response.body", "body": part, "more_body": more})
