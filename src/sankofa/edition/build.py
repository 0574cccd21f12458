"""Build, check, switch: the next edition is invisible until every check has passed."""

import gc
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from sankofa.edition.blocks import Entry
from sankofa.edition.flat import KEPT_FROM, columns_kind, keep
from sankofa.edition.tables import tables
from sankofa.edition.world import Dataset, Places, World, datasets
from sankofa.engines.datastore import Datastore, EditionWriter
from sankofa.ledger.book import Ledger
from sankofa.model.errors import CheckFailed
from sankofa.model.provenance import LICENSE_CLASSES
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
) -> dict[str, Any]:
    """Build the next edition from the ledger, check it, and switch to it. Returns its manifest.

    `kept` is a folder for what is derived, to be taken again next time where nothing it hangs on changed.
    """
    with ledger.snapshot(), without_cycle_collection():
        world = World(ledger, sources, despite_floors=despite_floors, kept=kept)
        manifest = _build(store, world, progress)
    store.open(manifest["edition"]).close()  # refuses what did not reach the disk whole
    switch(store, manifest["edition"], keep)
    return manifest


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
        raise CheckFailed("nothing to publish: the ledger is empty")
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
        stamp = world.clock.translate({ord(c): None for c in "-:"})
        # The last capture orders the editions of one second; the digest tells their contents apart.
        edition = f"{stamp}-{max(world.captures):05d}-{digest.hexdigest()[:10]}"
        manifest = {
            "format": FORMAT,
            "edition": edition,
            "built_from": world.clock,
            "content_sha256": digest.hexdigest(),
            "rows": rows,
            "indexes": indexes,
            "conflicts": [
                f"{c.identifier} claimed by {', '.join(c.claimed_by)}" for c in world.resolution.conflicts
            ],
            "crosswalk_loaded": world.resolution.crosswalk_loaded,
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
    """Point at an edition, keeping the newest few and the one that was served until now."""
    shelf = store.shelf()
    kept = [edition, *(name for name in shelf.editions if name != edition)][: keep + 1]
    store.keep([*kept, *filter(None, [shelf.current])], edition)


class _Shelving:
    """Writes datasets as blocks, and sums up everything written in one digest."""

    def __init__(self, writer: EditionWriter, digest: Callable[[bytes], None], files: "ParquetFiles") -> None:
        self._writer = writer
        self._digest = digest
        self._files = files
        self._next = 1
        self._blocks: list[tuple[int, bytes, bytes]] = []

    def shelve(self, dataset: Dataset, world: World) -> int:
        check = _Check(dataset, self._files)
        places: list[tuple[str, str, int, int]] = []
        rows = world.places.setdefault(dataset.kind, Places()) if dataset.placed else None
        for key, built, aliases in dataset.build(world):
            entries = list(built) if dataset.placed or dataset.columns else built
            unplaced = iter(entries)
            packed = dataset.pack(check.passed(entries, key))
            shelves = [(dataset.kind, packed)]
            if dataset.columns and dataset.row and isinstance(entries, list) and len(entries) >= KEPT_FROM:
                kept = keep(dataset.row, entries)
                shelves.append((columns_kind(dataset.kind), ((b"", columns) for columns in kept)))
            for kind, shelved in shelves:
                first = self._next
                for block in shelved:
                    if rows is not None and kind == dataset.kind:
                        _place(rows, self._next, block[1], unplaced)
                    self._write(block)
                for name in (key, *aliases):
                    self._digest(f"{kind}\x1f{name}\x1f{first}\x1f{self._next - first}\n".encode())
                    places.append((kind, name, first, self._next - first))
        self._flush()
        self._writer.register(places)
        return check.rows

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


def _place(places: Places, block: int, rows: bytes, entries: Iterator[Entry]) -> None:
    """Note where each entry of a block stands: one after another, with a comma between."""
    start = 0
    while start < len(rows):
        end = start + len(next(entries).row)
        places.append(block, start, end)
        start = end + 1


class _Check:
    """Every row is read back as what it claims to be before it may be written; and counted.

    The row that was read back is the one that the Parquet files get.
    """

    def __init__(self, dataset: Dataset, files: "ParquetFiles") -> None:
        self.rows = 0
        self._kind = dataset.kind
        self._offer = files.offer if files.takes(dataset.kind) else None
        self._decode = None if dataset.row is None else msgspec.json.Decoder(dataset.row).decode

    def passed(self, entries: Iterable[Entry], key: str) -> Iterator[Entry]:
        decode = self._decode
        for entry in entries:
            self.rows += 1
            if decode is not None:
                try:
                    row = decode(entry.row)
                except msgspec.ValidationError as failure:
                    raise self._failed(key, f"a row is not of its shape: {failure}") from failure
                if row.license_class not in LICENSE_CLASSES:
                    raise self._failed(key, f"unknown licence class {row.license_class!r}")
                if self._offer is not None:
                    self._offer(self._kind, key, entry, row)
            if not entry.first < entry.until:
                raise self._failed(key, "a row that is never seen")
            yield entry

    def _failed(self, key: str, reason: str) -> CheckFailed:
        return CheckFailed(f"{self._kind} {key}: {reason}")
