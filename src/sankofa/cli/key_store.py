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
from sankofa.access.sealing import SealedRecords
from sankofa.engines.factory import open_keyvalue
from sankofa.settings import Settings

T = TypeVar("T")


def with_keys(command: Callable[..., Coroutine[Any, Any, T]]) -> Callable[..., T]:
    """Run a command with the keys and the domains of the store as its first arguments."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> T:
        async def opened() -> T:
            async with opened_keys(settings.load()) as (keys, domains, _):
                return await command(keys, domains, *args, **kwargs)

        return asyncio.run(opened())

    return run


@asynccontextmanager
async def opened_keys(current: Settings) -> AsyncIterator[tuple[Keys, Domains, SealedRecords]]:
    """The keys and the domains of the key store that the settings name, and the records they are made of."""
    store = open_keyvalue(current.keyvalue_url(current.keystore, "keys"), "key store")
    try:
        records = SealedRecords(store, current.keys_key())
        keys = Keys(records, current, lambda: datetime.now(UTC))
        domains = Domains(records, current, lambda: datetime.now(UTC))
        await records.prepare()
        yield keys, domains, records
    finally:
        await store.close()
