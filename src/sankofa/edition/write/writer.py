"""Writes the datasets of an edition, each row checked, and sums up each part of it in a digest."""

from collections import defaultdict, deque
from collections.abc import Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

from sankofa.edition.format.row_blocks import Entry
from sankofa.edition.write.build_record import DatasetRecord, PartEntry, PartitionRecord
from sankofa.edition.write.checks import RowCheck, WithdrawnRows, check_days
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import (
    Built,
    CoverageTally,
    Dataset,
    KeyIndex,
    KeyRows,
    Outcome,
    PreparedKeyRows,
    PreparedRows,
    RowRanges,
    datasets,
)
from sankofa.edition.write.key_ranges import (
    KeyRange,
    index_inputs,
    index_ranges,
    key_ranges,
    known_parts,
)
from sankofa.edition.write.organisation_parts import Partition
from sankofa.edition.write.part_writer import DatasetParts, PackedKey, PartWriter, average_size
from sankofa.edition.write.taking_over import TakenOver
from sankofa.engines.datastore import BLOCK_BITS, EditionWriter

if TYPE_CHECKING:
    from sankofa.edition.write.parquet import ParquetFiles


class DatasetWriter:
    """Writes one dataset after another as blocks, in parts of their own."""

    def __init__(
        self, writer: EditionWriter, files: "ParquetFiles", taken: TakenOver, withdrawn: WithdrawnRows
    ) -> None:
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
        self._withdrawn = withdrawn
        self._built: dict[str, Built[Any]] = {}
        self._tallies: dict[str, CoverageTally] = {}
        self._part = PartWriter(writer)
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
        sources: defaultdict[str, set[str]] = defaultdict(set)
        addresses: dict[str, int] = {}
        number = 0  # of the part among those that have rows with an address: readers know no others
        for partition in context.partitions:
            known = self._taken.partitions.get(partition.inputs)
            if known is None or not self._writer.take_over(known.part.content):
                known = self._build_partition(own, context, partition)
            else:
                self._offer(own, context, partition)
            for dataset in own:
                self._files.end_segment(dataset.kind, partition.inputs)
            self.partitions[partition.inputs] = known
            self.parts.append(known.part)
            for kind, named in known.sources.items():
                sources[kind].update(named)
            for service_id, first in known.first_blocks.items():
                addresses[service_id] = (number << BLOCK_BITS) + first
            number += bool(known.first_blocks)
            for dataset in own:
                counts = self.indexes if dataset.row is None else self.rows
                counts[dataset.kind] = counts.get(dataset.kind, 0) + known.rows.get(dataset.kind, 0)
        for dataset in own:
            self._built[dataset.kind] = Built(addresses if dataset.ranged else None, RowRanges())
        for kind, named_by_all in sources.items():
            self._files.name_sources(kind, named_by_all)

    def _build_partition(
        self, own: Iterable[Dataset], context: BuildContext, partition: Partition
    ) -> PartitionRecord:
        sources: dict[str, list[str]] = {}
        first_blocks: dict[str, int] = {}
        rows = {}
        for dataset in own:
            check = _Check(dataset, self._files, self._withdrawn)
            first_of = first_blocks if dataset.ranged else None
            outcome = self._write_rows(dataset, check, dataset.build(context, partition.entities), first_of)
            if outcome.sources is not None:
                sources[dataset.kind] = sorted(outcome.sources)
            rows[dataset.kind] = check.rows
        part = self._part.end(partition.first)
        return PartitionRecord(part, rows, sources, first_blocks)

    def _offer(self, own: Iterable[Dataset], context: BuildContext, partition: Partition) -> None:
        """Give the rows of a part that is taken over to the files that have them."""
        for dataset in own:
            if not self._files.takes(dataset.kind) or self._files.take_segment(
                dataset.kind, partition.inputs
            ):
                continue
            check = _Check(dataset, self._files, self._withdrawn)
            for one in dataset.build(context, partition.entities):
                if isinstance(one, KeyRows):
                    deque(check.passed(one.entries, one.key), maxlen=0)
                elif one.rows.columns:
                    self._files.offer_columns(dataset.kind, one.rows.columns, one.rows.count)

    def _build(self, dataset: Dataset, context: BuildContext) -> DatasetRecord:
        check = _Check(dataset, self._files, self._withdrawn)
        ranges = RowRanges()
        self._part.ranges = ranges if dataset.ranged else None
        given = [*(self._built[kind] for kind in dataset.needs), *(self._tallies[k] for k in dataset.tallies)]
        building = dataset.build(context, *given)
        parts = DatasetParts(self._part, self._taken.base)
        if dataset.partitioned:
            outcome = self._write_ranges(dataset, check, building, parts, average_size(dataset, context))
        else:
            outcome = self._write_rows(dataset, check, building)
        parts.end()
        if isinstance(building, KeyIndex):
            firsts = [entry.first for entry in parts.entries]
            parts.inputs = index_inputs(building, firsts, self._taken.base)
        self._part.ranges = None
        self._built[dataset.kind] = Built(outcome.result, ranges)
        return DatasetRecord(
            inputs=self._taken.inputs.get(dataset.kind, ""),
            parts=parts.entries,
            rows=check.rows,
            manifest_extras=dict(outcome.manifest_extras),
            sources=None if outcome.sources is None else sorted(outcome.sources),
            tally=None if outcome.tally is None else outcome.tally.as_rows(),
            returned=outcome.result is not None or dataset.ranged,
            part_inputs=parts.inputs,
            part_rows=parts.rows,
        )

    def _write_ranges(
        self,
        dataset: Dataset,
        check: "_Check",
        building: Iterator[Any],
        parts: DatasetParts,
        average: int,
    ) -> Outcome:
        """The rows of a dataset that is cut between its keys. A range of keys of which nothing changed is the
        part that it was, unless the key behind it no longer begins one: that shows when it is come to."""
        known = [] if self._files.takes(dataset.kind) else known_parts(self._taken.before.get(dataset.kind))
        base = self._taken.base
        key_rows = _Returning(building)
        ranges = (
            key_ranges(cast("Iterable[KeyRows]", key_rows), known, base)
            if not isinstance(building, KeyIndex)
            else index_ranges(building, known, base)
        )
        kept: KeyRange | None = None

        def packed(one: KeyRows) -> PackedKey:
            before = check.rows
            blocks = list(dataset.pack(check.passed(one.entries, one.key)))
            return PackedKey(one, blocks, check.rows - before, average)

        for keys in ranges:
            if keys.part is not None and self._writer.take_over(keys.part.part.content):
                if kept is not None:
                    check.rows += parts.add_known(kept)
                parts.end()
                kept = keys
                continue
            for one in map(packed, keys.keys):
                if kept is not None and one.begins_part:
                    check.rows += parts.add_known(kept)
                elif kept is not None:
                    for before in map(packed, kept.keys):
                        parts.write(dataset.kind, before)
                kept = None
                parts.write(dataset.kind, one)
        if kept is not None:
            check.rows += parts.add_known(kept)
        return key_rows.returned or Outcome()

    def _write_rows(
        self,
        dataset: Dataset,
        check: "_Check",
        building: Iterator[KeyRows] | Iterator[PreparedKeyRows],
        first_blocks: dict[str, int] | None = None,
    ) -> Outcome:
        """All rows of a builder to the part that is being written; what the builder returned."""
        part = self._part
        key_rows = _Returning(building)
        for one in key_rows:
            keys = (one.key, *one.aliases)
            if first_blocks is not None:
                first_blocks[one.key] = part.next_block
            if isinstance(one, PreparedKeyRows):
                rows = one.rows
                check.prepared(rows, one.key)
                if rows.columns:
                    self._files.offer_columns(dataset.kind, rows.columns, rows.count)
                part.write_key(dataset.kind, keys, rows.blocks)
                if rows.kept_columns:
                    part.write_columns(dataset.kind, keys, rows.kept_columns)
            else:
                part.write_key(dataset.kind, keys, dataset.pack(check.passed(one.entries, one.key)))
        return key_rows.returned or Outcome()


class _Returning:
    """A builder at work, and what it returned at its end."""

    def __init__(self, key_rows: Iterator[KeyRows] | Iterator[PreparedKeyRows]) -> None:
        self._key_rows = cast("Generator[KeyRows | PreparedKeyRows, None, Outcome | None]", key_rows)
        self.returned: Outcome | None = None

    def __iter__(self) -> Iterator[KeyRows | PreparedKeyRows]:
        self.returned = yield from self._key_rows


class _Check:
    """Rows on their way: each read back, counted, and given to the Parquet files."""

    def __init__(self, dataset: Dataset, files: "ParquetFiles", withdrawn: WithdrawnRows) -> None:
        self.rows = 0
        self._withdrawn = withdrawn
        self._kind = dataset.kind
        self._files = files
        self._offer = files.offer if files.takes(dataset.kind) else None
        self._row = None if dataset.row is None else RowCheck(dataset.kind, dataset.row)

    def passed(self, entries: Iterable[Entry], key: str) -> Iterator[Entry]:
        for entry in entries:
            self.rows += 1
            if self._row is None:
                check_days(self._kind, key, entry)
            else:
                row = self._row(key, entry)
                if self._withdrawn:
                    self._withdrawn.refuse(self._kind, key, entry.row)
                if self._offer is not None:
                    self._offer(self._kind, key, row)
            yield entry

    def prepared(self, rows: PreparedRows, key: str) -> None:
        """Rows that were read back when they were prepared."""
        self.rows += rows.count
        if self._withdrawn:
            for _, block in rows.blocks:
                self._withdrawn.refuse(self._kind, key, block)
