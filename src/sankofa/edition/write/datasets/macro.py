"""Annual indicators, the catalogue of series and indicators, their releases, and cross rates.

- Indicators are ordered by country, indicator and year descending; the bulk table has every vintage.
- The catalogue is ordered by series, series_type, frequency and country; releases newest first, then the
  same.
- Cross rates are computed on request, so an edition only says which series they need. Forty currencies
  against the dollar are sixteen hundred pairs: stored as rows, they would be most of an edition. The bulk
  table has all of them.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import date
from decimal import Decimal
from itertools import combinations, product
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

from msgspec import Meta, structs

from sankofa.derive.cross_rates import AFRICAN_CURRENCIES, FAMILY, FREQUENCY, cross_rate, cross_rate_row
from sankofa.derive.series import AnnualVintage, Series, SeriesReport, annual_vintages, series_reports
from sankofa.edition.format.keys import (
    ENTRIES_PER_BLOCK,
    MACRO_ANNUAL,
    MACRO_SERIES,
    SERIES_ENTRIES,
    SERIES_RELEASES,
    annual_key,
)
from sankofa.edition.format.macro import (
    RATE_INPUTS,
    ListedRelease,
    RateInput,
    SeriesSummary,
    encode_rate_inputs,
    list_pages,
    pack_pages,
    pack_series,
    release_pages,
    rows_on_release_page,
    summary_of,
)
from sankofa.edition.format.row_blocks import Entry, pack
from sankofa.edition.write.checks import RowCheck
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import (
    NEVER,
    Building,
    Built,
    Counted,
    CoverageTally,
    Input,
    KeyRows,
    Outcome,
    dataset,
    provenance,
)
from sankofa.edition.write.datasets.macro_series import (
    CatalogueEntry,
    ProvenanceText,
    SeriesIndex,
    json_text,
)
from sankofa.edition.write.tables import ROWS_OF_COLUMNS, FlatRows, Table, TableRows, table
from sankofa.model.catalogue_rows import CrossRateInput, CrossRateRow, SeriesCatalogueRow, SeriesReleaseRow
from sankofa.model.countries import alpha3_of
from sankofa.model.days import FOREVER, ordinal
from sankofa.model.facts import MACRO
from sankofa.model.observations import currency_pair
from sankofa.model.rows import MacroAnnualRow, doc, wire
from sankofa.model.vintages import vintages

if TYPE_CHECKING:
    import pyarrow

ANNUAL_TABLE: Final = "af-macro-annual"


class AnnualIndex(NamedTuple):
    """What other datasets need to know about the annual indicators."""

    summaries: list[SeriesSummary]
    """Summaries of all indicators by country, in order."""
    catalogue: list[CatalogueEntry]
    tally: CoverageTally


@dataset(MACRO_ANNUAL, MacroAnnualRow, pack=pack_series, reads=(Input.MACRO,))
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
            entry = CatalogueEntry(
                indicator, True, "", "annual", country, name, unit, note, first, last, 0, capture.source_id,
                capture.ref(location, newest.document), capture.license_class, capture.observed_at,
            )  # fmt: skip
            index.catalogue.append(entry)
            index.tally.add_once("indicators", country, sources, context.captures)
            yield KeyRows(key, entries)
    return Outcome(index, tally=index.tally)


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
    def make_columns(self) -> "Iterator[pyarrow.Table]":
        captures, flat = self.context.captures, FlatRows(AnnualVintageRow)
        for (country, indicator, name, unit, note), years in annual_vintages(self.context.ledger):
            own: defaultdict[str, list[Any]] = defaultdict(list)
            for year in sorted(years, reverse=True):
                known = years[year].vintages
                location = f"{indicator} {country} {year}"
                for number, (value, capture_id, document) in enumerate(known, 1):
                    capture = captures[capture_id]
                    replaced = captures[known[number].capture_id].observed_at if number < len(known) else None
                    own["year"].append(int(year))
                    own["value"].append(value or None)
                    own["vintage"].append(number)
                    own["superseded_at"].append(replaced)
                    own["source_ref"].append(capture.ref(location, document))
                    own["license_class"].append(capture.license_class)
                    own["observed_at"].append(capture.observed_at)
            flat.add(
                len(own["year"]),
                country=country,
                country_iso3=alpha3_of()[country],
                indicator=indicator,
                indicator_name=name or None,
                unit=unit or None,
                note=note or None,
                available_at=None,
                **own,
            )
            yield from flat.batch(ROWS_OF_COLUMNS)
        yield from flat.batch()


table(
    Table(
        ANNUAL_TABLE,
        AnnualVintageRow,
        MACRO,
        "Annual indicators by country, every vintage captured. Bulk only; `/v1/macro` serves the last.",
        rows=_EveryVintage,
        reads=(Input.MACRO,),
        sorted_by=("country", "indicator", "-year"),
    )
)


def _pack_catalogue(entries: Iterable[Entry]) -> Iterator[tuple[bytes, bytes]]:
    return pack(entries, ENTRIES_PER_BLOCK)


@dataset(
    SERIES_ENTRIES, SeriesCatalogueRow, pack=_pack_catalogue, needs=(MACRO_SERIES, MACRO_ANNUAL), reads=()
)
def catalogue(context: BuildContext, series: Built[SeriesIndex], annual: Built[AnnualIndex]) -> Building:
    """Returns its entries, in order."""
    entries = sorted([*series.result.catalogue, *annual.result.catalogue])
    yield KeyRows("", (Entry(wire.encode(_catalogue_row(entry))) for entry in entries))
    return Outcome(entries)


@dataset(f"{SERIES_ENTRIES}-country", None, needs=(SERIES_ENTRIES,), reads=())
def catalogue_by_country(context: BuildContext, catalogue: Built[list[CatalogueEntry]]) -> Iterator[KeyRows]:
    """The numbers of a country's entries in the catalogue, as 32-bit integers in order."""
    numbers: defaultdict[str, array[int]] = defaultdict(lambda: array("i"))
    for number, entry in enumerate(catalogue.result):
        if entry.country:
            numbers[entry.country].append(number)
    for country in sorted(numbers):
        yield KeyRows(country, [Entry(numbers[country].tobytes())])


@dataset(SERIES_RELEASES, None, pack=pack_pages, needs=(MACRO_SERIES,), reads=())
def releases(context: BuildContext, series: Built[SeriesIndex]) -> Iterator[KeyRows]:
    """By series key. Every row is made once and read back."""
    text = ProvenanceText(context.captures)
    check = RowCheck(SERIES_RELEASES, SeriesReleaseRow)
    for key, of_key in series.result.releases.items():
        shared = [
            f'"series":"{key}","frequency":"{identity.frequency}","country":{json_text(identity.country)}'
            for identity, _ in of_key
        ]
        listed = [
            ListedRelease(
                one.day,
                one.added,
                one.changed,
                number,
                text.around(one.capture_id, one.document),
                json_text(one.location)[1:-1],
            )
            for number, (_, released) in enumerate(of_key)
            for one in released
        ]
        listed.sort(key=lambda release: (-release.day, release.series))
        pages = list(release_pages(shared, listed))
        for page in pages:
            for row in rows_on_release_page(page):
                check(key, Entry(row))
        yield KeyRows(key, [Entry(page) for page in pages])


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


CROSS_RATES_TABLE: Final = "af-macro-cross-rates"


def rate_inputs(keys: Iterable[str]) -> dict[str, list[RateInput]]:
    """By currency, its rates against others, one for each, by code."""
    rates: defaultdict[str, dict[str, RateInput]] = defaultdict(dict)
    for key in sorted(keys, key=lambda key: key.split("|")):
        series, family, frequency, _ = key.split("|")
        pair = currency_pair(series)
        if (family, frequency) != (FAMILY, FREQUENCY) or pair is None:
            continue
        base, quote = pair
        known = rates[quote].get(base)
        if known is None or known.inverted:
            rates[quote][base] = RateInput(base, key, inverted=False)
        rates[base].setdefault(quote, RateInput(quote, key, inverted=True))
    return {currency: [own[via] for via in sorted(own)] for currency, own in sorted(rates.items())}


@dataset(RATE_INPUTS, None, needs=(MACRO_SERIES,), reads=())
def rate_input_lists(context: BuildContext, series: Built[SeriesIndex]) -> Iterator[KeyRows]:
    """By currency."""
    for currency, own in rate_inputs(summary.key for summary in series.result.summaries).items():
        yield KeyRows(currency, [Entry(encode_rate_inputs(own))])


class CrossRateVintageRow(CrossRateRow, frozen=True, kw_only=True):
    """A cross rate while both of its inputs were valid."""

    superseded_at: Annotated[
        date | None, doc("Day on which another vintage of an input became public; null for the latest.")
    ]


class _Standing(NamedTuple):
    """A vintage of an input, and the days [first, until) on which it is valid."""

    first: int
    until: int
    value: Decimal
    row: CrossRateInput


_RateValues = tuple[bool, dict[str, list[_Standing]]]
"""Whether it is inverted, and the valid vintages by day."""


class _EveryPair(TableRows):
    """All pairs with an African currency, once each; the first by code is the base."""

    def make(self) -> Iterator[CrossRateVintageRow]:
        reported = {
            "|".join(identity): (identity, reports)
            for identity, reports in series_reports(self.context.ledger, (FREQUENCY,))
            if identity.series_type == FAMILY
        }
        by_currency = rate_inputs(reported)
        values = {key: self._values(*series) for key, series in reported.items()}
        reported.clear()
        for base, quote in combinations(sorted(by_currency), 2):
            if AFRICAN_CURRENCIES.isdisjoint((base, quote)):
                continue
            quoted = {rate.via: rate for rate in by_currency[quote]}
            for rate in by_currency[base]:
                if (other := quoted.get(rate.via)) is not None:
                    both = ((rate.inverted, values[rate.key]), (other.inverted, values[other.key]))
                    yield from _pair((base, quote, rate.via), *both)

    def _values(self, identity: Series, reports: dict[str, list[SeriesReport]]) -> dict[str, list[_Standing]]:
        """By day, newest first."""
        return {
            day: standing
            for day in sorted(reports, reverse=True)
            if (standing := list(self._standing(identity.series, day, reports[day])))
        }

    def _standing(self, series: str, day: str, reports: list[SeriesReport]) -> Iterator[_Standing]:
        for vintage in vintages(reports, ordinal(day)):
            report = vintage.report
            value = Decimal(report.figure) if report.figure else Decimal(0)
            until = FOREVER if vintage.successor is None else vintage.successor.available
            if value <= 0 or until <= vintage.known_from:
                continue
            capture = self.context.captures[report.capture_id]
            row = CrossRateInput(
                series=series,
                value=value,
                unit=report.unit or None,
                available_at=date.fromordinal(report.available),
                vintage=vintage.number,
                **provenance(capture, report.location or f"{series} {day}", report.document),
            )
            self.input_sources.add(capture.source_id)
            yield _Standing(vintage.known_from, until, value, row)


def _pair(pair: tuple[str, str, str], base: _RateValues, quote: _RateValues) -> Iterator[CrossRateVintageRow]:
    (base_inverted, of_base), (quote_inverted, of_quote) = base, quote
    for day, standing in of_base.items():
        for one, other in product(standing, of_quote.get(day, ())):
            until = min(one.until, other.until)
            if max(one.first, other.first) >= until:
                continue
            value = cross_rate(
                one.value, other.value, base_inverted=base_inverted, quote_inverted=quote_inverted
            )
            row = cross_rate_row(pair, date.fromisoformat(day), (one.row, other.row), value)
            superseded = None if until == FOREVER else date.fromordinal(until)
            yield CrossRateVintageRow(**structs.asdict(row), superseded_at=superseded)


table(
    Table(
        CROSS_RATES_TABLE,
        CrossRateVintageRow,
        MACRO,
        "Daily rates between two currencies, one of them African, that nobody published: derived from two "
        "that were, every vintage. `/v1/cross-rates` has any pair, in either direction.",
        rows=_EveryPair,
        reads=(Input.MACRO,),
        sorted_by=("base", "quote", "via"),
    )
)
