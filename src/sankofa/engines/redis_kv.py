"""The key-value store on a Redis server (or Valkey), for services on more than one machine.

The server is named by its address, or is the primary that sentinels watch.

Commands travel over one connection per process, several at a time, and hiredis reads the answers.
The connection is ours because its clock is: a client library either costs several times as much per
request or cannot be stopped in time when the server is frozen (docs/decisions/key-value-store.md).
"""

import asyncio
import socket
import ssl
from collections import deque
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from sankofa.engines.redis_commands import NO_SCRIPT, NodesUrl, RedisCommands, Word
from sankofa.model.errors import SettingsError
from sankofa.model.limits import limit

try:
    import hiredis
except ImportError as missing:
    raise SettingsError(
        "redis:// needs a driver: make setup EXTRAS=1, or install sankofa[redis]"
    ) from missing

_LARGEST_ANSWER = limit("answer of Redis", 64 << 20, "bytes", "503")
_WATCH_SECONDS = 0.05

_NOT_PRIMARY = ("READONLY", "MASTERDOWN", "NOREPLICAS")
"""Codes of a server that others have become the primary of, or that its replicas have left for another."""
_LOOK_SECONDS = 1.0
"""How often sentinels are asked, while there are calls, whether the server is still the primary: one that
comes back after they chose another takes writes for seconds, which are lost when it has to follow."""


class _LinkError(Exception):
    """The connection is lost, and with it every outstanding answer."""


class _Link(asyncio.Protocol):
    """One connection. The server answers in order, so the next answer belongs to the oldest waiting call."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.lost = ""
        self.address: tuple[str, int] | None = None
        self._reader = hiredis.Reader()
        self._waiting: deque[tuple[float, asyncio.Future[object]]] = deque()
        self._outbox: list[bytes] = []
        self._watch: asyncio.TimerHandle | None = None
        self._watched_at = 0.0
        self._reprieved = False
        self._unread = 0
        """Bytes of an answer that is not whole yet."""
        self._transport: asyncio.Transport | None = None

    async def call(self, deadline: float, *words: Word) -> object:
        """Send one command and return its answer, an error reply included; raise _LinkError otherwise."""
        if self.lost:
            raise _LinkError(self.lost)
        answer: asyncio.Future[object] = self.loop.create_future()
        self._waiting.append((deadline, answer))
        if not self._outbox:  # calls of one loop iteration are sent in one write
            self.loop.call_soon(self._flush)
        self._outbox.append(hiredis.pack_command(cast(Any, words)))  # its stub knows one word only
        if self._watch is None:
            self._watched_at = self.loop.time()
            self._watch = self.loop.call_later(_WATCH_SECONDS, self._look_for_overdue)
        return await answer

    def drop(self, reason: str) -> None:
        """Closes at once and fails every waiting call. Only the first reason counts."""
        if self.lost:
            return
        self.lost = reason
        if self._watch is not None:
            self._watch.cancel()
        if self._transport is not None:
            self._transport.abort()
        for _, answer in self._waiting:
            if not answer.done():
                answer.set_exception(_LinkError(reason))
        self._waiting.clear()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        connection = transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def connection_lost(self, exc: Exception | None) -> None:
        self.drop("connection closed")

    def data_received(self, data: bytes) -> None:
        try:
            self._reader.feed(data)
            self._unread += len(data)
            while (reply := self._reader.gets()) is not False:
                self._unread = 0
                _, answer = self._waiting.popleft()
                if not answer.done():  # its caller may have been cancelled
                    answer.set_result(reply)
        except (hiredis.HiredisError, IndexError):
            self.drop("not an answer of Redis")
        if self._unread > _LARGEST_ANSWER:
            self.drop("an answer that is too large")

    def _flush(self) -> None:
        commands, self._outbox = self._outbox, []
        if self._transport is not None and not self.lost:
            self._transport.write(b"".join(commands))

    def _look_for_overdue(self) -> None:
        """One timer for all calls: an overdue answer means that the server or the network is frozen."""
        self._watch = None
        if not self._waiting:
            return
        now = self.loop.time()
        overdue = min(deadline for deadline, _ in self._waiting) <= now
        # When our own loop was held up, commands may be unsent and answers unread: wait once more.
        held_up = now - self._watched_at > 2 * _WATCH_SECONDS
        if overdue and (self._reprieved or not held_up):
            self.drop("did not answer in time")
            return
        self._reprieved = overdue
        self._watched_at = now
        self._watch = self.loop.call_later(_WATCH_SECONDS, self._look_for_overdue)


class _Server:
    """Address and credentials of the server. Never shown: the URL may carry a password."""

    def __init__(self, url: str) -> None:
        try:
            parts = urlsplit(url)
            self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 6379
            database = int(parts.path.strip("/") or 0)
        except ValueError:  # its text would quote the URL
            raise SettingsError("A Redis URL is redis://[user:password@]host[:port][/database]") from None
        if parts.query or parts.fragment:
            raise SettingsError("A Redis URL takes no options after ? or #")
        self._tls = ssl.create_default_context() if parts.scheme == "rediss" else None
        self._greeting = _greeting(unquote(parts.username or ""), unquote(parts.password or ""), database)

    async def dial(self, deadline: float) -> _Link:
        """A connected link, or a lost one with the reason: a task that is not awaited must not raise."""
        loop = asyncio.get_running_loop()
        link = _Link(loop)
        try:
            async with asyncio.timeout_at(deadline):
                link.address = host, port = await self.address()
                await loop.create_connection(lambda: link, host, port, ssl=self._tls)
                for command in self._greeting:
                    reply = await link.call(deadline, *command)
                    if isinstance(reply, hiredis.ReplyError):
                        link.drop(f"refused: {_code(reply)}")
        except TimeoutError:
            link.drop("did not answer in time")
        except (OSError, UnicodeError, _LinkError):
            link.drop("could not be reached")
        return link

    async def address(self) -> tuple[str, int]:
        return self._host, self._port


class _WatchedServer(_Server):
    """The primary that sentinels watch. They are asked at each connection."""

    def __init__(self, url: str) -> None:
        from sankofa.engines.redis_groups import NoPrimary, find_primary

        self._url = NodesUrl.parse(url)
        self._find, self._no_primary = find_primary, NoPrimary
        self._tls = ssl.create_default_context() if self._url.tls else None
        login = self._url.credentials
        self._greeting = _greeting(login.get("username", ""), login.get("password", ""), self._url.database)

    async def address(self) -> tuple[str, int]:
        """Raises _LinkError."""
        try:
            return await self._find(self._url)
        except self._no_primary as failure:
            raise _LinkError(str(failure)) from None


def _greeting(user: str, password: str, database: int) -> list[tuple[Word, ...]]:
    """The commands that open a connection."""
    commands: list[tuple[Word, ...]] = []
    if password:
        commands.append(("AUTH", *([user] if user else []), password))
    if database:
        commands.append(("SELECT", database))
    return commands


class RedisKeyValue(RedisCommands):
    """A KeyValue on one Redis server."""

    def __init__(self, url: str, component: str) -> None:
        super().__init__(component)
        self._watched = url.partition(":")[0].endswith("+sentinel")
        self._server: _Server = _WatchedServer(url) if self._watched else _Server(url)
        self._looking: asyncio.Task[None] | None = None
        self._looked = 0.0
        self._link: _Link | None = None
        self._dialling: asyncio.Task[_Link] | None = None

    async def close(self) -> None:
        """Closes the link. One of an ended event loop is already closed."""
        loop, dialling, link = asyncio.get_running_loop(), self._dialling, self._link
        self._dialling = self._link = None
        if self._looking is not None and not self._looking.done() and self._looking.get_loop() is loop:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        if dialling is not None and not dialling.done() and dialling.get_loop() is loop:
            link = await asyncio.shield(dialling)
        if link is not None and link.loop is loop:
            link.drop("closed")
            await asyncio.sleep(0)  # the transport closes its socket in the next turn

    async def command(self, deadline: float, *words: Word) -> object:
        loop = asyncio.get_running_loop()
        link = self._link
        if link is None or link.lost or link.loop is not loop:
            link = await self._connected(deadline)
            self._looked = loop.time()
        elif self._watched and loop.time() - self._looked > _LOOK_SECONDS:
            self._looked = loop.time()
            self._looking = loop.create_task(self._look(link))
        try:
            reply = await link.call(deadline, *words)
        except _LinkError as error:
            raise self.unavailable(str(error)) from None
        if not isinstance(reply, hiredis.ReplyError):
            return reply
        code = _code(reply)  # its text may quote names and values
        if code == "NOSCRIPT":
            return NO_SCRIPT
        if code in _NOT_PRIMARY:
            link.drop("no longer the primary")  # the next call looks for the server that is
        raise self.unavailable(code)

    async def _look(self, link: _Link) -> None:
        """Drops the connection to a server that is no longer the primary; the next call connects to the
        new one."""
        try:
            if await self._server.address() != link.address:
                link.drop("no longer the primary")
        except _LinkError:
            pass  # no sentinel answers, so none can have chosen another

    async def _connected(self, deadline: float) -> _Link:
        """Joins the connection attempt under way or starts one. It continues for other callers if this one
        is cancelled."""
        dialling = self._dialling
        if dialling is None or dialling.done() or dialling.get_loop() is not asyncio.get_running_loop():
            dialling = self._dialling = asyncio.create_task(self._server.dial(deadline))
        self._link = await asyncio.shield(dialling)
        return self._link


def _code(reply: hiredis.ReplyError) -> str:
    return str(reply).partition(" ")[0]
