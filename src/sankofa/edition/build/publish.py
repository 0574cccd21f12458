"""Build, check, switch: the next edition is invisible until every check has passed."""

import gc
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sankofa.edition.build.checks import RowCheck, check_days
from sankofa.edition.build.context import BuildContext
from sankofa.edition.build.dataset import Dataset, datasets
from sankofa.edition.build.prepared_rows import PreparedRows
from sankofa.edition.build.row_ranges import RowRanges
from sankofa.edition.build.tables import tables
from sankofa.edition.format.arrow_columns import columns_kind
from sankofa.edition.format.edition_id import edition_name, ledger_position
from sankofa.edition.format.layout import LAYOUT
from sankofa.edition.format.row_blocks import Entry, row_ends
from sankofa.engines.datastore import Datastore, EditionWriter
from sankofa.ledger.store import Ledger
from sankofa.model.errors import CheckFailed, EditionError
from sankofa.sources.registry import Source

if TYPE_CHECKING:
    from sankofa.edition.build.parquet import ParquetFiles

_BATCH = 256


def publish(
    store: Datastore,
    ledger: Ledger,
    keep: int,
    progress: Callable[[str], None] = lambda kind: None,
    *,
    sources: Mapping[str, Source] | None = None,
    despite_floors: bool = False,
    issuer_cache: Path | None = None,
    waiting: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Build the next edition from the ledger, check it, and switch to it. Returns its manifest.

    `issuer_cache` is a folder for what is made of issuers, taken again where nothing it depends on changed.
    One publishes at a time: `waiting` is called where another does, and the ledger is read after it.
    Raises EditionError where the pointer would move back, or was moved by a rollback meanwhile.
    """
    with store.exclusive("publish", waiting):
        before = store.list_editions().current
        with ledger.snapshot(), without_cycle_collection():
            context = BuildContext(ledger, sources, despite_floors=despite_floors, issuer_cache=issuer_cache)
            manifest = _build(store, context, progress)
        store.open(manifest["edition"]).close()  # refuses what did not reach the disk whole
        with store.exclusive("switch"):
            _refuse_to_move_back(manifest["edition"], before, store.list_editions().current)
            switch(store, manifest["edition"], keep)
    return manifest


def _refuse_to_move_back(edition: str, before: str | None, current: str | None) -> None:
    """`before` is what was current when the build began. Only `rollback` may decide otherwise."""
    kept = f"{edition} is kept and not served; `sankofa editions rollback {edition}` serves it"
    if current != before:
        raise EditionError(f"the current edition was changed to {current} while this one was built: {kept}")
    if current is not None and ledger_position(edition) < ledger_position(current):
        raise EditionError(
            f"the ledger stands at capture {ledger_position(edition)}, the current edition {current} was "
            f"made of a later one: {kept}"
        )


@contextmanager
def without_cycle_collection() -> Iterator[None]:
    """Millions of small records are made, none of which refers to itself: not looking saves a fifth."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _build(store: Datastore, context: BuildContext, progress: Callable[[str], None]) -> dict[str, Any]:
    if not context.captures:
        named = ", ".join(f"{one.source} ({one.why})" for one in context.left_out)
        raise CheckFailed(
            f"nothing to publish: every source of the ledger is left out: {named}"
            if named
            else "nothing to publish: the ledger is empty"
        )
    from sankofa.edition.build.parquet import (
        ParquetFiles,  # costs 0.2 s and 60 MB, which no server should pay
    )

    writer = store.build()
    files: ParquetFiles | None = None
    try:
        digest = hashlib.sha256()
        files = ParquetFiles(writer.files, context)
        shelving = _Shelving(writer, digest.update, files)
        rows: dict[str, int] = {}
        indexes: dict[str, int] = {}
        for dataset in datasets():
            progress(dataset.kind)
            counts = indexes if dataset.row is None else rows
            counts[dataset.kind] = shelving.shelve(dataset, context)
        for table in tables():
            progress(table.name)
            files.make(table.name)
        digest.update(files.flush())
        # The same rows in another layout, or in spite of a floor, are another edition.
        digest.update(json.dumps([LAYOUT, context.manifest_extras], sort_keys=True).encode())
        notices = context.notices()
        digest.update(json.dumps([notices, context.held_sources], sort_keys=True).encode())
        edition = edition_name(context.ledger_clock, context.last_capture, digest.hexdigest())
        manifest = {
            "format": LAYOUT,
            "edition": edition,
            "built_from": context.ledger_clock,
            "content_sha256": digest.hexdigest(),
            "rows": rows,
            "indexes": indexes,
            "conflicts": [
                f"{c.identifier} claimed by {', '.join(c.claimed_by)}" for c in context.resolution.conflicts
            ],
            "crosswalk_loaded": context.resolution.crosswalk_loaded,
            "proven": context.resolution.proven,
            "sources": context.held_sources,
            "notices": notices,
            "files": files.finish(edition),
            **context.manifest_extras,
        }
        writer.finish(edition, manifest)
    except BaseException:
        if files is not None:
            files.abandon()
        writer.abandon()
        raise
    return manifest


def switch(store: Datastore, edition: str, keep: int) -> None:
    """Point at an edition, keeping the newest few and the one that was served until now.

    To be called while holding the turn to switch (`Datastore.exclusive`).
    """
    shelf = store.list_editions()
    kept = [edition, *(name for name in shelf.editions if name != edition)][: keep + 1]
    store.set_current_and_prune([*kept, *filter(None, [shelf.current])], edition)


class _Shelving:
    """Writes datasets as blocks, and sums up everything written in one digest."""

    def __init__(self, writer: EditionWriter, digest: Callable[[bytes], None], files: "ParquetFiles") -> None:
        self._writer = writer
        self._digest = digest
        self._files = files
        self._next = 1
        self._directory: list[tuple[str, str, int, int]] = []
        self._placed: RowRanges | None = None
        self._blocks: list[tuple[int, bytes, bytes]] = []

    def shelve(self, dataset: Dataset, context: BuildContext) -> int:
        """The rows of a dataset; how many they are."""
        check = _Check(dataset, self._files)
        self._directory = []
        self._placed = context.places.setdefault(dataset.kind, RowRanges()) if dataset.placed else None
        for key, told, aliases in dataset.build(context):
            keys = (key, *aliases)
            if isinstance(told, PreparedRows):
                check.rows += told.count
                if told.columns:
                    self._files.offer_columns(dataset.kind, told.columns, told.count)
                self._shelve(dataset.kind, keys, told.blocks)
                if told.kept_columns:
                    self._shelve_columns(dataset.kind, keys, told.kept_columns)
            else:
                self._shelve(dataset.kind, keys, dataset.pack(check.passed(told, key)))
        self._flush()
        self._writer.register(self._directory)
        return check.rows

    def _shelve(self, kind: str, keys: tuple[str, ...], blocks: Iterable[tuple[bytes, bytes]]) -> None:
        first = self._next
        for block in blocks:
            if self._placed is not None:
                self._placed.add(self._next, row_ends(block))
            self._write(block)
        self._register(kind, keys, first)

    def _shelve_columns(self, kind: str, keys: tuple[str, ...], columns: list[bytes]) -> None:
        first = self._next
        for part in columns:
            self._write((b"", part))
        self._register(columns_kind(kind), keys, first)

    def _register(self, kind: str, keys: tuple[str, ...], first: int) -> None:
        """Let keys lead to the blocks written since."""
        for key in keys:
            self._digest(f"{kind}\x1f{key}\x1f{first}\x1f{self._next - first}\n".encode())
            self._directory.append((kind, key, first, self._next - first))

    def _write(self, block: tuple[bytes, bytes]) -> None:
        self._digest(block[0])
        self._digest(block[1])
        self._blocks.append((self._next, *block))
        self._next += 1
        if len(self._blocks) >= _BATCH:
            self._flush()

    def _flush(self) -> None:
        self._writer.write(self._blocks)
        self._blocks = []


class _Check:
    """Rows on their way: each read back, counted, and given to the Parquet files."""

    def __init__(self, dataset: Dataset, files: "ParquetFiles") -> None:
        self.rows = 0
        self._kind = dataset.kind
        self._offer = files.offer if files.takes(dataset.kind) else None
        self._row = None if dataset.row is None else RowCheck(dataset.kind, dataset.row)

    def passed(self, entries: Iterable[Entry], key: str) -> Iterator[Entry]:
        for entry in entries:
            self.rows += 1
            if self._row is None:
                check_days(self._kind, key, entry)
            else:
                row = self._row(key, entry)
                if self._offer is not None:
                    self._offer(self._kind, key, entry, row)
            yield entry
