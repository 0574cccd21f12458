"""Opens the key store for a command, and closes it afterwards."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, TypeVar

from sankofa import settings
from sankofa.access.domains import Domains
from sankofa.access.keys import Keys
from sankofa.access.sealing import SealedRecords
from sankofa.engines.factory import open_keyvalue

T = TypeVar("T")


def with_keys(command: Callable[..., Coroutine[Any, Any, T]]) -> Callable[..., T]:
    """Run a command with the keys and the domains of the store as its first arguments."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> T:
        async def opened() -> T:
            current = settings.load()
            store = open_keyvalue(current.keyvalue_url(current.keystore, "keys"), "key store")
            try:
                records = SealedRecords(store, current.keys_secrets())
                parts = [part(records, current, lambda: datetime.now(UTC)) for part in (Keys, Domains)]
                await records.prepare()
                return await command(*parts, *args, **kwargs)
            finally:
                await store.close()

        return asyncio.run(opened())

    return run
