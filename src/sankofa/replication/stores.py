"""Opens the datastore that the settings name, also where machines share a ledger or follow editions.

Machines that share one PostgreSQL database keep the ledger in it. Editions travel as objects in the same
database (`engines.object_postgres`) or in the store that SANKOFA_EDITIONS names. Each machine reads editions
from its own files: it follows publications, and a publishing machine pushes first and then switches.
"""

from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Final

from sankofa.engines.datastore import Datastore, EditionList, open_datastore
from sankofa.engines.edition_folder import EditionWriter
from sankofa.engines.edition_log import NO_ENTRIES, LogTree
from sankofa.engines.ledger_store import open_ledgers
from sankofa.engines.object_store import ObjectError, open_destination, open_source
from sankofa.engines.publication import KEY_FILE, signers_of
from sankofa.ledger.store import SCHEMA
from sankofa.model.errors import OperatorError, SettingsError
from sankofa.model.signed_notes import Signer, Verifier
from sankofa.replication.follow import (
    Follower,
    FollowingStore,
    FollowState,
    RefusedNote,
    utc_now,
    write_state,
)
from sankofa.replication.push import push, push_log
from sankofa.settings import Settings

KEEP_UNUSED: Final = timedelta(hours=1)
"""How long objects that no edition needs are kept, for nodes that are pulling them."""


class SharedStore(FollowingStore):
    """One key signs for all publishing machines. Without SANKOFA_TRUSTED_KEYS a machine that has the key
    trusts it; the others trust the first key they saw."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(
            editions_folder(settings).parent,
            open_ledgers(settings.datastore, settings.home, SCHEMA),
            settings.block_cache_bytes,
            settings.verifier_keys(),
            settings.home,
        )
        self._address = followed_address(settings)
        self._editions_kept = settings.editions_kept
        self._refused: RefusedNote | None = None
        """Why the note there is not followed, as of the last check."""

    def refresh(self) -> None:
        """Pull other machines' publications; a refused note changes nothing. Raises OperatorError."""
        self._refused = None
        try:
            with closing(open_source(self._address)) as source:
                Follower(source, self, self._editions_kept).look()
        except RefusedNote as refused:
            self._refused = refused
        except ObjectError as failure:
            raise OperatorError(str(failure)) from failure

    def build(self) -> EditionWriter:
        if self._refused is not None:
            raise OperatorError(
                f"{self._refused}. To publish from this machine too, copy {KEY_FILE} from the HOME of the "
                "machine that published; to replace the editions there, run `sankofa push` with its address"
            )
        if self._note.exists():
            self.signers()
        return super().build()

    def is_shared(self) -> bool:
        return self._refused is None and not self.following().refusal

    def signers(self) -> tuple[Signer, ...]:
        if self._note.exists() and not signers_of(self._keys):
            publication = self.publication()
            names = ", ".join(publication.keys) if publication else "another key"
            raise OperatorError(
                f"{KEY_FILE} in HOME: missing; what is published is signed by {names}: copy {KEY_FILE} from "
                "the HOME of the machine that published, or start over with `sankofa editions key --rotate` "
                "and tell the nodes"
            )
        return super().signers()

    def set_current_and_prune(self, editions: Sequence[str], current: str) -> None:
        """Push, then switch: a machine that dies in between follows its own note. Called while holding the
        lock to switch."""
        stored = [name for name in self.list_editions().editions if name in editions or name == current]
        try:
            with closing(open_destination(self._address)) as destination:
                pushed = push(self, destination, KEEP_UNUSED, listed=EditionList(tuple(stored), current))
        except ObjectError as failure:
            raise OperatorError(f"nothing was published: {failure}") from failure
        self.take_list(pushed.published)
        self.take(pushed.note, current, stored)
        now = utc_now()
        state = FollowState(
            looked_at=now,
            answered_at=now,
            index=sha256(pushed.note).hexdigest(),
            remote_edition=current,
            refused=self.following().refused,
        )
        write_state(self.editions, state)

    def trusted_log(self) -> LogTree:
        """Does nothing: the shared log counts, even if this machine was killed before sharing its entry."""
        return NO_ENTRIES

    def share_log(self) -> None:
        try:
            with closing(open_destination(self._address)) as destination:
                push_log(self, destination)
        except ObjectError as failure:
            raise OperatorError(f"the log could not be shared: {failure}") from failure

    def trusted(self) -> tuple[Verifier, ...]:
        return self._trusted or tuple(signer.verifier for signer in signers_of(self._keys))


def shares_ledger(settings: Settings) -> bool:
    """Whether the ledger is in a database that several machines use."""
    return settings.datastore.partition(":")[0] in ("postgresql", "postgres")


def followed_address(settings: Settings) -> str:
    """Where editions are followed from and, with a shared ledger, published to; empty if neither applies."""
    return settings.editions or (settings.datastore if shares_ledger(settings) else "")


def only_follows(settings: Settings) -> bool:
    """Whether this HOME has no ledger and serves the editions of others."""
    return bool(settings.editions) and not shares_ledger(settings)


def editions_folder(settings: Settings) -> Path:
    """Editions of a shared ledger have a separate folder: HOME may have editions of a local ledger."""
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
    """Includes the publications of other machines if they share a database. Raises OperatorError."""
    store = open_store(settings)
    store.refresh()
    return store


def open_following_store(settings: Settings) -> FollowingStore:
    if shares_ledger(settings):
        return SharedStore(settings)
    if settings.datastore != "sqlite:":
        raise SettingsError("SANKOFA_EDITIONS: editions are followed into files in HOME: unset DATASTORE")
    ledgers = open_ledgers(settings.datastore, settings.home, SCHEMA)
    return FollowingStore(settings.home, ledgers, settings.block_cache_bytes, settings.verifier_keys())


def refuse_where_editions_are_followed(settings: Settings) -> None:
    if only_follows(settings):
        raise OperatorError(
            "this HOME follows editions from elsewhere (SANKOFA_EDITIONS): it has no ledger, and the "
            "store decides which edition is current"
        )
