"""How the fields of a row become Arrow columns: the one mapping behind every Parquet file.

| field | column |
|---|---|
| text | string |
| date | date32 |
| instant (text of format date-time) | timestamp[us, UTC] |
| whole number, number, truth | int64, float64, bool |
| figure (a decimal, every digit kept) | string of its digits, and `<name>_float`, the nearest double |
| other decimals (rounded to ten digits: a double holds them) | float64 |
| lists, and structs such as listings | lists and structs |
| the OCDS release | string of JSON |
"""

from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Any, Final, NamedTuple, cast

import msgspec
import pyarrow as pa
from msgspec import inspect
from pyarrow import compute

from sankofa.model.rows import Row

_FIGURE: Final = "every digit"
"""What the description of a figure says, as against that of a value rounded to ten digits."""
_UTC: Final = pa.timestamp("us", tz="UTC")
_PLAIN: Final[dict[type, pa.DataType]] = {
    inspect.StrType: pa.string(),
    inspect.LiteralType: pa.string(),
    inspect.DateType: pa.date32(),
    inspect.IntType: pa.int64(),
    inspect.FloatType: pa.float64(),
    inspect.BoolType: pa.bool_(),
    inspect.RawType: pa.string(),
}

Make = Callable[[Sequence[Any]], pa.Array]


class ParquetColumn(NamedTuple):
    """One column, and how it is made of the values of its field."""

    field: str
    arrow: pa.Field
    make: Make | None
    """None for the double beside a figure."""
    description: str


class ParquetColumns:
    """The columns of a type of rows."""

    def __init__(self, row: type[Row]) -> None:
        info = inspect.type_info(row)
        if not isinstance(info, inspect.StructType):
            raise TypeError(f"{row}: not a row")
        # What says where a row is from comes last, as it does on a page.
        provenance = set(Row.__struct_fields__)
        fields = sorted(info.fields, key=lambda field: field.name in provenance)
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

    def table(self, rows: Sequence[object]) -> pa.Table:
        """Some rows as columns; all of one type, which may have more fields, in any order."""
        structs = cast("Sequence[msgspec.Struct]", rows)
        fields = type(structs[0]).__struct_fields__
        told = map(msgspec.structs.astuple, structs)
        values = dict(zip(fields, zip(*told, strict=True), strict=True))
        return self._table(lambda column, make: make(values[column.field]))

    def of_flat(self, flat: pa.Table) -> pa.Table:
        """Flat columns (`format.arrow_columns`), none of them nested, as these columns."""
        return self._table(lambda column, make: _of_flat(flat.column(column.field), column.arrow.type, make))

    def _table(self, make: Callable[[ParquetColumn, Make], pa.Array | pa.ChunkedArray]) -> pa.Table:
        arrays: list[pa.Array | pa.ChunkedArray] = []
        for column in self._columns:
            # The double beside a figure is read off its digits.
            made = make(column, column.make) if column.make else arrays[-1].cast(pa.float64())
            arrays.append(made)
        return pa.Table.from_arrays(arrays, schema=self.schema)


@cache
def parquet_columns(row: type[Row]) -> ParquetColumns:
    """The columns of a type of rows, worked out once."""
    return ParquetColumns(row)


def _columns(field: inspect.Field) -> list[ParquetColumn]:
    kind, meta = _unwrapped(field.type)
    description = meta.get("description", "")
    name = field.name
    if isinstance(kind, inspect.DecimalType):
        if _FIGURE in description.lower():
            nearest = f"The double nearest to {name}."
            return [
                ParquetColumn(name, pa.field(name, pa.string()), _exact, description),
                ParquetColumn(name, pa.field(f"{name}_float", pa.float64()), None, nearest),
            ]
        return [ParquetColumn(name, pa.field(name, pa.float64()), _nearest, description)]
    if meta.get("format") == "date-time":
        return [ParquetColumn(name, pa.field(name, _UTC), _instants, description)]
    if isinstance(kind, inspect.RawType):
        return [ParquetColumn(name, pa.field(name, pa.string()), _json, description)]
    if isinstance(kind, inspect.NoneType):  # a day that no source evidences
        return [ParquetColumn(name, pa.field(name, pa.date32()), _maker(pa.date32()), description)]
    arrow = _arrow(kind)
    if isinstance(kind, inspect.DateType):
        return [ParquetColumn(name, pa.field(name, arrow), _days, description)]
    make = _nested(arrow) if pa.types.is_nested(arrow) else _maker(arrow)
    return [ParquetColumn(name, pa.field(name, arrow), make, description)]


def _unwrapped(kind: inspect.Type) -> tuple[inspect.Type, dict[str, Any]]:
    """A type without its metadata and without null, and what the metadata says of format and meaning."""
    said: dict[str, Any] = {}
    while True:
        if isinstance(kind, inspect.Metadata):
            said |= kind.extra_json_schema or {}
            kind = kind.type
        elif isinstance(kind, inspect.UnionType):
            (kind,) = (one for one in kind.types if not isinstance(one, inspect.NoneType))
        else:
            return kind, said


def _arrow(kind: inspect.Type) -> pa.DataType:
    kind, _ = _unwrapped(kind)
    if isinstance(kind, inspect.ListType):
        return pa.list_(_arrow(kind.item_type))
    if isinstance(kind, inspect.StructType):
        return pa.struct([pa.field(field.encode_name, _arrow(field.type)) for field in kind.fields])
    return _PLAIN[type(kind)]


def _maker(arrow: pa.DataType) -> Make:
    return lambda values: pa.array(values, arrow)


def _nested(arrow: pa.DataType) -> Make:
    return lambda values: pa.array(msgspec.to_builtins(values), arrow)


def _days(values: Sequence[date | str | None]) -> pa.Array:
    """Days as such or as text, all of them alike."""
    if isinstance(next((value for value in values if value is not None), None), str):
        return pa.array(values, pa.string()).cast(pa.date32())
    return pa.array(values, pa.date32())


def _instants(values: Sequence[str | None]) -> pa.Array:
    """To the microsecond: what is finer is cut off."""
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


def _of_flat(told: pa.ChunkedArray, arrow: pa.DataType, make: Make) -> pa.Array | pa.ChunkedArray:
    if make is _exact and compute.any(compute.match_substring(told, "E")).as_py():
        return _exact([None if text is None else Decimal(text) for text in told.to_pylist()])
    try:
        return told.cast(arrow)
    except pa.ArrowInvalid:  # instants finer than a microsecond
        return make(told.to_pylist())


def _nearest(values: Sequence[Decimal | msgspec.Raw | None]) -> pa.Array:
    return _exact(values).cast(pa.float64())
