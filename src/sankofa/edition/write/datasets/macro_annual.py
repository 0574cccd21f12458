"""Annual indicators by country: by indicator and country, the year newest first; every vintage in bulk.

Order: by country, indicator and year descending.
"""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final, NamedTuple

from msgspec import Meta

from sankofa.derive.series import AnnualVintage, annual_vintages
from sankofa.edition.format.keys import MACRO_ANNUAL, annual_key
from sankofa.edition.format.row_blocks import Entry
from sankofa.edition.format.series_blocks import (
    SeriesSummary,
    list_pages,
    pack_pages,
    pack_series,
    summary_of,
)
from sankofa.edition.write import inputs
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import Building, Built, KeyRows, Outcome, dataset
from sankofa.edition.write.json_text import ProvenanceText, figure, json_text
from sankofa.edition.write.series_stats import CatalogueEntry
from sankofa.edition.write.tables import Table, TableRows, table
from sankofa.edition.write.tally import NEVER, Counted, CoverageTally, TallyKey
from sankofa.model.countries import alpha3_of
from sankofa.model.days import ordinal
from sankofa.model.facts import MACRO
from sankofa.model.rows import MacroAnnualRow

ANNUAL_TABLE: Final = "af-macro-annual"


class AnnualIndex(NamedTuple):
    """What other datasets are told of the annual indicators."""

    summaries: list[SeriesSummary]
    """Of every indicator in a country, in their order."""
    catalogue: list[CatalogueEntry]
    tally: CoverageTally


@dataset(MACRO_ANNUAL, MacroAnnualRow, pack=pack_series, reads=(inputs.MACRO,))
def annual(context: BuildContext) -> Building:
    provenance = ProvenanceText(context.captures)
    index = AnnualIndex([], [], CoverageTally())
    for (country, indicator, name, unit, note), years in annual_vintages(context.ledger):
        shared = (
            f'"country":"{country}","country_iso3":"{alpha3_of()[country]}","indicator":"{indicator}",'
            f'"indicator_name":{json_text(name)},"year":'
        )
        measured = f'"unit":{json_text(unit)},"note":{json_text(note)}'
        entries = []
        newest: AnnualVintage | None = None
        sources: dict[int, Counted] = {}
        for year in sorted((year for year, known in years.items() if known.listed), reverse=True):
            vintages = years[year].vintages
            value, capture_id, document = vintages[-1]
            newest = newest or vintages[-1]
            last_day = ordinal(f"{year}-12-31")
            sources.setdefault(capture_id, Counted()).add(0, 1, last_day, last_day, NEVER)
            row = (
                f"{provenance.of(capture_id, document, f'{indicator} {country} {year}')}{shared}{year},"
                f'"value":{value or "null"},{measured},"available_at":null,'
                f'"vintage":{len(vintages)}}}'
            )
            entries.append(Entry(row.encode(), tag=int(year)))
        if entries and newest:
            key = annual_key(country, indicator)
            index.summaries.append(summary_of(key, entries))
            capture = context.captures[newest.capture_id]
            first, last = (ordinal(f"{entries[n].tag:04d}-12-31") for n in (-1, 0))
            location = f"{indicator} {country} {entries[0].tag}"
            index.catalogue.append(
                CatalogueEntry(
                    indicator,
                    True,
                    "",
                    "annual",
                    country,
                    name,
                    unit,
                    note,
                    first,
                    last,
                    0,
                    capture.source_id,
                    capture.ref(location, newest.document),
                    capture.license_class,
                    capture.observed_at,
                )
            )
            _count(index.tally, country, sources, context)
            yield KeyRows(key, entries)
    return Outcome(index, tally=index.tally)


def _count(tally: CoverageTally, country: str, captures: dict[int, Counted], context: BuildContext) -> None:
    by_source: dict[str, Counted] = {}
    for capture_id, counted in captures.items():
        by_source.setdefault(context.captures[capture_id].source_id, Counted()).merge(counted)
    for source_id, counted in by_source.items():
        counted.count = 1
        tally[TallyKey(MACRO, country, source_id, "indicators")].merge(counted)


@dataset(f"{MACRO_ANNUAL}-list", None, pack=pack_pages, needs=(MACRO_ANNUAL,), reads=())
def annual_lists(context: BuildContext, annual: Built[AnnualIndex]) -> Iterator[KeyRows]:
    def filters(summary: SeriesSummary) -> Iterable[str]:
        country, indicator = summary.key.split("|")
        return annual_key("", ""), annual_key(country, ""), annual_key("", indicator)

    for key, pages in list_pages(annual.result.summaries, filters):
        yield KeyRows(key, pages)


class AnnualVintageRow(MacroAnnualRow, frozen=True, kw_only=True):
    """One vintage of one annual value. `observed_at` is when it was captured."""

    superseded_at: Annotated[
        str | None,
        Meta(
            description="When another value was captured; null for the one in force.",
            extra_json_schema={"format": "date-time"},
        ),
    ]


class _EveryVintage(TableRows):
    def make(self) -> Iterator[AnnualVintageRow]:
        for (country, indicator, name, unit, note), years in annual_vintages(self.context.ledger):
            shared: dict[str, Any] = {
                "country": country,
                "country_iso3": alpha3_of()[country],
                "indicator": indicator,
                "indicator_name": name or None,
                "unit": unit or None,
                "note": note or None,
                "available_at": None,
            }
            for year in sorted(years, reverse=True):
                vintages = years[year].vintages
                captures = [self.context.captures[vintage.capture_id] for vintage in vintages]
                for n, (vintage, capture) in enumerate(zip(vintages, captures, strict=True)):
                    following = captures[n + 1 : n + 2]
                    yield AnnualVintageRow(
                        year=int(year),
                        value=figure(vintage.value),
                        vintage=n + 1,
                        superseded_at=following[0].observed_at if following else None,
                        source_ref=capture.ref(f"{indicator} {country} {year}", vintage.document),
                        license_class=capture.license_class,
                        observed_at=capture.observed_at,
                        **shared,
                    )


table(
    Table(
        ANNUAL_TABLE,
        AnnualVintageRow,
        MACRO,
        "Annual indicators by country, every vintage captured. Bulk only; `/v1/macro` serves the last.",
        rows=_EveryVintage,
        reads=(inputs.MACRO,),
        sorted_by=("country", "indicator", "-year"),
    )
)
