"""Writes one table of an edition as a Parquet file, or as several where it is large.

Rows wait in small batches; a row group is encoded and compressed by a thread of its own, which leaves the
interpreter to the build meanwhile. Where row groups end follows from the rows alone, not from how they came.
"""

from collections.abc import Callable, Set
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyarrow import compute

from sankofa.edition.write.build_record import SegmentRecord
from sankofa.edition.write.parquet_columns import parquet_columns
from sankofa.edition.write.table_file import LONG_TEXT, TableFile
from sankofa.edition.write.tables import Table
from sankofa.model.provenance import KEYED_CLASSES

_ROWS_IN_A_BATCH: Final = 8_192
_ROWS_IN_A_GROUP: Final = 16 * _ROWS_IN_A_BATCH
_ENOUGH_ROWS: Final = _ROWS_IN_A_GROUP // 2
"""With so many a row group ends where a segment does: then a row more moves no row of the groups behind."""
_BYTES_IN_A_GROUP: Final = 64 * 1024 * 1024
"""Of tables with long texts."""

Owed = Callable[[Set[str]], str]
"""To whom rows are owed that name these sources."""


class TableWriter:
    """One table on its way to one file, or to several where it is large."""

    def __init__(
        self,
        folder: Path,
        table: Table,
        encoder: ThreadPoolExecutor,
        rows_in_a_file: int,
        owed: Owed,
        check: Callable[[str, pa.Table], None] = lambda table, group: None,
    ) -> None:
        """`check` raises CheckFailed for a row group that the table may not have."""
        self.table = table
        self._owed = owed
        self._check = check
        self._folder = folder
        self._encoder = encoder
        self._rows_in_a_file = rows_in_a_file
        self._columns = parquet_columns(table.row)
        self._has_long_text = not set(LONG_TEXT).isdisjoint(self._columns.names)
        self._pending: list[object] = []
        self._batches: list[pa.Table] = []
        self._waiting = self._waiting_bytes = 0
        self._encoding: Future[None] | None = None
        self._left_out = 0
        self._rows = 0
        self.segments: list[SegmentRecord] = []
        """The rows up to here, by what they are made of."""
        self._segments_end = (0, 0)
        self._files = [self._file(1)]

    def add(self, row: object) -> None:
        self._pending.append(row)
        if len(self._pending) == _ROWS_IN_A_BATCH:
            self._settle()

    def add_columns(self, flat: pa.Table) -> None:
        """Some rows as flat columns, in the place of rows."""
        if flat.num_rows:
            self._wait(self._columns.of_flat(flat))

    def add_known(self, batch: pa.Table, left_out: int) -> None:
        """Rows of this table as an edition before has them, but for those that it had to leave out."""
        self._settle()
        self._left_out += left_out
        self._take(batch)

    @property
    def schema(self) -> pa.Schema:
        return self._columns.schema

    def end_segment(self, inputs: str) -> None:
        """The rows that came since the last segment ended are made of these inputs."""
        self._settle()
        if self._waiting >= _ENOUGH_ROWS:
            self._encode(self._waiting)
        rows, left_out = self._segments_end
        self.segments.append(SegmentRecord(inputs, self._rows - rows, self._left_out - left_out))
        self._segments_end = self._rows, self._left_out

    def flush(self) -> None:
        self._settle()
        if self._waiting:
            self._encode(self._waiting)
        self._done()

    def abandon(self) -> None:
        for file in self._files:
            file.abandon()

    def finish(self) -> list[dict[str, Any]]:
        """Close every file; what the manifest says of each."""
        described = []
        for number, file in enumerate(self._files, 1):
            self._close(file)
            stem = self.table.name if len(self._files) == 1 else f"{self.table.name}-{number:04d}"
            described.append(file.name(stem, self._left_out))
        return described

    def _settle(self) -> None:
        """Turn the rows that wait into columns, which take a tenth of the memory."""
        if self._pending:
            self._wait(self._columns.table(self._pending))
            self._pending = []

    def _wait(self, batch: pa.Table) -> None:
        self._take(self._without_keyed(batch) if self.table.open else batch)

    def _take(self, batch: pa.Table) -> None:
        """Let some columns wait until a row group is full."""
        if not batch.num_rows:
            return
        self._batches.append(batch)
        self._rows += batch.num_rows
        self._waiting += batch.num_rows
        while self._waiting >= _ROWS_IN_A_GROUP:
            self._encode(_ROWS_IN_A_GROUP)
        if self._has_long_text:
            self._waiting_bytes += batch.nbytes
            if self._waiting_bytes >= _BYTES_IN_A_GROUP:
                self._encode(self._waiting)

    def _without_keyed(self, batch: pa.Table) -> pa.Table:
        """The rows that an open file may have."""
        keyed = compute.is_in(batch.column("license_class"), value_set=pa.array(sorted(KEYED_CLASSES)))
        unkeyed = batch.filter(compute.invert(keyed))
        self._left_out += batch.num_rows - unkeyed.num_rows
        return unkeyed

    def _encode(self, rows: int) -> None:
        """Hand the first rows that wait to the encoder, as a row group; the one before it is then done."""
        self._done()
        if self._files[-1].rows >= self._rows_in_a_file:
            if not self.table.derived:
                self._close(self._files[-1])
            self._files.append(self._file(len(self._files) + 1))
        waiting = pa.concat_tables(self._batches)
        # In one piece: where pages end must not hang on how the rows came.
        file, group = self._files[-1], waiting.slice(0, rows).combine_chunks()
        self._check(self.table.name, group)
        file.add(group)
        self._waiting -= rows
        self._batches = [waiting.slice(rows)] if self._waiting else []
        self._waiting_bytes = 0
        self._encoding = self._encoder.submit(file.write, group)

    def _done(self) -> None:
        if self._encoding is not None:
            self._encoding.result()
            self._encoding = None

    def _file(self, number: int) -> TableFile:
        return TableFile(self._folder / f"{self.table.name}.{number}", self.table, self._columns)

    def _close(self, file: TableFile) -> None:
        if not file.closed:
            file.close(self._owed(file.sources))
