"""The forms an answer comes in: JSON, CSV or Arrow, as `Accept` asks; the same rows in each.

Rows are kept as the JSON they are served as. For the other two they are read once more, column by column:
text as text, days as days, and whatever has no exact type there - figures with all their digits, nested
values - as the JSON text it is.
"""

import json
import re
import types
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, get_args, get_origin

import msgspec

from sankofa.model.provenance import LICENSE_NOTICE
from sankofa.model.rows import Row
from sankofa.operations.answers import Headers
from sankofa.operations.contract import Answer, Operation

CSV: Final = "text/csv"
ARROW: Final = "application/vnd.apache.arrow.stream"
_JSON: Final = "application/json"
_TAGS: Final = {CSV: "csv", ARROW: "arrow"}
_NULL: Final = "null"
_QUOTED: Final = re.compile(r'[,"\r\n]')


class Column(NamedTuple):
    """A field of a row: its name, and what its values are read as."""

    name: str
    type: type
    """str, date, int, bool, float; Decimal for a figure, and Raw for nested values."""


class Form(NamedTuple):
    """A form other than JSON."""

    media_type: str
    tag: str
    """Ends the entity tag: another form is another answer."""

    def body(self, operation: Operation, answer: Answer, edition_id: str) -> tuple[Headers, bytes]:
        """What the answer is in this form, and the header fields that say what its envelope would."""
        rows = b"".join((b"[", answer.selection.rows, b"]"))
        columns = columns_of(_shape(operation, answer, rows))
        members = _members(answer, edition_id)
        if self.media_type == CSV:
            body, kind = _csv(columns, rows), b"text/csv; charset=utf-8; header=present"
        else:
            body, kind = _arrow(columns, rows, members), ARROW.encode()
        told = {"license": LICENSE_NOTICE, **members}
        fields = [(f"x-{name.replace('_', '-')}".encode(), text.encode()) for name, text in told.items()]
        return [(b"content-type", kind), *fields], body


@lru_cache(maxsize=256)
def chosen_form(accept: bytes) -> Form | None:
    """The form a client likes best (RFC 9110, section 12.5.1); None for JSON, also where none will do."""
    ranges: dict[str, float] = {}
    for part in accept.decode("latin-1").lower().split(","):
        name, *parameters = (text.strip() for text in part.split(";"))
        weight = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    weight = float(parameter[2:])
                except ValueError:
                    weight = 0.0
        ranges[name] = max(ranges.get(name, 0.0), weight if 0 <= weight <= 1 else 0.0)

    def weight_of(media_type: str) -> float:
        family = f"{media_type.partition('/')[0]}/*"
        return next((ranges[name] for name in (media_type, family, "*/*") if name in ranges), 0.0)

    best = max(media_types(), key=weight_of)  # of equals the first
    return Form(best, _TAGS[best]) if best != _JSON and weight_of(best) > 0 else None


@cache
def media_types() -> tuple[str, ...]:
    """What can be answered with, the most preferred first."""
    return (_JSON, CSV, ARROW) if find_spec("pyarrow") else (_JSON, CSV)


def _shape(operation: Operation, answer: Answer, rows: bytes) -> type[Row]:
    """The shape the rows of an answer have, where an operation has several."""
    if answer.shape is not None or not operation.also or not answer.selection.count:
        return answer.shape or operation.row
    names = tuple(msgspec.json.decode(rows, type=list[dict[str, msgspec.Raw]])[0])
    return next((s for s in operation.shapes if s.__struct_fields__ == names), operation.row)


@cache
def columns_of(shape: type[Row]) -> tuple[Column, ...]:
    """The columns of a row, in the order of its fields."""
    return tuple(Column(f.encode_name, _plain(f.type)) for f in msgspec.structs.fields(shape))


def _plain(kind: Any) -> type:
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in (Union, types.UnionType):
        kinds = {_plain(arm) for arm in get_args(kind) if arm is not type(None)}
        return kinds.pop() if len(kinds) == 1 else msgspec.Raw
    if get_origin(kind) is Literal:
        (kind,) = {type(word) for word in get_args(kind)}
    if kind is None or kind is type(None):
        return str
    return kind if kind in (str, date, int, bool, float, Decimal) else msgspec.Raw


@cache
def _decoder(columns: tuple[Column, ...], *exact: type) -> msgspec.json.Decoder[list[Any]]:
    """Reads rows, what is of these types as what it is and everything else as its JSON text."""
    fields = [(c.name, c.type | None if c.type in exact else msgspec.Raw) for c in columns]
    return msgspec.json.Decoder(list[msgspec.defstruct("Flat", fields)])  # type: ignore[misc]


def _columns(columns: tuple[Column, ...], rows: bytes, *exact: type) -> list[Sequence[Any]]:
    """The values of each column; JSON text as text, null as None."""
    found = _decoder(columns, *exact).decode(rows)
    values: list[Sequence[Any]] = list(zip(*map(msgspec.structs.astuple, found), strict=True))
    for number, column in enumerate(columns if values else ()):
        if column.type not in exact:
            texts = (str(raw, "utf-8") for raw in values[number])
            values[number] = [None if text == _NULL else text for text in texts]
    return values or [()] * len(columns)


def _csv(columns: tuple[Column, ...], rows: bytes) -> bytes:
    """RFC 4180: a header row, every line ended by CRLF, null as nothing at all.

    Column by column, because few have anything to be quoted: half the cost of the standard library's writer.
    """
    days_as_text = tuple(Column(c.name, str if c.type is date else c.type) for c in columns)
    lines = [",".join(column.name for column in columns)]
    lines += map(",".join, zip(*map(_fields, _columns(days_as_text, rows, str, int)), strict=True))
    return "\r\n".join((*lines, "")).encode()


def _fields(values: Sequence[Any]) -> Sequence[str]:
    """The values of a column as fields of CSV."""
    texts = ["" if value is None else value if isinstance(value, str) else str(value) for value in values]
    together = "".join(texts)
    if any(mark in together for mark in ',"\r\n'):
        return [_quoted(text) if _QUOTED.search(text) else text for text in texts]
    return texts


def _quoted(text: str) -> str:
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def _arrow(columns: tuple[Column, ...], rows: bytes, members: dict[str, str]) -> bytes:
    """An IPC stream of one batch; imported here, so that a server asked only for JSON never pays for it."""
    import pyarrow

    kinds = {
        str: pyarrow.utf8(),
        date: pyarrow.date32(),
        int: pyarrow.int64(),
        bool: pyarrow.bool_(),
        float: pyarrow.float64(),
    }
    schema = pyarrow.schema(
        [
            pyarrow.field(c.name, kinds.get(c.type, pyarrow.utf8()), metadata={"json": _text_of(c)})
            for c in columns
        ],
        metadata={"license": LICENSE_NOTICE, **members},
    )
    values = _columns(columns, rows, *kinds)
    arrays = [pyarrow.array(v, f.type) for v, f in zip(values, schema, strict=True)]
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, schema) as stream:
        stream.write_batch(pyarrow.record_batch(arrays, schema=schema))
    return bytes(sink.getvalue())


def _text_of(column: Column) -> str:
    """What a field is in JSON, for readers of columns that hold it as text."""
    if column.type is Decimal:
        return "number"
    return "nested" if column.type is msgspec.Raw else "same"


def _members(answer: Answer, edition_id: str) -> dict[str, str]:
    """The members of the envelope that are not null, as ASCII."""
    told: dict[str, object] = {
        "edition": answer.edition_id or edition_id,
        "count": answer.selection.count,
        "truncated": answer.selection.truncated,
        "as_of": None if answer.as_of is None else answer.as_of.isoformat(),
        **answer.members,
    }
    return {
        name: value if isinstance(value, str) and value.isascii() else json.dumps(value)
        for name, value in told.items()
        if value is not None
    }
