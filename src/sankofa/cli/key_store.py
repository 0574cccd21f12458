"""Opens the key store for a command, and closes it afterwards."""

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar

from sankofa import settings
from sankofa.access.copying import read_records, write_records
from sankofa.access.domains import Domains
from sankofa.access.keys import Keys
from sankofa.access.last_used import LastUsed
from sankofa.access.quotas import Quotas
from sankofa.access.sealing import SealedRecords
from sankofa.cli.clock import now
from sankofa.engines.embedded_kv import EmptyKeyValue
from sankofa.engines.factory import open_keyvalue
from sankofa.model.errors import OperatorError
from sankofa.settings import Settings

T = TypeVar("T")


def with_keys(command: Callable[..., Coroutine[Any, Any, T]]) -> Callable[..., T]:
    """Run a command with the keys and the domains of the store as its first arguments."""
    return _with_keys(command, create=True)


def reading_keys(command: Callable[..., Coroutine[Any, Any, T]]) -> Callable[..., T]:
    """As `with_keys`, for a command that only reads: it creates nothing."""
    return _with_keys(command, create=False)


def _with_keys(command: Callable[..., Coroutine[Any, Any, T]], *, create: bool) -> Callable[..., T]:
    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> T:
        async def opened() -> T:
            async with opened_keys(settings.load(), create=create) as (keys, domains, _):
                return await command(keys, domains, *args, **kwargs)

        return asyncio.run(opened())

    return run


def with_usage(command: Callable[..., Coroutine[Any, Any, T]]) -> Callable[..., T]:
    """Run a command that only reads with keys, quotas and days of last use as its first arguments."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> T:
        async def opened() -> T:
            current = settings.load()
            url = current.keyvalue_url(current.usagestore, "usage")
            usage = open_keyvalue(url, "usage store", create=False)
            try:
                async with opened_keys(current, create=False) as (keys, _, _):
                    return await command(keys, Quotas(usage, now), LastUsed(usage), *args, **kwargs)
            finally:
                await usage.close()

        return asyncio.run(opened())

    return run


@asynccontextmanager
async def opened_keys(
    current: Settings, *, create: bool = True
) -> AsyncIterator[tuple[Keys, Domains, SealedRecords]]:
    """The keys and the domains of the key store that the settings name, and the records they are made of.

    Without `create` a store that is not there is an empty one, and no secret is generated for it.
    """
    url = current.keyvalue_url(current.keystore, "keys")
    store = open_keyvalue(url, "key store", create=create)
    is_empty = isinstance(store, EmptyKeyValue)
    try:
        records = SealedRecords(store, (b"",) if is_empty else current.keys_secrets())
        keys, domains = Keys(records, current, now), Domains(records, current, now)
        if not is_empty:
            await records.prepare()
        yield keys, domains, records
    finally:
        await store.close()


async def copy_records(current: Settings, url: str) -> tuple[int, int, list[str]]:
    """Copy every record to another store, sealed with the secret in force there.

    How many there are, how many the other store did not have as they are, and the reason for each that is
    damaged and left out. Raises OperatorError where it is the same store.
    """
    target = replace(current, keystore=url)
    if target.keystore == current.keystore:
        raise OperatorError("--to: that is the store the keys are in already (SANKOFA_KEYSTORE)")
    source = replace(current, keys_secret=current.keys_secret_of_home())
    async with opened_keys(source) as (_, _, records), opened_keys(target) as (_, _, others):
        copied, damaged = await read_records(records)
        return len(copied), await write_records(others, copied), damaged
