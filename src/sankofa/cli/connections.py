"""Limits on clients that never read, never finish their request or never disconnect.

The kernel does most of it: options of the listening socket, inherited by every connection, bound what waits
in either direction and end a connection whose client takes nothing. This module looks at what is left, from
inside the worker: it closes those that take their answer by the byte, the stalled ones of an address with
too many connections, and the slowest of all before connections or file descriptors run out. See
docs/decisions/hostile-clients.md.
"""

import asyncio
import logging
import os
import socket
import struct
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final, NamedTuple

from sankofa.cli.process import descriptor_limit, raise_descriptor_limit
from sankofa.settings import Settings

_log = logging.getLogger("sankofa.serving")

_RECEIVE_BYTES: Final = 64 * 1024  # requests wait here; the kernel would take megabytes of pipelined ones
_UNSENT_BYTES: Final = 128 * 1024  # of an answer beyond what is under way, which the kernel sizes itself
_TCP_NOTSENT_LOWAT: Final = 25  # of linux/tcp.h; Python 3.11 has no name for it
_OWN_DESCRIPTORS: Final = 4_096  # the parts of several editions, stores, downloads

_TICK: Final = 0.1
_PRESSED_TICK: Final = 0.02
_SCAN_SECONDS: Final = 1.0
_FEW: Final = 128  # descriptors below which nobody is in anybody's way
_SLICE: Final = 100  # connections looked at in one turn of the event loop
_LEFT: Final = 8  # connections that stay, however few descriptors there are
_STALLED_MS: Final = 2_000  # longer than any request is worked on
_ONE_REQUEST: Final = 32 * 1024  # more than a request without a valid key has to say
_MOST_KNOWN: Final = 10_000  # connections in each of two sets
_LEAST_BYTES: Final = 16 * 1024  # that a client takes in STALL_SECONDS while more waits for it

# Of tcp_info: state, last_data_sent, last_data_recv, bytes_acked, bytes_received, unsent.
_INFO: Final = struct.Struct("=B43xI4xI64xQQ8xI")
_OPEN: Final = (1, 8)  # established, or closed by the client only


@dataclass(frozen=True)
class ConnectionLimits:
    """What one worker allows its clients."""

    connections: int
    per_address: int
    stall_seconds: int

    @classmethod
    def of(cls, settings: Settings) -> "ConnectionLimits":
        """The limits as configured, within the available file descriptors; the soft limit is raised first."""
        limit = raise_descriptor_limit()
        room = limit - min(_OWN_DESCRIPTORS, limit // 2)
        return cls(min(settings.connections, room), settings.connections_per_address, settings.stall_seconds)

    def apply(self, listener: socket.socket) -> None:
        """Before it listens: a window cannot be made smaller once it was announced."""
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.setsockopt(socket.IPPROTO_TCP, _TCP_NOTSENT_LOWAT, _UNSENT_BYTES)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, self.stall_seconds * 1000)


class KnownClients:
    """Connections that carried a valid key lately, which are closed last. The oldest are forgotten."""

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
    stands: bool
    """It leaves an answer lying, sends requests ahead, or is silent for longer than any answer takes."""
    still_ms: int
    descriptor: int
    address: str
    inode: int
    """Of its socket: the number of a descriptor may become another connection's."""


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
            _log.warning("connections could not be looked at: %s", failure.strerror)


class _Shedder:
    def __init__(self, limits: ConnectionLimits, family: int, port: int, known: KnownClients) -> None:
        self._limits = limits
        self._family = family
        self._port = port
        self._known = known
        self._spare: int | None = None
        self._scanned = 0.0
        self._taken: dict[int, tuple[int, float]] = {}
        """By inode: bytes the client took, and when it was seen."""

    async def look(self) -> bool:
        """Close what must be closed; True where that was necessary, and more is likely to be waiting.

        The lowest free descriptor shows cheaply whether many are open; only then they are examined.
        """
        now = time.monotonic()
        number = self._lowest_free()
        if number < min(_FEW, self._high()) or (
            now - self._scanned < _SCAN_SECONDS and number < self._high()
        ):
            return False
        self._scanned = now
        descriptors = self._open_descriptors()
        connections = await self._scan(descriptors, now)
        connections.sort(reverse=True)
        excess = max(
            len(connections) - self._limits.connections // 2 if len(connections) > self._high() else 0,
            len(descriptors) + 2 * _spare() - descriptor_limit(),
        )
        shed = set(connections[: max(0, min(excess, len(connections) - _LEFT))])
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
        """Listing takes a descriptor: the spare one is given up for it, in case there is no other."""
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None
        try:
            return [int(name) for name in os.listdir("/proc/self/fd")]  # noqa: PTH208 - of thousands
        except OSError:  # the server was faster: whatever is open has a number below the limit
            return list(range(descriptor_limit()))

    async def _scan(self, descriptors: list[int], now: float) -> list[_Connection]:
        """The client connections among the descriptors; one that reads next to nothing counts as idle."""
        connections: list[_Connection] = []
        taken: dict[int, tuple[int, float]] = {}
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
                    before, since = self._taken.get(inode, (acked, now))
                    taken[inode] = (before, since) if acked - before < _LEAST_BYTES else (acked, now)
                    still_ms = max(sent_ms, int((now - taken[inode][1]) * 1000))
                peer = link.getpeername()[:2]
                unknown = peer not in self._known
                stands = unsent > 0 or still_ms > _STALLED_MS or (unknown and received > _ONE_REQUEST)
                connections.append(_Connection(unknown, stands, still_ms, descriptor, peer[0], inode))
        self._taken = taken
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
        """The server finds it closed and lets it go; nothing of what waits is sent any more.

        Through a copy of the descriptor, because the number may become another connection's meanwhile; where
        there is no room for a copy, whichever connection it is makes some.
        """
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
    """Descriptors that are kept free."""
    return min(32, descriptor_limit() // 8)
