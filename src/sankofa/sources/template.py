"""Our own CSV templates, which people fill in: how all of them are read."""

import csv
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import NamedTuple

from sankofa.model.errors import FormatError
from sankofa.model.identifiers import parse_identifier
from sankofa.model.line_items import snake_case
from sankofa.model.records import Record, Rejected
from sankofa.sources.base import InputFile


class Template(NamedTuple):
    """A template by the name of its adapter, and its columns."""

    name: str
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()

    def read(self, file: InputFile, record: Callable[[dict[str, str], str], Record]) -> Iterator[Record]:
        """What `record` makes of each row and its location; a row it raises ValueError for is rejected.

        Separated by comma, semicolon or tab, UTF-8. A row is one line: a quote left open costs its own
        row, never the rest of the file.
        """
        found = False
        for name, stream in file.documents(".csv"):
            found = True
            place = f"{name} " if file.is_zip else ""
            separator, columns = self._header(f"{file.name}: {place}".rstrip(), stream.readline())
            for line_number, line in enumerate(stream, 2):
                location = f"{place}row {line_number}"
                try:
                    row = _fields(line, separator, columns)
                    made = record(row, location) if row else None
                except ValueError as failure:
                    yield Rejected(location, str(failure))
                    continue
                if made:
                    yield made
        if not found:
            raise FormatError(f"{file.name}: expected a .csv in the archive")

    def _header(self, title: str, line: bytes) -> tuple[str, list[str]]:
        """The separator and the columns. Raises FormatError naming the column at fault."""
        try:
            text = line.decode("utf-8-sig").strip()
        except UnicodeDecodeError:
            raise FormatError(f"{title} expected the {self.name} template in UTF-8") from None
        separator = max(",;\t", key=text.count)
        columns = [snake_case(name.strip().strip('"')) for name in text.split(separator)]
        if not set(columns) & set(self.required):
            expected = f"the {self.name} template, with columns {', '.join(self.required)}"
            raise FormatError(f"{title} expected {expected}")
        for column in columns:
            if column not in self.required + self.optional:
                raise FormatError(f"{title} unknown column {column[:40]!r}")
            if columns.count(column) > 1:
                raise FormatError(f"{title} column {column} is given twice")
        for column in self.required:
            if column not in columns:
                raise FormatError(f"{title} the required column {column} is missing")
        return separator, columns


@lru_cache(maxsize=4096)
def subject(entity: str) -> str:
    """The strong identifier in a column `entity`. Raises ValueError."""
    try:
        identifier = parse_identifier(entity)
    except ValueError as failure:
        raise ValueError(f"entity: {failure}") from None
    if not identifier.strong:
        raise ValueError(f"entity: a {identifier.id_type} does not identify an organisation")
    return str(identifier)


def _fields(line: bytes, separator: str, columns: list[str]) -> dict[str, str] | None:
    """The row by column, None where it is blank. Raises ValueError."""
    try:
        text = line.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise ValueError("not UTF-8") from None
    if "\0" in text:
        raise ValueError("a NUL byte")
    if not text.strip(separator + " "):
        return None
    try:
        row = next(csv.reader([text], delimiter=separator, strict=True))
    except (csv.Error, StopIteration):
        raise ValueError("a quote is left open, or stands where none may be") from None
    if len(row) != len(columns):
        raise ValueError(f"{len(row)} fields where the header has {len(columns)}")
    return dict(zip(columns, map(str.strip, row), strict=True))
