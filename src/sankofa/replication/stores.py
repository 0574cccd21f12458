"""The store of ledger and editions that the settings name: of this machine, or filled from elsewhere."""

from sankofa.engines.datastore import Datastore
from sankofa.engines.factory import open_datastore
from sankofa.ledger.store import SCHEMA
from sankofa.model.errors import OperatorError, SettingsError
from sankofa.replication.following_store import FollowingStore
from sankofa.settings import Settings


def open_store(settings: Settings) -> Datastore:
    if settings.editions:
        return open_following_store(settings)
    return open_datastore(
        settings.datastore,
        settings.home,
        SCHEMA,
        cache_bytes=settings.block_cache_bytes,
        trusted=settings.verifier_keys(),
    )


def open_following_store(settings: Settings) -> FollowingStore:
    if settings.datastore != "sqlite:":
        raise SettingsError("SANKOFA_EDITIONS: editions are followed into files in HOME: unset DATASTORE")
    return FollowingStore(settings.home, SCHEMA, settings.block_cache_bytes, settings.verifier_keys())


def refuse_where_editions_are_followed(settings: Settings) -> None:
    if settings.editions:
        raise OperatorError(
            "this HOME follows editions from elsewhere (SANKOFA_EDITIONS): it has no ledger, and what is "
            "current is decided there"
        )
