"""Build, check, switch: the next edition is invisible until every check has passed."""

import gc
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sankofa.edition.blocks import Entry, row_ends
from sankofa.edition.checks import RowCheck, check_days
from sankofa.edition.flat import columns_kind
from sankofa.edition.naming import edition_name, ledger_position, may_hold, may_name_a_person
from sankofa.edition.ready import Ready
from sankofa.edition.tables import tables
from sankofa.edition.world import Dataset, Places, World, datasets
from sankofa.engines.datastore import Datastore, EditionWriter
from sankofa.ledger.store import Ledger
from sankofa.model.errors import CheckFailed, EditionError
from sankofa.sources.registry import Source

if TYPE_CHECKING:
    from sankofa.edition.parquet import ParquetFiles

FORMAT = 5
"""The layout of an edition; a reader refuses another."""

_BATCH = 256


def publish(
    store: Datastore,
    ledger: Ledger,
    keep: int,
    progress: Callable[[str], None] = lambda kind: None,
    *,
    sources: Mapping[str, Source] | None = None,
    despite_floors: bool = False,
    kept: Path | None = None,
    waiting: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Build the next edition from the ledger, check it, and switch to it. Returns its manifest.

    `kept` is a folder for what is made of issuers, to be taken again where nothing it hangs on changed.
    One publishes at a time: `waiting` is called where another does, and the ledger is read after it.
    Raises EditionError where the pointer would move back, or was moved by a rollback meanwhile.
    """
    with store.exclusive("publish", waiting):
        before = store.list_editions().current
        with ledger.verified_snapshot(), without_cycle_collection():
            world = World(ledger, sources, despite_floors=despite_floors, kept=kept)
            manifest = _build(store, world, progress)
        store.open(manifest["edition"]).close()  # refuses what did not reach the disk whole
        with store.exclusive("switch"):
            _refuse_to_move_back(manifest["edition"], before, store.list_editions().current)
            store.withdraw(_withdrawn_by(store, manifest))
            switch(store, manifest["edition"], keep)
    return manifest


def _withdrawn_by(store: Datastore, manifest: Mapping[str, Any]) -> list[str]:
    """The kept editions that may not be served in the place of this one, should it be lost."""
    refused = [one["source"] for one in manifest.get("left_out", ())]
    withdrawn = []
    for name in store.list_editions().editions:
        if name == manifest["edition"]:
            continue
        try:
            with closing(store.open(name, verified=True)) as older:
                held = may_hold(older.manifest, refused)
        except EditionError:
            held = bool(refused)
        if held or may_name_a_person(name, manifest["proven"]):
            withdrawn.append(name)
    return withdrawn


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


def _build(store: Datastore, world: World, progress: Callable[[str], None]) -> dict[str, Any]:
    if not world.captures:
        named = ", ".join(f"{one.source} ({one.why})" for one in world.left_out)
        raise CheckFailed(
            f"nothing to publish: every source of the ledger is left out: {named}"
            if named
            else "nothing to publish: the ledger is empty"
        )
    from sankofa.edition.parquet import ParquetFiles  # costs 0.2 s and 60 MB, which no server should pay

    writer = store.build()
    files: ParquetFiles | None = None
    try:
        digest = hashlib.sha256()
        files = ParquetFiles(writer.files, world)
        shelving = _Shelving(writer, digest.update, files)
        rows: dict[str, int] = {}
        indexes: dict[str, int] = {}
        for dataset in datasets():
            progress(dataset.kind)
            counts = indexes if dataset.row is None else rows
            counts[dataset.kind] = shelving.shelve(dataset, world)
        for table in tables():
            progress(table.name)
            files.make(table.name)
        digest.update(files.flush())
        # The same rows in another layout, or in spite of a floor, are another edition.
        digest.update(json.dumps([FORMAT, world.remarks], sort_keys=True).encode())
        notices = world.notices()
        digest.update(json.dumps([notices, world.held_sources], sort_keys=True).encode())
        edition = edition_name(world.ledger_clock, world.last_capture, digest.hexdigest())
        manifest = {
            "format": FORMAT,
            "edition": edition,
            "built_from": world.ledger_clock,
            "content_sha256": digest.hexdigest(),
            "rows": rows,
            "indexes": indexes,
            "conflicts": [
                f"{c.identifier} claimed by {', '.join(c.claimed_by)}" for c in world.resolution.conflicts
            ],
            "crosswalk_loaded": world.resolution.crosswalk_loaded,
            "proven": world.resolution.proven,
            "sources": world.held_sources,
            "notices": notices,
            "files": files.finish(edition),
            **world.remarks,
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
        self._placed: Places | None = None
        self._blocks: list[tuple[int, bytes, bytes]] = []

    def shelve(self, dataset: Dataset, world: World) -> int:
        """The rows of a dataset; how many they are."""
        check = _Check(dataset, self._files)
        self._directory = []
        self._placed = world.places.setdefault(dataset.kind, Places()) if dataset.placed else None
        for key, told, aliases in dataset.build(world):
            keys = (key, *aliases)
            if isinstance(told, Ready):
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
