"""Reads releases of one country, or of all countries merged, newest first.

The releases of a country are numbered from the newest on (`edition.write.datasets.tenders`), so pages of one
country continue at a number. Pages of all countries continue at a day and, for each country with served rows
of that day, at a number. The compact form of a release and its sort key are computed a block at a time and
cached.
"""

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from datetime import date
from heapq import heapify, heappop, heapreplace
from typing import Final, NamedTuple

import msgspec

from sankofa.edition.format.keys import PROCESSES, TENDERS, TENDERS_PER_BLOCK, process_list
from sankofa.edition.format.row_blocks import LONGEST_TEXT, Run, SortKey
from sankofa.edition.format.visibility import DayRows
from sankofa.edition.read.edition import Edition, Selection
from sankofa.edition.read.seek import last_before
from sankofa.edition.read.yield_points import YieldPoints

Start = tuple[int | str, ...]
"""`following` of the rows before these; empty at the beginning."""

_EXAMINED_PER_YIELD: Final = 4_096
"""Rows that a search examines before it yields to other requests."""
_BLOCKS_PER_YIELD: Final = 8
_DAYS: Final = "tender_day"
_RELEASE: Final = b',"release":'
_BEGINNING: Final = 4_096
_NEWEST_FIRST: Final = bytes(255 - n for n in range(256))


class TenderFilter(NamedTuple):
    """The releases from a day on (0: all), with all of some words, of one process; None for any."""

    earliest: int
    words: Sequence[str] | None
    ocid: str | None = None

    @property
    def by_index(self) -> bool:
        """Whether an index finds them; otherwise they are consecutive."""
        return bool(self.words) or self.ocid is not None

    @property
    def nothing(self) -> bool:
        """A query without words matches nothing."""
        return self.words is not None and not self.words


class _Brief(NamedTuple):
    """The sort key of a release among all countries, and its compact row."""

    place: tuple[bytes, bytes, bytes]
    row: bytes


def without_release(row: Run) -> bytes:
    """A tender row without its last field, the release. Inside a text its quotes would be escaped."""
    head = bytes(row[:_BEGINNING])  # the release may be a thousand times as long
    if _RELEASE not in head:
        head = bytes(row)
    return head[: head.index(_RELEASE)] + b"}"


async def tenders_of_country(
    edition: Edition, country: str, wanted: TenderFilter, most: int, start: Start, *, compact: bool
) -> Selection:
    """The next releases of a country."""
    first = int(start[0]) if start else await _first(edition, country)
    end = 0 if wanted.nothing else await _end(edition, country, wanted.earliest)
    if wanted.by_index:
        hits = await _hits(edition, country, wanted, first, end, most)
        after = hits[most] if len(hits) > most else end
        numbers: Sequence[int] = hits[:most]
    else:
        first = min(first, end)
        after = min(first + most, end)
        numbers = range(first, after)
    if compact:
        runs: list[Run] = await _compact_rows(edition, country, numbers)
    elif isinstance(numbers, range):
        runs = await edition.rows(TENDERS, country, TENDERS_PER_BLOCK, first, after)
    else:
        runs = await _single_rows(edition, country, numbers)
    following = (after,) if after < end else None
    return Selection(runs, len(numbers), truncated=following is not None, following=following)


async def tenders_of_all(
    edition: Edition, wanted: TenderFilter, most: int, start: Start, *, compact: bool
) -> Selection:
    """The next releases of every country: newest first, then by ocid, release id and country."""
    day, served = (int(start[0]), dict(zip(start[1::2], start[2::2], strict=True))) if start else (None, {})
    countries = [] if wanted.nothing else await _countries(edition, wanted, most, day, served)
    heads = [(one.head.place, one) for one in countries if await one.has_more()]
    heapify(heads)
    rows: list[tuple[str, int, bytes]] = []
    while heads and len(rows) < most:
        one = heads[0][1]
        rows.append((one.country, one.next, one.head.row))
        if one.moved_on() or await one.has_more():
            heapreplace(heads, (one.head.place, one))
        else:
            heappop(heads)
    runs: list[Run] = [row for _, _, row in rows]
    if not compact:
        runs = [(await _single_rows(edition, country, (number,)))[0] for country, number, _ in rows]
    if not heads:
        return Selection(runs, len(runs), truncated=False)
    # The last row is of the oldest day that any was served on.
    last_day = min(one.last_day for one in countries if one.last_day)
    pairs = [part for one in countries if one.is_past_first_of(last_day) for part in (one.country, one.next)]
    return Selection(runs, len(runs), truncated=True, following=(last_day, *pairs))


class _Country:
    """The remaining releases of one country."""

    def __init__(
        self, edition: Edition, country: str, days: DayRows, first: int, end: int, hits: Sequence[int] | None
    ) -> None:
        self.country = country
        self.next = first
        """The number of the next release."""
        self.head = _Brief((b"", b"", b""), b"")
        """The next release, after `has_more` or `moved_on` returned True."""
        self._edition = edition
        self._days = days
        self._numbers = range(first, end) if hits is None else hits
        self._at = 0
        self._block: int | None = None
        self._briefs: Sequence[_Brief] = ()

    async def has_more(self) -> bool:
        """Whether there is one more; its block is read."""
        if self._at == len(self._numbers):
            return False
        self._block = self._numbers[self._at] // TENDERS_PER_BLOCK
        self._briefs = await _briefs(self._edition, self.country, self._block)
        return self._show()

    def moved_on(self) -> bool:
        """Skip the head. True if the next is in the same block; otherwise call `has_more`."""
        self.next += 1
        self._at += 1
        if self._at == len(self._numbers) or self._numbers[self._at] // TENDERS_PER_BLOCK != self._block:
            return False
        return self._show()

    def _show(self) -> bool:
        self.next = self._numbers[self._at]
        self.head = self._briefs[self.next % TENDERS_PER_BLOCK]
        return True

    @property
    def last_day(self) -> int:
        """The day of the last release taken; 0 if none was."""
        return self._days.day_of(self._numbers[self._at - 1]) if self._at else 0

    def is_past_first_of(self, day: int) -> bool:
        """Whether it continues after the first row of a day or of an earlier one."""
        first = self._days.first_row(day)
        return first is not None and self.next > first

    def __lt__(self, other: "_Country") -> bool:
        return self.country < other.country


async def _countries(
    edition: Edition,
    wanted: TenderFilter,
    most: int,
    day: int | None,
    served: Mapping[int | str, int | str],
) -> list[_Country]:
    """Where each country continues: at its number, or at the first row of the day."""
    codes = []
    for country in await edition.keys(_DAYS):
        days = DayRows(await edition.numbers(_DAYS, country, keep=True))
        end = _end_of(days, wanted.earliest)
        first = 0
        if day is None and edition.lock is not None:
            day = edition.lock.toordinal()
        if day is not None:
            at_day = days.first_row(day)
            first = int(served.get(country, end if at_day is None else at_day))
        hits = await _hits(edition, country, wanted, first, end, most) if wanted.by_index else None
        codes.append(_Country(edition, country, days, first, end, hits))
    return codes


async def _compact_rows(edition: Edition, country: str, numbers: Sequence[int]) -> list[Run]:
    rows: list[Run] = []
    yield_points = YieldPoints(_EXAMINED_PER_YIELD // 16)
    for number in numbers:
        block, row = divmod(number, TENDERS_PER_BLOCK)
        rows.append((await _briefs(edition, country, block))[row].row)
        await yield_points.step()
    return rows


async def _briefs(edition: Edition, country: str, block: int) -> Sequence[_Brief]:
    """The sort keys and compact rows of the releases of a block, cached."""
    kept: Sequence[_Brief] | None = edition.kept_parts.get((TENDERS, country, block))
    if kept is None:
        first = block * TENDERS_PER_BLOCK
        rows = await edition.single_rows(
            TENDERS, country, TENDERS_PER_BLOCK, first, first + TENDERS_PER_BLOCK
        )
        kept = [_brief(row) for row in rows]
        await asyncio.sleep(0)  # many countries take long
        edition.keep_part((TENDERS, country, block), kept)
    return kept


def _brief(row: Run) -> _Brief:
    compact = without_release(row)
    return _Brief(_place(*_sort_fields(compact)), compact)


def _sort_fields(compact: bytes) -> tuple[bytes, bytes, bytes]:
    """The release date, ocid and release id of a compact row, as written."""
    return _text(compact, b'"release_date":"'), _text(compact, b'"ocid":"'), _text(compact, b'"release_id":"')


def _place(released: bytes, ocid: bytes, release_id: bytes) -> tuple[bytes, bytes, bytes]:
    """The sort key of a release among all countries."""
    # A longer instant is later and sorts first, so the end of the text sorts last.
    return released.rstrip(b"Z").translate(_NEWEST_FIRST) + b"\xff", ocid, release_id


def tender_key(row: bytes) -> SortKey:
    """The sort key of a row of tenders: release date, ocid, release id and country."""
    compact = without_release(row) if _RELEASE in row else row
    fields = (*_sort_fields(compact), _text(compact, b'"country":"'))
    return tuple(str(field[:LONGEST_TEXT], "utf-8", "ignore") for field in fields)


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
    place = _place(released, ocid, release_id), of_country
    days = DayRows(await edition.numbers(_DAYS, country, keep=True))
    first, end = days.rows_of(_day_of(key))

    async def is_past(number: int) -> bool:
        if first + number >= end:
            return True
        block, row = divmod(first + number, TENDERS_PER_BLOCK)
        instant, *ids = (await _briefs(edition, country, block))[row].place
        return ((instant, *(one[:LONGEST_TEXT] for one in ids)), country) > place

    return first if await is_past(0) else first + 1 + await last_before(is_past)


def _day_of(key: SortKey) -> int:
    return date.fromisoformat(str(key[0])[:10]).toordinal()


def _text(row: bytes, field: bytes) -> bytes:
    """A text field of an encoded row, as written."""
    start = row.index(field) + len(field)
    return row[start : row.index(b'"', start)]


async def _single_rows(edition: Edition, country: str, numbers: Sequence[int]) -> list[Run]:
    """Rows by number, one slice each."""
    yield_points = YieldPoints(_BLOCKS_PER_YIELD)
    runs: list[Run] = []
    for number in numbers:
        runs += await edition.single_rows(TENDERS, country, TENDERS_PER_BLOCK, number, number + 1)
        await yield_points.step()
    return runs


async def _first(edition: Edition, country: str) -> int:
    """The number of the newest row that the view may show."""
    if edition.lock is None:
        return 0
    days = DayRows(await edition.numbers(_DAYS, country, keep=True))
    first = days.first_row(edition.lock.toordinal())
    return days.count if first is None else first


async def _end(edition: Edition, country: str, earliest: int) -> int:
    """The number of the first row older than `earliest`, or the number of rows."""
    return _end_of(DayRows(await edition.numbers(_DAYS, country, keep=True)), earliest)


def _end_of(days: DayRows, earliest: int) -> int:
    return (days.first_row(earliest - 1) or 0) if earliest else days.count


async def _hits(
    edition: Edition, country: str, wanted: TenderFilter, first: int, end: int, most: int
) -> list[int]:
    """The numbers of the next rows from an index, one more than asked for if there are more."""
    if wanted.ocid is None:
        return await _search(edition, country, wanted.words or (), first, end, most)
    numbers = [n for n in await _releases_of(edition, country, wanted.ocid) if first <= n < end]
    for word in wanted.words or ():
        numbers = _intersection(numbers, await edition.numbers("tender_word", f"{country}|{word}"))
    return numbers[: most + 1]


async def _releases_of(edition: Edition, country: str, ocid: str) -> list[int]:
    """The numbers of the releases of a process. Others may share its hash, so each row is checked."""
    name, hashed = process_list(country, ocid)
    pairs = await edition.numbers(PROCESSES, name)
    written = msgspec.json.encode(ocid)[1:-1]
    numbers = []
    yield_points = YieldPoints(_BLOCKS_PER_YIELD)
    for number in [number for one, number in zip(pairs[::2], pairs[1::2], strict=True) if one == hashed]:
        block, row = divmod(number, TENDERS_PER_BLOCK)
        if (await _briefs(edition, country, block))[row].place[1] == written:
            numbers.append(number)
        await yield_points.step()
    return numbers


async def _search(
    edition: Edition, country: str, words: Sequence[str], first: int, end: int, most: int
) -> list[int]:
    """The numbers of the next rows with every word, one more than asked for if there are more."""
    yield_points = YieldPoints(_EXAMINED_PER_YIELD)
    holders = []
    for word in words:
        holders.append(await edition.numbers("tender_word", f"{country}|{word}"))
        await yield_points.step(_EXAMINED_PER_YIELD // 4)
    holders.sort(key=len)
    rarest, others = holders[0], holders[1:]
    hits: list[int] = []
    begin, stop = bisect_left(rarest, first), bisect_left(rarest, end)
    for start in range(begin, stop, _EXAMINED_PER_YIELD):
        numbers = rarest[start : min(start + _EXAMINED_PER_YIELD, stop)].tolist()
        for other in others:
            numbers = _intersection(numbers, other)
            await yield_points.step(_EXAMINED_PER_YIELD)
        hits += numbers
        if len(hits) > most:
            break
        await yield_points.step(_EXAMINED_PER_YIELD)
    return hits[: most + 1]


def _intersection(numbers: Sequence[int], holders: memoryview) -> list[int]:
    """The numbers that are in a sorted list, too; looked up one by one if the list is much longer."""
    if not numbers:
        return []
    between = holders[bisect_left(holders, numbers[0]) : bisect_right(holders, numbers[-1])]
    if len(between) <= 16 * len(numbers):
        return sorted(set(between).intersection(numbers))
    return [n for n in numbers if between[min(bisect_left(between, n), len(between) - 1)] == n]
