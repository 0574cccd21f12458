"""Encodings of macro data: columns of series, lists of columns, rate inputs, the order of facts.

A column holds the rows of one series, or of one indicator in one country, newest first. Every filter of
/v1/macro except the days selects whole columns. So rows are stored once, by column, and each combination of
filters has a list of its columns in served order. An answer is one page of a list and a few blocks, for any
number of columns.

A block of a column holds the current vintages, newest first, then the replaced ones, each with its day and
the days [first, until) on which it is visible. For days after the last change, if no newer row was known
before an older one, an answer is one slice of the first part.

A block of `fact_order` has five columns of 32-bit numbers: the days [first, until) of each fact, and the
block, start and end of its row.
"""

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, pairwise
from operator import neg
from typing import Final, NamedTuple

import msgspec

from sankofa.edition.format.row_blocks import Entry, Rewrite, RowSlice, cut, slices_of
from sankofa.edition.format.visibility import first_day_of_blocks, rows_visible_on, visible
from sankofa.engines.block_file import Block, ByteRange
from sankofa.model.days import FOREVER

ROWS_IN_A_BLOCK = 128
_COLUMNS_ON_A_PAGE = 16
_HEADER = struct.Struct(
    "<HHi"
)  # current rows; replaced rows; first day on which the first part is the answer
_SIZE = _HEADER.size


class SeriesSummary(msgspec.Struct, frozen=True, array_like=True):
    """A column on a list: enough to skip it unread."""

    key: str
    newest: int
    oldest: int
    known: int
    """The first day on which any of its rows is visible."""


class DayRange(NamedTuple):
    """A query by days: rows known on one day and dated from `since` to `until`."""

    known_on: int
    since: int = 0
    until: int = FOREVER


read_page = msgspec.json.Decoder(list[SeriesSummary]).decode
_encode = msgspec.json.Encoder().encode


def summary_of(key: str, entries: Sequence[Entry]) -> SeriesSummary:
    """The summary of a column; the tag of an entry is its day."""
    return SeriesSummary(key, entries[0].tag, entries[-1].tag, min(entry.first for entry in entries))


def block_days(entries: Sequence[Entry]) -> bytes | None:
    """The day of the first row of each block of a column; None for a single block."""
    if len(entries) <= ROWS_IN_A_BLOCK:
        return None
    return first_day_of_blocks([entry.tag for entry in entries], ROWS_IN_A_BLOCK)


def pack_series(entries: Iterable[Entry]) -> Iterator[tuple[bytes, bytes]]:
    """Cut the rows of a column, newest first, into blocks."""
    source = iter(entries)
    while batch := list(islice(source, ROWS_IN_A_BLOCK)):
        in_force = [entry for entry in batch if entry.until == FOREVER]
        replaced = [entry for entry in batch if entry.until != FOREVER]
        ends = array("i")
        position = -1
        for entry in (*in_force, *replaced):
            position += 1 + len(entry.row)
            ends.append(position)
        # Nothing was replaced and no newer row was known sooner than an older: true on every day.
        plain = not replaced and all(a.first >= b.first for a, b in pairwise(in_force))
        settled = max((e.first for e in batch), default=0)
        settled = max(settled, max((e.until for e in replaced), default=0))
        parts = (
            _HEADER.pack(len(in_force), len(replaced), -1 if plain else settled),
            array("i", [e.tag for e in in_force]).tobytes(),
            array("i", [e.first for e in in_force]).tobytes(),
            array("i", [e.tag for e in replaced]).tobytes(),
            array("i", [e.first for e in replaced]).tobytes(),
            array("i", [e.until for e in replaced]).tobytes(),
            ends.tobytes(),
        )
        yield b"".join(parts), b",".join([e.row for e in (*in_force, *replaced)])


def select(block: Block, span: DayRange, room: int) -> tuple[list[RowSlice], int, bool]:
    """The first rows of a block within a span, as slices of wire bytes; their number; and whether more
    follow."""
    known_on, since, until = span
    index, rows = block
    count, replaced, settled = _HEADER.unpack_from(index)
    words = memoryview(index)[_SIZE:].cast("i")
    days = words[:count]
    low = bisect_left(days, -until, key=neg) if count and until < days[0] else 0
    high = bisect_right(days, -since, key=neg) if count and since > days[count - 1] else count
    if known_on >= settled:
        if settled < 0 and count and known_on < words[count]:
            low = max(low, bisect_left(words[count : 2 * count], -known_on, key=neg))
        end = min(high, low + room)
        if low >= end:
            return [], 0, low < high
        ends = words[2 * count + 3 * replaced :]
        row_slice = ((ends[low - 1] + 1 if low else 0, ends[end - 1]),)
        return cut(rows, row_slice, sparse=4 * (end - low) < count + replaced), end - low, end < high
    seen = [
        (-day, row)
        for row, (day, first) in enumerate(
            zip(days[low:high].tolist(), words[count + low : count + high].tolist(), strict=True), low
        )
        if first <= known_on
    ]
    part = words[2 * count : 2 * count + 3 * replaced].tolist()
    seen += [
        (-day, row)
        for row, (day, first, ended) in enumerate(
            zip(part[:replaced], part[replaced : 2 * replaced], part[2 * replaced :], strict=True), count
        )
        if visible(first, ended, known_on) and since <= day <= until
    ]
    seen.sort()
    chosen = [row for _, row in seen[:room]]
    ends = words[2 * count + 3 * replaced :]
    slices = slices_of(ends, chosen)
    return cut(rows, slices, sparse=4 * len(chosen) < count + replaced), len(chosen), len(seen) > room


def with_rewritten_rows(block: Block, rewrite: Rewrite) -> Block:
    index, stored = block
    count, replaced, _ = _HEADER.unpack_from(index)
    at = _SIZE + 4 * (2 * count + 3 * replaced)
    rows, ends = rewrite(bytes(stored), memoryview(index)[at:].cast("i"))
    return b"".join((index[:at], array("i", ends).tobytes())), rows


def list_pages(
    columns: Iterable[SeriesSummary], filters: Callable[[SeriesSummary], Iterable[str]]
) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Pages of columns, in the given order, for every list; `filters` returns the lists of a column."""
    listed: defaultdict[str, list[SeriesSummary]] = defaultdict(list)
    for one in columns:
        for key in filters(one):
            listed[key].append(one)
    for key in sorted(listed):
        whole = listed[key]
        pages = (whole[at : at + _COLUMNS_ON_A_PAGE] for at in range(0, len(whole), _COLUMNS_ON_A_PAGE))
        yield key, map(_encode, pages)


RATE_INPUTS: Final = "rate-rate"


class RateInput(msgspec.Struct, frozen=True, array_like=True):
    """A currency's daily rate against another."""

    via: str
    """The other currency."""
    key: str
    """Key of the series in `macro-series`."""
    inverted: bool
    """True if the series is the price of the currency in the other currency (`FX.NGN.USD` for NGN); False if
    it is units of the currency for one unit of the other."""

    @property
    def series(self) -> str:
        return self.key.partition("|")[0]


encode_rate_inputs = msgspec.msgpack.Encoder().encode
decode_rate_inputs = msgspec.msgpack.Decoder(list[RateInput]).decode


def encode_ranges(columns: Iterable[Iterable[int]]) -> bytes:
    """The facts of one block: the days [first, until) on which each is visible, and the byte range of its
    row."""
    return b"".join(array("i", column).tobytes() for column in columns)


def first_range(block: RowSlice) -> ByteRange:
    numbers = memoryview(block).cast("i")
    count = len(numbers) // 5
    return numbers[2 * count], numbers[3 * count], numbers[4 * count]


def visible_ranges(block: RowSlice, day: int) -> list[ByteRange]:
    """The byte ranges of the facts of a block that are visible on a day."""
    numbers = memoryview(block).cast("i")
    count = len(numbers) // 5
    firsts, untils, blocks, starts, ends = (numbers[n * count : (n + 1) * count].tolist() for n in range(5))
    return [(blocks[row], starts[row], ends[row]) for row in rows_visible_on(day, firsts, untils)]
