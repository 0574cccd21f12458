"""Writes the datasets of an edition, each row checked, and sums up each part of it in a digest."""

import hashlib
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Set
from typing import TYPE_CHECKING, Any, cast

from sankofa.edition.build.build_record import DatasetRecord, PartEntry, PartitionRecord
from sankofa.edition.build.checks import RowCheck, check_days, check_failed
from sankofa.edition.build.context import BuildContext
from sankofa.edition.build.dataset import Built, Dataset, KeyRows, Outcome, PreparedKeyRows, datasets
from sankofa.edition.build.organisation_parts import Partition, partitions
from sankofa.edition.build.part_boundaries import begins_part
from sankofa.edition.build.prepared_rows import PreparedRows
from sankofa.edition.build.row_ranges import RowRanges
from sankofa.edition.build.taking_over import TakenOver
from sankofa.edition.build.tally import CoverageTally
from sankofa.edition.format.arrow_columns import columns_kind
from sankofa.edition.format.keys import ENTITIES
from sankofa.edition.format.row_blocks import Entry, row_ends
from sankofa.engines.datastore import BLOCK_BITS, EditionWriter
from sankofa.model.errors import CheckFailed

if TYPE_CHECKING:
    from sankofa.edition.build.parquet import ParquetFiles

_BATCH = 256
_BYTES_IN_A_PART = 4 << 20
"""On average, of a dataset that is cut between its keys."""
_BYTES_OF_A_KEY = 128
"""What the directory has of one, about."""


class DatasetWriter:
    """Writes one dataset after another as blocks, in parts of their own."""

    def __init__(self, writer: EditionWriter, files: "ParquetFiles", taken: TakenOver) -> None:
        self.rows: dict[str, int] = {}
        """By kind, how many rows there are."""
        self.indexes: dict[str, int] = {}
        """By kind of index, how many entries there are."""
        self.manifest_extras: dict[str, object] = {}
        """What datasets have to tell their readers."""
        self.parts: list[PartEntry] = []
        """Of all datasets, in their order."""
        self.record: dict[str, DatasetRecord] = {}
        """What was written, by kind."""
        self._writer = writer
        self._files = files
        self._taken = taken
        self._built: dict[str, Built[Any]] = {}
        self._tallies: dict[str, CoverageTally] = {}
        self._part = _PartWriter(writer)
        self.partitions: dict[str, PartitionRecord] = {}
        """The parts of organisations, by their inputs."""

    def write(self, dataset: Dataset, context: BuildContext) -> None:
        """Build a dataset, after those that it needs, and write it; or take it over."""
        if dataset.by_organisation:
            if not self.partitions:
                self._write_organisations(context)
            return
        known = self._taken.datasets.get(dataset.kind)
        if known is None:
            known = self._build(dataset, context)
        else:
            self._built[dataset.kind] = Built(None, RowRanges())
        counts = self.indexes if dataset.row is None else self.rows
        counts[dataset.kind] = known.rows
        self.parts += known.parts
        self.manifest_extras |= known.manifest_extras
        if known.tally is not None:
            self._tallies[dataset.kind] = CoverageTally.from_rows(known.tally)
        if known.sources is not None:
            self._files.name_sources(dataset.kind, set(known.sources))
        if known.inputs:
            self.record[dataset.kind] = known

    def _write_organisations(self, context: BuildContext) -> None:
        """All datasets that are kept by organisation, one partition after another."""
        own = [dataset for dataset in datasets() if dataset.by_organisation]
        sources: set[str] = set()
        addresses: dict[str, int] = {}
        number = 0  # of the part among those that have rows with an address: readers know no others
        for partition in partitions(context, self._taken.base):
            known = self._taken.partitions.get(partition.inputs)
            if known is None or not self._writer.take_over(known.part.content):
                known = self._build_partition(own, context, partition)
            else:
                self._offer(own, context, partition)
            self.partitions[partition.inputs] = known
            self.parts.append(known.part)
            sources.update(known.sources)
            for service_id, first in known.first_blocks.items():
                addresses[service_id] = (number << BLOCK_BITS) + first
            number += bool(known.first_blocks)
            for dataset in own:
                counts = self.indexes if dataset.row is None else self.rows
                counts[dataset.kind] = counts.get(dataset.kind, 0) + known.rows.get(dataset.kind, 0)
        for dataset in own:
            self._built[dataset.kind] = Built(addresses if dataset.ranged else None, RowRanges())
        self._files.name_sources(ENTITIES, sources)

    def _build_partition(
        self, own: Iterable[Dataset], context: BuildContext, partition: Partition
    ) -> PartitionRecord:
        sources: Set[str] = frozenset()
        first_blocks: dict[str, int] = {}
        rows = {}
        for dataset in own:
            check = _Check(dataset, self._files)
            first_of = first_blocks if dataset.ranged else None
            outcome = self._write_rows(dataset, check, dataset.build(context, partition.entities), first_of)
            sources = outcome.sources or sources
            rows[dataset.kind] = check.rows
        (part,) = self._part.end(partition.first)
        return PartitionRecord(part, rows, sorted(sources), first_blocks)

    def _offer(self, own: Iterable[Dataset], context: BuildContext, partition: Partition) -> None:
        """Give the rows of a part that is taken over to the files that have them."""
        for dataset in own:
            if not self._files.takes(dataset.kind):
                continue
            check = _Check(dataset, self._files)
            for key, rows, _ in dataset.build(context, partition.entities):
                if isinstance(rows, PreparedRows):
                    if rows.columns:
                        self._files.offer_columns(dataset.kind, rows.columns, rows.count)
                else:
                    deque(check.passed(rows, key), maxlen=0)

    def _build(self, dataset: Dataset, context: BuildContext) -> DatasetRecord:
        check = _Check(dataset, self._files)
        ranges = RowRanges()
        self._part.ranges = ranges if dataset.ranged else None
        given = [*(self._built[kind] for kind in dataset.needs), *(self._tallies[k] for k in dataset.tallies)]
        parts: list[PartEntry] = []
        outcome = self._write_rows(
            dataset, check, dataset.build(context, *given), parts=parts if dataset.partitioned else None
        )
        parts += self._part.end(self._part.first if parts else "") if self._part.has_keys else []
        self._part.ranges = None
        self._built[dataset.kind] = Built(outcome.result, ranges)
        return DatasetRecord(
            inputs=self._taken.inputs.get(dataset.kind, ""),
            parts=parts,
            rows=check.rows,
            manifest_extras=dict(outcome.manifest_extras),
            sources=None if outcome.sources is None else sorted(outcome.sources),
            tally=None if outcome.tally is None else outcome.tally.as_rows(),
            returned=outcome.result is not None or dataset.ranged,
        )

    def _write_rows(
        self,
        dataset: Dataset,
        check: "_Check",
        building: Iterator[KeyRows] | Iterator[PreparedKeyRows],
        first_blocks: dict[str, int] | None = None,
        parts: list[PartEntry] | None = None,
    ) -> Outcome:
        """All rows of a builder to the part that is being written; what the builder returned.

        Where `parts` are given, the part is ended now and then, and added to them.
        """
        part = self._part
        key_rows = _Returning(building)
        rows: Iterable[Entry] | PreparedRows
        for key, rows, aliases in key_rows:
            keys = (key, *aliases)
            if first_blocks is not None:
                first_blocks[key] = part.next_block
            if isinstance(rows, PreparedRows):
                check.rows += rows.count
                if rows.columns:
                    self._files.offer_columns(dataset.kind, rows.columns, rows.count)
                part.write_key(dataset.kind, keys, rows.blocks)
                if rows.kept_columns:
                    part.write_columns(dataset.kind, keys, rows.kept_columns)
            else:
                blocks: Iterable[tuple[bytes, bytes]] = dataset.pack(check.passed(rows, key))
                if parts is not None:
                    if part.has_keys and key <= part.last:
                        raise check_failed(dataset.kind, key, f"comes after {part.last}, out of order")
                    blocks = list(blocks)
                    size = _BYTES_OF_A_KEY + sum(len(index) + len(rows) for index, rows in blocks)
                    if part.has_keys and begins_part(key, size, _BYTES_IN_A_PART):
                        parts += part.end(part.first if parts else "")
                part.write_key(dataset.kind, keys, blocks)
        return key_rows.returned or Outcome()


class _PartWriter:
    """Writes keys and their blocks, and sums up what it wrote in one digest for each part."""

    def __init__(self, writer: EditionWriter) -> None:
        self.ranges: RowRanges | None = None
        """Where rows stand, where anybody asks."""
        self._writer = writer
        self._begin()

    def _begin(self) -> None:
        self._content = hashlib.sha256()
        self._next = 1
        self._directory: list[tuple[str, str, int, int]] = []
        self._blocks: list[tuple[int, bytes, bytes]] = []

    def write_key(self, kind: str, keys: tuple[str, ...], blocks: Iterable[tuple[bytes, bytes]]) -> None:
        first = self._next
        for block in blocks:
            if self.ranges is not None:
                self.ranges.add(self._next, row_ends(block))
            self._write(block)
        self._register(kind, keys, first)

    def write_columns(self, kind: str, keys: tuple[str, ...], columns: list[bytes]) -> None:
        first = self._next
        for part in columns:
            self._write((b"", part))
        self._register(columns_kind(kind), keys, first)

    @property
    def has_keys(self) -> bool:
        return bool(self._directory)

    @property
    def first(self) -> str:
        """The first key."""
        return self._directory[0][1]

    @property
    def last(self) -> str:
        """The last key."""
        return self._directory[-1][1]

    @property
    def next_block(self) -> int:
        """The number that the next block will have."""
        return self._next

    def end(self, first: str) -> list[PartEntry]:
        """The part that was written since, whose keys begin with this one."""
        if self._next > 1 << BLOCK_BITS and (first or self.ranges is not None):
            raise CheckFailed(f"{self._directory[0][0]}: more blocks than a part can have")
        self._flush()
        self._writer.register(self._directory)
        kinds = sorted({kind for kind, *_ in self._directory})
        content = self._content.hexdigest()
        self._writer.end_part(content)
        entry = PartEntry(kinds, first, content)
        self._begin()
        return [entry]

    def _register(self, kind: str, keys: tuple[str, ...], first: int) -> None:
        """Let keys lead to the blocks written since."""
        for key in keys:
            self._content.update(f"{kind}\x1f{key}\x1f{first}\x1f{self._next - first}\n".encode())
            self._directory.append((kind, key, first, self._next - first))

    def _write(self, block: tuple[bytes, bytes]) -> None:
        self._content.update(block[0])
        self._content.update(block[1])
        self._blocks.append((self._next, *block))
        self._next += 1
        if len(self._blocks) >= _BATCH:
            self._flush()

    def _flush(self) -> None:
        self._writer.write(self._blocks)
        self._blocks = []


class _Returning:
    """A builder at work, and what it returned at its end."""

    def __init__(self, key_rows: Iterator[KeyRows] | Iterator[PreparedKeyRows]) -> None:
        self._key_rows = cast("Generator[KeyRows | PreparedKeyRows, None, Outcome | None]", key_rows)
        self.returned: Outcome | None = None

    def __iter__(self) -> Iterator[KeyRows | PreparedKeyRows]:
        self.returned = yield from self._key_rows


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
                    self._offer(self._kind, key, row)
            yield entry
