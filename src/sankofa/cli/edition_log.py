"""Writes the log of editions: one entry for each edition that was current, and one for each erasure.

Entries are computed from the store, so a killed command loses nothing: the next one appends what is
missing.
"""

import asyncio
import hashlib
from base64 import b64encode
from collections.abc import Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from sankofa.edition.read.changes import FEEDS
from sankofa.edition.read.edition_manager import open_edition
from sankofa.edition.read.row_trees import RowTree, decode_row_trees, leaf_file, row_tree
from sankofa.edition.write.issuer_parts import code_digest
from sankofa.engines.datastore import Datastore
from sankofa.engines.edition_log import LoggedEdition, LoggedErasure, row_trees_path
from sankofa.engines.private_files import make_private_folder, operator_errors, replace_file
from sankofa.engines.witnesses import cosigned, parse_witnesses
from sankofa.model.days import instant
from sankofa.model.errors import EditionError
from sankofa.settings import Settings


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
        with closing(open_edition(self._store, name)) as edition:
            for feed in FEEDS:
                with leaf_file(folder / f"{feed.dataset}.{suffix}") as leaves:
                    trees[feed.dataset] = await row_tree(edition, feed, secret, leaves)
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
            store.log.list_row_trees(store.list_editions().editions, signers)
        if entries or witnesses:
            store.share_log()


def rows_of(tree: RowTree) -> dict[str, Any]:
    """What an entry says about the rows of a dataset."""
    return {"count": tree.count, "root": b64encode(tree.root).decode()}
