"""Series and annual tables from the ledger: every report of every value, from which vintages follow.

`/v1/macro` and the signals both read the ledger through this module, so one value has one definition.

An annual table has no release day. Its vintages are numbered by capture: a repeated value adds nothing, a
changed or emptied one is the next vintage. Annual mode serves the table captured last. If file names begin
with their capture day, the values are also a series (`WDI:NY.GDP.MKTP.CD:NGA`), each known from the first
capture that shows it: perhaps later than its publication, never earlier.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

import msgspec

from sankofa.engines.ledger_store import Row
from sankofa.ledger.macro import Years, read_annual, read_series
from sankofa.ledger.reader import CaptureInfo, LedgerReader
from sankofa.model.days import day_of_name, ordinal
from sankofa.model.figures import read_unit, unit_of_indicator
from sankofa.model.observations import LONGEST_CODE, SeriesInfo, series_name, tabled_series
from sankofa.model.vintages import Vintage, vintages


class Series(NamedTuple):
    series: str
    series_type: str
    frequency: str
    country: str
    """Alpha-2; empty if the series covers no single country."""


class SeriesReport(msgspec.Struct, frozen=True, gc=False):
    """One value in one release (`model.vintages.Reported`)."""

    value: str | None
    """The figure and its unit: another unit is another vintage."""
    available: int
    order: tuple[object, ...]
    figure: str
    unit: str
    note: str
    """The publisher's remarks; empty if there are none."""
    location: str
    document: str
    capture_id: int
    evidenced: bool = True
    """False if the day of capture replaces an unknown day of publication."""


class SeriesVintages(NamedTuple):
    identity: Series
    name: str
    days: list[tuple[str, int, list[Vintage[SeriesReport]]]]
    """For each day with a value, the newest first: the day, its ordinal, and the vintages."""


class Indicator(NamedTuple):
    country: str
    indicator: str
    name: str
    """Empty if neither metadata nor a table has a name."""
    unit: str
    """From the metadata, else from the name, else from the code; empty if all lack it."""
    note: str
    """Remarks about the figures, such as `modeled ILO estimate`; empty if there are none."""


class AnnualVintage(NamedTuple):
    """One value of one year, from the first capture that had it."""

    value: str
    """Its digits; empty if the cell is empty."""
    capture_id: int
    document: str


class AnnualYear(msgspec.Struct):
    """Every vintage of one year, oldest first."""

    vintages: list[AnnualVintage]
    listed: bool
    """Whether the table captured last has the year."""


FAMILY: Final = "wdi"
FREQUENCY: Final = "annual"


class MacroMetadata:
    """The names and units of series and indicators."""

    def __init__(self, ledger: LedgerReader) -> None:
        self._names = ledger.indicator_names()
        described = list(ledger.series_info())
        self._described = {info.code: info for _, info in described}
        self._sources = (
            {n: capture.source_id for n, capture in ledger.captures().items()} if described else {}
        )
        self._by_source = {(self._sources.get(number), info.code): info for number, info in described}
        self._of_code: defaultdict[str, list[object]] = defaultdict(list)
        for number, info in described:
            self._of_code[info.code].append((self._sources.get(number), info))

    def of_code(self, code: str) -> object:
        """The metadata of a series or an indicator."""
        return self._names.get(code), self._of_code.get(code)

    def published(self, capture_id: int, series: str) -> SeriesInfo | None:
        """The latest metadata of a series, from the source of a capture."""
        return self._by_source.get((self._sources.get(capture_id), series)) if self._by_source else None

    def indicator(self, country: str, code: str) -> Indicator:
        info = self._described.get(code)
        name = (info.name if info else "") or self._names.get(code, "")
        unit, note = unit_of_indicator(name, code)
        if info and info.unit:
            unit, remark = read_unit(info.unit)
            note = remark or note
        return Indicator(country, code, name, unit, note)


class MacroColumn:
    """One indicator in one country, or the series of one key: everything derived from it starts here.

    Each part is computed once.
    """

    def __init__(
        self,
        code: str,
        country: str,
        rows: list[Row],
        metadata: MacroMetadata,
        captures: Mapping[int, CaptureInfo],
    ) -> None:
        """`country` is empty for the series of a key; `rows` are as the ledger stores them."""
        self.code = code
        self.country = country
        self.captures = captures
        self._rows = rows
        self._metadata = metadata

    def annual(self) -> Iterator[tuple[int, str, Years]]:
        """The captures of an indicator, oldest first: each with its document and values by year."""
        return read_annual(self._rows)

    def published(self) -> Iterator[tuple[tuple[str, str, str], Iterator[tuple[Any, ...]]]]:
        """Each series of a key (series_type, frequency, country) with what each capture reported."""
        return groupby(read_series(self._rows), key=itemgetter(0, 1, 2))

    @cached_property
    def indicator(self) -> Indicator:
        return self._metadata.indicator(self.country, self.code)

    @cached_property
    def years(self) -> dict[str, AnnualYear]:
        """The vintages of each year of an indicator, in the order of capture."""
        return _years(self.annual())

    @cached_property
    def series(self) -> list[SeriesVintages]:
        """The series of the key, or the series made from an annual table."""
        if self.country:
            return self._tabled()
        return [self._published(Series(self.code, *kind), captured) for kind, captured in self.published()]

    def _published(self, identity: Series, captured: Iterable[tuple[Any, ...]]) -> SeriesVintages:
        reports: defaultdict[str, list[SeriesReport]] = defaultdict(list)
        number = 0
        for *_, capture_id, document, entries in captured:
            info = self._metadata.published(capture_id, self.code)
            named_unit = info.unit if info else ""
            for day, available_at, figure, unit, location, evidenced in entries:
                number += 1
                value = f"{figure}\x1f{unit}" if figure else None
                order = (document, capture_id, number)
                available = ordinal(available_at)
                details = (figure, *read_unit(unit or named_unit), location, document, capture_id, evidenced)
                reports[day].append(SeriesReport(value, available, order, *details))
        days = _vintages(reports)
        newest = days[0][2][-1].report.capture_id if days else 0
        info = self._metadata.published(newest, self.code)
        return SeriesVintages(identity, (info.name if info else "") or series_name(*identity), days)

    def _tabled(self) -> list[SeriesVintages]:
        (country, indicator, name, unit, note), captures = self.indicator, self.captures
        series = tabled_series(indicator, country)
        if len(series) > LONGEST_CODE:  # no request may be that long
            return []
        tables = list(self.annual())
        days = {
            (number, document): day
            for number, document, _ in tables
            if (day := captured_on(captures[number], document)) is not None
        }
        dated = [table for table in tables if table[:2] in days]
        dated.sort(key=lambda table: days[table[:2]])
        years = self.years if dated == tables else _years(dated)
        reports: dict[str, list[SeriesReport]] = {}
        for year, values in years.items():
            location = f"{indicator} {country} {year}"
            for order, (figure, capture_id, document) in enumerate(values.vintages):
                value = f"{figure}\x1f{unit}" if figure else None
                details = (figure, unit, note, location, document, capture_id)
                report = SeriesReport(value, days[capture_id, document], (order,), *details)
                reports.setdefault(f"{year}-12-31", []).append(report)
        return [SeriesVintages(Series(series, FAMILY, FREQUENCY, country), name, _vintages(reports))]


def _years(tables: Iterable[tuple[int, str, Years]]) -> dict[str, AnnualYear]:
    """The vintages of each year, from tables that each changed earlier ones."""
    years: dict[str, AnnualYear] = {}
    for capture_id, document, values in tables:
        for year, value in values.items():
            known = years.get(year)
            if known is None:
                if value:
                    years[year] = AnnualYear([AnnualVintage(value, capture_id, document)], True)
                continue
            known.listed = value is not None
            if (value or "") != known.vintages[-1].value:
                known.vintages.append(AnnualVintage(value or "", capture_id, document))
    return years


def _vintages(
    reports: Mapping[str, list[SeriesReport]],
) -> list[tuple[str, int, list[Vintage[SeriesReport]]]]:
    dated = ((day, ordinal(day)) for day in sorted(reports, reverse=True))
    return [(day, number, known) for day, number in dated if (known := vintages(reports[day], number))]


@lru_cache(maxsize=65536)
def captured_on(capture: CaptureInfo, document: str) -> int | None:
    """The day at the start of a table's name (`2018-08-01-wdi.csv`); None if there is none.

    A day after the ingestion is not evidence.
    """
    day = day_of_name(document or capture.file_name)
    return min(ordinal(day), ordinal(capture.observed_at[:10])) if day else None
