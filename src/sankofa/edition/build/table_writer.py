"""Writes one table of an edition as a Parquet file, or as several where it is large.

Rows wait in small batches; a row group is encoded and compressed by a thread of its own, which leaves the
interpreter to the build meanwhile. Where row groups end follows from the rows alone, not from how they came.
"""

import hashlib
import json
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import compute

from sankofa.edition.build.build_record import SegmentRecord
from sankofa.edition.build.parquet_columns import ParquetColumns, parquet_columns
from sankofa.edition.build.tables import MIN_TIER, Table
from sankofa.model.provenance import (
    KEYED_CLASSES,
    LICENSE_NOTICE,
    SERVICE,
    file_license,
    source_ref,
    strictest,
)

_ROWS_IN_A_BATCH: Final = 8_192
_ROWS_IN_A_GROUP: Final = 16 * _ROWS_IN_A_BATCH
_ENOUGH_ROWS: Final = _ROWS_IN_A_GROUP // 2
"""With so many a row group ends where a segment does: then a row more moves no row of the groups behind."""
_BYTES_IN_A_GROUP: Final = 64 * 1024 * 1024
"""Of tables with long texts."""
_PAGES: Final = {"min_chunk_size": 32 << 10, "max_chunk_size": 128 << 10}
"""Pages end where the values say so: a row more changes one page of a column, not every page behind it, and a
node that follows pulls little (decision 59). Files are larger by 2%."""
_NO_DICTIONARY: Final = ("record_ref", "superseding_record_ref", "fact_id", "provenance_id", "release")
"""Columns whose values hardly ever come twice. Figures do now and then, yet a dictionary of them is soon full
and takes twice as long."""
_LONG_TEXT: Final = ("release",)
"""What more effort makes smaller by a twentieth; other columns get no smaller, and take a third longer."""
_NO_STATISTICS: Final = ("release",)


class TableWriter:
    """One table on its way to one file, or to several where it is large."""

    def __init__(self, folder: Path, table: Table, encoder: ThreadPoolExecutor, rows_in_a_file: int) -> None:
        self.table = table
        self._folder = folder
        self._encoder = encoder
        self._rows_in_a_file = rows_in_a_file
        self._columns = parquet_columns(table.row)
        self._has_long_text = not set(_LONG_TEXT).isdisjoint(self._columns.names)
        self._pending: list[object] = []
        self._batches: list[pa.Table] = []
        self._waiting = self._waiting_bytes = 0
        self._encoding: Future[None] | None = None
        self._classes: set[str] = set()
        self.sources: set[str] = set()
        """The sources that the rows name."""
        self._first_ref = source_ref(SERVICE, "edition", table.name)
        self._left_out = 0
        self._rows = 0
        self.segments: list[SegmentRecord] = []
        """The rows up to here, by what they are made of."""
        self._segments_end = (0, 0)
        self._parts = [self._part(1)]

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
        for part in self._parts:
            part.abandon()

    def finish(self, attribution: str) -> list[dict[str, Any]]:
        metadata = self._metadata(attribution)
        described = []
        for number, part in enumerate(self._parts, 1):
            stem = self.table.name if len(self._parts) == 1 else f"{self.table.name}-{number:04d}"
            size, sha256 = part.close(self._folder / f"{stem}.parquet", metadata)
            described.append(
                {
                    "name": f"{stem}.parquet",
                    "sku": self.table.sku,
                    "signal_key": self.table.signal_key,
                    "access": "open" if self.table.open else "licensed",
                    "license": self._license,
                    "size_bytes": size,
                    "sha256": sha256,
                    "row_count": part.rows,
                    "columns": self._columns.names,
                    "min_tier": None if self.table.open else MIN_TIER,
                    "license_class": strictest(self._classes or ("public-domain",)),
                    "source_ref": self._first_ref,
                    "rows_left_out": self._left_out,
                }
            )
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

    def _note_sources(self, refs: pa.ChunkedArray) -> None:
        """Take down which sources the rows name: one look at all of them for each source."""
        if not self.sources:
            self._first_ref = refs[0].as_py()
        while len(refs):
            source, colon, _ = refs[0].as_py().partition(":")
            self.sources.add(source)
            own = compute.starts_with(refs, pattern=source + colon)
            if compute.all(own).as_py():  # most often: nothing has to be copied
                return
            refs = refs.filter(compute.invert(own))

    @property
    def _license(self) -> str:
        return file_license(self._classes, keyed=not self.table.open)

    def _encode(self, rows: int) -> None:
        """Hand the first rows that wait to the encoder, as a row group; the one before it is then done."""
        self._done()
        if self._parts[-1].rows >= self._rows_in_a_file:
            self._parts.append(self._part(len(self._parts) + 1))
        waiting = pa.concat_tables(self._batches)
        # In one piece: where pages end must not hang on how the rows came.
        part, group = self._parts[-1], waiting.slice(0, rows).combine_chunks()
        self._note_sources(group.column("source_ref"))
        self._classes.update(group.column("license_class").unique().to_pylist())
        part.rows += rows
        self._waiting -= rows
        self._batches = [waiting.slice(rows)] if self._waiting else []
        self._waiting_bytes = 0
        self._encoding = self._encoder.submit(part.write, group)

    def _done(self) -> None:
        if self._encoding is not None:
            self._encoding.result()
            self._encoding = None

    def _part(self, number: int) -> "_Part":
        path = self._folder / f"{self.table.name}.{number}"
        return _Part(path, self._columns, self.table.sorted_by)

    def _metadata(self, attribution: str) -> dict[str, str]:
        table = self.table
        return {
            "name": table.name,
            "sku": table.sku or "",
            "signal_key": table.signal_key or "",
            "license": self._license,
            "attribution": attribution,
            "notice": LICENSE_NOTICE,
            "methodology": table.methodology or table.summary,
            "columns": json.dumps(self._columns.descriptions),
        }


class _Part:
    """One file, under a name for the time being."""

    def __init__(self, path: Path, columns: ParquetColumns, sorted_by: tuple[str, ...]) -> None:
        self.rows = 0
        self._path = path
        self._file = _Summed(path)
        leaves = [leaf for field in columns.schema for leaf in _leaves(field)]
        distinct = columns.figures.union(_NO_DICTIONARY)
        self._parquet = pq.ParquetWriter(
            pa.PythonFile(self._file, mode="w"),
            columns.schema,
            version="2.6",
            compression="zstd",
            compression_level={leaf: 3 if leaf in _LONG_TEXT else 1 for leaf in leaves},
            use_dictionary=[leaf for leaf in leaves if leaf not in distinct],
            write_statistics=[leaf for leaf in leaves if leaf not in _NO_STATISTICS],
            write_page_index=True,
            use_content_defined_chunking=_PAGES,
            sorting_columns=[
                pq.SortingColumn(leaves.index(name.lstrip("-")), descending=name.startswith("-"))
                for name in sorted_by
            ],
            store_schema=False,
        )

    @property
    def digest(self) -> str:
        return self._file.sum.hexdigest()

    def write(self, group: pa.Table) -> None:
        self._parquet.write_table(group, row_group_size=group.num_rows)
        self._file.flush()

    def abandon(self) -> None:
        with suppress(OSError):  # on a full disk the end cannot be written
            self._parquet.close()
        with suppress(OSError):
            self._file.close()

    def close(self, path: Path, metadata: dict[str, str]) -> tuple[int, str]:
        """Size and digest of the whole file, which then has this name."""
        self._parquet.add_key_value_metadata(metadata)
        self._parquet.close()
        self._file.close()
        self._path.rename(path)
        return self._file.tell(), self.digest


class _Summed:
    """A file that is only written, and summed up as it is."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb")
        self.sum = hashlib.sha256()
        self._written = 0

    @property
    def closed(self) -> bool:
        return self._file.closed

    def write(self, data: bytes) -> int:
        self.sum.update(data)
        self._written += len(data)
        return self._file.write(data)

    def tell(self) -> int:
        return self._written

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def _leaves(field: pa.Field, path: str = "") -> list[str]:
    """The columns as Parquet has them: of a list or struct, what is in it."""
    path = f"{path}.{field.name}" if path else field.name
    if pa.types.is_list(field.type):
        return _leaves(field.type.value_field.with_name("element"), f"{path}.list")
    if pa.types.is_struct(field.type):
        return [leaf for part in field.type for leaf in _leaves(part, path)]
    return [path]
