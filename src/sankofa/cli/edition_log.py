"""Writes the log of editions, and builds an edition of the past again to compare it with the log.

Entries are computed from the store, so a killed command loses nothing: the next one appends what is
missing.
"""

import asyncio
import hashlib
import shutil
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final, NamedTuple

import msgspec

from sankofa.cli.ledger import open_ledger
from sankofa.edition.format.keys import ledger_position
from sankofa.edition.read.changes import FEEDS
from sankofa.edition.read.edition_manager import open_edition
from sankofa.edition.read.row_trees import (
    RowTree,
    decode_row_trees,
    row_tree,
    state_of,
)
from sankofa.edition.write.derived_parts import code_digest
from sankofa.edition.write.publish import publish
from sankofa.engines.datastore import Datastore
from sankofa.engines.edition_log import LoggedEdition, LoggedErasure, row_trees_path
from sankofa.engines.private_files import make_private_folder, operator_errors, replace_file
from sankofa.engines.record_file import RecordFile, pack_record
from sankofa.model.days import instant
from sankofa.model.errors import EditionError, OperatorError
from sankofa.model.signed_notes import note_text
from sankofa.replication.remote_log import cosigned, parse_witnesses, stamped
from sankofa.replication.stores import open_fresh_store, open_store
from sankofa.settings import Settings
from sankofa.sources.registry import load_sources

_TREE: Final = "tree"


class EditionLogWriter:
    """See `edition.write.publish.LogWriter`."""

    def __init__(self, settings: Settings, store: Datastore) -> None:
        self._settings = settings
        self._store = store

    def hash_rows(self, edition: str) -> None:
        path = row_trees_path(self._store.edition_folder(edition))
        if path.exists():
            return
        secret = self._settings.row_secret(create=True) or b""
        folder = self._settings.home / "derived" / "leaves"
        with operator_errors(path):
            make_private_folder(path.parent)
            make_private_folder(folder)
            of_code = hashlib.blake2b(code_digest(), key=secret, digest_size=8).hexdigest()
            trees = asyncio.run(self._trees(edition, secret, folder, of_code))
            for leftover in folder.glob("*"):
                if not leftover.name.endswith(of_code):
                    leftover.unlink()
            replace_file(path, msgspec.msgpack.encode(trees))

    async def _trees(self, name: str, secret: bytes, folder: Path, suffix: str) -> dict[str, RowTree]:
        trees = {}
        kept = RecordFile(folder / f"trees.{suffix}")
        with closing(open_edition(self._store, name)) as edition, kept.writing():
            for feed in FEEDS:
                state = await state_of(edition, feed)
                if state and (known := kept.carry(feed.dataset, state)):
                    trees[feed.dataset] = msgspec.msgpack.decode(known.part(_TREE), type=RowTree)
                    continue
                with RecordFile(folder / f"{feed.dataset}.{suffix}").writing() as leaves:
                    tree = trees[feed.dataset] = await row_tree(edition, feed, secret, leaves)
                kept.put(feed.dataset, state, pack_record({_TREE: msgspec.msgpack.encode(tree)}))
        return trees

    def update(self) -> None:
        store = self._store
        publication = store.publication()
        if publication is None:
            return
        logged = store.log.tree().decoded()
        witnesses = parse_witnesses(self._settings.log_witnesses)

        def cosign(note: bytes, leaves: Sequence[bytes]) -> bytes:
            return cosigned(note, leaves, witnesses)

        entries: list[LoggedEdition | LoggedErasure] = []
        current = publication.current
        if current not in {entry.edition for entry in logged if isinstance(entry, LoggedEdition)}:
            with suppress(
                EditionError, OSError, msgspec.DecodeError
            ):  # a damaged one is to be published again
                self.hash_rows(current)
                trees = decode_row_trees(row_trees_path(store.edition_folder(current)).read_bytes())
                rows = {name: rows_of(tree) for name, tree in trees.items()}
                at = publication.written_at.removesuffix("+00:00") + "Z"
                entries.append(LoggedEdition(current, at, publication.editions[current], rows))
        erased = {name for entry in logged if isinstance(entry, LoggedErasure) for name in entry.editions}
        if new := sorted(store.withdrawn() - erased - {current}):
            entries.append(LoggedErasure(instant(datetime.now(UTC)), new))
        with store.exclusive("switch"):
            if store.publication() != publication or store.log.tree().decoded() != logged:
                return  # another command changed them, and it tells the log
            signers = store.signers()
            store.log.append(entries, signers, cosign)
            self._stamp()
            store.log.list_row_trees(store.list_editions().editions, signers)
        if entries or witnesses or self._settings.log_timestamp_url:
            store.share_log()

    def _stamp(self) -> None:
        """Let the authority stamp a checkpoint without a stamp."""
        log, address = self._store.log, self._settings.log_timestamp_url
        checkpoint = log.checkpoint()
        if not address or checkpoint is None or log.stamp() is not None:
            return
        if (stamp := stamped(note_text(checkpoint), address)) is not None:
            log.take_stamp(stamp)


def rows_of(tree: RowTree) -> dict[str, Any]:
    """What an entry says about the rows of a dataset."""
    return {"count": tree.count, "root": b64encode(tree.root).decode()}


_FOLDER = ".rebuilding-"


class Rebuilt(NamedTuple):
    """An edition that was built again, and how it compares with its entry in the log."""

    edition: str
    rows: dict[str, int]
    """The number of rows of each dataset."""
    different: dict[str, int]
    """The number of rows that the log has of each dataset that differs."""
    withdrawals: int
    persons: int
    """The withdrawals and the people recognised since then; the rebuilt edition leaves both out."""

    @property
    def unexplained(self) -> list[str]:
        """Datasets that differ, though nothing was left out that could be the reason."""
        excused = self.withdrawals or self.persons
        return [name for name, count in self.different.items() if not excused or self.rows[name] > count]


def rebuild(settings: Settings, moment: datetime) -> Rebuilt:
    """Build the edition that was the newest at an instant. Raises OperatorError if there was none."""
    with closing(open_fresh_store(settings)) as store:
        entries = [one for one in store.log.tree().decoded() if isinstance(one, LoggedEdition)]
        then = [one for one in entries if datetime.fromisoformat(one.published_at) <= moment]
        if not then:
            raise OperatorError("the log has no edition that was published by then")
        entry = then[-1]
        secret = _secret(settings, store, entry.edition)
    position = ledger_position(entry.edition)
    with _folder(settings.home) as folder, open_ledger(settings, create=False) as ledger:
        withdrawals = sum(one.number > position for one in ledger.withdrawals())
        ((persons,),) = ledger.rows(f"SELECT count(*) FROM withheld WHERE capture_id > {position}")  # noqa: S608 - a number
        ledger.go_back_to(position)
        own = replace(settings, home=folder, datastore="sqlite:", editions="", trusted_keys="")
        with closing(open_store(own)) as built:
            manifest = publish(
                built,
                ledger,
                0,
                sources=load_sources(settings.home),
                despite_floors=True,
                match_threshold=settings.match_threshold / 100,
            )
            trees = asyncio.run(_trees(built, manifest["edition"], secret))
    different = {name: one["count"] for name, one in entry.rows.items() if rows_of(trees[name]) != one}
    rows = {name: trees[name].count for name in entry.rows}
    return Rebuilt(entry.edition, rows, different, withdrawals, persons)


def _secret(settings: Settings, store: Datastore, edition: str) -> bytes:
    """The key of its salts: that of the edition where it is kept, else that of HOME."""
    path = row_trees_path(store.edition_folder(edition))
    trees = decode_row_trees(path.read_bytes()) if path.exists() else {}
    kept = next((tree.secret for tree in trees.values()), b"")
    if not (secret := kept or settings.row_secret()):
        raise OperatorError("row-secret in HOME: missing; put it back from a backup")
    return secret


async def _trees(store: Datastore, name: str, secret: bytes) -> dict[str, RowTree]:
    with closing(open_edition(store, name)) as edition:
        return {feed.dataset: await row_tree(edition, feed, secret) for feed in FEEDS}


@contextmanager
def _folder(home: Path) -> Iterator[Path]:
    """A folder in HOME that nobody else reads; those of commands that were killed are removed."""
    for leftover in home.glob(f"{_FOLDER}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    folder = Path(mkdtemp(prefix=_FOLDER, dir=home))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
