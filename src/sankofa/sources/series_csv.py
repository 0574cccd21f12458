"""Our own template for dated series (exchange rates, price indices): one row per vintage of a value."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from sankofa.model.countries import country
from sankofa.model.days import day_in
from sankofa.model.figures import figure_in
from sankofa.model.observations import FREQUENCIES, ReportedValue, SeriesColumn, series_key, series_type
from sankofa.model.records import Record
from sankofa.model.text import fit
from sankofa.sources.base import InputFile, adapter
from sankofa.sources.template import Template

_TEMPLATE: Final = Template(
    "series-csv",
    required=("series", "series_type", "frequency", "date", "value"),
    optional=("country", "unit", "release_date"),
)
_LONGEST_UNIT = 100
_MOST_PENDING = 200_000
_Identity = tuple[str, str, str, str, str]


@adapter("series-csv")
def read(file: InputFile) -> Iterator[Record]:
    """Dated series (exchange rates, price indices) in our own CSV template, one row per vintage.

    An empty value says that the release withdraws it.
    """
    document = file.name

    def column(row: dict[str, str], location: str) -> SeriesColumn:
        return SeriesColumn(*_series(*map(row.get, _SERIES)), document, [_reported_value(row, location)])

    return _gathered(_TEMPLATE.read(file, column))


_SERIES: Final = ("series", "series_type", "frequency", "country")


def _gathered(records: Iterable[Record]) -> Iterator[Record]:
    """The rows of a series as one column; of a large file, one from time to time."""
    pending: dict[_Identity, list[ReportedValue]] = {}
    rows = 0
    for record in records:
        if not isinstance(record, SeriesColumn):
            yield record
            continue
        pending.setdefault(record[:5], []).extend(record.values)
        rows += 1
        if rows == _MOST_PENDING:
            yield from (SeriesColumn(*identity, values) for identity, values in pending.items())
            pending, rows = {}, 0
    yield from (SeriesColumn(*identity, values) for identity, values in pending.items())


@lru_cache(maxsize=4096)
def _series(key: str, family: str, frequency: str, country_code: str | None) -> tuple[str, str, str, str]:
    """The identity of a series. Raises ValueError naming the column at fault."""
    if frequency.lower() not in FREQUENCIES:
        raise ValueError(f"frequency: expected one of {', '.join(FREQUENCIES)}")
    if country_code and not country(country_code):
        raise ValueError("country: not an ISO 3166-1 code")
    return series_key(key), series_type(family), frequency.lower(), country(country_code or "") or ""


def _reported_value(row: dict[str, str], location: str) -> ReportedValue:
    """The value of a row. Raises ValueError naming the column at fault."""
    unit, release, text = row.get("unit", ""), row.get("release_date", ""), row["value"]
    if len(unit) > _LONGEST_UNIT or not fit(unit):
        raise ValueError(f"unit: expected up to {_LONGEST_UNIT} characters")
    value, day = figure_in("value", text), day_in("date", row["date"])
    return ReportedValue(day, day_in("release_date", release) if release else "", value, unit, location)
