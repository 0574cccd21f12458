"""The one place that picks an engine by its URL.

The protocols (`ledger_store`, `keyvalue`) import no engine. An engine and its driver are imported when a URL
names it, so that an installation without Redis or PostgreSQL needs no driver for it.
"""

from pathlib import Path

from sankofa.engines.block_file import BLOCK_CACHE_BYTES
from sankofa.engines.datastore import Datastore
from sankofa.engines.keyvalue import KeyValue
from sankofa.engines.ledger_store import LedgerStore, SqliteLedgers
from sankofa.model.errors import SettingsError
from sankofa.model.signed_notes import Verifier


def open_datastore(
    url: str,
    home: Path,
    ledger_schema: str,
    *,
    cache_bytes: int = BLOCK_CACHE_BYTES,
    trusted: tuple[Verifier, ...] = (),
) -> Datastore:
    """Editions in HOME (or in FOLDER, for `sqlite:FOLDER`), and the ledger that the URL names.

    The key that signs editions is in HOME in any case. Only what a `trusted` key signed is opened; without
    them, what the key in HOME signed.
    """
    scheme, _, rest = url.partition(":")
    folder = Path(rest) if scheme == "sqlite" and rest else home
    return Datastore(folder, open_ledgers(url, home, ledger_schema), cache_bytes, trusted, home)


def open_ledgers(url: str, home: Path, schema: str) -> LedgerStore:
    """`sqlite:` (a file in HOME), `sqlite:FOLDER`, or `postgresql://...`."""
    scheme, _, rest = url.partition(":")
    if scheme == "sqlite":
        return SqliteLedgers(Path(rest) if rest else home, schema)
    if scheme in ("postgresql", "postgres"):
        from sankofa.engines.postgres_ledger import PostgresLedgers

        return PostgresLedgers(url, schema)
    raise SettingsError("SANKOFA_DATASTORE: expected sqlite: or postgresql://...")


def open_keyvalue(
    url: str, component: str = "key-value store", *, reserve: int = 0, create: bool = True
) -> KeyValue:
    """The store at `embedded:/path/to/file`, `redis://...`, `redis+sentinel://...` or `redis+cluster://...`
    (`rediss` for TLS), opened at its first call.

    The component is what a StoreUnavailable names. `reserve` is the disk that a file takes in advance for its
    counters, in bytes. Without `create` a file that is not there is an empty store, and is not created.
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
