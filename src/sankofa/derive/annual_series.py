"""Annual tables as series: the day of a capture is evidence that what it shows was public by then.

A table has no day of release, so annual mode shows the table captured last and knows no past. Where files are
named by the day they were captured, the same values are a series too (`WDI:NY.GDP.MKTP.CD:NGA`), each known
from the day of the first capture that shows it: later than it was published, perhaps, never earlier.
Captures are best ingested in the order they were made.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import groupby
from operator import itemgetter
from typing import Final

from sankofa.derive.annual import AnnualYear, Indicator, annual_vintages
from sankofa.derive.series import Series, SeriesReport
from sankofa.ledger.reader import CaptureInfo, LedgerReader
from sankofa.model.days import ordinal
from sankofa.model.observations import LONGEST_CODE, tabled_series

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
