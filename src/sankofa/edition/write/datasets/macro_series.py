"""Dated series: for each value the vintage in force on a day, newest first; every vintage in bulk.

Order: by series, series_type, frequency and country, then date descending.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from functools import lru_cache
from heapq import merge
from itertools import chain, groupby, product
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import msgspec

from sankofa.derive.series import (
    PublishedInfo,
    Series,
    SeriesReport,
    annual_series,
    annual_series_by_key,
    series_reports,
)
from sankofa.edition.format.keys import MACRO_SERIES, key_list, series_list
from sankofa.edition.format.macro import (
    SeriesSummary,
    block_days,
    list_pages,
    pack_pages,
    pack_series,
    summary_of,
)
from sankofa.edition.format.row_blocks import Entry
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
)
from sankofa.edition.write.tables import ROWS_OF_COLUMNS, FlatRows, Table, TableRows, table
from sankofa.ledger.reader import CaptureInfo
from sankofa.model.days import iso_day, ordinal
from sankofa.model.facts import MACRO
from sankofa.model.observations import series_name
from sankofa.model.rows import MacroSeriesRow, doc
from sankofa.model.vintages import Mode, Vintage, vintages, visibilities

if TYPE_CHECKING:
    import pyarrow


class ProvenanceText:
    """The provenance at the beginning of every row, as text: millions of rows differ in few members."""

    def __init__(self, captures: Mapping[int, CaptureInfo]) -> None:
        self._captures = captures
        self._around: dict[tuple[int, str], tuple[str, str]] = {}

    def of(self, capture_id: int, document: str, location: str) -> str:
        """`location` needs no JSON escapes."""
        before, behind = self.around(capture_id, document)
        return f"{before}{location}{behind}"

    def around(self, capture_id: int, document: str) -> tuple[str, str]:
        """The text before the location, and after it."""
        around = self._around.get((capture_id, document))
        if around is None:
            capture = self._captures[capture_id]
            around = self._around[capture_id, document] = (
                f'{{"source_ref":{json_text(capture.ref("", document))[:-1]}',
                f'","license_class":"{capture.license_class}","observed_at":"{capture.observed_at}",',
            )
        return around


@lru_cache(maxsize=4096)
def json_text(text: str) -> str:
    """JSON text; null for an empty string."""
    return msgspec.json.encode(text).decode() if text else "null"


class CatalogueEntry(NamedTuple):
    """A series, or an indicator in a country; sorted by these fields."""

    series: str
    is_indicator: bool
    series_type: str
    frequency: str
    country: str
    name: str
    unit: str
    note: str
    first: int
    last: int
    vintages: int
    source_id: str
    source_ref: str
    license_class: str
    observed_at: str


class SeriesRelease(NamedTuple):
    """The values that a day of release added or changed, and the location of the newest."""

    day: int
    added: int
    changed: int
    capture_id: int
    document: str
    location: str
    oldest: int
    """The oldest date among these values."""


class SeriesStats:
    """Statistics of one series, from its vintages: newest date first, oldest vintage first."""

    def __init__(self) -> None:
        self.by_capture: dict[int, Counted] = {}
        self._releases: dict[int, list[int]] = {}
        self._newest_of: dict[int, tuple[SeriesReport, str]] = {}
        self.newest: tuple[SeriesReport, int] | None = None
        """The report in force of the newest date, and the date."""
        self.first = NEVER

    def add(self, day: int, location: str, vintage: Vintage[SeriesReport]) -> None:
        report = vintage.report
        if self.newest is None or self.newest[1] == day:
            self.newest = report, day
        self.first = day
        counts = self._releases.get(report.available)
        if counts is None:
            counts = self._releases[report.available] = [0, 0, day]
            self._newest_of[report.available] = report, location
        counts[vintage.number > 1] += 1
        counts[2] = day  # newest date first: the last is the oldest
        counted = self.by_capture.setdefault(report.capture_id, Counted())
        counted.add(0, 1, day, day, report.available if report.evidenced else NEVER)

    @property
    def newest_capture(self) -> int:
        """The capture of the report in force of the newest date."""
        if self.newest is None:
            raise ValueError("a series without values")
        return self.newest[0].capture_id

    def releases(self) -> list[SeriesRelease]:
        """Newest first."""
        releases = []
        for day in sorted(self._releases, reverse=True):
            report, location = self._newest_of[day]
            added, changed, oldest = self._releases[day]
            releases.append(
                SeriesRelease(day, added, changed, report.capture_id, report.document, location, oldest)
            )
        return releases

    def entry(self, identity: Series, name: str, captures: Mapping[int, CaptureInfo]) -> CatalogueEntry:
        if self.newest is None:
            raise ValueError("a series without values")
        report, last = self.newest
        capture = captures[self.newest_capture]
        location = self._newest_of[report.available][1]
        return CatalogueEntry(
            identity.series, False, identity.series_type, identity.frequency, identity.country,
            name, report.unit, report.note, self.first, last, len(self._releases), capture.source_id,
            capture.ref(location, report.document), capture.license_class, capture.observed_at,
        )  # fmt: skip


SERIES_TABLE: Final = "af-macro-series"
_LATEST: Final = int(Mode.LATEST)


class SeriesRows(NamedTuple):
    """The rows of one series, and their statistics."""

    identity: Series
    name: str
    entries: list[Entry]
    stats: SeriesStats
    is_published: bool = True
    """False for a series made from an annual table."""
    is_only: bool = True
    """Whether no other series has its key."""

    @property
    def key(self) -> str:
        return "|".join(self.identity)


class SeriesIndex(NamedTuple):
    """What other datasets need to know about the series."""

    summaries: list[SeriesSummary]
    """Summaries of all series, in order."""
    days: list[KeyRows]
    """For each long series, the first day of each block."""
    catalogue: list[CatalogueEntry]
    releases: dict[str, list[tuple[Series, list[SeriesRelease]]]]
    """By key, the days of release of each series under it, newest first."""
    tally: CoverageTally

    def noted(self, rows: SeriesRows, context: BuildContext) -> KeyRows:
        """Add a series; returns its rows."""
        key, identity, stats = rows.key, rows.identity, rows.stats
        # Most keys have one series and lead to its rows without a list.
        aliases = (key_list(identity.series),) if rows.is_only else ()
        self.summaries.append(summary_of(key, rows.entries))
        if days := block_days(rows.entries):
            self.days.append(KeyRows(key, [Entry(days)], aliases))
        self.catalogue.append(stats.entry(identity, rows.name, context.captures))
        self.releases.setdefault(identity.series, []).append((identity, stats.releases()))
        if rows.is_published:  # else it is counted as an indicator
            self.tally.add_once("series", identity.country, stats.by_capture, context.captures)
        return KeyRows(key, rows.entries, aliases)


@dataset(MACRO_SERIES, MacroSeriesRow, pack=pack_series, reads=(Input.MACRO,))
def series(context: BuildContext) -> Building:
    """Published series, and those made from annual tables."""
    index = SeriesIndex([], [], [], {}, CoverageTally())
    for rows in chain(published_series(context), _tabled_series(context)):
        yield index.noted(rows, context)
    index.summaries.sort(key=lambda summary: summary.key.split("|"))
    return Outcome(index, tally=index.tally)


def published_series(context: BuildContext) -> Iterator[SeriesRows]:
    """The rows of each series that a source publishes."""
    provenance = ProvenanceText(context.captures)
    published = PublishedInfo(context.ledger)
    for _, group in groupby(series_reports(context.ledger), key=lambda pair: pair[0].series):
        filled = []
        for identity, reports in group:
            stats = SeriesStats()
            if entries := _entries(provenance, identity, reports, stats):
                info = published.of(stats.newest_capture, identity.series)
                name = (info.name if info else "") or series_name(*identity)
                filled.append(SeriesRows(identity, name, entries, stats))
        for rows in filled:
            yield rows._replace(is_only=len(filled) == 1)


def _tabled_series(context: BuildContext) -> Iterator[SeriesRows]:
    provenance = ProvenanceText(context.captures)
    for identity, name, reports in annual_series(context.ledger, context.captures):
        stats = SeriesStats()
        if entries := _entries(provenance, identity, reports, stats):
            yield SeriesRows(identity, name, entries, stats, is_published=False)


@dataset(f"{MACRO_SERIES}-days", None, pack=pack_pages, needs=(MACRO_SERIES,), reads=())
def series_days(context: BuildContext, series: Built[SeriesIndex]) -> Iterator[KeyRows]:
    """The first day of each block of a long series."""
    yield from series.result.days


@dataset(f"{MACRO_SERIES}-list", None, pack=pack_pages, needs=(MACRO_SERIES,), reads=())
def series_lists(context: BuildContext, series: Built[SeriesIndex]) -> Iterator[KeyRows]:
    def filters(summary: SeriesSummary) -> Iterable[str]:
        key, family, frequency, country = summary.key.split("|")
        # The set removes duplicates: a series without a country is on one list, not two.
        combinations = {series_list(*some) for some in product(("", country), ("", family), ("", frequency))}
        return key_list(key), *combinations

    for key, pages in list_pages(series.result.summaries, filters):
        yield KeyRows(key, pages)


def _entries(
    provenance: ProvenanceText,
    identity: Series,
    reports: dict[str, list[SeriesReport]],
    stats: SeriesStats,
) -> list[Entry]:
    key, family, frequency, country = identity
    shared = (
        f'"series":"{key}","series_type":"{family}","frequency":"{frequency}",'
        f'"country":{json_text(country)},"date":"'
    )
    return [
        entry
        for day in sorted(reports, reverse=True)
        for entry in _observations(provenance, shared, key, day, reports[day], stats)
    ]


def _observations(
    provenance: ProvenanceText,
    shared: str,
    key: str,
    day: str,
    reports: list[SeriesReport],
    stats: SeriesStats,
) -> Iterator[Entry]:
    """The vintages of one value, each while it is the latest."""
    tag = ordinal(day)
    for vintage in vintages(reports, tag):
        report = vintage.report
        stats.add(tag, report.location or f"{key} {day}", vintage)
        for first, until, modes, _ in visibilities(vintage):
            if modes & _LATEST:
                location = json_text(report.location)[1:-1] if report.location else f"{key} {day}"
                row = (
                    f"{provenance.of(report.capture_id, report.document, location)}{shared}{day}"
                    f'","value":{report.figure or "null"},"unit":{json_text(report.unit)},'
                    f'"note":{json_text(report.note)},'
                    f'"available_at":"{iso_day(report.available)}","vintage":{vintage.number}}}'
                )
                yield Entry(row.encode(), first, until, tag=tag)


class SeriesVintageRow(MacroSeriesRow, frozen=True, kw_only=True):
    """One vintage of one value of a series."""

    superseded_at: Annotated[
        date | None, doc("Day on which the next vintage became public; null for the latest.")
    ]


class _EveryVintage(TableRows):
    def make_columns(self) -> "Iterator[pyarrow.Table]":
        ledger, captures, flat = self.context.ledger, self.context.captures, FlatRows(SeriesVintageRow)
        tabled = annual_series_by_key(ledger, captures)
        for identity, reports in merge(series_reports(ledger), tabled, key=itemgetter(0)):
            key, family, frequency, country = identity
            own: defaultdict[str, list[Any]] = defaultdict(list)
            for day in sorted(reports, reverse=True):
                for number, report, _, successor in vintages(reports[day], ordinal(day)):
                    capture = captures[report.capture_id]
                    own["date"].append(day)
                    own["value"].append(report.figure or None)
                    own["unit"].append(report.unit or None)
                    own["note"].append(report.note or None)
                    own["available_at"].append(iso_day(report.available))
                    own["vintage"].append(number)
                    own["superseded_at"].append(iso_day(successor.available) if successor else None)
                    own["source_ref"].append(capture.ref(report.location or f"{key} {day}", report.document))
                    own["license_class"].append(capture.license_class)
                    own["observed_at"].append(capture.observed_at)
            shared = {
                "series": key,
                "series_type": family,
                "frequency": frequency,
                "country": country or None,
            }
            flat.add(len(own["date"]), **shared, **own)
            yield from flat.batch(ROWS_OF_COLUMNS)
        yield from flat.batch()


table(
    Table(
        SERIES_TABLE,
        SeriesVintageRow,
        MACRO,
        "Dated series, every vintage: as published, and those of annual tables (`WDI:...`), known from the "
        "day of capture. The rows with `available_at` up to a day and `superseded_at` null or later are "
        "what `/v1/macro` serves as of that day.",
        rows=_EveryVintage,
        reads=(Input.MACRO,),
        sorted_by=("series",),
    )
)
