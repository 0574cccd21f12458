"""Rows as flat columns, for CSV and Arrow answers and for Parquet files.

Text stays text and days stay days. Values without an exact Arrow type (figures with all their digits, nested
values) are their JSON text. Reading rows into columns takes longer than the rest of an answer, so an edition
stores the columns of keys with many rows beside the rows (`encode_columns`), with the days on which each row
is visible. An Arrow answer selects its rows from them (`visible_rows`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from functools import cache, lru_cache
from itertools import chain, repeat
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec import inspect

from sankofa.edition.format.row_blocks import Entry, when
from sankofa.edition.format.visibility import ANY_TAG
from sankofa.model.days import FOREVER
from sankofa.model.rows import Row

if TYPE_CHECKING:
    import pyarrow

_PYTHON: Final[dict[type, type]] = {
    inspect.StrType: str,
    inspect.DateType: date,
    inspect.IntType: int,
    inspect.BoolType: bool,
    inspect.FloatType: float,
    inspect.DecimalType: Decimal,
}


class FieldType(NamedTuple):
    """A field, without null and metadata."""

    name: str
    type: type
    """str, date, int, bool or float; Decimal for figures and rounded numbers; Raw for nested values."""
    declared: inspect.Type
    is_figure: bool
    """Every digit counts (type `Figure`); any other decimal is rounded to ten digits."""
    is_instant: bool
    description: str


@cache
def field_types(shape: type[Row]) -> tuple[FieldType, ...]:
    """The fields of a row, in their order."""
    info = inspect.type_info(shape)
    if not isinstance(info, inspect.StructType):
        raise TypeError(f"{shape}: not a row")
    return tuple(_field_type(field) for field in info.fields)


def _field_type(field: inspect.Field) -> FieldType:
    kind, schema, extra = unwrapped(field.type)
    return FieldType(
        field.encode_name,
        _python_type(kind),
        kind,
        bool(extra.get("figure")),
        schema.get("format") == "date-time",
        schema.get("description", ""),
    )


def unwrapped(kind: inspect.Type) -> tuple[inspect.Type, dict[str, Any], dict[str, Any]]:
    """A type without metadata and null, the metadata's schema, and the rest of the metadata."""
    schema: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    while True:
        if isinstance(kind, inspect.Metadata):
            schema |= kind.extra_json_schema or {}
            extra |= kind.extra or {}
            kind = kind.type
        elif isinstance(kind, inspect.UnionType):
            kinds = [one for one in kind.types if not isinstance(one, inspect.NoneType)]
            if len(kinds) != 1:
                return kind, schema, extra
            (kind,) = kinds
        else:
            return kind, schema, extra


def _python_type(kind: inspect.Type) -> type:
    if isinstance(kind, inspect.LiteralType):
        (python,) = {type(word) for word in kind.values}
        return python
    if isinstance(kind, inspect.NoneType):  # a day that no source evidences
        return str
    return _PYTHON.get(type(kind), msgspec.Raw)


@cache
def arrow_types() -> "dict[type, pyarrow.DataType]":
    """Arrow types that hold values exactly. Imports pyarrow only when Arrow is asked for."""
    import pyarrow

    return {
        str: pyarrow.utf8(),
        date: pyarrow.date32(),
        int: pyarrow.int64(),
        bool: pyarrow.bool_(),
        float: pyarrow.float64(),
    }


def arrow_type(kind: inspect.Type) -> "pyarrow.DataType":
    """The Arrow type of a type, nested ones in full; text if none is exact."""
    import pyarrow

    kind, _, _ = unwrapped(kind)
    if isinstance(kind, inspect.ListType):
        return pyarrow.list_(arrow_type(kind.item_type))
    if isinstance(kind, inspect.StructType):
        return pyarrow.struct([pyarrow.field(f.encode_name, arrow_type(f.type)) for f in kind.fields])
    return arrow_types().get(_python_type(kind), pyarrow.utf8())


COLUMNS_FROM: Final = 512
"""Rows from which the columns of a key are stored. Fewer are converted in about five milliseconds."""
_ROWS_IN_A_BATCH: Final = 16_384
_NULL: Final = "null"
_WHEN: Final = ("first", "until", "modes", "tag")


class Column(NamedTuple):
    """A field of a row, and the type of its values."""

    name: str
    type: type
    """str, date, int, bool or float; Decimal for a figure, Raw for nested values."""


class RowFilter(NamedTuple):
    """Selects the rows of an answer: the rows of a key visible to these modes on a day, with a tag."""

    kind: str
    key: str
    day: int
    modes: int
    tag: int

    @property
    def stored_under(self) -> str:
        return columns_kind(self.kind)


def columns_kind(kind: str) -> str:
    return f"{kind}-columns"


@cache
def columns_of(shape: type[Row]) -> tuple[Column, ...]:
    """The columns of a row, in the order of its fields."""
    return tuple(Column(field.name, field.type) for field in field_types(shape))


def read_columns(columns: tuple[Column, ...], rows: bytes, *exact: type) -> list[Sequence[Any]]:
    """The values of each column of a JSON list. Types without an exact Arrow type are JSON text."""
    read = _decoder(columns, *exact).decode(rows)
    if not read:
        return [()] * len(columns)
    values: list[Sequence[Any]] = [*zip(*map(msgspec.structs.astuple, read), strict=True)]
    for number, column in enumerate(columns):
        if column.type not in exact:
            texts = b"\x1f".join(values[number]).decode().split("\x1f")  # which never occurs in JSON
            values[number] = [None if text == _NULL else text for text in texts] if _NULL in texts else texts
    return values


@lru_cache(maxsize=256)
def schema_of(columns: tuple[Column, ...]) -> "pyarrow.Schema":
    """The Arrow schema of columns. Imports pyarrow only when Arrow is asked for."""
    import pyarrow

    kinds = arrow_types()
    return pyarrow.schema(
        [
            pyarrow.field(c.name, kinds.get(c.type, pyarrow.utf8()), metadata={"json": _text_of(c)})
            for c in columns
        ]
    )


class Repeated(NamedTuple):
    """A column with each value a number of times. All such columns have the same counts, in a single part."""

    counts: Sequence[int]
    values: Sequence[Any]


TableColumn = Sequence[Any] | Repeated


def table_of(columns: tuple[Column, ...], parts: Iterable[Sequence[TableColumn]]) -> "pyarrow.Table":
    """The values of each column, of some rows at a time, as one table."""
    import pyarrow

    schema = schema_of(columns)
    values: list[list[Any]] = [[] for _ in columns]
    arrays: dict[int, pyarrow.Array] = {}
    repeats: pyarrow.Array | None = None
    for part in parts:
        for number, some in enumerate(part):
            if isinstance(some, Repeated):
                if repeats is None:
                    numbers = chain.from_iterable(map(repeat, range(len(some.counts)), some.counts))
                    repeats = pyarrow.array(numbers, pyarrow.int32())
                arrays[number] = pyarrow.array(some.values, schema.field(number).type).take(repeats)
            else:
                values[number] += some
    every = [arrays.get(n) or pyarrow.array(values[n], field.type) for n, field in enumerate(schema)]
    return pyarrow.Table.from_arrays(every, schema=schema)


def encode_columns(
    shape: type[Row], rows: Sequence[Any], entries: Sequence[Entry], also: Mapping[str, Callable[[Any], str]]
) -> Iterator[bytes]:
    """The columns of a key's rows in batches, with the days on which each is visible; `also` adds columns."""
    import pyarrow

    columns = columns_of(shape)
    schema = _stored_schema(columns, tuple(also))
    # lz4 is read in 0.13 us a row and zstd in 0.35, but takes 116 bytes and zstd 66: a fifth of an edition.
    # Batches that an edition does not store are compressed by `engines.record_file`.
    packing = pyarrow.ipc.IpcWriteOptions(
        compression=pyarrow.Codec("zstd", 1) if len(rows) >= COLUMNS_FROM else None, use_threads=False
    )
    for at in range(0, len(rows), _ROWS_IN_A_BATCH):
        batch = rows[at : at + _ROWS_IN_A_BATCH]
        values = zip(*map(msgspec.structs.astuple, batch), strict=True)
        column_values = [_digits(v) if c.type is Decimal else v for c, v in zip(columns, values, strict=True)]
        column_values += zip(*map(when, entries[at : at + _ROWS_IN_A_BATCH]), strict=True)
        column_values += [list(map(say, batch)) for say in also.values()]
        arrays = [pyarrow.array(v, field.type) for v, field in zip(column_values, schema, strict=True)]
        sink = pyarrow.BufferOutputStream()
        with pyarrow.ipc.new_stream(sink, schema, options=packing) as stream:
            stream.write_batch(pyarrow.RecordBatch.from_arrays(arrays, schema=schema))
        yield sink.getvalue().to_pybytes()


def extra_column(name: str) -> str:
    """The name of a column that is stored beside the fields of the row."""
    return f" {name}"


def read_stored(columns: bytes | memoryview) -> "pyarrow.Table":
    import pyarrow

    alone = pyarrow.ipc.IpcReadOptions(use_threads=False)
    return pyarrow.ipc.open_stream(columns, options=alone).read_all()


def in_force(stored: Iterable[bytes]) -> "pyarrow.Table":
    """The rows of stored columns that are still current."""
    import pyarrow
    from pyarrow import compute

    table = pyarrow.concat_tables(map(read_stored, stored)).combine_chunks()
    now = compute.equal(table.column(extra_column("until")), FOREVER)
    return table if compute.all(now).as_py() else table.filter(now)


def visible_rows(
    stored: Sequence[bytes | memoryview], columns: tuple[Column, ...], row_filter: RowFilter, count: int
) -> "pyarrow.Table | None":
    """The rows of an answer, selected from stored columns; None if the columns do not have them."""
    import pyarrow
    from pyarrow import compute

    schema = schema_of(columns)
    day, mode_bits, zero = (pyarrow.scalar(n, pyarrow.int32()) for n in (row_filter.day, row_filter.modes, 0))
    tables, room = [], count
    for part in stored:
        table = read_stored(part)
        if not {*schema.names, *map(extra_column, _WHEN)} <= set(table.schema.names):
            return None  # other code built this edition
        first, until, modes, tag = (table.column(extra_column(name)) for name in _WHEN)
        admitted = compute.and_(compute.less_equal(first, day), compute.greater(until, day))
        admitted = compute.and_(admitted, compute.greater(compute.bit_wise_and(modes, mode_bits), zero))
        if row_filter.tag != ANY_TAG:
            admitted = compute.and_(admitted, compute.equal(tag, row_filter.tag))
        rows = table.select(schema.names).filter(admitted).slice(0, room)
        room -= rows.num_rows
        tables.append(rows)
        if not room:
            break
    if room or not tables:
        return None
    whole: pyarrow.Table = pyarrow.concat_tables(tables)
    return whole if whole.schema.equals(schema) else None


def _digits(values: Sequence[Decimal | None]) -> list[str | None]:
    return [None if value is None else str(value) for value in values]


@cache
def _stored_schema(columns: tuple[Column, ...], also: tuple[str, ...]) -> "pyarrow.Schema":
    """The schema of stored columns: the fields of the rows, their days, and the additional columns."""
    import pyarrow

    when = [pyarrow.field(extra_column(name), pyarrow.int32()) for name in _WHEN]
    texts = [pyarrow.field(extra_column(name), pyarrow.utf8()) for name in also]
    return pyarrow.schema([*schema_of(columns), *when, *texts])


@lru_cache(maxsize=256)
def _decoder(columns: tuple[Column, ...], *exact: type) -> msgspec.json.Decoder[list[Any]]:
    """Reads values of these types as such, and all others as JSON text."""
    fields = [(f"c{n}", c.type | None if c.type in exact else msgspec.Raw) for n, c in enumerate(columns)]
    names = {f"c{n}": c.name for n, c in enumerate(columns)}  # a name may be a day, which no attribute can be
    row = msgspec.defstruct("Fields", fields, gc=False, rename=names)
    return msgspec.json.Decoder(GenericAlias(list, (row,)))


def _text_of(column: Column) -> str:
    """Kind of JSON content in a text column."""
    if column.type is Decimal:
        return "number"
    return "nested" if column.type is msgspec.Raw else "same"
