"""Reads releases of one country, or of all countries merged, newest first, and those that pass the filters of
a search: found by lists of numbers, then by columns.

The releases of a country are numbered from the newest on (`edition.write.datasets.tenders`), so pages of one
country continue at a number. Pages of all countries continue at a day and, for each country with served rows
of that day, at a number. Compact rows and sort keys are computed a block at a time and cached.
"""

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from heapq import heapify, heappop, heapreplace
from typing import Final, NamedTuple

import msgspec

from sankofa.edition.format.keys import (
    PROCESSES,
    TENDER_FILTERS,
    TENDERS,
    TENDERS_PER_BLOCK,
    filter_column,
    filter_key,
    process_list,
    size_of,
)
from sankofa.edition.format.row_blocks import LONGEST_TEXT, RowSlice, SortKey, row_ends
from sankofa.edition.format.visibility import DayRows
from sankofa.edition.read.day_view import is_stranger
from sankofa.edition.read.edition import Edition, Selection
from sankofa.edition.read.seek import first_past
from sankofa.edition.read.yield_points import YieldPoints
from sankofa.model.days import FOREVER

Start = tuple[int | str, ...]
"""`following` of the rows before these; empty at the beginning."""

_DAYS: Final = "tender_day"
_ROWS_PER_YIELD: Final = 256
_BRIEFS_PER_YIELD: Final = 8
_RELEASE: Final = b',"release":'
_BEGINNING: Final = 4_096
_NEWEST_FIRST: Final = bytes(255 - n for n in range(256))


class Brief(NamedTuple):
    """The sort key of a release among all countries, and its compact row."""

    sort_key: tuple[bytes, bytes, bytes]
    row: bytes


def without_release(row: RowSlice) -> bytes:
    """A tender row without its last field, the release. Inside a text its quotes would be escaped."""
    head = bytes(row[:_BEGINNING])  # the release may be a thousand times as long
    if _RELEASE not in head:
        head = bytes(row)
    return head[: head.index(_RELEASE)] + b"}"


async def compact_rows(edition: Edition, country: str, numbers: Sequence[int]) -> list[RowSlice]:
    rows: list[RowSlice] = []
    yield_points = YieldPoints(_ROWS_PER_YIELD)
    for number in numbers:
        rows.append((await _brief_of(edition, country, number)).row)
        await yield_points.step()
    return rows


async def single_rows(edition: Edition, country: str, numbers: Sequence[int]) -> list[RowSlice]:
    """Rows by number, one slice each."""
    yield_points = YieldPoints(_BRIEFS_PER_YIELD)
    slices: list[RowSlice] = []
    for number in numbers:
        slices += await edition.rows(TENDERS, country, TENDERS_PER_BLOCK, number, number + 1)
        await yield_points.step()
    return slices


async def briefs(edition: Edition, country: str, block: int) -> Sequence[Brief]:
    """The sort keys and compact rows of the releases of a block, cached."""
    cached: Sequence[Brief] | None = edition.parts.get((TENDERS, country, block))
    if cached is None:
        (stored,) = await edition.blocks(TENDERS, country, block, 1)
        ends, rows = row_ends(stored), memoryview(stored[1])
        starts = [0, *(end + 1 for end in ends)]
        cached = [_brief(rows[start:end]) for start, end in zip(starts, ends, strict=False)]
        await asyncio.sleep(0)  # many countries take long
        edition.parts.put((TENDERS, country, block), cached)
    return cached


async def _brief_of(edition: Edition, country: str, number: int) -> Brief:
    block, row = divmod(number, TENDERS_PER_BLOCK)
    return (await briefs(edition, country, block))[row]


def _brief(row: RowSlice) -> Brief:
    compact = without_release(row)
    return Brief(tender_sort_key(*_sort_fields(compact)), compact)


def _sort_fields(compact: bytes) -> tuple[bytes, bytes, bytes]:
    """The release date, ocid and release id of a compact row, as written."""
    return _text(compact, b'"release_date":"'), _text(compact, b'"ocid":"'), _text(compact, b'"release_id":"')


def tender_sort_key(released: bytes, ocid: bytes, release_id: bytes) -> tuple[bytes, bytes, bytes]:
    # A longer instant is later and sorts first, so the end of the text sorts last.
    return released.rstrip(b"Z").translate(_NEWEST_FIRST) + b"\xff", ocid, release_id


def tender_key(row: bytes) -> SortKey:
    """The sort key of a row of tenders: release date, ocid, release id and country."""
    compact = without_release(row) if _RELEASE in row else row
    fields = (*_sort_fields(compact), _text(compact, b'"country":"'))
    return tuple(str(field[:LONGEST_TEXT], "utf-8", "ignore") for field in fields)


def _text(row: bytes, field: bytes) -> bytes:
    start = row.index(field) + len(field)
    return row[start : row.index(b'"', start)]


_EXAMINED_PER_YIELD: Final = 4_096
"""Rows that a search examines before yielding to other requests."""
_BLOCKS_PER_YIELD: Final = 8


class TenderFilter(NamedTuple):
    """The filters that a release must pass; None admits any."""

    earliest: int = 0
    """First day of release; 0 for any."""
    words: Sequence[str] | None = None
    ocid: str | None = None
    latest: int | None = None
    """Last day of release."""
    values: tuple[tuple[str, str], ...] = ()
    """Fields of `tender_filter`, each with its value."""
    closing_from: int | None = None
    closing_to: int | None = None
    min_value: Decimal | None = None

    @property
    def by_index(self) -> bool:
        """Whether an index finds the releases; otherwise they are consecutive."""
        by_column = self.closes or self.min_value is not None
        return bool(self.words or self.values) or self.ocid is not None or by_column

    @property
    def nothing(self) -> bool:
        """A query without words matches nothing."""
        return self.words is not None and not self.words

    @property
    def closes(self) -> bool:
        return self.closing_from is not None or self.closing_to is not None


class _Valued(msgspec.Struct):
    value_amount: Decimal | None = None


_amount: Final = msgspec.json.Decoder(_Valued).decode


async def hits(
    edition: Edition, country: str, filters: TenderFilter, first: int, end: int, most: int
) -> list[int]:
    """The numbers of the next rows from the indexes, with one extra if there are more."""
    yield_points = YieldPoints(_EXAMINED_PER_YIELD)
    candidates, others = await _candidates(edition, country, filters, first, end, yield_points)
    passes = await _columns(edition, country, filters)
    numbers: list[int] = []
    for start in range(0, len(candidates), _EXAMINED_PER_YIELD):
        chunk: Sequence[int] = candidates[start : start + _EXAMINED_PER_YIELD]
        for other in others:
            chunk = _intersection(chunk, other)
            await yield_points.step(_EXAMINED_PER_YIELD)
        for column, least, greatest in passes:
            chunk = [n for n in chunk if least <= column[n] <= greatest]
            await yield_points.step(_EXAMINED_PER_YIELD)
        if filters.min_value is not None:
            chunk = await _worth(edition, country, chunk, filters.min_value, passes[-1][0])
        numbers += chunk
        if len(numbers) > most:
            break
        await yield_points.step(_EXAMINED_PER_YIELD)
    return numbers[: most + 1]


async def _candidates(
    edition: Edition, country: str, filters: TenderFilter, first: int, end: int, yield_points: YieldPoints
) -> tuple[Sequence[int], list[memoryview]]:
    """The shortest list that has every row, between two numbers; and the other lists."""
    lists: list[memoryview] = []
    if any([await is_stranger(edition, value) for field, value in filters.values if field.endswith("_id")]):
        return (), []
    keys = [("tender_word", f"{country}|{word}") for word in filters.words or ()]
    keys += [(TENDER_FILTERS, filter_key(country, *value)) for value in filters.values]
    for kind, key in keys:
        lists.append(await edition.numbers(kind, key))
        await yield_points.step(_EXAMINED_PER_YIELD // 4)
    lists.sort(key=len)
    if filters.ocid is not None:
        return [n for n in await releases_of(edition, country, filters.ocid) if first <= n < end], lists
    if not lists:
        return range(first, end), []
    shortest = lists.pop(0)
    return shortest[bisect_left(shortest, first) : bisect_left(shortest, end)], lists


async def _columns(
    edition: Edition, country: str, filters: TenderFilter
) -> list[tuple[memoryview, int, int]]:
    """Columns, each with the smallest and largest number that passes; the column of values comes last."""
    passes = []
    if filters.closes:
        days = await edition.numbers(TENDER_FILTERS, filter_column(country, "closing"), keep=True)
        last = FOREVER if filters.closing_to is None else filters.closing_to
        passes.append((days, filters.closing_from or 1, last))
    if filters.min_value is not None:
        sizes = await edition.numbers(TENDER_FILTERS, filter_column(country, "value"), keep=True)
        passes.append((sizes, size_of(filters.min_value), 2**31 - 1))
    return passes


async def _worth(
    edition: Edition, country: str, numbers: Sequence[int], least: Decimal, sizes: memoryview
) -> list[int]:
    """The rows with a value of at least this. Amounts that share its size are read."""
    size = size_of(least)
    worth = []
    yield_points = YieldPoints(_BLOCKS_PER_YIELD)
    for number in numbers:
        if sizes[number] == size:
            amount = _amount((await _brief_of(edition, country, number)).row).value_amount
            await yield_points.step()
            if amount is None or amount < least:
                continue
        worth.append(number)
    return worth


async def releases_of(edition: Edition, country: str, ocid: str) -> list[int]:
    """The numbers of the releases of a process. Others may share its hash, so each row is checked."""
    name, hashed = process_list(country, ocid)
    pairs = await edition.numbers(PROCESSES, name)
    written = msgspec.json.encode(ocid)[1:-1]
    numbers = []
    yield_points = YieldPoints(_BLOCKS_PER_YIELD)
    for number in [number for one, number in zip(pairs[::2], pairs[1::2], strict=True) if one == hashed]:
        if (await _brief_of(edition, country, number)).sort_key[1] == written:
            numbers.append(number)
        await yield_points.step()
    return numbers


def _intersection(numbers: Sequence[int], holders: memoryview) -> list[int]:
    """The numbers that are also in a sorted list; looked up one by one if the list is much longer."""
    if not numbers:
        return []
    between = holders[bisect_left(holders, numbers[0]) : bisect_right(holders, numbers[-1])]
    if len(between) <= 16 * len(numbers):
        return sorted(set(between).intersection(numbers))
    return [n for n in numbers if between[min(bisect_left(between, n), len(between) - 1)] == n]


async def tenders_of_country(
    edition: Edition, country: str, filters: TenderFilter, most: int, first: int, *, compact: bool
) -> Selection:
    """The next releases of a country from a number on."""
    days = await _days(edition, country)
    first = max(first, _first_of(days, _newest(edition, filters)))
    end = 0 if filters.nothing else _end_of(days, filters.earliest)
    if filters.by_index:
        listed = await hits(edition, country, filters, first, end, most)
        after = listed[most] if len(listed) > most else end
        numbers: Sequence[int] = listed[:most]
    else:
        first = min(first, end)
        after = min(first + most, end)
        numbers = range(first, after)
    if compact:
        slices: list[RowSlice] = await compact_rows(edition, country, numbers)
    elif isinstance(numbers, range):
        slices = await edition.rows(TENDERS, country, TENDERS_PER_BLOCK, first, after)
    else:
        slices = await single_rows(edition, country, numbers)
    following = (after,) if after < end else None
    return Selection(slices, len(numbers), truncated=following is not None, following=following)


async def tenders_of_all(
    edition: Edition, filters: TenderFilter, most: int, start: Start, *, compact: bool
) -> Selection:
    """The next releases of every country: newest first, then by ocid, release id and country."""
    day, served = (int(start[0]), dict(zip(start[1::2], start[2::2], strict=True))) if start else (None, {})
    countries = [] if filters.nothing else await _countries(edition, filters, most, day, served)
    heads = [(one.head.sort_key, one) for one in countries if await one.advance()]
    heapify(heads)
    rows: list[tuple[str, int, bytes]] = []
    while heads and len(rows) < most:
        one = heads[0][1]
        rows.append((one.country, one.next, one.head.row))
        if await one.advance():
            heapreplace(heads, (one.head.sort_key, one))
        else:
            heappop(heads)
    slices: list[RowSlice] = [row for _, _, row in rows]
    if not compact:
        slices = [(await single_rows(edition, country, (number,)))[0] for country, number, _ in rows]
    if not heads:
        return Selection(slices, len(slices), truncated=False)
    # The last row is of the oldest day that any was served on.
    last_day = min(one.last_day for one in countries if one.last_day)
    pairs = [part for one in countries if one.is_past_first_of(last_day) for part in (one.country, one.next)]
    return Selection(slices, len(slices), truncated=True, following=(last_day, *pairs))


class _Country:
    def __init__(
        self, edition: Edition, country: str, days: DayRows, first: int, numbers: Sequence[int]
    ) -> None:
        self.country = country
        self.next = first
        """The number of the next release."""
        self.head = Brief((b"", b"", b""), b"")
        """The next release, after `advance` returned True."""
        self._edition = edition
        self._days = days
        self._numbers = numbers
        self._position = -1
        """How many releases were taken; -1 before the first `advance`."""

    async def advance(self) -> bool:
        """Moves to the next release; False if there is none."""
        self._position += 1
        if self._position == len(self._numbers):
            self.next += 1 if self._position else 0
            return False
        self.next = self._numbers[self._position]
        self.head = await _brief_of(self._edition, self.country, self.next)
        return True

    @property
    def last_day(self) -> int:
        """The day of the last release taken; 0 if none was."""
        return self._days.day_of(self._numbers[self._position - 1]) if self._position > 0 else 0

    def is_past_first_of(self, day: int) -> bool:
        """Whether it continues after the first row of a day or of an earlier one."""
        first = self._days.first_row(day)
        return first is not None and self.next > first

    def __lt__(self, other: "_Country") -> bool:
        return self.country < other.country


async def _countries(
    edition: Edition, filters: TenderFilter, most: int, day: int | None, served: Mapping[int | str, int | str]
) -> list[_Country]:
    """Where each country continues: at its number, or at the first row of the day."""
    codes = []
    newest = _newest(edition, filters) if day is None else day
    for country in await edition.keys(_DAYS):
        days = await _days(edition, country)
        first = int(served.get(country, _first_of(days, newest)))
        end = _end_of(days, filters.earliest)
        listed = await hits(edition, country, filters, first, end, most) if filters.by_index else None
        codes.append(_Country(edition, country, days, first, range(first, end) if listed is None else listed))
    return codes


async def process_releases(edition: Edition, ocid: str) -> list[tuple[date, str, int]]:
    """The releases of a process visible in the view: day, country and number, oldest first.

    Releases of one instant are in the order of their ids.
    """
    releases = []
    for country in await edition.keys(_DAYS):
        days = await _days(edition, country)
        first = _first_of(days, _newest(edition, TenderFilter()))
        for number in await releases_of(edition, country, ocid):
            if number >= first:
                released, _, release_id = (await _brief_of(edition, country, number)).sort_key
                releases.append((released, release_id, days.day_of(number), country, number))
    releases.sort(key=lambda one: one[1])
    releases.sort(key=lambda one: one[0], reverse=True)  # a key made to sort the newest first
    return [(date.fromordinal(day), country, number) for _, _, day, country, number in releases]


async def find_of_all(edition: Edition, key: SortKey) -> Start:
    """The `start` with which `tenders_of_all` continues after a sort key."""
    pairs: list[int | str] = []
    for country in await edition.keys(_DAYS):
        pairs += (country, await number_behind(edition, country, key))
    return (_day_of(key), *pairs)


async def number_behind(edition: Edition, country: str, key: SortKey) -> int:
    """The number of the first release of a country after a sort key of any country."""
    *fields, of_country = (str(part) for part in key)
    released, ocid, release_id = (field.encode() for field in fields)
    sort_key = tender_sort_key(released, ocid, release_id), of_country
    first, end = (await _days(edition, country)).rows_of(_day_of(key))

    async def is_past(number: int) -> bool:
        instant, *ids = (await _brief_of(edition, country, first + number)).sort_key
        return ((instant, *(one[:LONGEST_TEXT] for one in ids)), country) > sort_key

    return first + await first_past(end - first, is_past)


def _day_of(key: SortKey) -> int:
    return date.fromisoformat(str(key[0])[:10]).toordinal()


def _newest(edition: Edition, filters: TenderFilter) -> int | None:
    """The last day of release within the view and the filters; None for any."""
    lock = None if edition.lock is None else edition.lock.toordinal()
    return min((day for day in (filters.latest, lock) if day is not None), default=None)


async def _days(edition: Edition, country: str) -> DayRows:
    return DayRows(await edition.numbers(_DAYS, country, keep=True))


def _first_of(days: DayRows, newest: int | None) -> int:
    """The number of the first row that is not after a day."""
    first = 0 if newest is None else days.first_row(newest)
    return days.count if first is None else first


def _end_of(days: DayRows, earliest: int) -> int:
    """The number of the first row older than a day, or the number of rows."""
    return (days.first_row(earliest - 1) or 0) if earliest else days.count
