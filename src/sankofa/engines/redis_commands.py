"""The commands of the key-value store in Redis, the same for one server, Sentinel and a cluster.

Values are the fields of hashes, and every counter is a key that expires. A connection sends a command and
gives its reply (`RedisCommands.command`).
"""

import asyncio
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, unquote
from zlib import crc32

from sankofa.engines.keyvalue import PROBE, Window
from sankofa.model.errors import SettingsError, StoreUnavailable
from sankofa.model.limits import limit

VALUES: Final = "sankofa:values"
"""The hash that holds every value of a single server, and of one that sentinels watch."""
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
    """The keys of the counters: the braces keep those of one name on one node, as a script demands."""
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
        given = {"username": unquote(user), "password": unquote(password)}
        return cls(
            cluster,
            scheme.startswith("rediss"),
            addresses,
            "" if cluster else unquote(path[0]),
            database,
            {name: value for name, value in given.items() if value},
            {name.removeprefix("sentinel_"): value for name, value in options.items()},
        )


def _address(text: str, port: int) -> tuple[str, int]:
    """Raises ValueError."""
    host, colon, given = text.rpartition(":")
    if not colon:
        host, given = text, str(port)
    host = host.removeprefix("[").removesuffix("]")
    if not host or not 0 < int(given) < 65536:
        raise ValueError(text)
    return host, int(given)
