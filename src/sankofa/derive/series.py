"""Series and annual tables as the ledger has them: every report of every value, from which vintages follow.

`/v1/macro` and the signals both read the ledger through this module, so one value has one definition.

An annual table has no release day. Its vintages are numbered by capture: a repeated value adds nothing, a
changed or emptied one is the next vintage. Annual mode serves the table captured last. Where file names begin
with their capture day, the values are also a series (`WDI:NY.GDP.MKTP.CD:NGA`), each known from the first
capture that shows it: perhaps later than it was published, never earlier.
"""

import re
from collections import defaultdict
from collections.abc import Container, Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

import msgspec

from sankofa.ledger.reader import CaptureInfo, LedgerReader
from sankofa.model.days import ordinal
from sankofa.model.figures import read_unit, unit_of_indicator
from sankofa.model.observations import FREQUENCIES, LONGEST_CODE, SeriesInfo, tabled_series


class Series(NamedTuple):
    """The identity of a series."""

    series: str
    series_type: str
    frequency: str
    country: str
    """Alpha-2; empty where the series is of no one country."""


class SeriesReport(NamedTuple):
    """One value in one release, as `model.vintages.Reported` wants it."""

    value: str | None
    """The figure and its unit: another unit is another vintage."""
    available: int
    order: tuple[object, ...]
    figure: str
    unit: str
    note: str
    """Remarks of its publisher; empty where there are none."""
    location: str
    document: str
    capture_id: int
    evidenced: bool = True
    """False where the day of capture replaces an unknown day of publication."""


class PublishedInfo:
    """The latest metadata of each source about its own series."""

    def __init__(self, ledger: LedgerReader) -> None:
        said = list(ledger.series_info())
        self._sources = {n: capture.source_id for n, capture in ledger.captures().items()} if said else {}
        self._said = {(self._sources.get(number), info.code): info for number, info in said}

    def of(self, capture_id: int, series: str) -> SeriesInfo | None:
        """The metadata of a series, from the source of a capture."""
        return self._said.get((self._sources.get(capture_id), series)) if self._said else None


def series_reports(
    ledger: LedgerReader, frequencies: Container[str] = FREQUENCIES
) -> Iterator[tuple[Series, dict[str, list[SeriesReport]]]]:
    """Each series of one of these frequencies with the reports of its values, by the day they are of."""
    published = PublishedInfo(ledger)
    for identity, captured in groupby(ledger.series(), key=itemgetter(0, 1, 2, 3)):
        if identity[2] not in frequencies:
            continue
        reports: defaultdict[str, list[SeriesReport]] = defaultdict(list)
        number = 0
        for *_, capture_id, document, entries in captured:
            info = published.of(capture_id, identity[0])
            named_unit = info.unit if info else ""
            for day, available_at, figure, unit, location, evidenced in entries:
                number += 1
                value = f"{figure}\x1f{unit}" if figure else None
                order = (document, capture_id, number)
                available = ordinal(available_at)
                details = (figure, *read_unit(unit or named_unit), location, document, capture_id, evidenced)
                reports[day].append(SeriesReport(value, available, order, *details))
        yield Series(*identity), reports


class Indicator(NamedTuple):
    """One indicator in one country."""

    country: str
    indicator: str
    name: str
    """Empty where neither metadata nor a table names it."""
    unit: str
    """As metadata have it, else by the name, else by the code; empty where none says."""
    note: str
    """Remarks about the figures, such as `modeled ILO estimate`; empty where there are none."""


class AnnualVintage(NamedTuple):
    """One value of one year, as the first capture had it that did."""

    value: str
    """Its digits; empty where the cell is."""
    capture_id: int
    document: str


class AnnualYear(msgspec.Struct):
    """Every vintage of one year, oldest first."""

    vintages: list[AnnualVintage]
    listed: bool
    """Whether the table captured last has the year."""


def annual_vintages(
    ledger: LedgerReader, *, by_indicator: bool = False
) -> Iterator[tuple[Indicator, dict[str, AnnualYear]]]:
    """Every indicator of every country with its years, by country and indicator or the other way round."""
    names = ledger.indicator_names()
    described = {info.code: info for _, info in ledger.series_info()}
    for (country, indicator), captured in groupby(
        ledger.annual(by_indicator=by_indicator), key=itemgetter(0, 1)
    ):
        years: dict[str, AnnualYear] = {}
        for _, _, capture_id, document, values in captured:
            for year, value in values.items():
                known = years.get(year)
                if known is None:
                    if value:
                        years[year] = AnnualYear([AnnualVintage(value, capture_id, document)], True)
                    continue
                known.listed = value is not None
                if (value or "") != known.vintages[-1].value:
                    known.vintages.append(AnnualVintage(value or "", capture_id, document))
        info = described.get(indicator)
        name = (info.name if info else "") or names.get(indicator, "")
        unit, note = unit_of_indicator(name, indicator)
        if info and info.unit:
            unit, remark = read_unit(info.unit)
            note = remark or note
        yield Indicator(country, indicator, name, unit, note), years


FAMILY: Final = "wdi"
FREQUENCY: Final = "annual"
_DATED: Final = re.compile(r"(?:.*/)?(\d{4}-\d{2}-\d{2})\b[^/]*")


def annual_series(
    ledger: LedgerReader, captures: Mapping[int, CaptureInfo]
) -> Iterator[tuple[Series, str, dict[str, list[SeriesReport]]]]:
    """Each indicator of each country, its name, and the reports of its values by the last day of a year.

    By country and indicator; `annual_series_by_key` has them in the order of their keys.
    """
    return _series_of(annual_vintages(ledger), captures)


def annual_series_by_key(
    ledger: LedgerReader, captures: Mapping[int, CaptureInfo]
) -> Iterator[tuple[Series, dict[str, list[SeriesReport]]]]:
    """The same in the order of the series' keys, without their names."""
    columns = _series_of(annual_vintages(ledger, by_indicator=True), captures)
    for _, of_indicator in groupby(columns, key=lambda column: column[0].series.split(":")[1]):
        for series, _, reports in sorted(of_indicator, key=itemgetter(0)):
            yield series, reports


def _series_of(
    columns: Iterator[tuple[Indicator, dict[str, AnnualYear]]], captures: Mapping[int, CaptureInfo]
) -> Iterator[tuple[Series, str, dict[str, list[SeriesReport]]]]:
    days: dict[tuple[int, str], int | None] = {}
    for (country, indicator, name, unit, note), years in columns:
        series = tabled_series(indicator, country)
        if len(series) > LONGEST_CODE:  # nobody could ask for it
            continue
        reports: dict[str, list[SeriesReport]] = {}
        for year, values in years.items():
            location = f"{indicator} {country} {year}"
            of_year = []
            for figure, capture_id, document in values.vintages:
                place = (capture_id, document)
                if place not in days:
                    days[place] = captured_on(captures[capture_id], document)
                if (day := days[place]) is not None:
                    value = f"{figure}\x1f{unit}" if figure else None
                    order = (capture_id,)
                    of_year.append(
                        SeriesReport(value, day, order, figure, unit, note, location, document, capture_id)
                    )
            if of_year:
                reports[f"{year}-12-31"] = of_year
        yield Series(series, FAMILY, FREQUENCY, country), name, reports


def captured_on(capture: CaptureInfo, document: str) -> int | None:
    """The day that the name of a table begins with (`2018-08-01-wdi.csv`); None where it tells none.

    A day after that of the ingestion is no evidence.
    """
    dated = _DATED.fullmatch(document or capture.file_name)
    if dated is None:
        return None
    try:
        return min(ordinal(dated[1]), ordinal(capture.observed_at[:10]))
    except ValueError:  # no day of the calendar
        return None
