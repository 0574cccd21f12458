"""Dated series: for each value the vintage current on a day, newest first; all vintages in bulk; releases.

Order: by series, series_type, frequency and country, then date descending. Releases newest first.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import lru_cache, partial
from itertools import product, starmap
from operator import itemgetter
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from sankofa.derive.cross_rates import FAMILY, FREQUENCY
from sankofa.derive.series import MacroColumn, Series, SeriesVintages
from sankofa.edition.format.keys import (
    MACRO_SERIES,
    RELEASES_PER_BLOCK,
    SERIES_RELEASES,
    key_list,
    series_list,
)
from sankofa.edition.format.macro import (
    RATE_INPUTS,
    RateInput,
    SeriesSummary,
    block_days,
    encode_rate_inputs,
    list_pages,
    pack_series,
    summary_of,
)
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
    prepare,
    row_check,
)
from sankofa.edition.write.derived_parts import macro_part
from sankofa.edition.write.tables import MacroRows, encoded_rows, table
from sankofa.ledger.reader import CaptureInfo
from sankofa.model.catalogue_rows import SeriesReleaseRow
from sankofa.model.days import FOREVER, iso_day
from sankofa.model.observations import currency_pair
from sankofa.model.provenance import MACRO
from sankofa.model.rows import MacroSeriesRow, doc
from sankofa.model.vintages import in_force


class ProvenanceText:
    """The provenance at the beginning of every row, as text: millions of rows differ in few members."""

    def __init__(self, captures: Mapping[int, CaptureInfo]) -> None:
        self._captures = captures
        self._around: dict[tuple[int, str], tuple[str, str]] = {}
        self._refs: dict[tuple[int, str], str] = {}

    def of(self, capture_id: int, document: str, location: str) -> str:
        """`location` needs no JSON escapes."""
        around = self._around.get((capture_id, document))
        if around is None:
            capture = self._captures[capture_id]
            around = self._around[capture_id, document] = (
                f'{{"source_ref":{json_text(capture.ref("", document))[:-1]}',
                f'","license_class":"{capture.license_class}","observed_at":"{capture.observed_at}",',
            )
        return f"{around[0]}{location}{around[1]}"

    def ref(self, capture_id: int, document: str, location: str) -> str:
        before = self._refs.get((capture_id, document))
        if before is None:
            before = self._captures[capture_id].ref("", document)
            self._refs[capture_id, document] = before
        return before + location


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


SERIES_TABLE: Final = "af-macro-series"
_MODES: Final = Entry(b"").modes


class SeriesPart(msgspec.Struct, frozen=True, array_like=True):
    """A stored series, and what other datasets need from it."""

    identity: Series
    rows: PreparedRows
    aliases: tuple[str, ...]
    summary: SeriesSummary
    days: bytes | None
    """For a long series, the first day of each block."""
    entry: CatalogueEntry
    releases: list[SeriesRelease]
    """Newest first."""


_write = msgspec.msgpack.Encoder().encode
_read = msgspec.msgpack.Decoder(tuple[list[SeriesPart], list[TallyRow]]).decode
_read_releases = msgspec.msgpack.Decoder(list[tuple[str, PreparedRows]]).decode
_pack_releases = partial(pack, rows_per_block=RELEASES_PER_BLOCK)


class SeriesIndex(NamedTuple):
    """What other datasets need from the series."""

    summaries: list[SeriesSummary]
    """Summaries of all series, in order."""
    days: list[KeyRows]
    """For each long series, the first day of each block."""
    catalogue: list[CatalogueEntry]
    releases: dict[Series, list[SeriesRelease]]
    """The days of release of each series, newest first."""
    tally: CoverageTally

    def noted(self, part: SeriesPart) -> KeyRows:
        """Add a series; returns its rows."""
        key = part.summary.key
        self.summaries.append(part.summary)
        if part.days:
            self.days.append(KeyRows(key, pages_of([part.days]), part.aliases))
        self.catalogue.append(part.entry)
        self.releases[part.identity] = part.releases
        return KeyRows(key, part.rows, part.aliases)


@dataset(MACRO_SERIES, MacroSeriesRow, reads=(Input.MACRO,))
def series(context: BuildContext) -> Building:
    """Published series, and series made from annual tables."""
    index = SeriesIndex([], [], [], {}, CoverageTally())
    for part in context.macro.parts(MACRO_SERIES):
        stored, tally = _read(part)
        index.tally.update(tally)
        yield from map(index.noted, stored)
    index.summaries.sort(key=lambda summary: summary.key.split("|"))
    return Outcome(index, tally=index.tally)


@macro_part
def _derived(columns: Sequence[MacroColumn]) -> Iterator[tuple[str, bytes]]:
    provenance = ProvenanceText(columns[0].captures)
    stored: list[SeriesPart] = []
    releases: list[tuple[str, PreparedRows]] = []
    table_rows: list[tuple[Series, list[MacroSeriesRow], list[str | None]]] = []
    tally = CoverageTally()
    for column in columns:
        filled: list[tuple[SeriesVintages, list[Entry]]] = []
        for one in column.series:
            entries, every, superseded = _rows(provenance, one)
            table_rows.append((one.identity, every, superseded))
            if entries:
                filled.append((one, entries))
        parts = [_part(column, one, entries, tally, is_only=len(filled) == 1) for one, entries in filled]
        stored += parts
        if parts:
            releases.append(_releases(parts, provenance))
    table_rows.sort(key=itemgetter(0))
    yield MACRO_SERIES, _write((stored, tally.rows()))
    yield SERIES_RELEASES, _write(releases)
    rows = [row for _, every, _ in table_rows for row in every]
    days = [day for _, _, superseded in table_rows for day in superseded]
    yield SERIES_TABLE, encoded_rows(SERIES_TABLE, rows, {"superseded_at": days})


def _part(
    column: MacroColumn, one: SeriesVintages, entries: list[Entry], tally: CoverageTally, *, is_only: bool
) -> SeriesPart:
    identity, key = one.identity, "|".join(one.identity)
    releases, counted = _statistics(one)
    if column.country:  # an indicator: counted there, and known here
        counted = {number: Counted(days=own.days) for number, own in counted.items()}
    unit = "indicators" if column.country else "series"
    tally.add_once(unit, identity.country, counted, column.captures, known_only=bool(column.country))
    report = one.days[0][2][-1].report
    capture = column.captures[report.capture_id]
    location = next(release.location for release in releases if release.day == report.available)
    entry = CatalogueEntry(
        identity.series, False, identity.series_type, identity.frequency, identity.country,
        one.name, report.unit, report.note, one.days[-1][1], one.days[0][1], len(releases), capture.source_id,
        capture.ref(location, report.document), capture.license_class, capture.observed_at,
    )  # fmt: skip
    return SeriesPart(
        identity,
        packed(entries, pack_series),
        # Most keys have one series and lead to its rows without a list.
        (key_list(identity.series),) if is_only else (),
        summary_of(key, entries),
        block_days(entries),
        entry,
        releases,
    )


def _releases(parts: list[SeriesPart], provenance: ProvenanceText) -> tuple[str, PreparedRows]:
    """The releases of all series of a key, newest first."""
    key = parts[0].identity.series
    listed = [(-one.day, number, one) for number, part in enumerate(parts) for one in part.releases]
    entries: list[Entry] = []
    for _, number, one in sorted(listed, key=itemgetter(0, 1)):
        identity = parts[number].identity
        row = (
            f"{provenance.of(one.capture_id, one.document, json_text(one.location)[1:-1])}"
            f'"series":"{key}","frequency":"{identity.frequency}","country":{json_text(identity.country)},'
            f'"release_date":"{iso_day(one.day)}","added":{one.added},"changed":{one.changed}}}'
        )
        entries.append(Entry(row.encode()))
    return key, prepare(SERIES_RELEASES, SeriesReleaseRow, key, entries, pack=_pack_releases)


@dataset(SERIES_RELEASES, None, reads=(Input.MACRO,))
def releases(context: BuildContext) -> Iterator[KeyRows]:
    for part in context.macro.parts(SERIES_RELEASES):
        yield from starmap(KeyRows, _read_releases(part))


def _statistics(one: SeriesVintages) -> tuple[list[SeriesRelease], dict[int, Counted]]:
    """The days of release, newest first, and counts by capture."""
    releases: dict[int, list[Any]] = {}
    counted: dict[int, Counted] = {}
    for day, number, known in one.days:
        for vintage in known:
            report = vintage.report
            release = releases.get(report.available)
            if release is None:
                location = report.location or f"{one.identity.series} {day}"
                release = [0, 0, report.capture_id, report.document, location, number]
                releases[report.available] = release
            release[vintage.number > 1] += 1
            release[5] = number  # newest date first: the last is the oldest
            own = counted.get(report.capture_id)
            if own is None:
                own = counted[report.capture_id] = Counted()
                own.last = number
            own.first = number
            own.rows += 1
            evidenced = report.available if report.evidenced else NEVER
            own.on(vintage.known_from).add(0, 1, number, number, evidenced)
            if report.evidenced and report.available > own.published:
                own.published = report.available
    return [SeriesRelease(day, *releases[day]) for day in sorted(releases, reverse=True)], counted


@dataset(f"{MACRO_SERIES}-days", None, needs=(MACRO_SERIES,), reads=())
def series_days(context: BuildContext, series: SeriesIndex) -> Iterator[KeyRows]:
    """The first day of each block of a long series."""
    yield from series.days


@dataset(f"{MACRO_SERIES}-list", None, needs=(MACRO_SERIES,), reads=())
def series_lists(context: BuildContext, series: SeriesIndex) -> Iterator[KeyRows]:
    def filters(summary: SeriesSummary) -> Iterable[str]:
        key, family, frequency, country = summary.key.split("|")
        # The set removes duplicates: a series without a country is on one list, not two.
        combinations = {series_list(*some) for some in product(("", country), ("", family), ("", frequency))}
        return key_list(key), *combinations

    for key, pages in list_pages(series.summaries, filters):
        yield KeyRows(key, pages_of(pages))


def _rows(
    provenance: ProvenanceText, one: SeriesVintages
) -> tuple[list[Entry], list[MacroSeriesRow], list[str | None]]:
    """The vintages of each value, each for the days on which it is the latest; every vintage read back; and
    the days on which these are superseded."""
    key, family, frequency, country = one.identity
    shared = (
        f'"series":"{key}","series_type":"{family}","frequency":"{frequency}",'
        f'"country":{json_text(country)},"date":"'
    )
    served: list[Entry] = []
    every: list[Entry] = []
    superseded: list[str | None] = []
    for day, number, known in one.days:
        for vintage in known:
            report = vintage.report
            location = report.location
            location = msgspec.json.encode(location)[1:-1].decode() if location else f"{key} {day}"
            row = (
                f"{provenance.of(report.capture_id, report.document, location)}{shared}{day}"
                f'","value":{report.figure or "null"},"unit":{json_text(report.unit)},'
                f'"note":{json_text(report.note)},'
                f'"available_at":"{iso_day(report.available)}","vintage":{vintage.number}}}'
            )
            seen = in_force(vintage)
            every.append(Entry(row.encode(), *(seen or (0, FOREVER)), _MODES, number))
            if seen is not None:
                served.append(every[-1])
            superseded.append(iso_day(vintage.successor.available) if vintage.successor else None)
    rows = row_check(MACRO_SERIES, MacroSeriesRow).all("|".join(one.identity), every)
    return served, rows, superseded


class SeriesVintageRow(MacroSeriesRow, frozen=True, kw_only=True):
    """One vintage of one value of a series."""

    superseded_at: Annotated[
        date | None, doc("Day on which the next vintage became public; null for the latest.")
    ]


table(
    SERIES_TABLE,
    SeriesVintageRow,
    MACRO,
    "Dated series, every vintage: as published, and those of annual tables (`WDI:...`), known from the "
    "day of capture. The rows with `available_at` up to a day and `superseded_at` null or later are "
    "what `/v1/macro` serves as of that day.",
    rows=partial(MacroRows, SERIES_TABLE),
    reads=(Input.MACRO,),
)


@dataset(RATE_INPUTS, None, needs=(MACRO_SERIES,), reads=())
def rate_input_lists(context: BuildContext, series: SeriesIndex) -> Iterator[KeyRows]:
    """By currency, the rates for cross rates, which are computed on request."""
    for currency, own in _rate_inputs(summary.key for summary in series.summaries).items():
        yield KeyRows(currency, [Entry(encode_rate_inputs(own))])


def _rate_inputs(keys: Iterable[str]) -> dict[str, list[RateInput]]:
    """By currency, its rates by code of the other currency."""
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
