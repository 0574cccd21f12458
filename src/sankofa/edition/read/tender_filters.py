"""Selects the releases that pass the filters of a search: by lists of numbers, then by columns. Reads
releases by number: whole, in compact form, and with their sort key, computed a block at a time and cached.
"""

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from decimal import Decimal
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
from sankofa.edition.format.row_blocks import LONGEST_TEXT, RowSlice, SortKey
from sankofa.edition.read.day_view import is_stranger
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.yield_points import YieldPoints
from sankofa.model.days import FOREVER

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
        block, row = divmod(number, TENDERS_PER_BLOCK)
        rows.append((await briefs(edition, country, block))[row].row)
        await yield_points.step()
    return rows


async def single_rows(edition: Edition, country: str, numbers: Sequence[int]) -> list[RowSlice]:
    """Rows by number, one slice each."""
    yield_points = YieldPoints(_BRIEFS_PER_YIELD)
    slices: list[RowSlice] = []
    for number in numbers:
        slices += await edition.single_rows(TENDERS, country, TENDERS_PER_BLOCK, number, number + 1)
        await yield_points.step()
    return slices


async def briefs(edition: Edition, country: str, block: int) -> Sequence[Brief]:
    """The sort keys and compact rows of the releases of a block, cached."""
    cached: Sequence[Brief] | None = edition.cached_parts.get((TENDERS, country, block))
    if cached is None:
        first = block * TENDERS_PER_BLOCK
        rows = await edition.single_rows(
            TENDERS, country, TENDERS_PER_BLOCK, first, first + TENDERS_PER_BLOCK
        )
        cached = [_brief(row) for row in rows]
        await asyncio.sleep(0)  # many countries take long
        edition.cache_part((TENDERS, country, block), cached)
    return cached


def _brief(row: RowSlice) -> Brief:
    compact = without_release(row)
    return Brief(tender_sort_key(*_sort_fields(compact)), compact)


def _sort_fields(compact: bytes) -> tuple[bytes, bytes, bytes]:
    """The release date, ocid and release id of a compact row, as written."""
    return _text(compact, b'"release_date":"'), _text(compact, b'"ocid":"'), _text(compact, b'"release_id":"')


def tender_sort_key(released: bytes, ocid: bytes, release_id: bytes) -> tuple[bytes, bytes, bytes]:
    """The sort key of a release among all countries."""
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
        return bool(self.words or self.values) or self.ocid is not None or self._by_column

    @property
    def nothing(self) -> bool:
        """A query without words matches nothing."""
        return self.words is not None and not self.words

    @property
    def closes(self) -> bool:
        return self.closing_from is not None or self.closing_to is not None

    @property
    def _by_column(self) -> bool:
        return self.closes or self.min_value is not None


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
            block, row = divmod(number, TENDERS_PER_BLOCK)
            amount = _amount((await briefs(edition, country, block))[row].row).value_amount
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
        block, row = divmod(number, TENDERS_PER_BLOCK)
        if (await briefs(edition, country, block))[row].sort_key[1] == written:
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
