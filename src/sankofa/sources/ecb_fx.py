"""Euro reference rates of the European Central Bank: the history file, one column per currency."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from sankofa.model.countries import currency
from sankofa.model.days import parse_day
from sankofa.model.errors import FormatError
from sankofa.model.figures import exact
from sankofa.model.observations import ReportedValue, SeriesColumn
from sankofa.model.records import Record, Rejected
from sankofa.sources.base import InputFile, adapter
from sankofa.sources.tables import read_table

_EXPECTED = "expected the ECB history of reference rates: a column Date, then one per currency"
_NOT_QUOTED = ("", "N/A")


@adapter("ecb-fx")
def read(file: InputFile) -> Iterator[Record]:
    """Euro reference rates of the European Central Bank, the history file: units of a currency for one euro.

    A rate is public on its day. One that is found changed later is known from the day it was found so.
    """
    readable = False
    for name, stream in file.documents(".csv"):
        document = PurePosixPath(name).name
        table = read_table(file.name, stream, "date")
        if table is None or not any(map(currency, table.header[1:])) or table.header[0].lower() != "date":
            continue
        readable = True
        columns: dict[int, list[ReportedValue]] = {}
        for column, code in enumerate(table.header):
            if column and code and currency(code) in (None, "EUR"):
                yield Rejected(f"{document} column {column + 1}", "header: not an ISO 4217 code")
            elif column and code:
                columns[column] = []
        for line, row in table.rows:
            yield from _take(columns, table.header, f"{document} line {line}", row)
        for column, values in columns.items():
            quote = currency(table.header[column])
            yield SeriesColumn(f"FX.EUR.{quote}", "fx", "daily", "", document, values, on_its_day=True)
    if not readable:
        raise FormatError(f"{file.name}: {_EXPECTED}")


def _take(
    columns: dict[int, list[ReportedValue]], header: list[str], position: str, row: list[str]
) -> Iterator[Rejected]:
    """One day's rates, each into its column."""
    if not any(row):
        return
    if len(row) != len(header):
        yield Rejected(position, f"{len(row)} fields where the header has {len(header)}")
        return
    try:
        day = parse_day(row[0].strip()).isoformat()
    except ValueError as failure:
        yield Rejected(position, f"date: {failure}")
        return
    for column, values in columns.items():
        text = row[column].strip()
        try:
            rate = "" if text in _NOT_QUOTED else exact(text)
            if rate and (rate == "0" or rate[0] == "-"):
                raise ValueError("not above zero")
        except ValueError as failure:
            yield Rejected(f"{position}, {header[column]}", f"rate: {failure}")
            continue
        values.append(ReportedValue(day, "", rate, header[column].upper(), ""))
