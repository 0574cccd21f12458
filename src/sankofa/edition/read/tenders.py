"""Reads releases of one country, or of all countries merged, newest first.

The releases of a country are numbered from the newest on (`edition.write.datasets.tenders`), so pages of one
country continue at a number. Pages of all countries continue at a day and, for each country with served rows
of that day, at a number.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from heapq import heapify, heappop, heapreplace
from typing import Final

from sankofa.edition.format.keys import TENDERS, TENDERS_PER_BLOCK
from sankofa.edition.format.row_blocks import LONGEST_TEXT, RowSlice, SortKey
from sankofa.edition.format.visibility import DayRows
from sankofa.edition.read.edition import Edition, Selection
from sankofa.edition.read.seek import last_before
from sankofa.edition.read.tender_filters import (
    Brief,
    TenderFilter,
    briefs,
    compact_rows,
    hits,
    releases_of,
    single_rows,
    tender_sort_key,
)

Start = tuple[int | str, ...]
"""`following` of the rows before these; empty at the beginning."""

_DAYS: Final = "tender_day"


async def tenders_of_country(
    edition: Edition, country: str, filters: TenderFilter, most: int, start: Start, *, compact: bool
) -> Selection:
    first = int(start[0]) if start else await _first(edition, country, filters)
    end = 0 if filters.nothing else await _end(edition, country, filters.earliest)
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
        self._block = -1
        self._briefs: Sequence[Brief] = ()

    async def advance(self) -> bool:
        """Moves to the next release; False if there is none."""
        self._position += 1
        if self._position == len(self._numbers):
            self.next += 1 if self._position else 0
            return False
        self.next = self._numbers[self._position]
        block, row = divmod(self.next, TENDERS_PER_BLOCK)
        if block != self._block:
            self._block, self._briefs = block, await briefs(self._edition, self.country, block)
        self.head = self._briefs[row]
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
    for country in await edition.keys(_DAYS):
        days = DayRows(await edition.numbers(_DAYS, country, keep=True))
        end = _end_of(days, filters.earliest)
        first = 0
        if day is None:
            day = _newest(edition, filters)
        if day is not None:
            at_day = days.first_row(day)
            first = int(served.get(country, end if at_day is None else at_day))
        listed = await hits(edition, country, filters, first, end, most) if filters.by_index else None
        codes.append(_Country(edition, country, days, first, range(first, end) if listed is None else listed))
    return codes


async def process_releases(edition: Edition, ocid: str) -> list[tuple[date, str, int]]:
    """The releases of a process visible in the view: day, country and number, oldest first.

    Releases of one instant are in the order of their ids.
    """
    releases = []
    for country in await edition.keys(_DAYS):
        days = DayRows(await edition.numbers(_DAYS, country, keep=True))
        first = await _first(edition, country, TenderFilter())
        for number in await releases_of(edition, country, ocid):
            if number >= first:
                block, row = divmod(number, TENDERS_PER_BLOCK)
                released, _, release_id = (await briefs(edition, country, block))[row].sort_key
                releases.append((released, release_id, days.day_of(number), country, number))
    releases.sort(key=lambda one: one[1])
    releases.sort(key=lambda one: one[0], reverse=True)  # a key made to sort the newest first
    return [(date.fromordinal(day), country, number) for _, _, day, country, number in releases]


async def find_of_country(edition: Edition, country: str, key: SortKey) -> Start:
    """The `start` with which `tenders_of_country` continues after a sort key."""
    return (await _number_behind(edition, country, key),)


async def find_of_all(edition: Edition, key: SortKey) -> Start:
    """The `start` with which `tenders_of_all` continues after a sort key."""
    pairs: list[int | str] = []
    for country in await edition.keys(_DAYS):
        pairs += (country, await _number_behind(edition, country, key))
    return (_day_of(key), *pairs)


async def _number_behind(edition: Edition, country: str, key: SortKey) -> int:
    """The number of the first release of a country after a sort key of any country."""
    *fields, of_country = (str(part) for part in key)
    released, ocid, release_id = (field.encode() for field in fields)
    sort_key = tender_sort_key(released, ocid, release_id), of_country
    days = DayRows(await edition.numbers(_DAYS, country, keep=True))
    first, end = days.rows_of(_day_of(key))

    async def is_past(number: int) -> bool:
        if first + number >= end:
            return True
        block, row = divmod(first + number, TENDERS_PER_BLOCK)
        instant, *ids = (await briefs(edition, country, block))[row].sort_key
        return ((instant, *(one[:LONGEST_TEXT] for one in ids)), country) > sort_key

    return first if await is_past(0) else first + 1 + await last_before(is_past)


def _day_of(key: SortKey) -> int:
    return date.fromisoformat(str(key[0])[:10]).toordinal()


def _newest(edition: Edition, filters: TenderFilter) -> int | None:
    """The last day of release within the view and the filters; None for any."""
    lock = None if edition.lock is None else edition.lock.toordinal()
    return min((day for day in (filters.latest, lock) if day is not None), default=None)


async def _first(edition: Edition, country: str, filters: TenderFilter) -> int:
    """The number of the newest row that the view and the filters admit."""
    newest = _newest(edition, filters)
    if newest is None:
        return 0
    days = DayRows(await edition.numbers(_DAYS, country, keep=True))
    first = days.first_row(newest)
    return days.count if first is None else first


async def _end(edition: Edition, country: str, earliest: int) -> int:
    """The number of the first row older than `earliest`, or the number of rows."""
    return _end_of(DayRows(await edition.numbers(_DAYS, country, keep=True)), earliest)


def _end_of(days: DayRows, earliest: int) -> int:
    return (days.first_row(earliest - 1) or 0) if earliest else days.count
