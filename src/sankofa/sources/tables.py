"""Tables as publishers ship them: detects encoding and separator, and reads the rows."""

import codecs
import csv
import io
from collections.abc import Iterable, Iterator
from typing import IO, NamedTuple

from sankofa.model.errors import FormatError

_MARKS = ((codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"), (codecs.BOM_UTF8, "utf-8-sig"))
_LONGEST_PREAMBLE = 20
_LONGEST_LINE = 1 << 20


class Table(NamedTuple):
    """A table below its header."""

    header: list[str]
    rows: Iterator[tuple[int, list[str]]]
    """With the number of the line each ends on."""


def read_table(title: str, stream: IO[bytes], *columns: str) -> Table | None:
    """The table whose header has these columns (in lower case), under a preamble or not; None without one."""
    return read_table_of(title, stream, (columns,))


def read_table_of(title: str, stream: IO[bytes], headers: Iterable[Iterable[str]]) -> Table | None:
    """The same where a header may have any of several sets of columns.

    Comma, semicolon or tab; UTF-8, or UTF-16 where a mark says so.
    """
    encoding = next((name for mark, name in _MARKS if peek(stream).startswith(mark)), "utf-8")
    # What is not UTF-8 is told from its line alone, by `words`: names are the only text there is in a table.
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
    """How a document begins; every stream of `InputFile` can tell without moving on."""
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
    """Text of a cell; bytes that are not UTF-8 are the Windows code page that older tables are written in."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogateescape").decode("cp1252", "replace")
    return text
