"""Rows and Arrow streams as frames of pandas, Polars and pyarrow: the same frame from either.

The kind of a column follows from the type of its field:

| kind | pandas | Polars | pyarrow |
|---|---|---|---|
| text | str | String | string |
| day | datetime64[us] | Date | date32 |
| instant | datetime64[us, UTC] | Datetime[us, UTC] | timestamp[us, UTC] |
| whole, truth, float | Int64, boolean, float64 | Int64, Boolean, Float64 | int64, bool, float64 |
| figure | float64, Decimal or str, as asked | Float64, Decimal or String | string |
| nested | JSON as str | String | string |
"""

import json
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, cast, get_args, get_origin, get_type_hints

from sankofa.client import rows
from sankofa.client.errors import MissingLibrary

_PLAIN: Final = {str: "text", int: "whole", bool: "truth"}


@cache
def columns_of(row: str) -> dict[str, str]:
    """The columns of a row of `sankofa.client.rows`, by its name: each with its kind, see `frames`."""
    types = get_type_hints(vars(rows)[row], include_extras=True)
    return {name: _kind(kind) for name, kind in types.items()}


def _kind(annotation: Any) -> str:
    if get_origin(annotation) in (Union, UnionType):
        (annotation,) = (part for part in get_args(annotation) if part is not NoneType)
    if marks := getattr(annotation, "__metadata__", ()):
        return str(marks[0])
    return _PLAIN.get(annotation) or ("text" if get_origin(annotation) is Literal else "nested")


Figures = Literal["float", "decimal", "text"]
Attrs = dict[str, str | bool | None]
Rows = list[dict[str, Any]]
Source = Rows | tuple[bytes, ...]
"""Rows, or an Arrow stream for each page of them."""
Shape = dict[str, str]

_AS_TEXT: Final = ("text", "day", "instant")


def reads_columns() -> bool:
    """Whether an installed library can read an Arrow stream."""
    return find_spec("pyarrow") is not None or find_spec("polars") is not None


def library(name: str) -> Any:
    """Imports an optional library on first use. Raises MissingLibrary."""
    try:
        return import_module(name)
    except ImportError:
        raise MissingLibrary(f"this needs {name}: pip install {name}") from None


def names_of(streams: tuple[bytes, ...]) -> list[str]:
    """The names of the columns, which pyarrow has as fields."""
    return [getattr(column, "name", column) for column in _table(streams).schema]


def rows_of(streams: tuple[bytes, ...], shape: Shape) -> Rows:
    """The rows of the streams, as JSON would have had them."""
    table = _table(streams)
    rows = table.to_pylist() if hasattr(table, "to_pylist") else table.to_dicts()
    return [{name: _as_in_json(value, shape[name]) for name, value in row.items()} for row in rows]


def _table(streams: tuple[bytes, ...]) -> Any:
    """A table of pyarrow or, without it, a frame of Polars."""
    if not find_spec("pyarrow"):
        return _polars_frame(streams)
    pa = _pyarrow()
    return pa.concat_tables([pa.ipc.open_stream(stream).read_all() for stream in streams])


def _polars_frame(streams: tuple[bytes, ...]) -> Any:
    pl = library("polars")
    return pl.concat([pl.read_ipc_stream(stream) for stream in streams])


def to_arrow(source: Source, shape: Shape, attrs: Attrs) -> Any:
    pa = _pyarrow()
    kinds = {
        "day": pa.date32(),
        "instant": pa.timestamp("us", tz="UTC"),
        "whole": pa.int64(),
        "truth": pa.bool_(),
        "float": pa.float64(),
    }
    schema = pa.schema([(name, kinds.get(kind, pa.string())) for name, kind in shape.items()])
    if isinstance(source, tuple):
        arrays = [
            column if column.type == field.type else _cast(pa, column, field.type)
            for column, field in zip(_table(source).columns, schema, strict=True)
        ]
    else:
        texts = _columns(source, shape)
        arrays = [
            _cast(pa, pa.array(texts[f.name], pa.string()), f.type)
            if shape[f.name] in _AS_TEXT
            else pa.array(texts[f.name], f.type)
            for f in schema
        ]
    metadata = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in attrs.items()
        if value is not None
    }
    return pa.table(arrays, schema=schema.with_metadata(metadata))


def to_pandas(source: Source, shape: Shape, attrs: Attrs, figures: Figures) -> Any:
    """A frame of pandas; by way of pyarrow if there is a stream."""
    _check_figures(figures)
    pd = library("pandas")
    if isinstance(source, tuple) and find_spec("pyarrow"):
        pa = _pyarrow()
        nullable = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
        frame = to_arrow(source, shape, {}).to_pandas(types_mapper=nullable.get, date_as_object=False)
    else:
        rows = rows_of(source, shape) if isinstance(source, tuple) else source
        frame = pd.DataFrame({n: _series(pd, v, shape[n]) for n, v in _columns(rows, shape).items()})
    for name, kind in shape.items():
        if kind == "day":
            frame[name] = frame[name].astype("datetime64[us]")
        elif kind in ("text", "nested"):
            frame[name] = frame[name].astype("str")
        elif kind == "figure":
            frame[name] = _pandas_figures(frame[name], figures)
    frame.attrs.update(attrs)
    return frame


def to_polars(source: Source, shape: Shape, attrs: Attrs, figures: Figures) -> Any:
    _check_figures(figures)
    pl = library("polars")
    if isinstance(source, tuple):
        frame = _polars_frame(source)
    else:
        kinds = {"whole": pl.Int64, "truth": pl.Boolean, "float": pl.Float64}
        frame = pl.DataFrame(
            _columns(source, shape), schema={n: kinds.get(k, pl.String) for n, k in shape.items()}
        )
    columns = []
    for name, kind in shape.items():
        column = pl.col(name)
        if kind == "day" and frame.schema[name] != pl.Date:
            column = column.str.to_date("%Y-%m-%d")
        elif kind == "instant":
            column = column.str.to_datetime(time_unit="us", time_zone="UTC", format="%+")
        elif kind == "figure" and figures == "float":
            column = column.cast(pl.Float64)
        elif kind == "figure" and figures == "decimal":
            column = _polars_decimals(pl, frame[name])
        columns.append(column)
    frame = frame.select(columns)
    frame.attrs = dict(attrs)
    return frame


def _check_figures(figures: str) -> None:
    if figures not in (known := get_args(Figures)):
        raise ValueError(f"figures: expected one of {', '.join(known)}, not {figures!r}")


def _columns(rows: Rows, shape: Shape) -> dict[str, list[Any]]:
    """The values of each column, as in an Arrow stream."""
    forms: dict[str, Callable[[Any], Any]] = {"figure": str, "float": float, "nested": nested_text}
    columns: dict[str, list[Any]] = {}
    for name, kind in shape.items():
        values = [row[name] for row in rows]
        if form := forms.get(kind):
            values = [None if value is None else form(value) for value in values]
        columns[name] = values
    return columns


def nested_text(value: object) -> str:
    """A nested value as JSON like the service's: no spaces, unescaped letters, every digit."""
    numbers: list[str] = []

    def digits(number: object) -> str:
        numbers.append(str(number))
        return f"\x00{len(numbers) - 1}\x00"

    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=digits)
    for index, number in enumerate(numbers):
        text = text.replace(f'"\\u0000{index}\\u0000"', number, 1)
    return text


def _as_in_json(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind == "day":
        return value if isinstance(value, str) else value.isoformat()
    if kind == "figure":
        return int(value) if value.lstrip("-").isdigit() else Decimal(value)
    if kind == "float":
        return Decimal(repr(value))
    return json.loads(value, parse_float=Decimal) if kind == "nested" else value


def _series(pd: Any, values: list[Any], kind: str) -> Any:
    if kind == "day":
        return pd.to_datetime(pd.Series(values, dtype="object"), format="%Y-%m-%d")
    if kind == "instant":
        instants = pd.to_datetime(pd.Series(values, dtype="object"), format="ISO8601", utc=True)
        return instants.astype("datetime64[us, UTC]")
    types = {"whole": "Int64", "truth": "boolean", "float": "float64"}
    return pd.Series(values, dtype=types.get(kind, "str"))


def _pandas_figures(column: Any, figures: Figures) -> Any:
    if figures == "float":
        return column.astype("float64")
    if figures == "decimal":
        values = [None if value is None or value != value else Decimal(value) for value in column.tolist()]
        return library("pandas").Series(values, dtype="object", index=column.index)
    return column.astype("str")


def _polars_decimals(pl: Any, column: Any) -> Any:
    """Raises ValueError if a figure does not fit: a null would mean that it is unknown."""
    most_digits = column.str.split(".").list.get(1, null_on_oob=True).str.len_chars().max()
    try:
        return column.cast(pl.Decimal(38, int(most_digits or 0)))
    except pl.exceptions.InvalidOperationError:
        raise ValueError(
            f"{column.name}: the 38 digits of a decimal column of Polars do not hold every figure; "
            'figures="text" does'
        ) from None


def _cast(pa: Any, column: Any, kind: Any) -> Any:
    """Text as days or instants, cut to microseconds."""
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        texts = [None if value is None else f"{value.rstrip('Z')[:26]}Z" for value in column.to_pylist()]
        return pa.array(texts, pa.string()).cast(kind)


def _pyarrow() -> Any:
    pyarrow = library("pyarrow")
    library("pyarrow.ipc")
    return cast("Any", pyarrow)
