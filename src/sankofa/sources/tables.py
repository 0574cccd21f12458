"""Tables as publishers ship them: CSV in any common encoding and separator, and sheets of Excel workbooks."""

import codecs
import csv
import datetime
import io
import math
import re
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import IO, Final, NamedTuple

from sankofa.model.errors import FormatError
from sankofa.sources.base import BoundedStream, InputFile, too_much

_MARKS = ((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"), (codecs.BOM_UTF8, "utf-8-sig"))
_LONGEST_PREAMBLE = 20
_LONGEST_LINE = 1 << 20


class Table(NamedTuple):
    header: list[str]
    rows: Iterator[tuple[int, list[str]]]
    """With the number of the line each ends on."""


def read_table(title: str, stream: IO[bytes], headers: Iterable[Iterable[str]]) -> Table | None:
    """The table whose header has one of these sets of columns (in lower case), with or without a preamble;
    else None.

    Comma, semicolon or tab; UTF-8, or UTF-16 with a byte order mark.
    """
    encoding = next((name for mark, name in _MARKS if peek(stream).startswith(mark)), "utf-8")
    # The encoding of bytes that are not UTF-8 is judged per line, by `words`: names are the only text in a
    # table.
    text = io.TextIOWrapper(stream, encoding, "surrogateescape", newline="")
    sets = [frozenset(columns) for columns in headers]
    for number in range(1, _LONGEST_PREAMBLE):
        try:
            line = text.readline(_LONGEST_LINE)
        except UnicodeDecodeError:
            break
        separator = max(",;\t", key=line.count)
        header = [cell.strip() for cell in next(csv.reader([line.lstrip("\ufeff")], delimiter=separator), [])]
        named = {cell.lower() for cell in header}
        if any(named >= columns for columns in sets):
            return Table(header, _rows(title, text, separator, number))
    text.detach()
    return None


def peek(stream: IO[bytes]) -> bytes:
    """The start of a document; every stream of `InputFile` can peek."""
    start: bytes = stream.peek(64)  # type: ignore[attr-defined]
    return start


def _rows(title: str, text: io.TextIOWrapper, separator: str, before: int) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(text, delimiter=separator)
    try:
        for row in reader:
            yield before + reader.line_num, row
    except (csv.Error, UnicodeDecodeError) as failure:
        raise FormatError(f"{title}: not a table below line {before + reader.line_num}: {failure}") from None
    finally:
        text.detach()


def words(text: str) -> str:
    """Text of a cell; bytes that are not UTF-8 are read in the Windows code page of older tables."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogateescape").decode("cp1252", "replace")
    return text


_ROWS_BEFORE_HEADER: Final = 20
_CELL_BYTES: Final = 24
"""Memory for a cell, counting empty cells between two others."""
_CELL_TAG = re.compile(rb"(?=<(?:\w{1,20}:)?c[\s>/])")
_END_OF_CELL = re.compile(rb"</(?:\w{1,20}:)?c\s*>")
_FORMULA_TAG = re.compile(rb"<(?:\w{1,20}:)?f[\s>/]")
_CELL_VALUE = re.compile(rb"<((?:\w{1,20}:)?)v(?:\s[^>]{0,100})?>([^<]*)<")
_CELL_TYPE = re.compile(rb"""\st\s?=\s?["'](\w{1,20})["']""")
_ROW_TAG = re.compile(rb"<(?:\w{1,20}:)?row[\s>/]")
_CELL_REFERENCE = re.compile(rb"""\sr\s?=\s?["']([A-Za-z]{0,7})([0-9]{0,10})["']""")
_CELL_NUMBER = re.compile(rb"-?[0-9]+(\.[0-9]+)?\Z")
_NO_RESULT: Final = "#FORMULA!"
_CELL_ERROR = re.compile(r"#(?:N/A|[A-Z_0-9/]{1,20}[!?])\Z")

Cells = list[str] | ValueError


class Sheet(NamedTuple):
    """The sheet of a workbook that was looked for."""

    number: int
    """From 1, in the order of the workbook."""
    header: list[str]
    rows: Iterator[tuple[int, Cells]]
    """Each row below the header with its number; if a cell cannot be read, the reason."""


def best_sheet(file: InputFile, fit: Callable[[list[str]], int]) -> Sheet:
    """The sheet and row, among the first rows, that best fit a header. Raises FormatError."""
    from python_calamine import CalamineError, CalamineWorkbook

    try:
        book = CalamineWorkbook.from_filelike(_checked_copy(file))
        best: tuple[int, int, int] | None = None
        for index in range(len(book.sheet_names)):
            for number, row in enumerate(
                book.get_sheet_by_index(index).to_python(False, _ROWS_BEFORE_HEADER)
            ):
                score = fit([cell.strip() if isinstance(cell, str) else "" for cell in row])
                if best is None or score > best[0]:
                    best = (score, index, number)
        if best is None:
            raise FormatError(f"{file.name}: the workbook has no rows")
        _, index, header_at = best
        sheet = book.get_sheet_by_index(index)
        rows = sheet.to_python(skip_empty_area=False)
        merged = _merged_columns(file.name, sheet.merged_cell_ranges or [], len(rows), len(rows[header_at]))
    except CalamineError as failure:
        raise FormatError(f"{file.name}: not a workbook that can be read: {failure}") from None
    header = [cell_text(cell) for cell in rows[header_at]]
    below = (
        (number + 1, _texts(header, rows[number], merged[number]))
        for number in range(header_at + 1, len(rows))
    )
    return Sheet(index + 1, header, below)


def _texts(header: list[str], row: Sequence[object], merged: set[int]) -> Cells:
    cells: list[str] = []
    for column, (name, cell) in enumerate(zip(header, row, strict=True)):
        text = cell_text(cell)
        if _CELL_ERROR.match(text):
            reason = "a formula without a result: open the workbook, save it, and ingest that"
            return ValueError(f"{name}: {reason if text == _NO_RESULT else f'the error {text}'}")
        if text and not name:
            return ValueError(f"column {column + 1} has a value and no heading")
        cells.append(text)
    blank = next((header[column] for column in sorted(merged) if header[column]), "")
    if blank and any(cells):
        return ValueError(f"{blank}: part of a merged cell: write it in each row")
    return cells


def cell_text(cell: object) -> str:
    """A cell as in a CSV file: a day as YYYY-MM-DD, a number with the digits as typed."""
    if isinstance(cell, bool):
        return str(cell).upper()
    if isinstance(cell, float):
        text = format(Decimal(_digits(cell)), "f")
        return text.rstrip("0").rstrip(".") if "." in text else text
    if isinstance(cell, datetime.datetime) and not (cell.hour or cell.minute or cell.second):
        return cell.date().isoformat()
    if isinstance(cell, datetime.datetime | datetime.date):
        return cell.isoformat()
    return str(cell).strip()


def _digits(number: float) -> str:
    """The 15 digits that a spreadsheet shows, if they give the float or its neighbour; else all digits.

    Example: 0.1 + 0.2 is the float after 0.3.
    """
    shown = f"{number:.15g}"
    near = not number.is_integer() and abs(float(shown) - number) <= math.ulp(number)
    return shown if near else repr(number)


def _merged_columns(
    title: str, ranges: list[tuple[tuple[int, int], tuple[int, int]]], height: int, width: int
) -> defaultdict[int, set[int]]:
    """By row, the columns whose cell is part of a merged one and not its first."""
    merged: defaultdict[int, set[int]] = defaultdict(set)
    left = height * width
    for (top, first), (bottom, last) in ranges:
        for row in range(top, min(bottom + 1, height)):
            columns = range(first, min(last + 1, width))
            left -= len(columns) + 1
            if left < -len(ranges):
                raise FormatError(f"{title}: merged cells overlap")
            merged[row].update(columns[1:] if row == top else columns)
    return merged


def _checked_copy(file: InputFile) -> IO[bytes]:
    """The workbook parts needed to read cells. Raises FormatError if they exceed the limits."""
    most = file.limits.document_bytes
    copy = io.BytesIO()
    size = 0
    with file.archive() as archive, zipfile.ZipFile(copy, "w") as checked:
        for member in archive.infolist():
            if not member.filename.lower().endswith((".xml", ".rels")):
                continue
            with file.opened(archive, member) as stream:
                content = BoundedStream(stream, file).read()
            size += len(content)
            content, cells = _checked_sheet(content)
            size += cells * _CELL_BYTES
            if size > most:
                raise too_much(file.name, "in one workbook", file.limits, "document_bytes")
            checked.writestr(member.filename, content)
    copy.seek(0)
    return copy


def _checked_sheet(xml: bytes) -> tuple[bytes, int]:
    """The sheet, misread cells as text, and how many cells there are up to its last row and column."""
    before, *cells = _CELL_TAG.split(xml)
    parts = [before]
    last_row = last_column = 0
    row, column = _next_row(before, 0), 0
    for cell in cells:
        head, _, rest = cell.partition(b">")
        ended = None if head.endswith(b"/") else _END_OF_CELL.search(rest)
        body, after = (rest[: ended.start()], rest[ended.start() :]) if ended else (b"", rest)
        reference = _CELL_REFERENCE.search(head)
        column = _column(reference[1]) if reference and reference[1] else column + 1
        if body:
            last_row = max(last_row, int(reference[2]) if reference and reference[2] else row)
            last_column = max(last_column, column)
            parts += (_checked_cell(head, body), after)
        else:
            parts.append(cell)
        following = _next_row(after, row)
        row, column = following, column if following == row else 0
    return b"".join(parts), last_row * last_column


def _next_row(xml: bytes, row: int) -> int:
    """The number of the last row that begins here; the previous row if none does."""
    for tag in _ROW_TAG.finditer(xml):
        reference = _CELL_REFERENCE.search(xml[tag.start() : xml.find(b">", tag.start())])
        row = int(reference[2]) if reference and reference[2] else row + 1
    return row


def _checked_cell(head: bytes, body: bytes) -> bytes:
    kind, value = _CELL_TYPE.search(head), _CELL_VALUE.search(body)
    text = value[2].strip() if value else b""
    if not text and _FORMULA_TAG.search(body) and not (kind and kind[1] == b"str"):
        text = _NO_RESULT.encode()
    elif not (kind and kind[1] == b"e") and not ((not kind or kind[1] == b"n") and _exceeds_float(text)):
        return head + b">" + body
    prefix = value[1] if value else head.partition(b"c")[0][1:]
    if kind:
        head = head[: kind.start()] + head[kind.end() :]
    return head + b' t="str"><%bv>%b</%bv>' % (prefix, text, prefix)


def _exceeds_float(text: bytes) -> bool:
    """Whether a float may round a number. Excel writes 15 digits of a whole number and 17 of another."""
    number = _CELL_NUMBER.match(text)
    digits = len(text.replace(b".", b"").lstrip(b"-0"))
    return bool(number) and digits > (17 if number and number[1] else 15)


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters.upper():
        number = number * 26 + letter - 64
    return number
