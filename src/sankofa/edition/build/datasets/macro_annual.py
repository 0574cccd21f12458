"""Annual indicators by country: by indicator and country, the year newest first; every vintage in bulk.

Order: by country, indicator and year descending.
"""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final

from msgspec import Meta

from sankofa.derive.annual import annual_vintages
from sankofa.edition.build.context import BuildContext
from sankofa.edition.build.dataset import Building, Built, KeyRows, Outcome, dataset
from sankofa.edition.build.json_text import ProvenanceText, figure, json_text
from sankofa.edition.build.tables import Table, TableRows, table
from sankofa.edition.format.keys import MACRO_ANNUAL, annual_key
from sankofa.edition.format.row_blocks import Entry
from sankofa.edition.format.series_blocks import (
    SeriesSummary,
    list_pages,
    pack_pages,
    pack_series,
    summary_of,
)
from sankofa.model.countries import alpha3_of
from sankofa.model.facts import MACRO
from sankofa.model.observations import unit_of
from sankofa.model.rows import MacroAnnualRow

ANNUAL_TABLE: Final = "af-macro-annual"


@dataset(MACRO_ANNUAL, MacroAnnualRow, pack=pack_series)
def annual(context: BuildContext) -> Building:
    """Returns the summaries of its columns, in their order."""
    provenance = ProvenanceText(context.captures)
    summaries: list[SeriesSummary] = []
    for (country, indicator, name), years in annual_vintages(context.ledger):
        shared = (
            f'"country":"{country}","country_iso3":"{alpha3_of()[country]}","indicator":"{indicator}",'
            f'"indicator_name":{json_text(name)},"year":'
        )
        unit = json_text(unit_of(name))
        entries = []
        for year in sorted((year for year, known in years.items() if known.listed), reverse=True):
            vintages = years[year].vintages
            value, capture_id, document = vintages[-1]
            row = (
                f"{provenance.of(capture_id, document, f'{indicator} {country} {year}')}{shared}{year},"
                f'"value":{value or "null"},"unit":{unit},"available_at":null,"vintage":{len(vintages)}}}'
            )
            entries.append(Entry(row.encode(), tag=int(year)))
        if entries:
            key = annual_key(country, indicator)
            summaries.append(summary_of(key, entries))
            yield KeyRows(key, entries)
    return Outcome(summaries)


@dataset(f"{MACRO_ANNUAL}-list", None, pack=pack_pages, needs=(MACRO_ANNUAL,))
def annual_lists(context: BuildContext, annual: Built[list[SeriesSummary]]) -> Iterator[KeyRows]:
    def filters(summary: SeriesSummary) -> Iterable[str]:
        country, indicator = summary.key.split("|")
        return annual_key("", ""), annual_key(country, ""), annual_key("", indicator)

    for key, pages in list_pages(annual.result, filters):
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
        for (country, indicator, name), years in annual_vintages(self.context.ledger):
            shared: dict[str, Any] = {
                "country": country,
                "country_iso3": alpha3_of()[country],
                "indicator": indicator,
                "indicator_name": name or None,
                "unit": unit_of(name) or None,
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
        sorted_by=("country", "indicator", "-year"),
    )
)
