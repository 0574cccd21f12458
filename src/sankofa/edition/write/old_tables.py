"""The tables of the edition before: what did not change is taken from there, in the place of made anew."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from sankofa.edition.write.build_record import TableRecord


class KnownRows(NamedTuple):
    """Rows of a table as they were, and how many it had to leave out between them."""

    rows: pa.Table
    left_out: int


class OldTables:
    """`kept_file` leads to a file of a kept edition by its SHA-256, or to none."""

    def __init__(
        self,
        records: Mapping[str, TableRecord],
        kept_file: Callable[[str], Path | None] = lambda sha256: None,
    ) -> None:
        self._records = records
        self._kept_file = kept_file
        self._tables: dict[str, _OldTable | None] = {}

    def segment(self, name: str, inputs: str, schema: pa.Schema) -> KnownRows | None:
        """The rows of a table that are made of these inputs; None where they are not known."""
        if name not in self._tables:
            self._tables[name] = self._open(name)
        table = self._tables[name]
        if table is None or inputs not in table.places:
            return None
        first, rows, left_out = table.places[inputs]
        try:
            return KnownRows(table.read(first, rows, schema), left_out)
        except (OSError, pa.ArrowException):
            self._tables[name] = None
            return None

    def _open(self, name: str) -> "_OldTable | None":
        record = self._records.get(name)
        if record is None or not record.segments:
            return None
        paths = [self._kept_file(file["sha256"]) for file in record.files]
        present = [path for path in paths if path is not None]
        try:
            return _OldTable(record, present) if len(present) == len(paths) else None
        except (OSError, pa.ArrowException):
            return None


class _OldTable:
    """One table, of one file or several. Read from its beginning to its end, each row group is read once."""

    def __init__(self, record: TableRecord, paths: list[Path]) -> None:
        self.places: dict[str, tuple[int, int, int]] = {}
        """By inputs: the first row, how many there are, and how many were left out."""
        first = 0
        for segment in record.segments:
            self.places[segment.inputs] = first, segment.rows, segment.left_out
            first += segment.rows
        self._groups: list[tuple[int, int, pq.ParquetFile, int]] = []
        """Of each row group its first row, the one behind its last, its file and its number there."""
        end = 0
        for path in paths:
            file = pq.ParquetFile(path)
            for number in range(file.num_row_groups):
                start, end = end, end + file.metadata.row_group(number).num_rows
                self._groups.append((start, end, file, number))
        self._number = -1
        self._group: pa.Table | None = None

    def read(self, first: int, rows: int, schema: pa.Schema) -> pa.Table:
        pieces = [
            self._row_group(number).slice(max(first - start, 0), min(first + rows, end) - max(first, start))
            for number, (start, end, _, _) in enumerate(self._groups)
            if start < first + rows and first < end
        ]
        if not rows:
            return schema.empty_table()
        known = pa.concat_tables(pieces)
        if known.schema.equals(schema):  # a cast would go through every column all the same
            return known.replace_schema_metadata(schema.metadata)
        return known.cast(schema)

    def _row_group(self, number: int) -> pa.Table:
        if self._group is None or self._number != number:
            _, _, file, own = self._groups[number]
            self._group, self._number = file.read_row_group(own, use_threads=False), number
        return self._group
