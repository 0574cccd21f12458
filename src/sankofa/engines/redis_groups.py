"""Groups of Redis servers, through redis-py: a Redis Cluster as key-value store, and the primary of a group.

redis-py finds the node of each key of a cluster. Values are spread over a few hashes, each on one node. A
single server, or the primary that sentinels name, is reached without it (redis_kv.py), at a tenth of the
processor time a request (docs/decisions/key-value-store.md).
"""

import asyncio
from typing import Any, Final

from sankofa.engines.redis_kv import NO_SCRIPT, VALUES, LinkError, NodesUrl, RedisCommands, Word
from sankofa.model.errors import SettingsError

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

_SERVER_SECONDS: Final = 0.4  # for one server; leaves time for another
_AT_ONCE: Final = 64


class RedisClusterKeyValue(RedisCommands):
    """See `engines.keyvalue.KeyValue`."""

    hashes = tuple(f"{VALUES}:{{{number}}}" for number in range(16))
    """They spread the values over the cluster: the braces mark the part of the name that selects the node."""

    def __init__(self, url: str, component: str) -> None:
        super().__init__(component)
        self._url = NodesUrl.parse(url)
        self._client: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def close(self) -> None:
        client, loop = self._client, self._loop
        self._client = self._loop = None
        if client is not None and loop is asyncio.get_running_loop():
            await client.aclose()

    async def command(self, deadline: float, *words: Word) -> object:
        """Within its time limit, even if servers fail."""
        try:
            async with asyncio.timeout_at(deadline):
                client = self._opened()
                async with self._slots:
                    return await client.execute_command(*words)
        except NoScriptError:
            return NO_SCRIPT
        except TimeoutError:
            raise self.unavailable("did not answer in time") from None
        except RedisError as failure:  # its text may name addresses and keys
            raise self.unavailable(_reason(failure)) from None
        except (RedisClusterException, OSError, UnicodeError):
            raise self.unavailable("could not be reached") from None

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


def _reason(failure: RedisError) -> str:
    """The reason of a failure, in our own words."""
    name = type(failure).__name__
    if name in ("ConnectionError", "TimeoutError", "BusyLoadingError"):
        return "could not be reached" if name != "TimeoutError" else "did not answer in time"
    return f"refused: {name.removesuffix('Error')}"


_SENTINEL_SECONDS: Final = 0.25
"""The wait for one sentinel, short enough to ask another."""


async def find_primary(url: NodesUrl) -> tuple[str, int]:
    """The primary's host and port, from the first sentinel that answers. Raises LinkError."""
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
        raise LinkError("the sentinels know no primary") from None
    except (RedisError, OSError):
        raise LinkError("the sentinels could not be reached") from None
    finally:
        closing = [asyncio.ensure_future(one.aclose()) for one in sentinel.sentinels]
        await asyncio.shield(asyncio.gather(*closing, return_exceptions=True))
    return host, int(port)
