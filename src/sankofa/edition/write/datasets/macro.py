"""Annual indicators, and the catalogue of series and indicators.

- Indicators are ordered by country, indicator and year descending; the bulk table has every vintage.
- The catalogue is ordered by series, series_type, frequency and country.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from functools import partial
from itertools import chain, starmap
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from sankofa.derive.series import MacroColumn
from sankofa.edition.format import keys
from sankofa.edition.format.macro import SeriesSummary, list_pages, pack_series, summary_of
from sankofa.edition.format.row_blocks import Entry, pack
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import (
    NEVER,
    Building,
    Counted,
    CoverageTally,
    Input,
    KeyRows,
    Outcome,
    PreparedRows,
    TallyRow,
    dataset,
    packed,
    pages_of,
    row_check,
)
from sankofa.edition.write.datasets.macro_series import CatalogueEntry, ProvenanceText, SeriesIndex, json_text
from sankofa.edition.write.derived_parts import macro_part
from sankofa.edition.write.tables import MacroRows, encoded_rows, table
from sankofa.model.catalogue_rows import SeriesCatalogueRow
from sankofa.model.countries import alpha3_of
from sankofa.model.days import ordinal
from sankofa.model.provenance import MACRO
from sankofa.model.rows import MacroAnnualRow, wire

ANNUAL_TABLE: Final = "af-macro-annual"


_INDICATORS: Final = "indicator-summary"
_Summary = tuple[SeriesSummary, CatalogueEntry]
"""What other datasets need from an indicator, so that they need not read its rows."""
_write = msgspec.msgpack.Encoder().encode
_read = msgspec.msgpack.Decoder(tuple[list[tuple[str, PreparedRows]], list[TallyRow]]).decode
_read_summaries = msgspec.msgpack.Decoder(list[_Summary]).decode


@dataset(keys.MACRO_ANNUAL, MacroAnnualRow, reads=(Input.ANNUAL,))
def annual(context: BuildContext) -> Building:
    tally = CoverageTally()
    for part in context.macro.parts(keys.MACRO_ANNUAL):
        stored, counted = _read(part)
        tally.update(counted)
        yield from starmap(KeyRows, stored)
    return Outcome(tally=tally)


def _summaries(context: BuildContext) -> Iterator[_Summary]:
    """Summaries of all indicators by country, in order."""
    return chain.from_iterable(map(_read_summaries, context.macro.parts(_INDICATORS)))


@macro_part
def _derived(columns: Sequence[MacroColumn]) -> Iterator[tuple[str, bytes]]:
    if not columns[0].country:
        return
    provenance = ProvenanceText(columns[0].captures)
    tally = CoverageTally()
    parts: list[tuple[str, PreparedRows]] = []
    summaries: list[_Summary] = []
    rows: list[MacroAnnualRow] = []
    superseded: list[str | None] = []
    for column in columns:
        entries, every, replaced = _rows(column, provenance)
        rows += every
        superseded += replaced
        if entries:
            part, summary = _indicator(column, entries, tally)
            parts.append(part)
            summaries.append(summary)
    yield keys.MACRO_ANNUAL, _write((parts, tally.rows()))
    yield _INDICATORS, _write(summaries)
    yield ANNUAL_TABLE, encoded_rows(ANNUAL_TABLE, rows, {"superseded_at": superseded})


def _rows(
    column: MacroColumn, provenance: ProvenanceText
) -> tuple[list[Entry], list[MacroAnnualRow], list[str | None]]:
    """The last vintage of each year in the table captured last; every vintage read back; and the instants at
    which these are superseded."""
    country, indicator, name, unit, note = column.indicator
    shared = (
        f'"country":"{country}","country_iso3":"{alpha3_of()[country]}","indicator":"{indicator}",'
        f'"indicator_name":{json_text(name)},"year":'
    )
    measured = f'"unit":{json_text(unit)},"note":{json_text(note)}'
    served: list[Entry] = []
    every: list[Entry] = []
    superseded: list[str | None] = []
    for year in sorted(column.years, reverse=True):
        known = column.years[year]
        location = f"{indicator} {country} {year}"
        for number, (value, capture_id, document) in enumerate(known.vintages, 1):
            row = (
                f'{provenance.of(capture_id, document, location)}{shared}{year},"value":{value or "null"},'
                f'{measured},"available_at":null,"vintage":{number}}}'
            )
            every.append(Entry(row.encode(), tag=int(year)))
        later = (column.captures[vintage.capture_id].observed_at for vintage in known.vintages[1:])
        superseded += (*later, None)
        if known.listed:
            served.append(every[-1])
    check = row_check(keys.MACRO_ANNUAL, MacroAnnualRow)
    return served, check.all(keys.annual_key(country, indicator), every), superseded


def _indicator(
    column: MacroColumn, entries: list[Entry], tally: CoverageTally
) -> tuple[tuple[str, PreparedRows], _Summary]:
    country, indicator, name, unit, note = column.indicator
    sources: dict[int, Counted] = {}
    listed = [year for year, known in column.years.items() if known.listed]
    for year in listed:
        last_day = ordinal(f"{year}-12-31")
        own = sources.setdefault(column.years[year].vintages[-1].capture_id, Counted())
        own.add(0, 1, last_day, last_day, NEVER)
    newest = column.years[max(listed)].vintages[-1]
    key = keys.annual_key(country, indicator)
    capture = column.captures[newest.capture_id]
    first, last = (ordinal(f"{entries[n].tag:04d}-12-31") for n in (-1, 0))
    location = f"{indicator} {country} {entries[0].tag}"
    entry = CatalogueEntry(
        indicator, True, "", "annual", country, name, unit, note, first, last, 0, capture.source_id,
        capture.ref(location, newest.document), capture.license_class, capture.observed_at,
    )  # fmt: skip
    tally.add_once("indicators", country, sources, column.captures)
    return (key, packed(entries, pack_series)), (summary_of(key, entries), entry)


@dataset(f"{keys.MACRO_ANNUAL}-list", None, reads=(Input.ANNUAL,))
def annual_lists(context: BuildContext) -> Iterator[KeyRows]:
    def filters(summary: SeriesSummary) -> Iterable[str]:
        country, indicator = summary.key.split("|")
        return keys.annual_key("", ""), keys.annual_key(country, ""), keys.annual_key("", indicator)

    for key, pages in list_pages((summary for summary, _ in _summaries(context)), filters):
        yield KeyRows(key, pages_of(pages))


class AnnualVintageRow(MacroAnnualRow, frozen=True, kw_only=True):
    """One vintage of one annual value. `observed_at` is the time of capture."""

    superseded_at: Annotated[
        str | None,
        Meta(
            description="When a different value was captured; null for the current one.",
            extra_json_schema={"format": "date-time"},
        ),
    ]


table(
    ANNUAL_TABLE,
    AnnualVintageRow,
    MACRO,
    "Annual indicators by country, every vintage captured. Bulk only; `/v1/macro` serves the latest.",
    rows=partial(MacroRows, ANNUAL_TABLE),
    reads=(Input.ANNUAL,),
    sorted_by=("country", "indicator", "-year"),
)


@dataset(
    keys.SERIES_ENTRIES,
    SeriesCatalogueRow,
    pack=partial(pack, rows_per_block=keys.ENTRIES_PER_BLOCK),
    needs=(keys.MACRO_SERIES,),
    reads=(Input.ANNUAL,),
)
def catalogue(context: BuildContext, series: SeriesIndex) -> Building:
    """Returns its entries, in order."""
    entries = sorted([*series.catalogue, *(entry for _, entry in _summaries(context))])
    yield KeyRows("", (Entry(wire.encode(_catalogue_row(entry))) for entry in entries))
    return Outcome(entries)


@dataset(f"{keys.SERIES_ENTRIES}-country", None, needs=(keys.SERIES_ENTRIES,), reads=())
def catalogue_by_country(context: BuildContext, catalogue: list[CatalogueEntry]) -> Iterator[KeyRows]:
    """The numbers of a country's entries in the catalogue, as 32-bit integers in order."""
    numbers: defaultdict[str, array[int]] = defaultdict(lambda: array("i"))
    for number, entry in enumerate(catalogue):
        if entry.country:
            numbers[entry.country].append(number)
    for country in sorted(numbers):
        yield KeyRows(country, [Entry(numbers[country].tobytes())])


def _catalogue_row(entry: CatalogueEntry) -> SeriesCatalogueRow:
    return SeriesCatalogueRow(
        series=entry.series,
        name=entry.name or None,
        unit=entry.unit or None,
        note=entry.note or None,
        frequency=entry.frequency,
        country=entry.country or None,
        first_date=date.fromordinal(entry.first),
        last_date=date.fromordinal(entry.last),
        vintages=entry.vintages,
        source_id=entry.source_id,
        source_ref=entry.source_ref,
        license_class=entry.license_class,
        observed_at=entry.observed_at,
    )
