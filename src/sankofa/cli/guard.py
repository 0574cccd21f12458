"""The guards of a bare port against hostile and slow clients: limits on connections, and a priority queue.

Socket options limit the data waiting in either direction. The worker closes clients that read byte by byte,
stalled clients of an address with too many, and the slowest before connections or descriptors run out.
Requests with a proven key begin at once. The others wait in a queue, those with a key first. The number of
large answers sent without a key is limited. See docs/decisions/hostile-clients.md.
"""

import asyncio
import logging
import os
import socket
import struct
import sys
import time
from collections import Counter, deque
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import quote

from sankofa.cli.process import descriptor_limit, raise_descriptor_limit
from sankofa.model.errors import RateLimited
from sankofa.model.limits import limit
from sankofa.operations.answers import NO_STORE, PROBLEM_JSON, problem_body, problem_headers
from sankofa.operations.service import Application, Message, Receive, Scope, Send
from sankofa.settings import Settings

_log = logging.getLogger("sankofa.serving")

_RECEIVE_BYTES: Final = 64 * 1024  # waiting requests; the kernel would accept megabytes of pipelined ones
_UNSENT_BYTES: Final = 128 * 1024  # of an answer, besides the bytes in flight, which the kernel limits
_TCP_NOTSENT_LOWAT: Final = 25  # from linux/tcp.h; Python 3.11 has no name for it
_OWN_DESCRIPTORS: Final = 4_096  # the parts of several editions, stores, downloads

_TICK: Final = 0.1
_PRESSED_TICK: Final = 0.02
_SCAN_SECONDS: Final = 1.0
_FEW: Final = 128  # below this many descriptors nothing is closed
_SLICE: Final = 100  # connections examined in one round of the event loop
_ALWAYS_OPEN: Final = 8  # connections always left open, however few descriptors there are
_STALLED_MS: Final = 2_000  # longer than any request is worked on
_ONE_REQUEST: Final = 32 * 1024  # more than any request without a valid key needs
_MOST_KNOWN: Final = 10_000  # connections in each of two sets
_LEAST_BYTES: Final = 16 * 1024  # a client must read this much in STALL_SECONDS while more waits

# Fields of tcp_info: state, last_data_sent, last_data_recv, bytes_acked, bytes_received, unsent.
_INFO: Final = struct.Struct("=B43xI4xI64xQQ8xI")
_OPEN: Final = (1, 8)  # established, or closed by the client only


@dataclass(frozen=True)
class ConnectionLimits:
    connections: int
    per_address: int
    stall_seconds: int

    @classmethod
    def of(cls, settings: Settings) -> "ConnectionLimits":
        """The limits as configured, within the available file descriptors; the soft limit is raised first."""
        most = raise_descriptor_limit()
        room = most - min(_OWN_DESCRIPTORS, most // 2)
        return cls(min(settings.connections, room), settings.connections_per_address, settings.stall_seconds)

    def apply(self, listener: socket.socket) -> None:
        """Apply before listening: an announced window cannot shrink."""
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.setsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, _UNSENT_BYTES)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, self.stall_seconds * 1000)


class KnownClients:
    """Connections that carried a valid key recently. They are closed last; the oldest are forgotten."""

    def __init__(self) -> None:
        self._newer: set[tuple[str, int]] = set()
        self._older: set[tuple[str, int]] = set()

    def add(self, client: tuple[str, int]) -> None:
        self._newer.add(client)
        if len(self._newer) > _MOST_KNOWN:
            self._older, self._newer = self._newer, set()

    def __contains__(self, client: object) -> bool:
        return client in self._newer or client in self._older


class _Connection(NamedTuple):
    """An open connection of a client. In sort order, the last is closed first."""

    unknown: bool
    stalled: bool
    """It does not read its answer, sends requests ahead, or stays silent longer than any answer takes."""
    still_ms: int
    descriptor: int
    address: str
    inode: int
    """The inode of its socket; a descriptor number may be reused by another connection."""


async def shed_connections(limits: ConnectionLimits, family: int, port: int, known: KnownClients) -> None:
    """Close connections of this worker as needed, for as long as it runs."""
    if sys.platform != "linux":
        return
    shedder = _Shedder(limits, family, port, known)
    pressed = False
    while True:
        await asyncio.sleep(_PRESSED_TICK if pressed else _TICK)
        try:
            pressed = await shedder.look()
        except OSError as failure:
            _log.warning("cannot examine connections: %s", failure.strerror)


class _Shedder:
    def __init__(self, limits: ConnectionLimits, family: int, port: int, known: KnownClients) -> None:
        self._limits = limits
        self._family = family
        self._port = port
        self._known = known
        self._spare: int | None = None
        self._scanned = 0.0
        self._read_bytes: dict[int, tuple[int, float]] = {}
        """By inode: bytes that the client read, and when this was seen."""

    async def look(self) -> bool:
        """Close connections if needed; True if any was closed and more are likely waiting.

        The lowest free descriptor shows cheaply whether many are open. Connections are examined only then.
        """
        now = time.monotonic()
        number = self._lowest_free()
        scanned_lately = now - self._scanned < _SCAN_SECONDS
        if number < min(_FEW, self._high()) or (scanned_lately and number < self._high()):
            return False
        self._scanned = now
        descriptors = self._open_descriptors()
        connections = await self._scan(descriptors, now)
        connections.sort(reverse=True)
        excess = max(
            len(connections) - self._limits.connections // 2 if len(connections) > self._high() else 0,
            len(descriptors) + 2 * _spare() - descriptor_limit(),
        )
        shed = set(connections[: max(0, min(excess, len(connections) - _ALWAYS_OPEN))])
        closed = 0
        for position, connection in enumerate(shed | self._crowded(connections)):
            if position % _SLICE == _SLICE - 1:
                await asyncio.sleep(0)
            closed += self._close(connection)
        if closed:
            _log.warning("closed %d of %d connections, the slowest first", closed, len(connections))
        return closed > 0

    def _high(self) -> int:
        return min(self._limits.connections * 9 // 10, descriptor_limit() - _spare())

    def _lowest_free(self) -> int:
        try:
            if self._spare is None:
                self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
            number = os.dup(self._spare)
        except OSError:
            return descriptor_limit()
        os.close(number)
        return number

    def _open_descriptors(self) -> list[int]:
        """Listing needs a descriptor, so the spare one is closed first, in case no other is free."""
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None
        try:
            return [int(name) for name in os.listdir("/proc/self/fd")]  # noqa: PTH208 - of thousands
        except OSError:  # no descriptor left: every open one has a number below the limit
            return list(range(descriptor_limit()))

    async def _scan(self, descriptors: list[int], now: float) -> list[_Connection]:
        """The client connections among the descriptors; a client that reads almost nothing counts as idle."""
        connections: list[_Connection] = []
        read_bytes: dict[int, tuple[int, float]] = {}
        for position, descriptor in enumerate(descriptors):
            if position % _SLICE == _SLICE - 1:
                await asyncio.sleep(0)
            with suppress(OSError), _borrowed(self._family, descriptor) as link:
                state, sent_ms, received_ms, acked, received, unsent = _INFO.unpack(
                    link.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO.size)
                )
                if state not in _OPEN or link.getsockname()[1] != self._port:
                    continue
                still_ms = min(sent_ms, received_ms)
                inode = os.fstat(descriptor).st_ino
                if unsent:
                    before, since = self._read_bytes.get(inode, (acked, now))
                    read_bytes[inode] = (before, since) if acked - before < _LEAST_BYTES else (acked, now)
                    still_ms = max(sent_ms, int((now - read_bytes[inode][1]) * 1000))
                peer = link.getpeername()[:2]
                unknown = peer not in self._known
                stalled = unsent > 0 or still_ms > _STALLED_MS or (unknown and received > _ONE_REQUEST)
                connections.append(_Connection(unknown, stalled, still_ms, descriptor, peer[0], inode))
        self._read_bytes = read_bytes
        return connections

    def _crowded(self, connections: list[_Connection]) -> set[_Connection]:
        """Connections idle for too long, and stalled ones of an address that has too many."""
        shed: set[_Connection] = set()
        by_address = Counter(connection.address for connection in connections)
        for connection in connections:
            if connection.still_ms < _STALLED_MS:
                continue
            crowded = by_address[connection.address] > self._limits.per_address
            if crowded or connection.still_ms > self._limits.stall_seconds * 1000:
                by_address[connection.address] -= 1
                shed.add(connection)
        return shed

    def _close(self, connection: _Connection) -> bool:
        """Reset a connection through a copy of its descriptor: the number may be reused meanwhile."""
        descriptor = connection.descriptor
        try:
            copy = os.dup(descriptor)
        except OSError:
            copy = None
        try:
            with _borrowed(self._family, descriptor if copy is None else copy) as link:
                if link.getsockname()[1] != self._port or os.fstat(link.fileno()).st_ino != connection.inode:
                    return False
                link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                link.shutdown(socket.SHUT_RDWR)
                return True
        except OSError:
            return False
        finally:
            if copy is not None:
                os.close(copy)


@contextmanager
def _borrowed(family: int, descriptor: int) -> Iterator[socket.socket]:
    """A socket object for a descriptor of the server, which it does not close."""
    link = socket.socket(family, socket.SOCK_STREAM, 0, fileno=descriptor)
    try:
        yield link
    finally:
        link.detach()


def _spare() -> int:
    return min(32, descriptor_limit() // 8)  # descriptors that stay free


AT_ONCE: Final = 4
"""Requests without a proven key that begin in one round."""
LARGE_BYTES: Final = 64 * 1024
MOST_LARGE: Final = limit("large answers without a key", 256, "at once, for each worker", "429")
"""Answers above LARGE_BYTES without a key that are under way in one worker."""
_CROWD: Final = 64
_SWITCH_SECONDS: Final = sys.getswitchinterval()
_CROWDED_SWITCH_SECONDS: Final = 0.0005
"""While requests wait, the thread that reads them gets the interpreter ten times sooner."""
_MOST_PROVEN: Final = 65_536
_CLOSE_FIELD: Final = (b"connection", b"close")
_COPIED: Final = (b"x-service-api-version", b"x-request-id")


class PriorityQueue:
    """An ASGI application in front of another."""

    def __init__(self, inner: Application, base_url: str, known: KnownClients) -> None:
        self._inner = inner
        self._known = known
        self.base_url = base_url
        # Hashed with this process's secret seed: only a priority hint; no key is stored.
        self._proven: set[int] = set()
        self._keyed: deque[asyncio.Future[None]] = deque()
        self._keyless: deque[asyncio.Future[None]] = deque()
        self._started = 0
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
        return self._when_admitted(key, scope, receive, send)

    async def _when_admitted(self, key: int | None, scope: Scope, receive: Receive, send: Send) -> None:
        await self._wait_in(self._keyless if key is None else self._keyed)
        answer = _Answer(self, key, scope, send)
        try:
            await self._inner(scope, receive, answer)
        finally:
            self.large -= answer.large

    async def _wait_in(self, queue: deque[asyncio.Future[None]]) -> None:
        loop = asyncio.get_running_loop()
        if not self._started:
            loop.call_soon(self._next_round)
        if self._started < AT_ONCE and not self.crowd:
            self._started += 1
            return
        waiting: asyncio.Future[None] = loop.create_future()
        if not self.crowd:
            sys.setswitchinterval(_CROWDED_SWITCH_SECONDS)
        queue.append(waiting)
        await waiting

    def _next_round(self) -> None:
        self._started = 0
        while self.crowd and self._started < AT_ONCE:
            waiting = (self._keyed or self._keyless).popleft()
            if not waiting.done():
                waiting.set_result(None)
                self._started += 1
            if not self.crowd:
                sys.setswitchinterval(_SWITCH_SECONDS)
        if self._started:
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


class _Answer:
    """The ASGI `send` of a request whose key is not proven."""

    def __init__(self, queue: PriorityQueue, key: int | None, scope: Scope, send: Send) -> None:
        self._queue = queue
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
        """RateLimit fields in a response show that it was counted, so the key is valid."""
        headers = dict(message["headers"])
        queue = self._queue
        if b"ratelimit" in headers:
            self._counted = True
            if self._key is not None:
                queue.prove(self._key, self._scope["client"])
            await self._send(message)
            return
        close = [_CLOSE_FIELD] if queue.crowd > _CROWD and b"connection" not in headers else []
        if int(headers.get(b"content-length", 0)) > LARGE_BYTES:
            if queue.large >= MOST_LARGE:
                self._refused = True
                await self._refuse(headers)
                return
            self.large = True
            queue.large += 1
        await self._send({**message, "headers": [*message["headers"], *close]})

    async def _refuse(self, headers: dict[bytes, bytes]) -> None:
        problem = RateLimited("Too many clients without a key are reading at once; retry.", 2)
        request_id = headers.get(b"x-request-id", b"").decode()
        path = quote(self._scope["path"], safe="/")
        body = problem_body(problem, self._queue.base_url, path, request_id)
        copied = [field for field in headers.items() if field[0] in _COPIED]
        length = (b"content-length", b"%d" % len(body))
        fields = [PROBLEM_JSON, NO_STORE, *problem_headers(problem), *copied, length, _CLOSE_FIELD]
        await self._send({"type": "http.response.start", "status": problem.status, "headers": fields})
        await self._send({"type": "http.response.body", "body": body})

    async def _body(self, message: Message) -> None:
        """Sends a large body in parts; each waits until the client has read the previous one."""
        body: bytes = message.get("body", b"")
        if self._counted or len(body) <= LARGE_BYTES:
            await self._send(message)
            return
        for start in range(0, len(body), LARGE_BYTES):
            part = body[start : start + LARGE_BYTES]
            more = start + LARGE_BYTES < len(body) or message.get("more_body", False)
            await self._send({"type": "http.response.body", "body": part, "more_body": more})
