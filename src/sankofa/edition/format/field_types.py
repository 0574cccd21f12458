"""What the fields of a row are: the one reading of row types behind Arrow answers and Parquet files."""

from datetime import date
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from msgspec import inspect

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
    """str, date, int, bool, float; Decimal for figures and rounded numbers; Raw for nested values."""
    declared: inspect.Type
    is_figure: bool
    """Every digit is kept, as the type `Figure` says; any other decimal is rounded to ten digits."""
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
    """A type without its metadata and without null; what the metadata says in the schema, and besides."""
    schema: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    while True:
        if isinstance(kind, inspect.Metadata):
            schema |= kind.extra_json_schema or {}
            extra |= kind.extra or {}
            kind = kind.type
        elif isinstance(kind, inspect.UnionType):
            given = [one for one in kind.types if not isinstance(one, inspect.NoneType)]
            if len(given) != 1:
                return kind, schema, extra
            (kind,) = given
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
    """The types of Arrow that hold values exactly; imported here, for servers asked only for JSON."""
    import pyarrow

    return {
        str: pyarrow.utf8(),
        date: pyarrow.date32(),
        int: pyarrow.int64(),
        bool: pyarrow.bool_(),
        float: pyarrow.float64(),
    }


def arrow_type(kind: inspect.Type) -> "pyarrow.DataType":
    """Of a type, nested ones in full; what has no exact one is text."""
    import pyarrow

    kind, _, _ = unwrapped(kind)
    if isinstance(kind, inspect.ListType):
        return pyarrow.list_(arrow_type(kind.item_type))
    if isinstance(kind, inspect.StructType):
        return pyarrow.struct([pyarrow.field(f.encode_name, arrow_type(f.type)) for f in kind.fields])
    return arrow_types().get(_python_type(kind), pyarrow.utf8())
