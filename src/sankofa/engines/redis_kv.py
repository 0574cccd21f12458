"""The key-value store on a Redis server (or Valkey), for services on more than one machine.

Values are fields of hashes, and every counter is a key that expires; this holds for one server, a primary
behind sentinels, and a cluster (`engines.redis_groups`). A connection sends a command and returns its reply
(`RedisCommands.command`).

Commands to a server travel over one connection per process, several at a time, and hiredis reads the answers.
We wrote the connection ourselves for its timeout: a client library either costs several times as much per
request or cannot be stopped in time when the server is frozen (docs/decisions/key-value-store.md).
"""

import asyncio
import hashlib
import socket
import ssl
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any, Final, NamedTuple, cast
from urllib.parse import parse_qsl, unquote, urlsplit
from zlib import crc32

from sankofa.engines.keyvalue import PROBE, Window
from sankofa.model.errors import SettingsError, StoreUnavailable
from sankofa.model.limits import limit

try:
    import hiredis
except ImportError as missing:
    raise SettingsError(
        "redis:// needs a driver: make setup EXTRAS=1, or install sankofa[redis]"
    ) from missing

VALUES: Final = "sankofa:values"
"""The hash with every value on a single server or a primary behind sentinels."""
NO_SCRIPT: Final = object()
"""The reply of a server that does not know a script: it was restarted, or became the primary."""
Word = str | bytes | int
_CALL_SECONDS: Final = limit("call of Redis", 0.8, "seconds", "503")
_COUNT_SCRIPT: Final = """
local counts = {}
for i, key in ipairs(KEYS) do
  counts[i] = redis.call('INCR', key)
  if counts[i] == 1 then redis.call('EXPIRE', key, ARGV[i]) end
end
return counts
"""
_REPLACE_SCRIPT: Final = """
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
"""
"""Arguments: a hash, a field, the expected value and the new value."""
_COUNT_SHA: Final = hashlib.sha1(_COUNT_SCRIPT.encode(), usedforsecurity=False).hexdigest()


class RedisCommands(ABC):
    """See `engines.keyvalue.KeyValue`."""

    hashes: tuple[str, ...] = (VALUES,)
    """The hashes that share the values."""

    def __init__(self, component: str) -> None:
        self._component = component

    @abstractmethod
    async def command(self, deadline: float, *words: Word) -> object:
        """The reply of the server. Raises StoreUnavailable if it is an error, or none by the deadline."""

    async def get(self, name: str) -> bytes | None:
        reply = await self._command("HGET", self._hash_of(name), name)
        if reply is None or isinstance(reply, bytes):
            return reply
        raise self.unavailable(_ANOTHER)

    async def put(self, name: str, value: bytes) -> None:
        await self._number("HSET", self._hash_of(name), name, value)

    async def replace(self, name: str, expected: bytes, value: bytes) -> bool:
        words = (_REPLACE_SCRIPT, 1, self._hash_of(name), name, expected, value)
        return await self._number("EVAL", *words) == 1

    async def names(self, prefix: str) -> list[str]:
        stored: list[bytes] = []
        for key in self.hashes:
            reply = await self._command("HKEYS", key)
            if not isinstance(reply, list):
                raise self.unavailable(_ANOTHER)
            stored += reply
        decoded = (name.decode(errors="replace") for name in stored)
        return sorted(name for name in decoded if name.startswith(prefix))

    async def count(self, name: str, windows: Sequence[Window]) -> tuple[int, ...]:
        seconds = [window.seconds for window in windows]
        words: list[Word] = [len(windows), *_counters(name, windows), *seconds]
        deadline = _deadline()
        reply = await self.command(deadline, "EVALSHA", _COUNT_SHA, *words)
        if reply is NO_SCRIPT:
            reply = await self.command(deadline, "EVAL", _COUNT_SCRIPT, *words)
        return self._counts_in(reply, len(windows), 1)

    async def counts(self, name: str, windows: Sequence[Window]) -> tuple[int, ...]:
        return self._counts_in(await self._command("MGET", *_counters(name, windows)), len(windows), 0)

    async def ping(self) -> None:
        """A read of every server that holds values."""
        for key in self.hashes:
            await self._number("HLEN", key)

    async def probe_counting(self) -> None:
        await self.count(*PROBE)

    def unavailable(self, reason: str) -> StoreUnavailable:
        return StoreUnavailable(self._component, reason)

    def _hash_of(self, name: str) -> str:
        hashes = self.hashes
        return hashes[0] if len(hashes) == 1 else hashes[crc32(name.encode()) % len(hashes)]

    async def _command(self, *words: Word) -> object:
        return await self.command(_deadline(), *words)

    async def _number(self, *words: Word) -> int:
        reply = await self._command(*words)
        if not isinstance(reply, int):
            raise self.unavailable(_ANOTHER)
        return reply

    def _counts_in(self, reply: object, windows: int, least: int) -> tuple[int, ...]:
        """The counters of an answer. Raises StoreUnavailable if they were altered."""
        if isinstance(reply, list) and len(reply) == windows:
            try:
                counts = tuple(int(count or 0) for count in reply)
            except (ValueError, TypeError):
                counts = (-1,)
            if min(counts, default=least) >= least:
                return counts
        raise self.unavailable(_ANOTHER)


_ANOTHER: Final = "not the answer asked for"


def _deadline() -> float:
    return asyncio.get_running_loop().time() + _CALL_SECONDS


def _counters(name: str, windows: Sequence[Window]) -> list[str]:
    """The keys of the counters. The braces keep a name's keys on one node, as scripts require."""
    return [f"sankofa:count:{{{name}}}:{window.name}" for window in windows]


_FORM: Final = (
    "A Redis URL of several servers is redis+sentinel://[user:password@]host:port,host:port/name[/database] "
    "or redis+cluster://[user:password@]host:port,host:port"
)


class NodesUrl(NamedTuple):
    """Addresses and credentials of the servers. Never shown: the URL may carry a password."""

    cluster: bool
    tls: bool
    addresses: tuple[tuple[str, int], ...]
    name: str
    database: int
    credentials: dict[str, str]
    sentinel_credentials: dict[str, str]

    @classmethod
    def parse(cls, url: str) -> "NodesUrl":
        """Raises SettingsError, which does not quote the URL."""
        scheme, _, rest = url.partition("://")
        rest, _, query = rest.partition("?")
        login, _, location = rest.rpartition("@")
        hosts, *path = location.rstrip("/").split("/")
        cluster = scheme.endswith("+cluster")
        user, _, password = login.partition(":")
        options = dict(parse_qsl(query))
        known = options.keys() <= {"sentinel_username", "sentinel_password"}
        try:
            addresses = tuple(_address(part, 6379 if cluster else 26379) for part in hosts.split(","))
            database = int(path[1]) if len(path) > 1 else 0
        except ValueError:
            raise SettingsError(_FORM) from None
        if not known or len(path) > (0 if cluster else 2) or (not cluster and not (path and path[0])):
            raise SettingsError(_FORM)
        credentials = {"username": unquote(user), "password": unquote(password)}
        return cls(
            cluster,
            scheme.startswith("rediss"),
            addresses,
            "" if cluster else unquote(path[0]),
            database,
            {name: value for name, value in credentials.items() if value},
            {name.removeprefix("sentinel_"): value for name, value in options.items()},
        )


def _address(text: str, port: int) -> tuple[str, int]:
    """Raises ValueError."""
    host, colon, number = text.rpartition(":")
    if not colon:
        host, number = text, str(port)
    host = host.removeprefix("[").removesuffix("]")
    if not host or not 0 < int(number) < 65536:
        raise ValueError(text)
    return host, int(number)


_LARGEST_ANSWER = limit("answer of Redis", 64 << 20, "bytes", "503")
_WATCH_SECONDS = 0.05

_NOT_PRIMARY = ("READONLY", "MASTERDOWN", "NOREPLICAS")
"""Codes of a server that others have become the primary of, or that its replicas have left for another."""
_LOOK_SECONDS = 1.0
"""How often sentinels are asked, during calls, whether the server is still the primary. A former primary that
comes back accepts writes for seconds, and loses them when it becomes a replica."""


class LinkError(Exception):
    """There is no connection, or it was lost with every outstanding answer."""


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
        """Send one command and return its answer, an error reply included; raise LinkError otherwise."""
        if self.lost:
            raise LinkError(self.lost)
        answer: asyncio.Future[object] = self.loop.create_future()
        self._waiting.append((deadline, answer))
        if not self._outbox:  # calls of one loop iteration are sent in one write
            self.loop.call_soon(self._flush)
        self._outbox.append(hiredis.pack_command(cast(Any, words)))  # its stub only allows one word
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
                answer.set_exception(LinkError(reason))
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
    """Address and credentials of the server, or of the sentinels that name it. Never shown: the URL may carry
    a password."""

    def __init__(self, url: str) -> None:
        self.is_watched = url.partition(":")[0].endswith("+sentinel")
        if self.is_watched:
            from sankofa.engines.redis_groups import find_primary

            nodes = NodesUrl.parse(url)
            self._find_primary = partial(find_primary, nodes)
            user, password = (nodes.credentials.get(name, "") for name in ("username", "password"))
            self._open_with(nodes.tls, user, password, nodes.database)
            return
        try:
            parts = urlsplit(url)
            self._address = parts.hostname or "127.0.0.1", parts.port or 6379
            database = int(parts.path.strip("/") or 0)
        except ValueError:  # its text would quote the URL
            raise SettingsError("A Redis URL is redis://[user:password@]host[:port][/database]") from None
        if parts.query or parts.fragment:
            raise SettingsError("A Redis URL takes no options after ? or #")
        login = unquote(parts.username or ""), unquote(parts.password or "")
        self._open_with(parts.scheme == "rediss", *login, database)

    def _open_with(self, tls: bool, user: str, password: str, database: int) -> None:
        """The commands that open a connection follow from the credentials."""
        self._tls = ssl.create_default_context() if tls else None
        self._greeting: list[tuple[Word, ...]] = []
        if password:
            self._greeting.append(("AUTH", *([user] if user else []), password))
        if database:
            self._greeting.append(("SELECT", database))

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
        except (OSError, UnicodeError, LinkError):
            link.drop("could not be reached")
        return link

    async def address(self) -> tuple[str, int]:
        """The sentinels are asked each time. Raises LinkError."""
        return await self._find_primary() if self.is_watched else self._address


class RedisKeyValue(RedisCommands):
    def __init__(self, url: str, component: str) -> None:
        super().__init__(component)
        self._server = _Server(url)
        self._looking: asyncio.Task[None] | None = None
        self._looked = 0.0
        self._link: _Link | None = None
        self._dialling: asyncio.Task[_Link] | None = None

    async def close(self) -> None:
        """Closes the link. A link of an ended event loop is closed already."""
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
        elif self._server.is_watched and loop.time() - self._looked > _LOOK_SECONDS:
            self._looked = loop.time()
            self._looking = loop.create_task(self._look(link))
        try:
            reply = await link.call(deadline, *words)
        except LinkError as error:
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
        except LinkError:
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
