"""Opens the key store for a command, and closes it afterwards."""

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

from sankofa import settings
from sankofa.access.domains import Domains
from sankofa.access.keys import Keys
from sankofa.access.last_used import LastUsed
from sankofa.access.quotas import Quotas
from sankofa.access.sealing import SealedRecords
from sankofa.engines.factory import open_keyvalue

T = TypeVar("T")


def with_keys(command: Callable[..., Coroutine[Any, Any, T]]) -> Callable[..., T]:
    """Run a command with the keys and the domains of the store as its first arguments."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> T:
        async def opened() -> T:
            async with _opened(settings.load()) as (keys, domains):
                return await command(keys, domains, *args, **kwargs)

        return asyncio.run(opened())

    return run


def with_usage(command: Callable[..., Coroutine[Any, Any, T]]) -> Callable[..., T]:
    """Run a command with the keys, the quotas and the days of last use as its first arguments."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> T:
        async def opened() -> T:
            current = settings.load()
            usage = open_keyvalue(current.keyvalue_url(current.usagestore, "usage"), "usage store")
            try:
                async with _opened(current) as (keys, _):
                    return await command(keys, Quotas(usage, _now), LastUsed(usage), *args, **kwargs)
            finally:
                await usage.close()

        return asyncio.run(opened())

    return run


@asynccontextmanager
async def _opened(current: settings.Settings) -> AsyncIterator[tuple[Keys, Domains]]:
    store = open_keyvalue(current.keyvalue_url(current.keystore, "keys"), "key store")
    try:
        records = SealedRecords(store, current.keys_key())
        keys, domains = Keys(records, current, _now), Domains(records, current, _now)
        await records.prepare()
        yield keys, domains
    finally:
        await store.close()


def _now() -> datetime:
    return datetime.now(UTC)
