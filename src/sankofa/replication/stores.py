"""Opens the datastore that the settings name, also where machines share a ledger or follow editions."""

from pathlib import Path

from sankofa.edition.format.keys import LAYOUT
from sankofa.engines.datastore import Datastore
from sankofa.engines.factory import open_datastore, open_ledgers
from sankofa.ledger.store import SCHEMA
from sankofa.model.errors import OperatorError, SettingsError
from sankofa.replication.following_store import FollowingStore
from sankofa.replication.shared_store import SharedStore
from sankofa.settings import Settings


def shares_ledger(settings: Settings) -> bool:
    """Whether the ledger is in a database that several machines use."""
    return settings.datastore.partition(":")[0] in ("postgresql", "postgres")


def followed_address(settings: Settings) -> str:
    """Where editions are followed from and, with a shared ledger, published to; empty for neither."""
    return settings.editions or (settings.datastore if shares_ledger(settings) else "")


def only_follows(settings: Settings) -> bool:
    """Whether this HOME has no ledger and serves what others publish."""
    return bool(settings.editions) and not shares_ledger(settings)


def editions_folder(settings: Settings) -> Path:
    """The editions of a shared ledger have a folder of their own: HOME may have others, of an own one."""
    own = settings.datastore_folder() or settings.home
    return (settings.home / "shared" if shares_ledger(settings) else own) / "editions"


def open_store(settings: Settings) -> Datastore:
    if followed_address(settings):
        return open_following_store(settings)
    return open_datastore(
        settings.datastore,
        settings.home,
        SCHEMA,
        cache_bytes=settings.block_cache_bytes,
        trusted=settings.verifier_keys(),
    )


def open_fresh_store(settings: Settings) -> Datastore:
    """With what other machines published, where they share a database. Raises OperatorError."""
    store = open_store(settings)
    if isinstance(store, SharedStore):
        store.refresh()
    return store


def open_following_store(settings: Settings) -> FollowingStore:
    ledgers = open_ledgers(settings.datastore, settings.home, SCHEMA)
    if shares_ledger(settings):
        return SharedStore(
            editions_folder(settings).parent,
            ledgers,
            settings.block_cache_bytes,
            settings.verifier_keys(),
            home=settings.home,
            address=followed_address(settings),
            layout=LAYOUT,
            kept=settings.editions_kept,
        )
    if settings.datastore != "sqlite:":
        raise SettingsError("SANKOFA_EDITIONS: editions are followed into files in HOME: unset DATASTORE")
    return FollowingStore(settings.home, ledgers, settings.block_cache_bytes, settings.verifier_keys())


def refuse_where_editions_are_followed(settings: Settings) -> None:
    if only_follows(settings):
        raise OperatorError(
            "this HOME follows editions from elsewhere (SANKOFA_EDITIONS): it has no ledger, and what is "
            "current is decided there"
        )
