"""Columns: rows of a series, or of an indicator in a country, newest first; and the lists that lead to them.

A filter of /v1/macro is a filter of columns, but for the days. So rows are kept once, by column, and for
every combination of filters there is a list, in the served order, of the columns it admits. An answer is then
a page of a list and a few blocks, however many columns there are.

The index of a block holds for each row the day it is of, and the days [first, until) on which it is seen.
Where no row of it was ever replaced, and a newer one was never known sooner than an older, an answer is one
slice.
"""

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, pairwise, repeat
from operator import neg
from typing import NamedTuple

import msgspec

from sankofa.edition.blocks import Entry, Run, runs_of
from sankofa.edition.reading import Edition, Selection
from sankofa.edition.world import Shelved
from sankofa.engines.datastore import Block
from sankofa.model.days import FOREVER

ROWS_IN_A_BLOCK = 128
_COLUMNS_ON_A_PAGE = 64
_HEADER = struct.Struct("<II")  # rows; 1 where an answer is one slice
_SIZE = _HEADER.size


class Column(msgspec.Struct, frozen=True, array_like=True):
    """A column as a list names it: enough to pass over it, or over blocks of it, unread."""

    key: str
    oldest: int
    known: int
    """The first day on which any row of it is seen."""
    newest: list[int]
    """Of each block, the day of its first row."""


class Span(NamedTuple):
    """The days asked about: what was known on one, of the days from `since` up to `until`."""

    known_on: int
    since: int = 0
    until: int = FOREVER


_page_of = msgspec.json.Decoder(list[Column]).decode
_encode = msgspec.json.Encoder().encode


def column(key: str, entries: Sequence[Entry]) -> Column:
    """What a list says of the rows of a column; the tag of an entry is the day it is of."""
    newest = [entry.tag for entry in entries[::ROWS_IN_A_BLOCK]]
    return Column(key, entries[-1].tag, min(entry.first for entry in entries), newest)


def pack_column(entries: Iterable[Entry]) -> Iterator[tuple[bytes, bytes]]:
    """Cut the rows of a column, newest first, into blocks."""
    source = iter(entries)
    while batch := list(islice(source, ROWS_IN_A_BLOCK)):
        ends = array("I")
        position = -1
        for entry in batch:
            position += 1 + len(entry.row)
            ends.append(position)
        slices = all(e.until == FOREVER for e in batch) and all(
            a.first >= b.first for a, b in pairwise(batch)
        )
        parts = (
            _HEADER.pack(len(batch), slices),
            array("i", [e.tag for e in batch]).tobytes(),
            array("i", [e.first for e in batch]).tobytes(),
            array("i", [e.until for e in batch]).tobytes(),
            ends.tobytes(),
        )
        yield b"".join(parts), b",".join([e.row for e in batch])


def select(block: Block, span: Span, room: int) -> tuple[list[Run], int]:
    """The rows of a block within a span, as runs of wire bytes, and how many."""
    index, rows = block
    count, slices = _HEADER.unpack_from(index)
    words = memoryview(index)[_SIZE:].cast("i")
    days = words[:count]
    low = bisect_left(days, -span.until, key=neg)
    high = bisect_right(days, -span.since, key=neg)
    firsts = words[count : 2 * count]
    if slices:
        low = max(low, bisect_left(firsts, -span.known_on, key=neg))
        high = min(high, low + room)
        if low >= high:
            return [], 0
        return [
            memoryview(rows)[words[3 * count + low - 1] + 1 if low else 0 : words[3 * count + high - 1]]
        ], high - low
    known_on = span.known_on
    seen = [
        row
        for row, (first, until) in enumerate(
            zip(firsts[low:high].tolist(), words[2 * count + low : 2 * count + high].tolist(), strict=True),
            low,
        )
        if first <= known_on < until
    ]
    del seen[room:]
    parts = memoryview(rows)
    return [parts[a:b] for a, b in runs_of(words[3 * count :], seen)], len(seen)


def lists(columns: Iterable[Column], filters: Callable[[Column], Iterable[str]]) -> Iterator[Shelved]:
    """For each key of a list that a column is on, pages of the columns on it, in the order given."""
    listed: defaultdict[str, list[Column]] = defaultdict(list)
    for one in columns:
        for key in filters(one):
            listed[key].append(one)
    for key in sorted(listed):
        whole = listed[key]
        pages = (whole[at : at + _COLUMNS_ON_A_PAGE] for at in range(0, len(whole), _COLUMNS_ON_A_PAGE))
        yield Shelved(key, (Entry(_encode(page)) for page in pages))


def pack_pages(entries: Iterable[Entry]) -> Iterator[tuple[bytes, bytes]]:
    """Each page of a list is a block of its own."""
    return zip(repeat(b""), (entry.row for entry in entries))


async def read_columns(
    edition: Edition,
    kind: str,
    listed: str,
    span: Span,
    limit: int,
    admits: Callable[[str], bool] = lambda key: True,
) -> Selection:
    """The first rows of the columns on a list, those of one before those of the next."""
    taken = _Taken(edition, kind, span, limit)
    page = 0
    while True:
        blocks = await edition.blocks(f"{kind}-list", listed, page, 1)
        if not blocks:
            return taken.selection(truncated=False)
        for one in _page_of(blocks[0][1]):
            if admits(one.key) and not await taken.take(one):
                return taken.selection(truncated=True)
        page += 1


async def read_column(edition: Edition, kind: str, key: str, span: Span, limit: int) -> Selection:
    """The first rows of one column that no list is needed to find."""
    taken = _Taken(edition, kind, span, limit)
    whole = await taken.take(Column(key, 0, 0, []))
    return taken.selection(truncated=not whole)


class _Taken:
    """Rows on their way into an answer."""

    def __init__(self, edition: Edition, kind: str, span: Span, limit: int) -> None:
        self._edition = edition
        self._kind = kind
        self._span = span
        self._limit = limit
        self._runs: list[Run] = []
        self._count = 0

    async def take(self, one: Column) -> bool:
        """The rows of one column; False where more matched than there is room for."""
        span, newest = self._span, one.newest
        if one.oldest > span.until or one.known > span.known_on or (newest and newest[0] < span.since):
            return True
        # A block is too new where the one after it still begins after the span.
        skip = max(0, bisect_left(newest, -span.until, key=neg) - 1)
        last = bisect_right(newest, -span.since, key=neg) if newest else FOREVER
        while skip < last:
            room = self._limit - self._count + 1
            most = min(last - skip, 1 + room // ROWS_IN_A_BLOCK)
            blocks = await self._edition.blocks(self._kind, one.key, skip, most)
            for block in blocks or ():
                found, taken = select(block, span, self._limit - self._count + 1)
                if self._count + taken > self._limit:
                    found, taken = select(block, span, self._limit - self._count)
                    self._add(found, taken)
                    return False
                self._add(found, taken)
            if not blocks or len(blocks) < most:
                break
            skip += most
        return True

    def _add(self, found: list[Run], taken: int) -> None:
        self._runs += found
        self._count += taken

    def selection(self, *, truncated: bool) -> Selection:
        return Selection(self._runs, self._count, truncated)
