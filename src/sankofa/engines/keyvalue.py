"""The protocol of a key-value store.

Two stores are used, for keys and for usage; each is read or counted once per request, so the
protocol is nine calls and nothing more. Every failure, whatever the engine, is a StoreUnavailable
raised within a second: a surface answers 503 and never waits for a frozen dependency.

`open_keyvalue` picks one by its URL, and imports its driver only then.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from sankofa.model.errors import SettingsError


class Window(NamedTuple):
    """One period of counting: its name (`m:29384923`), and how long its counter must be kept."""

    name: str
    seconds: int


PROBE = "probe", (Window("now", 60),)
"""The name under which a probe counts, on every engine."""


class KeyValue(Protocol):
    """A small store of named values and counters, shared by every process of the service."""

    async def get(self, name: str) -> bytes | None:
        """The value put last by any process, or None."""

    async def put(self, name: str, value: bytes) -> None:
        """Store the value; once this returns it survives a restart, and every process sees it."""

    async def replace(self, name: str, expected: bytes, value: bytes) -> bool:
        """Replaces the value if it is `expected`, in one atomic step; returns whether it did."""

    async def names(self, prefix: str) -> list[str]:
        """The names of the stored values that begin with the prefix, sorted."""

    async def count(self, name: str, windows: Sequence[Window]) -> tuple[int, ...]:
        """Add one to the counter of every window in one atomic step and return the new counts."""

    async def counts(self, name: str, windows: Sequence[Window]) -> tuple[int, ...]:
        """The present counts of every window; 0 if nothing was counted."""

    async def ping(self) -> None:
        """Do a real read; raise StoreUnavailable if it fails."""

    async def probe_counting(self) -> None:
        """Count once, under a name never counted before; raise StoreUnavailable if that fails."""

    async def close(self) -> None:
        """Closes connections and files. A later call opens them again."""


def open_keyvalue(
    url: str, component: str = "key-value store", *, reserve: int = 0, create: bool = True
) -> KeyValue:
    """The store at `embedded:/path/to/file`, `redis://...`, `redis+sentinel://...` or `redis+cluster://...`
    (`rediss` for TLS), opened at its first call.

    A StoreUnavailable names the `component`. `reserve` is the disk space that a file allocates for counters
    in advance, in bytes. Without `create` a missing file is an empty store, and is not created.
    """
    scheme, _, rest = url.partition(":")
    if scheme == "embedded" and rest:
        from sankofa.engines.embedded_kv import EmbeddedKeyValue, EmptyKeyValue

        if not create and not Path(rest).exists():
            return EmptyKeyValue()
        return EmbeddedKeyValue(rest, component, reserve=reserve)
    if scheme in ("redis", "rediss", "redis+sentinel", "rediss+sentinel"):
        from sankofa.engines.redis_kv import RedisKeyValue

        return RedisKeyValue(url, component)
    if scheme in ("redis+cluster", "rediss+cluster"):
        from sankofa.engines.redis_groups import RedisClusterKeyValue

        return RedisClusterKeyValue(url, component)
    raise SettingsError(
        "A key-value store is embedded:/path/to/file, redis://..., redis+sentinel://... or "
        "redis+cluster://... (rediss for TLS)"
    )
