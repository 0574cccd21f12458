"""Groups of Redis servers, through redis-py: a Redis Cluster as key-value store, and the primary of a group.

redis-py finds the node of each key of a cluster. Values are spread over a few hashes, each on one node. A
single server, or the primary that sentinels name, is reached without it (redis_kv.py), at a tenth of the
processor time a request (docs/decisions/key-value-store.md).
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from operator import methodcaller
from typing import Any, Final, TypeVar
from zlib import crc32

from sankofa.engines.keyvalue import PROBE, Window
from sankofa.engines.redis_layout import (
    COUNT_SCRIPT,
    COUNT_SHA,
    REPLACE_SCRIPT,
    VALUES,
    NodesUrl,
    counter_names,
    counter_words,
    counts_in,
)
from sankofa.model.errors import SettingsError, StoreUnavailable
from sankofa.model.limits import limit

try:
    from redis.asyncio.cluster import ClusterNode, RedisCluster
    from redis.asyncio.retry import Retry
    from redis.asyncio.sentinel import MasterNotFoundError, Sentinel
    from redis.backoff import NoBackoff
    from redis.exceptions import NoScriptError, RedisClusterException, RedisError
except ImportError as missing:
    raise SettingsError(
        "redis+sentinel:// and redis+cluster:// need a driver: make setup EXTRAS=1, or install sankofa[redis]"
    ) from missing

_CALL_SECONDS: Final = limit("call of a Redis cluster", 0.85, "seconds", "503")
_SERVER_SECONDS: Final = 0.4  # of one server; then there is time for another
_AT_ONCE: Final = 64
_HASHES: Final = tuple(f"{VALUES}:{{{number}}}" for number in range(16))
"""The hashes that share the values, so that they spread over the cluster."""

T = TypeVar("T")


class RedisClusterKeyValue:
    """See `engines.keyvalue.KeyValue`."""

    def __init__(self, url: str, component: str) -> None:
        self._url = NodesUrl.parse(url)
        self._component = component
        self._client: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def get(self, name: str) -> bytes | None:
        value = await self._call(lambda client: client.hget(_hash_of(name), name))
        return value if value is None or isinstance(value, bytes) else b""

    async def put(self, name: str, value: bytes) -> None:
        await self._call(lambda client: client.hset(_hash_of(name), name, value))

    async def replace(self, name: str, expected: bytes, value: bytes) -> bool:
        script = methodcaller("eval", REPLACE_SCRIPT, 1, _hash_of(name), name, expected, value)
        return bool(await self._call(script) == 1)

    async def names(self, prefix: str) -> list[str]:
        stored: list[bytes] = []
        for key in _HASHES:
            stored += await self._call(methodcaller("hkeys", key))
        decoded = (name.decode(errors="replace") for name in stored)
        return sorted(name for name in decoded if name.startswith(prefix))

    async def count(self, name: str, windows: Sequence[Window]) -> tuple[int, ...]:
        words = counter_words(name, windows)

        async def counted(client: Any) -> Any:
            try:
                return await client.evalsha(COUNT_SHA, len(windows), *words)
            except NoScriptError:  # a server that was restarted, or has become the primary
                return await client.eval(COUNT_SCRIPT, len(windows), *words)

        return self._checked(counts_in(await self._call(counted), len(windows), 1))

    async def counts(self, name: str, windows: Sequence[Window]) -> tuple[int, ...]:
        reply = await self._call(methodcaller("mget", counter_names(name, windows)))
        return self._checked(counts_in(reply, len(windows), 0))

    def _checked(self, counts: tuple[int, ...] | None) -> tuple[int, ...]:
        if counts is None:
            raise StoreUnavailable(self._component, "not the answer asked for")
        return counts

    async def ping(self) -> None:
        """A read of every server that holds values."""
        for key in _HASHES:
            await self._call(methodcaller("hlen", key))

    async def probe_counting(self) -> None:
        await self.count(*PROBE)

    async def close(self) -> None:
        client, loop = self._client, self._loop
        self._client = self._loop = None
        if client is not None and loop is asyncio.get_running_loop():
            await client.aclose()

    async def _call(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """Runs one command within its time limit, even if servers fail."""
        try:
            async with asyncio.timeout(_CALL_SECONDS):
                client = self._opened()
                async with self._slots:
                    return await work(client)
        except TimeoutError:
            raise StoreUnavailable(self._component, "did not answer in time") from None
        except RedisError as failure:  # its text may name addresses and keys
            raise StoreUnavailable(self._component, _reason(failure)) from None
        except (RedisClusterException, OSError, UnicodeError):
            raise StoreUnavailable(self._component, "could not be reached") from None

    def _opened(self) -> Any:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:
            self._slots = asyncio.Semaphore(_AT_ONCE)
            self._client = self._new_client()
            self._loop = loop
        return self._client

    def _new_client(self) -> RedisCluster:
        credentials: dict[str, Any] = dict(self._url.credentials)
        return RedisCluster(
            startup_nodes=[ClusterNode(host, port) for host, port in self._url.addresses],
            retry=Retry(NoBackoff(), 1),
            max_connections=_AT_ONCE * 2,
            socket_timeout=_SERVER_SECONDS,
            socket_connect_timeout=_SERVER_SECONDS,
            socket_keepalive=True,
            protocol=2,
            ssl=self._url.tls,
            **credentials,
        )


def _hash_of(name: str) -> str:
    """The braces mark the part of the name that selects the node."""
    return _HASHES[crc32(name.encode()) % len(_HASHES)]


def _reason(failure: RedisError) -> str:
    """The reason of a failure, in our own words."""
    name = type(failure).__name__
    if name in ("ConnectionError", "TimeoutError", "BusyLoadingError"):
        return "could not be reached" if name != "TimeoutError" else "did not answer in time"
    return f"refused: {name.removesuffix('Error')}"


_SENTINEL_SECONDS: Final = 0.25
"""The wait for one sentinel, short enough to ask another."""


class NoPrimary(Exception):
    """The sentinels do not answer, or know no primary."""


async def find_primary(url: NodesUrl) -> tuple[str, int]:
    """Its host and port, as the first sentinel that answers has it. Raises NoPrimary."""
    options = {
        "socket_timeout": _SENTINEL_SECONDS,
        "socket_connect_timeout": _SENTINEL_SECONDS,
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
        **({"ssl": True} if url.tls else {}),
        **url.sentinel_credentials,
    }
    sentinel = Sentinel(list(url.addresses), sentinel_kwargs=options)  # type: ignore[no-untyped-call]
    try:
        host, port = await sentinel.discover_master(url.name)
    except MasterNotFoundError:
        raise NoPrimary("the sentinels know no primary") from None
    except (RedisError, OSError):
        raise NoPrimary("the sentinels could not be reached") from None
    finally:
        closing = [asyncio.ensure_future(one.aclose()) for one in sentinel.sentinels]
        await asyncio.shield(asyncio.gather(*closing, return_exceptions=True))
    return host, int(port)
