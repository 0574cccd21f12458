"""How the fields of a row (`format.field_types`) become the columns of a Parquet file.

| field | column |
|---|---|
| text | string |
| date | date32 |
| instant (text of format date-time) | timestamp[us, UTC] |
| whole number, number, truth | int64, float64, bool |
| `Figure` (every digit kept) | string of its digits, and `<name>_float`, the nearest double |
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

from sankofa.edition.format.field_types import FieldType, arrow_type, field_types
from sankofa.model.rows import Row

_UTC: Final = pa.timestamp("us", tz="UTC")
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
        # What says where a row is from comes last, as it does on a page.
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

    def table(self, rows: Sequence[object]) -> pa.Table:
        """Some rows as columns; all of one type, which may have more fields, in any order."""
        structs = cast("Sequence[msgspec.Struct]", rows)
        fields = type(structs[0]).__struct_fields__
        tuples = map(msgspec.structs.astuple, structs)
        values = dict(zip(fields, zip(*tuples, strict=True), strict=True))
        return self._table(lambda column, make: make(values[column.field]))

    def of_flat(self, flat: pa.Table) -> pa.Table:
        """Flat columns (`format.arrow_columns`), none of them nested, as these columns."""
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
    """The columns of a type of rows, worked out once."""
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
    """The type of a column that is not of figures, and how it is made."""
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


def _of_flat(flat: pa.ChunkedArray, arrow: pa.DataType, make: Make) -> pa.Array | pa.ChunkedArray:
    if make is _exact and compute.any(compute.match_substring(flat, "E")).as_py():
        return _exact([None if text is None else Decimal(text) for text in flat.to_pylist()])
    try:
        return flat.cast(arrow)
    except pa.ArrowInvalid:  # instants finer than a microsecond
        return make(flat.to_pylist())


def _nearest(values: Sequence[Decimal | msgspec.Raw | None]) -> pa.Array:
    return _exact(values).cast(pa.float64())
