"""Our own template for figures taken from documents: one row per figure."""

import csv
import re
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Final

from sankofa.model.days import parse_day
from sankofa.model.errors import FormatError
from sankofa.model.figures import exact
from sankofa.model.identifiers import parse_identifier
from sankofa.model.line_items import snake_case
from sankofa.model.periods import PERIOD_TYPES
from sankofa.model.places import currency
from sankofa.model.records import Fact, Record, Rejected
from sankofa.model.text import fit
from sankofa.sources.base import InputFile, adapter

_REQUIRED: Final = ("entity", "line_item", "value", "currency", "period_end", "document")
_OPTIONAL: Final = ("period_start", "period_type", "available_at", "location", "confidence")
_LINE_ITEM = re.compile(r"[a-z][a-z0-9_]{0,99}\Z")
_DECLARED: Final = {name.lower(): name for name in PERIOD_TYPES}


@adapter("filings-csv")
def read(file: InputFile) -> Iterator[Record]:
    """Figures taken from documents, in our own CSV template.

    Separated by comma, semicolon or tab, UTF-8. A row is one line: a quote left open costs its own
    row, never the rest of the file. An empty value says that the document withdraws the figure.
    """
    found = False
    for name, stream in file.documents(".csv"):
        found = True
        place = f"{name} " if file.is_zip else ""
        separator, columns = _header(f"{file.name}: {place}".rstrip(), stream.readline())
        for line_number, line in enumerate(stream, 2):
            try:
                row = _fields(line, separator, columns)
                fact = _fact(row) if row else None
            except ValueError as failure:
                yield Rejected(f"{place}row {line_number}", str(failure))
                continue
            if fact:
                yield fact
    if not found:
        raise FormatError(f"{file.name}: expected a .csv in the archive")


def _header(title: str, line: bytes) -> tuple[str, list[str]]:
    """The separator and the columns. Raises FormatError naming the column at fault."""
    try:
        text = line.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise FormatError(f"{title} expected the filings-csv template in UTF-8") from None
    separator = max(",;\t", key=text.count)
    columns = [snake_case(name.strip().strip('"')) for name in text.split(separator)]
    if not set(columns) & set(_REQUIRED):
        raise FormatError(f"{title} expected the filings-csv template, with columns {', '.join(_REQUIRED)}")
    for column in columns:
        if column not in _REQUIRED + _OPTIONAL:
            raise FormatError(f"{title} unknown column {column[:40]!r}")
        if columns.count(column) > 1:
            raise FormatError(f"{title} column {column} is given twice")
    for column in _REQUIRED:
        if column not in columns:
            raise FormatError(f"{title} the required column {column} is missing")
    return separator, columns


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


def _fact(row: dict[str, str]) -> Fact:
    """The fact of a row. Raises ValueError naming the column at fault."""
    line_item = snake_case(row["line_item"])
    if not _LINE_ITEM.match(line_item) or ":" in row["line_item"]:
        raise ValueError("line_item: expected a name in snake_case")
    end, start = _day("period_end", row["period_end"]), row.get("period_start", "")
    if start and _day("period_start", start) > end:
        raise ValueError("period_start is after period_end")
    available_at = row.get("available_at", "")
    unit, document, location = row["currency"], row["document"], row.get("location", "")
    if unit and not currency(unit):
        raise ValueError("currency: expected an ISO 4217 code")
    if not document:
        raise ValueError("document is missing")
    if not (fit(document) and fit(location)):
        raise ValueError("document, location: a control character")
    declared = row.get("period_type", "")
    if declared and declared.lower() not in _DECLARED:
        raise ValueError(f"period_type: expected one of {', '.join(PERIOD_TYPES)}")
    return Fact(
        subject=_subject(row["entity"]),
        concept=line_item,
        unit=currency(unit) or "",
        period_start=start,
        period_end=end,
        available_at=_day("available_at", available_at) if available_at else "",
        document=document,
        value=_number("value", row["value"]),
        location=location,
        declared_period=_DECLARED.get(declared.lower(), ""),
        confidence=_share("confidence", row.get("confidence", "")),
    )


@lru_cache(maxsize=4096)
def _subject(entity: str) -> str:
    try:
        identifier = parse_identifier(entity)
    except ValueError as failure:
        raise ValueError(f"entity: {failure}") from None
    if not identifier.strong:
        raise ValueError(f"entity: a {identifier.id_type} does not identify an organisation")
    return str(identifier)


def _number(column: str, text: str) -> str:
    try:
        return exact(text) if text else ""
    except ValueError as failure:
        raise ValueError(f"{column}: {failure}") from None


def _share(column: str, text: str) -> str:
    number = _number(column, text)
    if number and not 0 <= Decimal(number) <= 1:
        raise ValueError(f"{column}: expected a number from 0 to 1")
    return number


@lru_cache(maxsize=65536)
def _day(column: str, text: str) -> str:
    try:
        return parse_day(text).isoformat()
    except ValueError as failure:
        raise ValueError(f"{column}: {failure}") from None
