"""Writes the datasets of an edition, checks every row, and reuses unchanged parts."""

from collections import defaultdict, deque
from collections.abc import Generator, Iterable, Iterator
from hashlib import sha256
from itertools import islice, starmap
from typing import TYPE_CHECKING, Any, Final, cast

from sankofa.edition.format.row_blocks import Entry
from sankofa.edition.format.visibility import AS_KNOWN
from sankofa.edition.write.checks import RowCheck, WithdrawnRows, check_days
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import (
    CoverageTally,
    Dataset,
    Input,
    KeyRows,
    Outcome,
    PreparedRows,
    datasets,
)
from sankofa.edition.write.reuse import BuildRecord, PartEntry, Partition, PartWriter, average_size
from sankofa.edition.write.tables import Table, tables
from sankofa.engines.block_file import StoredBlock, stored_block
from sankofa.engines.edition_folder import EditionWriter
from sankofa.engines.edition_reader import BLOCK_BITS

if TYPE_CHECKING:
    from sankofa.edition.write.parquet import ParquetFiles

_ROWS_AT_ONCE: Final = 256
"""Rows that are read back at once, at half the cost."""


class Reuse:
    """Decides which datasets and tables are reused, and has the digests of their inputs.

    A dataset is built although its inputs did not change if another dataset or table that is built needs its
    result or its rows.
    """

    def __init__(self, context: BuildContext, writer: EditionWriter) -> None:
        self._datasets = {dataset.kind: dataset for dataset in datasets()}
        self._tables = {table.name: table for table in tables()}
        self._roots = {name: self._datasets.get(self._root(table)) for name, table in self._tables.items()}
        """The dataset that each table takes its rows from, directly or through other tables."""
        self._writer = writer
        self._memo = context.memo
        self.inputs: dict[str, str] = {}
        """Digests by dataset or table, without those that declare no inputs."""
        for kind, dataset in self._datasets.items():
            reads = self._all_reads(dataset)
            if reads is not None and not dataset.by_organisation:  # those are reused partition by partition
                self.inputs[kind] = context.inputs.digest(kind, reads)
        for name, table in self._tables.items():
            root = self._roots[name]
            if root is not None and root.by_organisation and root.reads is None:
                self.inputs[name] = _digest_of_partitions(name, context)
            elif (reads := self._all_reads(root or table)) is not None:
                self.inputs[name] = context.inputs.digest(name, reads)
        known = {name: self.known(inputs) for name, inputs in self.inputs.items()}
        self.records = {name: record for name, record in known.items() if record is not None}
        """Records of the reused datasets and tables, by name."""
        while dropped := self._needed_by_others():
            for name in dropped:
                del self.records[name]

    def known(self, inputs: str) -> BuildRecord | None:
        """What the last build made of these inputs, if stored editions still hold all of it."""
        record = self._memo.known(inputs)
        if record is None or not all(self._writer.reuse(part.content) for part in record.parts):
            return None
        is_stored = all(self._writer.reuse_file(file["name"], file["sha256"]) for file in record.files)
        return record if is_stored else None

    def remember(self, inputs: str, record: BuildRecord) -> None:
        if inputs:
            self._memo.remember(inputs, record)

    def _needed_by_others(self) -> set[str]:
        """Reused datasets whose result or rows others need, and tables whose dataset is built."""
        built = [dataset for kind, dataset in self._datasets.items() if kind not in self.records]
        dropped = {
            need
            for one in built
            for need in one.needs
            if need in self.records and self.records[need].returned
        }
        roots = [(name, root) for name, root in self._roots.items() if root is not None]
        roots_read = {root.kind for name, root in roots if name not in self.records}
        for name, root in roots:
            if root.by_organisation:
                dropped.update({name} if root.kind in roots_read else ())
            elif name not in self.records:
                dropped.add(root.kind)
            elif root.kind not in self.records:
                dropped.add(name)
        return dropped & self.records.keys()

    def _root(self, table: Table) -> str:
        source = table.takes_from
        while source in self._tables:
            source = self._tables[source].takes_from
        return source

    def _all_reads(self, one: Dataset | Table) -> set[Input] | None:
        """The inputs of a dataset or table and of the kinds it needs; None if not declared."""
        if isinstance(one, Table):
            return None if one.reads is None else {*one.reads}
        if one.by_organisation:
            return {*(one.reads or (Input.ORGANISATIONS,))}
        every = [one.reads, *(self._all_reads(self._datasets[need]) for need in one.needs)]
        return None if None in every else {read for own in every for read in own or ()}


def _digest_of_partitions(name: str, context: BuildContext) -> str:
    """The digest of a table built from all organisations."""
    inputs = [name, context.first_observed, *(partition.inputs for partition in context.partitions)]
    return sha256(" ".join(inputs).encode()).hexdigest()


class DatasetWriter:
    """Writes one dataset after another as blocks, in parts."""

    def __init__(
        self, writer: EditionWriter, files: "ParquetFiles", reuse: Reuse, withdrawn: WithdrawnRows
    ) -> None:
        self.rows: dict[str, int] = {}
        """Number of rows by kind."""
        self.indexes: dict[str, int] = {}
        """Number of entries by kind of index."""
        self.manifest_extras: dict[str, object] = {}
        self.parts: list[PartEntry] = []
        """Parts of all datasets, in their order."""
        self._files = files
        self._reuse = reuse
        self._withdrawn = withdrawn
        self._built: dict[str, Any] = {}
        """What each dataset returned."""
        self._tallies: dict[str, CoverageTally] = {}
        self._part = PartWriter(writer)

    def write(self, dataset: Dataset, context: BuildContext) -> None:
        """Build a dataset after the ones it needs, and write it; or reuse it."""
        if dataset.by_organisation:
            if dataset.kind not in self._built:
                self._write_organisations(context)
            return
        record = self._reuse.records.get(dataset.kind)
        if record is None:
            record = self._build(dataset, context)
        else:
            self._built[dataset.kind] = None
        self._add(record, (dataset,))
        self.manifest_extras |= record.manifest_extras
        if record.tally is not None:
            self._tallies[dataset.kind] = CoverageTally(record.tally)
        for kind, named in record.sources.items():
            self._files.name_sources(kind, set(named))
        self._reuse.remember(self._reuse.inputs.get(dataset.kind, ""), record)

    def _add(self, record: BuildRecord, own: Iterable[Dataset]) -> None:
        self.parts += record.parts
        for dataset in own:
            counts = self.indexes if dataset.row is None else self.rows
            counts[dataset.kind] = counts.get(dataset.kind, 0) + record.rows.get(dataset.kind, 0)

    def _write_organisations(self, context: BuildContext) -> None:
        """Write all datasets stored by organisation, one partition after another."""
        own = [dataset for dataset in datasets() if dataset.by_organisation]
        sources: defaultdict[str, set[str]] = defaultdict(set)
        addresses: dict[str, int] = {}
        number = 0  # counts the parts that have addressed rows: readers know no others
        for partition in context.partitions:
            record = self._reuse.known(partition.inputs)
            if record is None:
                record = self._build_partition(own, context, partition)
            else:
                self._offer(own, context, partition)
            for dataset in own:
                self._files.end_partition(dataset.kind)
            self._reuse.remember(partition.inputs, record)
            self._add(record, own)
            for kind, named in record.sources.items():
                sources[kind].update(named)
            for service_id, first in record.first_blocks.items():
                addresses[service_id] = (number << BLOCK_BITS) + first
            number += bool(record.first_blocks)
        for dataset in own:
            self._built[dataset.kind] = addresses if dataset.addressed else None
        for kind, named_by_all in sources.items():
            self._files.name_sources(kind, named_by_all)

    def _build_partition(
        self, own: Iterable[Dataset], context: BuildContext, partition: Partition
    ) -> BuildRecord:
        sources: dict[str, list[str]] = {}
        first_blocks: dict[str, int] = {}
        rows = {}
        entities = partition.among(context.entities)
        for dataset in own:
            check = _Check(dataset, self._files, self._withdrawn)
            first_of = first_blocks if dataset.addressed else None
            outcome = self._write_rows(dataset, check, dataset.build(context, entities), first_of)
            if outcome.sources is not None:
                sources[dataset.kind] = sorted(outcome.sources)
            rows[dataset.kind] = check.rows
        part = self._part.end(partition.first)
        return BuildRecord([part], rows=rows, sources=sources, first_blocks=first_blocks)

    def _offer(self, own: Iterable[Dataset], context: BuildContext, partition: Partition) -> None:
        """Give the rows of a reused partition to the Parquet files."""
        for dataset in own:
            if self._files.takes(dataset.kind):
                check = _Check(dataset, self._files, self._withdrawn)
                for one in dataset.build(context, partition.among(context.entities)):
                    check.offer(one)

    def _build(self, dataset: Dataset, context: BuildContext) -> BuildRecord:
        check = _Check(dataset, self._files, self._withdrawn)
        inputs = [
            *(self._built[kind] for kind in dataset.needs),
            *(self._tallies[k] for k in dataset.tallies),
        ]
        parts: list[PartEntry] = []
        average = average_size(dataset, context.part_scale) if dataset.partitioned else 0
        outcome = self._write_rows(dataset, check, dataset.build(context, *inputs), None, parts, average)
        self._end_part(parts)
        self._built[dataset.kind] = outcome.result
        return BuildRecord(
            parts,
            rows={dataset.kind: check.rows},
            sources={} if outcome.sources is None else {dataset.kind: sorted(outcome.sources)},
            manifest_extras=dict(outcome.manifest_extras),
            tally=None if outcome.tally is None else outcome.tally.rows(),
            returned=outcome.result is not None,
        )

    def _end_part(self, parts: list[PartEntry]) -> None:
        if self._part.has_keys:
            parts.append(self._part.end(self._part.first if parts else ""))

    def _write_rows(
        self,
        dataset: Dataset,
        check: "_Check",
        building: Iterator[KeyRows],
        first_blocks: dict[str, int] | None = None,
        parts: list[PartEntry] | None = None,
        average: int = 0,
    ) -> Outcome:
        """Write all rows of a builder to the current part; returns the builder's result. With `parts`, end
        it between two keys where it has about the average size."""
        part, outcome = self._part, Outcome()

        def until_outcome() -> Iterator[KeyRows]:
            nonlocal outcome
            returned: Outcome | None = yield from cast("Generator[KeyRows, None, Outcome | None]", building)
            outcome = returned or outcome

        for one in until_outcome():
            blocks = check.blocks(one)
            if parts is not None and average:
                blocks = list(blocks)
                if part.begins(dataset.kind, one.key, blocks, average):
                    self._end_part(parts)
            if first_blocks is not None:
                first_blocks[one.key] = part.next_block
            keys = (one.key, *one.aliases)
            part.write_key(dataset.kind, keys, blocks)
            if isinstance(one.rows, PreparedRows) and one.rows.stored_columns:
                part.write_columns(dataset.kind, keys, one.rows.stored_columns)
        return outcome


class _Check:
    """Reads rows back on their way, counts them, and gives them to the Parquet files."""

    def __init__(self, dataset: Dataset, files: "ParquetFiles", withdrawn: WithdrawnRows) -> None:
        self.rows = 0
        self._withdrawn = withdrawn
        self._kind = dataset.kind
        self._pack = dataset.pack
        self._files = files
        self._is_taken = files.takes(dataset.kind)
        self._row = None if dataset.row is None else RowCheck(dataset.kind, dataset.row)

    def blocks(self, one: KeyRows) -> Iterable[StoredBlock]:
        if not isinstance(one.rows, PreparedRows):
            return starmap(stored_block, self._pack(self._passed(one.rows, one.key)))
        self.rows += one.rows.count
        if self._withdrawn:
            for block in one.rows.blocks:
                self._withdrawn.refuse(self._kind, one.key, block.plain[1])
        self.offer(one)
        return one.rows.blocks

    def offer(self, one: KeyRows) -> None:
        """Give rows to the Parquet files without writing them."""
        if not isinstance(one.rows, PreparedRows):
            deque(self._passed(one.rows, one.key), maxlen=0)
        elif one.rows.columns:
            self._files.offer_columns(self._kind, one.rows.columns, one.rows.count)

    def _passed(self, entries: Iterable[Entry], key: str) -> Iterator[Entry]:
        waiting = iter(entries)
        while some := list(islice(waiting, _ROWS_AT_ONCE)):
            self.rows += len(some)
            if self._row is None:
                for entry in some:
                    check_days(self._kind, key, entry)
            else:
                for entry, row in zip(some, self._row.all(key, some), strict=True):
                    if self._withdrawn:
                        self._withdrawn.refuse(self._kind, key, entry.row)
                    if self._is_taken and entry.modes != AS_KNOWN:
                        self._files.offer(self._kind, key, row)
            yield from some
