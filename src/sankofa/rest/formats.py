"""The formats of an answer: JSON, CSV, Arrow or Excel, as `Accept` asks, with the same rows in each.

Rows are stored as the JSON that is served. Other formats decode it column by column
(`edition.format.columns`). Answers with all rows of a key on a day are faster: CSV lines are another form of
the stored blocks, and Arrow uses columns stored in the edition.

See contract: ENV-7, ENV-10.
"""

import io
import json
import re
import sys
from collections.abc import Iterable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from functools import cache, lru_cache
from itertools import accumulate, chain, groupby, repeat
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from sankofa.edition.format.columns import (
    Column,
    Repeated,
    TableColumn,
    arrow_types,
    columns_of,
    read_columns,
    table_of,
    visible_rows,
)
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.row_forms import RowForm
from sankofa.model.errors import InvalidParameter
from sankofa.model.rows import Row
from sankofa.operations.answers import Headers, weights_in
from sankofa.operations.contract import Answer, Encoded, Operation

if TYPE_CHECKING:
    import pyarrow

CSV: Final = "text/csv"
ARROW: Final = "application/vnd.apache.arrow.stream"
XLSX: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
_JSON: Final = "application/json"
_PACKED: Final = "compression=zstd"
_TAGS: Final = {CSV: "csv", ARROW: "arrow", XLSX: "xlsx"}
_NAMES: Final = {"json": _JSON, "csv": CSV, "arrow": ARROW, "xlsx": XLSX}
MEDIA_TYPES: Final = tuple(_NAMES.values())
"""The media types that are served, most preferred first."""
_WORTH_COLUMNS: Final = 256
"""Fewest rows for which stored columns are worth a lookup."""
_QUICK_ROWS: Final = 1_024
_BYTES_A_ROW: Final = 1_000
"""Stored columns cover a whole key: unpacking this many bytes takes as long as reading one row."""
Stored = Sequence[bytes | memoryview]
"""The stored form of an answer: slices of lines for CSV, columns in Arrow form for Arrow."""
_EXCEL_EPOCH: Final = datetime(1900, 1, 1)  # noqa: DTZ001 - a workbook has no time zones
_EXCEL_ROWS: Final = 1_048_576
_EXCEL_COLUMNS: Final = 16_384
_QUOTED: Final = re.compile(r'[,"\r\n]')


class ResponseFormat(NamedTuple):
    """A response format other than JSON."""

    media_type: str
    tag: str
    """The end of the entity tag, which differs for each format."""
    packed: bool = False
    """Whether the buffers of an Arrow stream are compressed; readers decompress them automatically."""

    async def stored(self, operation: Operation, answer: Answer, edition: Edition) -> Stored:
        """The stored form of the answer; nothing if decoding the rows is faster or necessary."""
        row_filter = answer.selection.row_filter
        if row_filter is None or self.media_type == XLSX:
            return ()
        if self.media_type == CSV:
            kind, key, day, modes, tag = row_filter
            form = _csv_form(_shape(operation, answer))
            lines = await edition.select(kind, key, day=day, modes=modes, tag=tag, form=form)
            return () if lines is None else lines.slices
        return () if answer.selection.count < _WORTH_COLUMNS else await edition.columns(row_filter)

    def is_quick(self, answer: Answer, stored: Stored) -> bool:
        """Whether the body takes only two or three milliseconds, so that a thread would add half as much."""
        if self.media_type == CSV and stored:
            return True
        if answer.selection.count > (_QUICK_ROWS if stored else _WORTH_COLUMNS) or self.media_type == XLSX:
            return False
        return self.media_type == CSV or "pyarrow" in sys.modules  # loading takes longer

    def body(
        self, operation: Operation, answer: Answer, edition: Edition, stored: Stored = ()
    ) -> tuple[Headers, bytes]:
        """The envelope as header fields, and the body in this format."""
        columns = columns_of(_shape(operation, answer))
        columns += tuple(Column(name, Decimal) for name in answer.more_columns)
        if answer.tabular:
            by_name = {column.name: column for column in columns}
            columns = tuple(by_name[name] for name in answer.tabular)
        members = _members(answer, edition)
        terms = operation.notice(answer, edition)
        if self.media_type == CSV:
            lines = stored or _lines(_tables(_days_as_text(columns), answer, str, int))
            header = ",".join(column.name for column in columns)
            body = b"\n".join((f"{header}\r".encode(), *lines, b""))
            kind = b"text/csv; charset=utf-8; header=present"
        elif self.media_type == XLSX:
            body, kind = _workbook(columns, answer.selection.lists(), terms.text), XLSX.encode()
        else:
            body = _arrow(columns, answer, stored, {"license": terms.text, **members}, packed=self.packed)
            kind = f"{ARROW};{_PACKED}".encode() if self.packed else ARROW.encode()
        header_members = {"license": terms.header, **members}
        fields = [
            (f"x-{name.replace('_', '-')}".encode(), text.encode()) for name, text in header_members.items()
        ]
        return [(b"content-type", kind), *fields], body


@lru_cache(maxsize=256)
def negotiated_format(accept: bytes) -> ResponseFormat | None:
    """The format a client prefers (RFC 9110, section 12.5.1); None for JSON, also if none is accepted."""
    ranges = weights_in(accept)

    def weight_of(media_type: str) -> float:
        family = f"{media_type.partition('/')[0]}/*"
        return next((ranges[name] for name in (media_type, family, "*/*") if name in ranges), 0.0)

    best = max(MEDIA_TYPES, key=weight_of)  # the first of equals
    if best == _JSON or not weight_of(best):
        return None
    packed = any(ARROW in part and _PACKED in part for part in accept.decode("latin-1").lower().split(","))
    if best == ARROW and packed:
        return ResponseFormat(best, "arrow-zstd", packed)
    return ResponseFormat(best, _TAGS[best])


def named_format(name: str, accept: bytes) -> ResponseFormat | None:
    """The format named in the query, which overrides `Accept`; None for JSON. Raises InvalidParameter.

    `Accept` still decides whether an Arrow stream may be compressed.
    """
    media_type = _NAMES.get(name)
    if media_type is None:
        raise InvalidParameter("format", f"expected one of {', '.join(_NAMES)}")
    if media_type == _JSON:
        return None
    accepted = negotiated_format(accept) if accept else None
    if accepted is not None and accepted.media_type == media_type:
        return accepted
    return ResponseFormat(media_type, _TAGS[media_type])


def _shape(operation: Operation, answer: Answer) -> type[Row]:
    """The row type of an answer, for operations that have several."""
    if answer.shape is not None or not operation.also or not answer.selection.count:
        return answer.shape or operation.row
    rows = next(answer.selection.lists())
    names = tuple(msgspec.json.decode(rows, type=list[dict[str, msgspec.Raw]])[0])
    return next((s for s in operation.shapes if s.__struct_encode_fields__ == names), operation.row)


def _tables(columns: tuple[Column, ...], answer: Answer, *exact: type) -> Iterable[Sequence[TableColumn]]:
    """The values of each column, of some rows at a time."""
    if answer.columns is not None:
        return (answer.columns,)
    return (read_columns(columns, rows, *exact) for rows in answer.selection.lists())


def _days_as_text(columns: tuple[Column, ...]) -> tuple[Column, ...]:
    return tuple(Column(c.name, str if c.type is date else c.type) for c in columns)


def _lines(tables: Iterable[Sequence[TableColumn]]) -> list[bytes]:
    """The lines of RFC 4180, without the line feed; null is an empty field.

    Works column by column, because few need quotes: half the cost of the standard library's writer.
    """
    lines: list[bytes] = []
    for table in tables:
        fields: list[Iterable[str]] = []
        for counts, own in groupby(table, lambda column: getattr(column, "counts", None)):
            if counts is None:
                fields += map(_fields, own)
            else:
                values = [_fields(column.values) for column in own if isinstance(column, Repeated)]
                texts = map(",".join, zip(*values, strict=True))
                fields.append(chain.from_iterable(map(repeat, texts, counts)))
        lines += [f"{','.join(line)}\r".encode() for line in zip(*fields, strict=True)]
    return lines


@cache
def _csv_form(shape: type[Row]) -> RowForm:
    columns = _days_as_text(columns_of(shape))

    def rewrite(rows: bytes, _: Sequence[int]) -> tuple[bytes, Sequence[int]]:
        lines = _lines([read_columns(columns, b"[%b]" % rows, str, int)])
        return b"\n".join(lines), [end - 1 for end in accumulate(len(line) + 1 for line in lines)]

    return RowForm(shape, rewrite)


def _stored_table(columns: tuple[Column, ...], answer: Answer, stored: Stored) -> "pyarrow.Table | None":
    """The rows of an answer from stored columns; None if decoding the rows is faster or necessary."""
    selection = answer.selection
    if selection.row_filter is None or not 0 < sum(map(len, stored)) <= _BYTES_A_ROW * selection.count:
        return None
    return visible_rows(stored, columns, selection.row_filter, selection.count)


def _fields(values: Sequence[Any]) -> Sequence[str]:
    """The values of a column as fields of CSV."""
    nulls = values.count(None)
    if nulls == len(values):
        return [""] * nulls
    texts = values
    if nulls or not isinstance(values[0], str):
        shown = {value: "" if value is None else str(value) for value in set(values)}
        texts = [shown[value] for value in values]
    together = "".join(texts)
    if any(mark in together for mark in ',"\r\n'):
        fields = {text: _quoted(text) if _QUOTED.search(text) else text for text in set(texts)}
        return [fields[text] for text in texts]
    return texts


def _quoted(text: str) -> str:
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def _workbook(columns: tuple[Column, ...], lists: Iterable[bytes], terms: str) -> bytes:
    """A workbook with one sheet: a header row, and a row for each row. The terms are in its properties.

    Numbers with more digits than Excel holds are text, and so are days before 1900. The same rows give the
    same bytes. Raises InvalidParameter for a table that is too large for Excel.
    """
    from xlsxwriter import Workbook

    sink = io.BytesIO()
    with Workbook(sink, {"in_memory": True}) as book:
        book.set_properties({"created": _EXCEL_EPOCH, "comments": terms})
        sheet = book.add_worksheet("data")
        sheet.freeze_panes(1, 1)
        days = book.add_format({"num_format": "yyyy-mm-dd"})
        first = 1
        for at, column in enumerate(columns):
            sheet.write_string(0, at, column.name)
        for rows in lists:
            table = read_columns(columns, rows, str, int, float, bool, date, Decimal)
            first += len(table[0])
            if first > _EXCEL_ROWS or len(table) > _EXCEL_COLUMNS:
                raise InvalidParameter("format", "more rows or columns than a sheet of Excel holds")
            for at, values in enumerate(table):
                for number, value in enumerate(values, first - len(values)):
                    if isinstance(value, date) and value.year >= _EXCEL_EPOCH.year:
                        sheet.write_datetime(number, at, datetime.combine(value, time()), days)
                    elif isinstance(value, bool):
                        sheet.write_boolean(number, at, value)
                    elif isinstance(value, int | float | Decimal) and Decimal(repr(float(value))) == value:
                        sheet.write_number(number, at, float(value))
                    elif value is not None:
                        sheet.write_string(number, at, str(value))
    return sink.getvalue()


def _arrow(
    columns: tuple[Column, ...],
    answer: Answer,
    stored: Stored,
    members: dict[str, str],
    *,
    packed: bool,
) -> bytes:
    """An IPC stream; imported here, so that a server asked only for JSON never pays for it."""
    import pyarrow

    table = _stored_table(columns, answer, stored)
    if table is None:
        table = table_of(columns, _tables(columns, answer, *arrow_types()))
    schema = table.schema.with_metadata(members)
    sink = pyarrow.BufferOutputStream()
    options = pyarrow.ipc.IpcWriteOptions(compression=pyarrow.Codec("zstd", 1) if packed else None)
    with pyarrow.ipc.new_stream(sink, schema, options=options) as stream:
        stream.write_table(table.replace_schema_metadata(schema.metadata))
    written: bytes = sink.getvalue().to_pybytes()
    return written


def _plain(value: object) -> object:
    """A member as JSON; it may already be encoded."""
    return msgspec.json.decode(b"".join(value) if isinstance(value, Encoded) else msgspec.json.encode(value))


def _members(answer: Answer, edition: Edition) -> dict[str, str]:
    """The members of the envelope that are not null, as ASCII."""
    members: dict[str, object] = {
        "edition": None
        if edition.lock is not None or answer.edition_id == ""
        else answer.edition_id or edition.id,
        "count": answer.selection.count,
        "truncated": answer.selection.truncated,
        "as_of": answer.as_of.isoformat() if isinstance(answer.as_of, date) else None,
        "absent": answer.absent,
        **answer.members,
    }
    return {
        name: value if isinstance(value, str) and value.isascii() else json.dumps(_plain(value))
        for name, value in members.items()
        if value is not None
    }
