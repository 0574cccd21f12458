"""The catalogue of series and annual indicators, and the days on which each series was released.

Order of the catalogue: by series, then series_type, frequency and country. Releases: newest first, then by
series_type, frequency and country.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import date

from sankofa.edition.format.keys import (
    ENTRIES_PER_BLOCK,
    MACRO_ANNUAL,
    MACRO_SERIES,
    SERIES_ENTRIES,
    SERIES_RELEASES,
)
from sankofa.edition.format.release_pages import ListedRelease, pages_of, rows_of
from sankofa.edition.format.row_blocks import Entry, pack
from sankofa.edition.format.series_blocks import pack_pages
from sankofa.edition.write.checks import RowCheck
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import Building, Built, KeyRows, Outcome, dataset
from sankofa.edition.write.datasets.macro_annual import AnnualIndex
from sankofa.edition.write.datasets.macro_series import SeriesIndex
from sankofa.edition.write.json_text import ProvenanceText, json_text
from sankofa.edition.write.series_stats import CatalogueEntry
from sankofa.model.catalogue_rows import SeriesCatalogueRow, SeriesReleaseRow
from sankofa.model.rows import wire


def _pack(entries: Iterable[Entry]) -> Iterator[tuple[bytes, bytes]]:
    return pack(entries, ENTRIES_PER_BLOCK)


@dataset(SERIES_ENTRIES, SeriesCatalogueRow, pack=_pack, needs=(MACRO_SERIES, MACRO_ANNUAL), reads=())
def catalogue(context: BuildContext, series: Built[SeriesIndex], annual: Built[AnnualIndex]) -> Building:
    """Returns its entries, in their order."""
    entries = sorted([*series.result.catalogue, *annual.result.catalogue])
    yield KeyRows("", (Entry(wire.encode(_row(entry))) for entry in entries))
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
    """By series key. Every row is made here once, and read back as what it claims to be."""
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
        pages = list(pages_of(shared, listed))
        for page in pages:
            for row in rows_of(page):
                check(key, Entry(row))
        yield KeyRows(key, [Entry(page) for page in pages])


def _row(entry: CatalogueEntry) -> SeriesCatalogueRow:
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
