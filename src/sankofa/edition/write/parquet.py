"""Writes the tables of an edition as Parquet while its datasets are built, so memory stays flat.

Rows wait in small batches. A thread encodes and compresses each row group while the build goes on. The rows
decide where row groups end, not the batches, so a table with unchanged rows is the same file in the next
edition.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Set
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import msgspec
import pyarrow as pa

from sankofa.edition.format.columns import in_force
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.parquet_file import LONG_TEXT, RowGroup, TableFile, row_group_encoder
from sankofa.edition.write.reuse import BuildRecord
from sankofa.edition.write.tables import ROWS_OF_COLUMNS, Table, tables
from sankofa.model.errors import CheckFailed

_ROWS_IN_A_BATCH: Final = 8_192
_ROWS_IN_A_GROUP: Final = 16 * _ROWS_IN_A_BATCH
_ENOUGH_ROWS: Final = _ROWS_IN_A_GROUP // 2
"""With this many rows a row group ends with a partition, so an added row does not move later groups."""
_BYTES_IN_A_GROUP: Final = 64 * 1024 * 1024
"""For tables with long texts."""

Owed = Callable[[Set[str]], str]
"""The attribution of rows that name these sources."""


class TableWriter:
    """Writes one table to one file, or to several if it is large."""

    def __init__(
        self,
        folder: Path,
        table: Table,
        encoder: ThreadPoolExecutor,
        rows_in_a_file: int,
        owed: Owed,
        check: Callable[[str, pa.Table], None] = lambda table, group: None,
    ) -> None:
        """`check` raises CheckFailed for a row group that may not be published."""
        self.table = table
        self._owed = owed
        self._check = check
        self._folder = folder
        self._encoder = encoder
        self._rows_in_a_file = rows_in_a_file
        self._groups = row_group_encoder(table)
        self._columns = self._groups.columns
        self._has_long_text = not set(LONG_TEXT).isdisjoint(self._columns.names)
        self._pending: list[msgspec.Struct] = []
        self._batches: list[pa.Table] = []
        self._waiting = self._waiting_bytes = 0
        self._encoding: Future[RowGroup] | None = None
        self._files = [self._file(1)]

    def add(self, row: msgspec.Struct) -> None:
        self._pending.append(row)
        if len(self._pending) == _ROWS_IN_A_BATCH:
            self._settle()

    def add_columns(self, flat: pa.Table) -> None:
        if flat.num_rows:
            self._take(self._columns.of_flat(flat))

    def add_group(self, group: RowGroup) -> None:
        self.flush()
        self._begin_file_if_full()
        self._files[-1].write(group)

    def may_end(self, coming: int = 0) -> bool:
        """Whether a row group may end with a partition, once as many more rows are added."""
        return self._waiting + len(self._pending) + coming >= _ENOUGH_ROWS

    def end_partition(self) -> None:
        """End the row group if it is large enough."""
        if self.may_end():
            self._settle()
        if self._waiting >= _ENOUGH_ROWS:
            self._encode(self._waiting)

    def flush(self) -> None:
        self._settle()
        if self._waiting:
            self._encode(self._waiting)
        self._done()

    def abandon(self) -> None:
        for file in self._files:
            file.abandon()

    def finish(self) -> list[dict[str, Any]]:
        """Close every file; returns their manifest entries."""
        described = []
        left_out = sum(file.left_out for file in self._files)
        for number, file in enumerate(self._files, 1):
            self._close(file)
            stem = self.table.name if len(self._files) == 1 else f"{self.table.name}-{number:04d}"
            described.append(file.name(stem, left_out))
        return described

    def _settle(self) -> None:
        """Turn waiting rows into columns, which take a tenth of the memory."""
        if self._pending:
            self._take(self._columns.table(self._pending))
            self._pending = []

    def _take(self, batch: pa.Table) -> None:
        """Add columns, and encode full row groups."""
        if not batch.num_rows:
            return
        self._batches.append(batch)
        self._waiting += batch.num_rows
        while self._waiting >= _ROWS_IN_A_GROUP:
            self._encode(_ROWS_IN_A_GROUP)
        if self._has_long_text:
            self._waiting_bytes += batch.nbytes
            if self._waiting_bytes >= _BYTES_IN_A_GROUP:
                self._encode(self._waiting)

    def _encode(self, rows: int) -> None:
        """Give the first waiting rows to the encoder as a row group, after the previous one is done."""
        self._done()
        self._begin_file_if_full()
        waiting = pa.concat_tables(self._batches)
        # In one chunk, so that the ends of pages do not depend on batches.
        group = waiting.slice(0, rows).combine_chunks()
        self._check(self.table.name, group)
        self._waiting -= rows
        self._batches = [waiting.slice(rows)] if self._waiting else []
        self._waiting_bytes = 0
        self._encoding = self._encoder.submit(self._groups.encode, group)

    def _done(self) -> None:
        if self._encoding is not None:
            self._files[-1].write(self._encoding.result())
            self._encoding = None

    def _begin_file_if_full(self) -> None:
        if self._files[-1].rows >= self._rows_in_a_file:
            if not self.table.derived:
                self._close(self._files[-1])
            self._files.append(self._file(len(self._files) + 1))

    def _file(self, number: int) -> TableFile:
        return TableFile(self._folder / f"{self.table.name}.{number}", self.table, self._groups)

    def _close(self, file: TableFile) -> None:
        if not file.closed:
            file.close(self._owed(file.sources))


ROWS_IN_A_FILE: Final = 10_000_000


class ParquetFiles:
    """The files of an edition being built."""

    def __init__(
        self,
        folder: Path,
        context: BuildContext,
        rows_in_a_file: int = ROWS_IN_A_FILE,
        reused: Mapping[str, BuildRecord] = MappingProxyType({}),
    ) -> None:
        """`reused` has the tables whose files come from an earlier edition."""
        self._context = context
        self._reused = reused
        self._encoder = ThreadPoolExecutor(1, "parquet")
        self._rows = {table.name: table.rows(context) for table in tables()}
        self._derived_from: dict[str, Set[str]] = {}
        self._open = {
            table.name: TableWriter(
                folder,
                table,
                self._encoder,
                rows_in_a_file,
                partial(self._owed, table),
                context.withdrawn_rows.refuse_columns,
            )
            for table in tables()
            if table.name not in reused
        }
        self._columns: defaultdict[str, list[bytes]] = defaultdict(list)
        """Columns of a few rows each, by kind: they are handled together at a tenth of the cost."""
        self._waiting: Counter[str] = Counter()
        self._taking: defaultdict[str, list[TableWriter]] = defaultdict(list)
        for writer in self._open.values():
            if writer.table.takes_from:
                self._taking[writer.table.takes_from].append(writer)

    def takes(self, kind: str) -> bool:
        return kind in self._taking

    def offer(self, kind: str, key: str, row: object) -> None:
        """Give a row of a dataset or table to every table that takes from it."""
        for writer in self._taking[kind]:
            self._add(writer, key, self._rows[writer.table.name].take(key, row))

    def offer_columns(self, kind: str, columns: Iterable[bytes], rows: int) -> None:
        """Give the columns of a key's rows (`format.columns`) to every table that takes from them."""
        self._columns[kind] += columns
        self._waiting[kind] += rows
        if self._waiting[kind] >= ROWS_OF_COLUMNS:
            self._offer_waiting(kind)

    def _offer_waiting(self, kind: str) -> None:
        del self._waiting[kind]
        self._offer_table(kind, in_force(self._columns.pop(kind)))

    def _offer_table(self, name: str, columns: pa.Table) -> None:
        for writer in self._taking.get(name, ()):
            taken = self._rows[writer.table.name].take_columns(columns)
            writer.add_columns(taken)
            self._offer_table(writer.table.name, taken)

    def end_partition(self, kind: str) -> None:
        """All rows of a partition of a dataset were offered. Its columns wait on unless a row group may end:
        handled together with those of other partitions, they cost less."""
        writers = self._taking.get(kind, ())
        if kind in self._columns and any(writer.may_end(self._waiting[kind]) for writer in writers):
            self._offer_waiting(kind)
        for writer in writers:
            writer.end_partition()

    def name_sources(self, kind: str, sources: Set[str]) -> None:
        """Set the sources of a derived dataset whose rows each name only one."""
        self._derived_from[kind] = sources

    def make(self, name: str) -> None:
        """Write the rows that a table builds itself."""
        if (writer := self._open.get(name)) is not None:
            self._add(writer, "", self._rows[name].make())
            for group in self._rows[name].make_groups():
                writer.add_group(group)

    def _add(self, writer: "TableWriter", key: str, rows: Iterable[msgspec.Struct]) -> None:
        name = writer.table.name
        further = name in self._taking
        for row in rows:
            writer.add(row)
            if further:
                self.offer(name, key, row)

    def finish(self) -> dict[str, list[dict[str, Any]]]:
        """Write waiting rows and close every file; returns the manifest entries by table."""
        for kind in list(self._columns):
            self._offer_waiting(kind)
        for writer in self._open.values():
            writer.flush()
        self._encoder.shutdown()
        return {
            table.name: self._reused[table.name].files
            if table.name in self._reused
            else self._open[table.name].finish()
            for table in tables()
        }

    def _owed(self, table: Table, named: Set[str]) -> str:
        """The attribution of a file: every source of its rows, and no other."""
        derived = self._derived_from.get(table.takes_from)
        if derived is not None and not table.derived:
            raise CheckFailed(f"{table.name}: made of {table.takes_from}, and not declared as derived")
        return "; ".join(self._context.owed(named if derived is None else derived))

    def abandon(self) -> None:
        """Stop writing; the folder is removed with its files."""
        self._encoder.shutdown(cancel_futures=True)
        for writer in self._open.values():
            writer.abandon()
