"""Writes the tables of an edition as Parquet, while its datasets are built: memory stays flat.

Rows wait in small batches; a row group is encoded and compressed by a thread of its own, which leaves the
interpreter to the build meanwhile. The same rows give the same bytes: nothing in a file tells when or where
it was written, or for which edition. So one whose rows did not change is the same file in the next edition.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import compute

from sankofa.edition.build.build_record import TableRecord
from sankofa.edition.build.context import BuildContext
from sankofa.edition.build.parquet_columns import ParquetColumns, parquet_columns
from sankofa.edition.build.tables import MIN_TIER, Table, tables
from sankofa.edition.format.arrow_columns import in_force
from sankofa.model.provenance import (
    KEYED_CLASSES,
    LICENSE_NOTICE,
    SERVICE,
    file_license,
    source_ref,
    strictest,
)

_ROWS_IN_A_BATCH: Final = 8_192
_ROWS_OF_COLUMNS: Final = 4 * _ROWS_IN_A_BATCH
_ROWS_IN_A_GROUP: Final = 16 * _ROWS_IN_A_BATCH
_BYTES_IN_A_GROUP: Final = 64 * 1024 * 1024
ROWS_IN_A_FILE: Final = 10_000_000
_NO_DICTIONARY: Final = ("record_ref", "superseding_record_ref", "fact_id", "provenance_id", "release")
"""Columns whose values hardly ever come twice. Figures do now and then, yet a dictionary of them is soon full
and takes twice as long."""
_LONG_TEXT: Final = ("release",)
"""What more effort makes smaller by a twentieth; other columns get no smaller, and take a third longer."""
_NO_STATISTICS: Final = ("release",)


class ParquetFiles:
    """The files of an edition being built."""

    def __init__(
        self,
        folder: Path,
        context: BuildContext,
        rows_in_a_file: int = ROWS_IN_A_FILE,
        taken: Mapping[str, TableRecord] = MappingProxyType({}),
    ) -> None:
        """`taken` are the tables whose files are those of an edition before."""
        self._context = context
        self._taken = taken
        self._encoder = ThreadPoolExecutor(1, "parquet")
        self._open = {
            table.name: TableWriter(folder, table, self._encoder, rows_in_a_file)
            for table in tables()
            if table.name not in taken
        }
        self._rows = {table.name: table.rows(context) for table in tables()}
        self._derived_from: dict[str, Set[str]] = {}
        self._columns: defaultdict[str, _Waiting] = defaultdict(_Waiting)
        self._taking: defaultdict[str, list[TableWriter]] = defaultdict(list)
        for writer in self._open.values():
            if writer.table.takes_from:
                self._taking[writer.table.takes_from].append(writer)

    def takes(self, kind: str) -> bool:
        return kind in self._taking

    def offer(self, kind: str, key: str, row: object) -> None:
        """A row of a dataset or of a table, to every table that takes from it."""
        for writer in self._taking[kind]:
            self._add(writer, key, self._rows[writer.table.name].take(key, row))

    def offer_columns(self, kind: str, columns: Iterable[bytes], rows: int) -> None:
        """The columns of a key's rows (`format.arrow_columns`), to every table that takes from them."""
        waiting = self._columns[kind]
        waiting.columns += columns
        waiting.rows += rows
        if waiting.rows >= _ROWS_OF_COLUMNS:
            self._offer_waiting(kind)

    def _offer_waiting(self, kind: str) -> None:
        self._offer_table(kind, in_force(self._columns.pop(kind).columns))

    def _offer_table(self, name: str, columns: pa.Table) -> None:
        for writer in self._taking.get(name, ()):
            taken = self._rows[writer.table.name].take_columns(columns)
            writer.add_columns(taken)
            self._offer_table(writer.table.name, taken)

    def name_sources(self, kind: str, sources: Set[str]) -> None:
        """The sources that the rows of a dataset are derived from, where each row names but one."""
        self._derived_from[kind] = sources

    def make(self, name: str) -> None:
        """The rows that a table makes itself."""
        if (writer := self._open.get(name)) is not None:
            self._add(writer, "", self._rows[name].make())

    def _add(self, writer: "TableWriter", key: str, rows: Iterable[object]) -> None:
        name = writer.table.name
        further = name in self._taking
        for row in rows:
            writer.add(row)
            if further:
                self.offer(name, key, row)

    def finish(self) -> dict[str, list[dict[str, Any]]]:
        """Write what waits and close every file; by table, what the manifest says of each."""
        for kind in list(self._columns):
            self._offer_waiting(kind)
        for writer in self._open.values():
            writer.flush()
        self._encoder.shutdown()
        return {
            table.name: self._taken[table.name].files
            if table.name in self._taken
            else self._open[table.name].finish(self._attribution(self._open[table.name]))
            for table in tables()
        }

    def _attribution(self, writer: "TableWriter") -> str:
        """Whom the rows of a file are owed to: every source they are from, and no other."""
        derived = self._derived_from.get(writer.table.takes_from)
        named = writer.sources | self._rows[writer.table.name].input_sources
        return "; ".join(self._context.owed(named if derived is None else derived))

    def abandon(self) -> None:
        """What was written goes with the folder."""
        self._encoder.shutdown(cancel_futures=True)
        for writer in self._open.values():
            writer.abandon()


class _Waiting:
    """Columns of a few rows each: handled together, they cost a tenth."""

    def __init__(self) -> None:
        self.columns: list[bytes] = []
        self.rows = 0


class TableWriter:
    """One table on its way to one file, or to several where it is large."""

    def __init__(self, folder: Path, table: Table, encoder: ThreadPoolExecutor, rows_in_a_file: int) -> None:
        self.table = table
        self._folder = folder
        self._encoder = encoder
        self._rows_in_a_file = rows_in_a_file
        self._columns = parquet_columns(table.row)
        self._pending: list[object] = []
        self._batches: list[pa.Table] = []
        self._waiting = self._waiting_bytes = 0
        self._encoding: Future[None] | None = None
        self._classes: set[str] = set()
        self.sources: set[str] = set()
        """The sources that the rows name."""
        self._first_ref = source_ref(SERVICE, "edition", table.name)
        self._left_out = 0
        self._parts = [self._part(1)]

    def add(self, row: object) -> None:
        self._pending.append(row)
        if len(self._pending) == _ROWS_IN_A_BATCH:
            self._settle()

    def add_columns(self, flat: pa.Table) -> None:
        """Some rows as flat columns, in the place of rows."""
        if flat.num_rows:
            self._wait(self._columns.of_flat(flat))

    def flush(self) -> None:
        self._settle()
        self._encode()
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
        """Let some columns wait until a row group is full."""
        if self.table.open:
            batch = self._without_keyed(batch)
        if not batch.num_rows:
            return
        self._note_sources(batch.column("source_ref"))
        self._classes.update(batch.column("license_class").unique().to_pylist())
        self._batches.append(batch)
        self._waiting += batch.num_rows
        self._waiting_bytes += batch.nbytes
        if self._waiting >= _ROWS_IN_A_GROUP or self._waiting_bytes >= _BYTES_IN_A_GROUP:
            self._encode()

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
            refs = refs.filter(compute.invert(compute.starts_with(refs, pattern=source + colon)))

    @property
    def _license(self) -> str:
        return file_license(self._classes, keyed=not self.table.open)

    def _encode(self) -> None:
        """Hand a row group to the encoder; the one before it is then done."""
        if not self._batches:
            return
        self._done()
        if self._parts[-1].rows >= self._rows_in_a_file:
            self._parts.append(self._part(len(self._parts) + 1))
        part, group = self._parts[-1], pa.concat_tables(self._batches)
        part.rows += group.num_rows
        self._batches, self._waiting, self._waiting_bytes = [], 0, 0
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
