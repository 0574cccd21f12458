"""One Parquet file of a table: its columns, its rows, and its metadata.

The same rows give the same bytes: a file does not record when, where or for which edition it was written.

| field | column |
|---|---|
| text | string |
| date | date32 |
| instant (text of format date-time) | timestamp[us, UTC] |
| whole number, number, truth | int64, float64, bool |
| `Figure` (every digit) | string of its digits, and `<name>_float`, the nearest double |
| other decimals (rounded to ten digits: a double holds them) | float64 |
| lists, and structs such as listings | lists and structs |
| the OCDS release | string of JSON |
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple, cast

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import inspect
from pyarrow import compute

from sankofa.edition.format.columns import FieldType, arrow_type, field_types
from sankofa.edition.write import parquet_footer
from sankofa.edition.write.tables import MIN_TIER, Table
from sankofa.model.provenance import (
    KEYED_CLASSES,
    LICENSE_NOTICE,
    SERVICE,
    file_license,
    source_ref,
    strictest,
)
from sankofa.model.rows import Row

_UTC: Final = pa.timestamp("us", tz="UTC")
Make = Callable[[Sequence[Any]], pa.Array]


class ParquetColumn(NamedTuple):
    """One column, and the function that makes it from the values of its field."""

    field: str
    arrow: pa.Field
    make: Make | None
    """None for the double beside a figure."""
    description: str


class ParquetColumns:
    def __init__(self, row: type[Row]) -> None:
        # Provenance comes last, as on a page.
        provenance = set(Row.__struct_fields__)
        fields = sorted(field_types(row), key=lambda field: field.name in provenance)
        self._columns = [column for field in fields for column in _columns(field)]
        self.schema = pa.schema([column.arrow for column in self._columns])
        self.descriptions = {column.arrow.name: column.description for column in self._columns}

    @property
    def figures(self) -> set[str]:
        """The columns of figures: the digits, and the doubles beside them."""
        doubles = {column for column in self._columns if column.make is None}
        return {column.arrow.name for column in doubles} | {column.field for column in doubles}

    @property
    def names(self) -> list[str]:
        return list(self.schema.names)

    def table(
        self, rows: Sequence[msgspec.Struct], also: Mapping[str, Sequence[object]] = MappingProxyType({})
    ) -> pa.Table:
        """Rows of one type as columns; the type may have more fields, in any order. `also` adds fields."""
        tuples = map(msgspec.structs.astuple, rows)
        values = {**dict(zip(rows[0].__struct_fields__, zip(*tuples, strict=True), strict=True)), **also}
        return self._table(lambda column, make: make(values[column.field]))

    def of_flat(self, flat: pa.Table) -> pa.Table:
        """Flat columns (`format.columns`), none of them nested, as these columns."""
        return self._table(lambda column, make: _of_flat(flat.column(column.field), column.arrow.type, make))

    def _table(self, make: Callable[[ParquetColumn, Make], pa.Array | pa.ChunkedArray]) -> pa.Table:
        arrays: list[pa.Array | pa.ChunkedArray] = []
        for column in self._columns:
            # The double beside a figure is read off its digits.
            column_array = make(column, column.make) if column.make else arrays[-1].cast(pa.float64())
            arrays.append(column_array)
        return pa.Table.from_arrays(arrays, schema=self.schema)


@cache
def parquet_columns(row: type[Row]) -> ParquetColumns:
    return ParquetColumns(row)


def _columns(field: FieldType) -> list[ParquetColumn]:
    name, description = field.name, field.description
    if field.is_figure:
        nearest = f"The double nearest to {name}."
        return [
            ParquetColumn(name, pa.field(name, pa.string()), _exact, description),
            ParquetColumn(name, pa.field(f"{name}_float", pa.float64()), None, nearest),
        ]
    arrow, make = _arrow(field)
    return [ParquetColumn(name, pa.field(name, arrow), make, description)]


def _arrow(field: FieldType) -> tuple[pa.DataType, Make]:
    """The type and the maker of a column that holds no figures."""
    if field.type is Decimal:
        return pa.float64(), _nearest
    if field.is_instant:
        return _UTC, _instants
    if isinstance(field.declared, inspect.RawType):
        return pa.string(), _json
    if isinstance(field.declared, inspect.NoneType):  # a day that no source evidences
        return pa.date32(), _maker(pa.date32())
    if field.type is date:
        return pa.date32(), _days
    arrow = arrow_type(field.declared)
    return arrow, _nested(arrow) if pa.types.is_nested(arrow) else _maker(arrow)


def _maker(arrow: pa.DataType) -> Make:
    return lambda values: pa.array(values, arrow)


def _nested(arrow: pa.DataType) -> Make:
    return lambda values: pa.array(msgspec.to_builtins(values, builtin_types=(date,)), arrow)


def _days(values: Sequence[date | str | None]) -> pa.Array:
    """Days as dates or all as text."""
    if isinstance(next((value for value in values if value is not None), None), str):
        return pa.array(values, pa.string()).cast(pa.date32())
    return pa.array(values, pa.date32())


def _instants(values: Sequence[str | None]) -> pa.Array:
    """Instants, truncated to the microsecond."""
    try:
        return pa.array(values, pa.string()).cast(_UTC)
    except pa.ArrowInvalid:
        cut = [value and value.rstrip("Z")[:26] + "Z" for value in values]
        return pa.array(cut, pa.string()).cast(_UTC)


def _json(values: Sequence[msgspec.Raw | None]) -> pa.Array:
    return pa.array([None if value is None else str(value, "utf-8") for value in values], pa.string())


def _exact(values: Sequence[Decimal | msgspec.Raw | None]) -> pa.Array:
    if isinstance(next((value for value in values if value is not None), None), Decimal):
        digits = [None if value is None else str(value) for value in values]
        if "E" in "".join(filter(None, digits)):
            digits = [None if value is None else _digits(cast("Decimal", value)) for value in values]
        return pa.array(digits, pa.string())
    raws = cast("Sequence[msgspec.Raw | None]", values)
    texts = [None if raw is None else str(raw, "ascii") for raw in raws]
    return pa.array([None if text == "null" else text for text in texts], pa.string())


def _digits(value: Decimal) -> str:
    text = str(value)
    return format(value, "f") if "E" in text else text


def _of_flat(flat: pa.ChunkedArray, arrow: pa.DataType, make: Make) -> pa.Array | pa.ChunkedArray:
    if make is _exact and compute.any(compute.match_substring(flat, "E")).as_py():
        return _exact([None if text is None else Decimal(text) for text in flat.to_pylist()])
    try:
        return flat.cast(arrow)
    except pa.ArrowInvalid:  # instants finer than a microsecond
        return make(flat.to_pylist())


def _nearest(values: Sequence[Decimal | msgspec.Raw | None]) -> pa.Array:
    return _exact(values).cast(pa.float64())


_PAGES: Final = {"min_chunk_size": 32 << 10, "max_chunk_size": 128 << 10}
"""Pages end at content-defined boundaries: an added row changes one page of a column, so a node that follows
pulls little (docs/decisions/following-editions.md). Files are larger by 2%."""
_NO_DICTIONARY: Final = ("record_ref", "superseding_record_ref", "fact_id", "provenance_id", "release")
"""Columns whose values rarely repeat. Figures repeat a little, but a dictionary for them doubles the time."""
LONG_TEXT: Final = ("release",)
"""Columns that stronger compression shrinks by a twentieth; others gain nothing."""
_NO_STATISTICS: Final = ("release",)


class RowGroup(msgspec.Struct, frozen=True, array_like=True):
    """An encoded row group. It can be made in another process, and copied into several files."""

    rows: int
    chunks: bytes
    metadata: list[bytes]
    """Its metadata, cut before each offset in the file."""
    offsets: list[int]
    """These offsets in a file with this row group alone."""
    first_ref: str
    sources: list[str]
    """The sources of its rows."""
    classes: list[str]
    """Their licence classes."""
    left_out: int = 0
    """Rows that need a key, left out because the file needs none."""


class RowGroupEncoder:
    def __init__(self, table: Table) -> None:
        self.columns = columns = parquet_columns(table.row)
        self._open = table.open
        leaves = [leaf for field in columns.schema for leaf in _leaves(field)]
        distinct = columns.figures.union(_NO_DICTIONARY)
        self._writer = partial(
            pq.ParquetWriter,
            schema=columns.schema,
            version="2.6",
            compression="zstd",
            compression_level={leaf: 3 if leaf in LONG_TEXT else 1 for leaf in leaves},
            use_dictionary=[leaf for leaf in leaves if leaf not in distinct],
            write_statistics=[leaf for leaf in leaves if leaf not in _NO_STATISTICS],
            use_content_defined_chunking=_PAGES,
            sorting_columns=[
                pq.SortingColumn(leaves.index(name.lstrip("-")), descending=name.startswith("-"))
                for name in table.sorted_by
            ],
            store_schema=False,
        )
        self.schema = parquet_footer.schema_of(self._written())
        """The footer of every file of the table up to its row groups, and after them."""

    def encode(self, group: pa.Table) -> RowGroup:
        """Encode rows, except those that an open file may not contain."""
        every = group.num_rows
        if self._open:
            keyed = compute.is_in(group.column("license_class"), value_set=pa.array(sorted(KEYED_CLASSES)))
            group = group.filter(compute.invert(keyed)) if compute.any(keyed).as_py() else group
        if not group.num_rows:
            return RowGroup(0, b"", [], [], "", [], [], every)
        classes = sorted(group.column("license_class").unique().to_pylist())
        refs = group.column("source_ref")
        chunks, metadata, offsets = parquet_footer.row_group_of(self._written(group))
        return RowGroup(
            group.num_rows, chunks, metadata, offsets, refs[0].as_py(), sorted(_sources(refs)), classes,
            every - group.num_rows,
        )  # fmt: skip

    def decode(self, group: RowGroup) -> pa.Table:
        metadata = parquet_footer.moved(group.metadata, group.offsets, len(parquet_footer.MAGIC))
        end = parquet_footer.footer(self.schema, [metadata], group.rows, {})
        return pq.read_table(pa.BufferReader(parquet_footer.MAGIC + group.chunks + end), use_threads=False)

    def _written(self, group: pa.Table | None = None) -> bytes:
        sink = pa.BufferOutputStream()
        with self._writer(sink) as file:
            if group is not None:
                file.write_table(group, row_group_size=group.num_rows)
        written: bytes = sink.getvalue().to_pybytes()
        return written


@cache
def row_group_encoder(table: Table) -> RowGroupEncoder:
    return RowGroupEncoder(table)


def _sources(refs: pa.ChunkedArray) -> set[str]:
    sources = set()
    while len(refs):
        source, colon, _ = refs[0].as_py().partition(":")
        sources.add(source)
        own = compute.starts_with(refs, pattern=source + colon)
        if compute.all(own).as_py():  # most often: nothing has to be copied
            break
        refs = refs.filter(compute.invert(own))
    return sources


class TableFile:
    """One file, under a temporary name. The footer stays in memory until the file is closed."""

    def __init__(self, path: Path, table: Table, encoder: RowGroupEncoder) -> None:
        self.rows = 0
        self.sources: set[str] = set()
        """The sources of its rows."""
        self.left_out = 0
        self.closed = False
        self._path = path
        self._table = table
        self._encoder = encoder
        self._classes: set[str] = set()
        self._first_ref = source_ref(SERVICE, "edition", table.name)
        self._groups: list[bytes] = []
        self._file = path.open("xb")
        self._at = self._file.write(parquet_footer.MAGIC)

    def write(self, group: RowGroup) -> None:
        self.left_out += group.left_out
        if not group.rows:
            return
        if not self._groups:
            self._first_ref = group.first_ref
        self.sources.update(group.sources)
        self._classes.update(group.classes)
        self.rows += group.rows
        metadata = parquet_footer.moved(group.metadata, group.offsets, self._at)
        self._groups.append(metadata)
        self._at += self._file.write(group.chunks)

    def close(self, attribution: str) -> None:
        """Write the footer with its metadata."""
        metadata = self._metadata(attribution)
        self._file.write(parquet_footer.footer(self._encoder.schema, self._groups, self.rows, metadata))
        self._file.close()
        self.closed = True

    def abandon(self) -> None:
        with suppress(OSError):  # on a full disk the end cannot be written
            self._file.close()

    def name(self, stem: str, left_out: int) -> dict[str, Any]:
        """Name the closed file; returns its manifest entry. `left_out` counts the whole table."""
        path = self._path.rename(self._path.with_name(f"{stem}.parquet"))
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        table = self._table
        return {
            "name": path.name,
            "sku": table.sku,
            "signal_key": table.signal_key,
            "access": "open" if table.open else "licensed",
            "license": self._license,
            "size_bytes": path.stat().st_size,
            "sha256": sha256,
            "row_count": self.rows,
            "columns": self._encoder.columns.names,
            "min_tier": None if table.open else MIN_TIER,
            "license_class": strictest(self._classes or ("public-domain",)),
            "source_ref": self._first_ref,
            "rows_left_out": left_out,
        }

    @property
    def _license(self) -> str:
        return file_license(self._classes, keyed=not self._table.open)

    def _metadata(self, attribution: str) -> dict[str, str]:
        table = self._table
        return {
            "name": table.name,
            "sku": table.sku or "",
            "signal_key": table.signal_key or "",
            "license": self._license,
            "attribution": attribution,
            "notice": LICENSE_NOTICE,
            "methodology": table.methodology or table.summary,
            "columns": json.dumps(self._encoder.columns.descriptions),
        }


def _leaves(field: pa.Field, path: str = "") -> list[str]:
    """The leaf columns of Parquet, also inside a list or struct."""
    path = f"{path}.{field.name}" if path else field.name
    if pa.types.is_list(field.type):
        return _leaves(field.type.value_field.with_name("element"), f"{path}.list")
    if pa.types.is_struct(field.type):
        return [leaf for part in field.type for leaf in _leaves(part, path)]
    return [path]
