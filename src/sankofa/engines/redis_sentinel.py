"""Which of several Redis servers is the primary: asked of the sentinels that watch them, by redis-py."""

import asyncio
from typing import Final

from sankofa.engines.redis_layout import NodesUrl
from sankofa.model.errors import SettingsError

try:
    from redis.asyncio.retry import Retry
    from redis.asyncio.sentinel import MasterNotFoundError, Sentinel
    from redis.backoff import NoBackoff
    from redis.exceptions import RedisError
except ImportError as missing:
    raise SettingsError(
        "redis+sentinel:// needs a driver: make setup EXTRAS=1, or install sankofa[redis]"
    ) from missing

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
