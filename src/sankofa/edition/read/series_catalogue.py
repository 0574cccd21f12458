"""Reads the catalogue of series and indicators, the days of release of a series, and revisions: restatements
of filings, and every vintage of a series.
"""

from bisect import bisect_left, bisect_right
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from datetime import date
from decimal import Decimal
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from sankofa.edition.format.keys import (
    ENTITIES,
    ENTRIES_PER_BLOCK,
    MACRO_SERIES,
    RELEASES_PER_BLOCK,
    RESTATEMENT_LISTS,
    RESTATEMENTS,
    SERIES_ENTRIES,
    SERIES_KNOWN,
    SERIES_RELEASES,
    key_list,
    restatement_list,
)
from sankofa.edition.format.macro import DayRange
from sankofa.edition.format.row_blocks import RowOrder, RowSlice, SortKey, entries_of
from sankofa.edition.format.visibility import AS_KNOWN
from sankofa.edition.read.day_view import DayView
from sankofa.edition.read.edition import Edition, Selection
from sankofa.edition.read.macro import SeriesObservation, column_summaries, read_observations, read_series
from sankofa.edition.read.search import series_named
from sankofa.edition.read.seek import find, first_past
from sankofa.edition.read.yield_points import YieldPoints
from sankofa.model.catalogue_rows import SeriesCatalogueRow
from sankofa.model.countries import country_and_subject
from sankofa.model.provenance import source_of_ref
from sankofa.model.rows import wire
from sankofa.model.vintages import Mode

_RELEASED: Final = b'"release_date":"'
_ROWS_PER_YIELD = 64
_LONGEST_RUN = 16 * ENTRIES_PER_BLOCK

Known = Callable[[int], bool]
Span = tuple[int, int]
"""Consecutive entries of the catalogue, by number [first, end)."""


CATALOGUE_ORDER: Final = RowOrder(
    "series", "vintages", "frequency", "country", ranks={"vintages": lambda vintages: vintages == 0}
)
"""Indicators, which have no vintages, come after the series of the same name."""
RELEASE_ORDER: Final = RowOrder("-release_date", "frequency", "country")


def entry_count(edition: Edition) -> int:
    return int(edition.manifest.get("rows", {}).get(SERIES_ENTRIES, 0))


async def country_entries(edition: Edition, country: str) -> memoryview:
    """The numbers of a country's entries, in order."""
    return await edition.numbers(f"{SERIES_ENTRIES}-country", country)


def entry_of(own: Sequence[int], first: int, end: int, known: Known | None) -> int | None:
    """The first known entry of a country within [first, end); None if it has none."""
    for at in range(bisect_left(own, first), bisect_left(own, end)):
        if known is None or known(own[at]):
            return own[at]
    return None


async def series_asked(edition: Edition, query_words: list[str], country: str | None) -> list[Span]:
    """The catalogue entries with every word, and those of a country that words name with all others."""
    spans = await series_named(edition, query_words)
    place, subject = country_and_subject(query_words, country)
    if place is None or subject == query_words:
        return spans
    own = await country_entries(edition, place)
    spans += _neighbours(await series_named(edition, subject), own, 0)
    joined: list[Span] = []
    for first, end in sorted(spans):
        if joined and first <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((first, end))
    return joined


async def entries_on(edition: Edition) -> Known | None:
    """A test whether the entry with a number is in a locked view; None if all are."""
    if not isinstance(edition, DayView):
        return None
    days, day = await edition.numbers(SERIES_KNOWN, "", keep=True), edition.day
    return lambda number: bool(days[number] <= day)


async def catalogue_page(
    edition: Edition, spans: Sequence[Span], country: str | None, first: int, most: int
) -> Selection:
    """The entries within spans from a number on, optionally of one country. `following` is the next one."""
    own = None if country is None else await country_entries(edition, country)
    slices: list[RowSlice] = []
    count = 0
    following = None
    yield_points = YieldPoints(_ROWS_PER_YIELD)
    for start, end in _neighbours(spans, own, first):
        if isinstance(edition, DayView):
            for number in range(start, end):
                await yield_points.step(8)
                if (row := await entry_on(edition, number)) is None:
                    continue
                if count == most:
                    following = (number,)
                    break
                slices.append(row)
                count += 1
        else:
            stop = min(end, start + most - count)
            slices += await edition.rows(SERIES_ENTRIES, "", ENTRIES_PER_BLOCK, start, stop)
            count += stop - start
            await yield_points.step(8)
            following = (stop,) if stop < end else None
        if following is not None:
            break
    return Selection(slices, count, truncated=following is not None, following=following)


async def entry_on(edition: Edition, number: int) -> bytes | None:
    """A catalogue row; in a locked view, the day's row, or None for a series without a value then."""
    if not isinstance(edition, DayView):
        (stored,) = await edition.rows(SERIES_ENTRIES, "", ENTRIES_PER_BLOCK, number, number + 1)
        return bytes(stored)
    first_days = await edition.numbers(SERIES_KNOWN, "", keep=True)
    releases = await edition.numbers(SERIES_KNOWN, str(number))
    if first_days[number] > edition.day:
        return None
    (stored,) = await edition.rows(SERIES_ENTRIES, "", ENTRIES_PER_BLOCK, number, number + 1)
    if not len(releases):  # an annual indicator, known from its capture on
        return bytes(stored)
    entry = _entry(bytes(stored))
    known = bisect_right(range(len(releases) // 2), edition.day, key=lambda n: releases[2 * n])
    days = DayRange(edition.day, 0, edition.day)

    def admits(key: str) -> bool:
        frequency, country = key.split("|")[2:]
        return frequency == entry.frequency and country == (entry.country or "")

    newest = await read_series(edition, MACRO_SERIES, key_list(entry.series), days, 1, admits)
    if not newest.count:
        return None
    value = _newest(newest.rows)
    oldest = min(releases[2 * n + 1] for n in range(known))
    return _encode(
        replace(
            entry,
            source_ref=value.source_ref,
            license_class=value.license_class,
            observed_at=value.observed_at or "",
            unit=value.unit,
            note=value.note,
            first_date=date.fromordinal(oldest),
            last_date=value.date,
            vintages=known,
            source_id=source_of_ref(value.source_ref),
        )
    )


class _Newest(SeriesObservation):
    """The newest value of a series, which its entry repeats."""

    note: str | None


_entry: Final = msgspec.json.Decoder(SeriesCatalogueRow).decode
_newest: Final = msgspec.json.Decoder(_Newest).decode
_encode: Final = wire.encode


async def entry_behind(edition: Edition, key: SortKey) -> int:
    """The number of the first catalogue entry after a sort key."""
    is_behind = CATALOGUE_ORDER.behind(key)

    async def is_past(number: int) -> bool:
        (row,) = await edition.rows(SERIES_ENTRIES, "", ENTRIES_PER_BLOCK, number, number + 1)
        return is_behind(row)

    return await first_past(entry_count(edition), is_past)


async def annual_series_entry(edition: Edition, key: str) -> int | None:
    """The number of the catalogue entry of a series that is made from annual tables (`WDI:CODE:COUNTRY`)."""
    if ":" not in key or not await edition.holds(SERIES_RELEASES, key):
        return None
    number = await entry_behind(edition, (key, 1, "", ""))
    row = await entry_on(edition, number) if number < entry_count(edition) else None
    return None if row is None or CATALOGUE_ORDER.key_of(row)[0] != key else number


def _neighbours(spans: Sequence[Span], own: Sequence[int] | None, first: int) -> Iterator[Span]:
    """The entries to read, neighbours together."""
    for start, end in spans:
        start = max(start, first)
        if own is None:
            yield from ((at, min(at + _LONGEST_RUN, end)) for at in range(start, end, _LONGEST_RUN))
            continue
        at = bisect_left(own, start)
        while at < len(own) and own[at] < end:
            stop_at = at + 1
            while stop_at < len(own) and own[stop_at] < end and own[stop_at] == own[stop_at - 1] + 1:
                stop_at += 1
            yield own[at], own[stop_at - 1] + 1
            at = stop_at


async def release_rows(edition: Edition, series: str, first: int, most: int) -> Selection | None:
    """The releases of a series from a number on; None without releases. `following` is the next number."""
    if not await edition.holds(SERIES_RELEASES, series):
        return None
    rows: list[RowSlice] = []
    async for row in _releases(edition, series, first):
        if len(rows) == most:
            return Selection(rows, most, truncated=True, following=(first + most,))
        rows.append(row)
    if edition.lock is not None and not rows and not first:
        return None
    return Selection(rows, len(rows), truncated=False)


async def release_behind(edition: Edition, series: str, key: SortKey) -> int:
    """The number of the first release of a series after a sort key."""
    is_behind = RELEASE_ORDER.behind(key)
    number = 0
    async for row in _releases(edition, series, 0):
        if is_behind(row):
            break
        number += 1
    return number


async def _releases(edition: Edition, series: str, first: int) -> AsyncIterator[bytes]:
    """The releases of a series from a number on, newest first; in a locked view, as of its day."""
    if edition.lock is None:
        number, skip = divmod(first, RELEASES_PER_BLOCK)
        last = b""
    else:
        number, skip, last = 0, 0, edition.lock.isoformat().encode()
    yield_points = YieldPoints(1)
    while blocks := await edition.blocks(SERIES_RELEASES, series, number, 1):
        for row in [entry.row for entry in entries_of(blocks[0])][skip:]:
            if last:
                start = row.index(_RELEASED) + len(_RELEASED)
                if row[start : start + len(last)] > last:
                    continue
                if first:
                    first -= 1
                    continue
            yield row
        await yield_points.step()
        number, skip = number + 1, 0


RESTATEMENT_ORDER: Final = RowOrder(
    "-available_at",
    "service_id",
    "-period_end",
    "line_item",
    "concept|line_item",
    "unit",
    "period_start",
    "vintage",
)


class RestatementQuestion(NamedTuple):
    """A query for restatements. The days are those of `available_at`, both included."""

    day: int
    """The day on which they are known."""
    since: date
    until: date
    country: str | None = None
    service_id: str | None = None
    line_item: str | None = None
    min_change: Decimal | None = None

    def lists(self, edition: Edition) -> Iterator[tuple[int, str, str]]:
        """The number, kind and key of each list that may have rows, newest first."""
        if self.service_id is not None:
            yield 0, RESTATEMENTS, self.service_id
            return
        for year in reversed(edition.manifest.get("restatement_years", [])):
            if self.since.year <= year <= self.until.year:
                yield -year, RESTATEMENT_LISTS, restatement_list(self.country or "", year)

    def test(self) -> Callable[[bytes], bool]:
        since, until = self.since.isoformat(), self.until.isoformat()

        def admits(row: bytes) -> bool:
            one = _read(row)
            if not since <= one.available_at <= until or self.line_item not in (None, one.line_item):
                return False
            return self.min_change is None or (one.change is not None and abs(one.change) >= self.min_change)

        return admits


class _Tested(msgspec.Struct):
    line_item: str
    change: Decimal | None
    available_at: str


class _Country(msgspec.Struct):
    country: str | None


_country = msgspec.json.Decoder(_Country).decode
_read = msgspec.json.Decoder(_Tested).decode


async def restatements(
    edition: Edition, question: RestatementQuestion, limit: int, start: tuple[int | str, ...] = ()
) -> Selection:
    """The first rows from `start` on, which is `following` of an earlier selection."""
    first, skip, passed = map(int, start or (-(10**6), 0, 0))
    slices: list[RowSlice] = []
    count = 0
    if question.service_id is not None and question.country is not None:
        entity = await edition.raw(ENTITIES, question.service_id)
        if entity is None or _country(entity).country != question.country:
            return Selection((), 0, truncated=False)
    for number, kind, key in question.lists(edition):
        if number < first:
            continue
        own = await edition.select(
            kind,
            key,
            day=question.day,
            modes=_modes(edition, kind),
            limit=limit - count,
            where=question.test(),
            skip=skip if number == first else 0,
            passed=passed if number == first else 0,
        )
        if own is None:
            continue
        slices += own.slices
        count += own.count
        if own.following is not None:
            return Selection(slices, count, truncated=True, following=(number, *own.following))
    return Selection(slices, count, truncated=False)


def _modes(edition: Edition, kind: str) -> int:
    """A list shows a locked view the organisations that were of its country on the day."""
    return AS_KNOWN if edition.lock is not None and kind == RESTATEMENT_LISTS else int(Mode.LATEST)


async def restatement_behind(
    edition: Edition, question: RestatementQuestion, key: SortKey
) -> tuple[int | str, ...]:
    year = 0 if question.service_id is not None else -int(str(key[0])[:4])
    for number, kind, listed in question.lists(edition):
        if number == year:
            is_behind = RESTATEMENT_ORDER.behind(key)
            at = await find(
                edition,
                kind,
                listed,
                is_behind,
                day=question.day,
                modes=_modes(edition, kind),
                where=question.test(),
            )
            return number, *at
    return year, 0, 0


async def columns_of_series(edition: Edition, series: str) -> list[str]:
    """The columns under a series key, `series|type|frequency|country` each."""
    return [one.key for one in await column_summaries(edition, MACRO_SERIES, key_list(series))]


async def every_vintage(edition: Edition, column: str, day: date) -> AsyncIterator[SeriesObservation]:
    """Every vintage of a column that was known on a day, in no particular order."""
    yield_points = YieldPoints(1)
    block = 0
    while blocks := await edition.blocks(MACRO_SERIES, column, block, 1):
        for one in read_observations(b"[%b]" % bytes(blocks[0][1])):
            if one.available_at <= day and one.date <= day:
                yield one
        await yield_points.step()
        block += 1
