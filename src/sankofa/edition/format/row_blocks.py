"""Blocks of rows: the bytes that go on the wire in served order, and an index of when each row is visible.

An edition never changes, so the build encodes each row once. The rows of a key stay together in order, about
a hundred to a block. The index of a block holds, for each row, the days [first, until) on which it is
visible, the modes that see it, and a tag to filter by. For the most frequent question, the latest vintages on
a day, it holds the answer itself: the days on which the answer changes, and the byte ranges of the block
between two changes. A point-in-time answer is then a few slices; no row is decoded or encoded at request
time.

`RowOrder` orders the rows of a list by their fields. A cursor stores the sort key of the last row served.
Every edition uses this order, so a sort key leads to the same position in any edition, even if the row is
gone.
"""

import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from operator import attrgetter, sub
from typing import Any, Final, NamedTuple

import msgspec

from sankofa.edition.format.keys import ID_TYPES
from sankofa.edition.format.visibility import ANY_TAG, admitted, rows_visible_on, visible
from sankofa.engines.block_file import Block
from sankofa.model.days import FOREVER
from sankofa.model.vintages import Mode

_LATEST = int(Mode.LATEST)
_TARGET_BYTES = 64 * 1024
_MOST_ROWS = 512
_MOST_STRETCHES = 64
_HEADER = struct.Struct("<Ii")  # rows; stretches, or -1 if not computed
_SIZE = _HEADER.size
_DAY = struct.Struct("<i")


class Entry(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One row on the wire, and when it is visible."""

    row: bytes
    first: int = 0
    until: int = FOREVER
    modes: int = int(Mode.LATEST | Mode.AS_REPORTED | Mode.ALL)
    tag: int = 0


when = attrgetter("first", "until", "modes", "tag")
"""When an entry is visible."""
_ALWAYS = when(Entry(b""))
_raws = msgspec.json.Decoder(list[msgspec.Raw]).decode

RowSlice = bytes | memoryview
"""A slice of the rows of a block, not copied until the answer is assembled."""


def pack(entries: Iterable[Entry], rows_per_block: int = 0) -> Iterator[tuple[bytes, bytes]]:
    """Cut ordered entries into blocks: by size, or after `rows_per_block` rows."""
    pending: list[Entry] = []
    size = 0
    most_bytes, most_rows = (sys.maxsize, rows_per_block) if rows_per_block else (_TARGET_BYTES, _MOST_ROWS)
    for entry in entries:
        pending.append(entry)
        size += len(entry.row)
        if size >= most_bytes or len(pending) >= most_rows:
            yield _block(pending)
            pending, size = [], 0
    if pending:
        yield _block(pending)


def _block(entries: list[Entry]) -> tuple[bytes, bytes]:
    """The index has a header; per row first, until, end of its bytes, modes, tag; then the stretches.

    A single row that is always visible has no index; most small records of an edition are such rows.
    """
    if len(entries) == 1 and when(entries[0]) == _ALWAYS:
        return b"", entries[0].row
    ends = array("I")
    position = -1
    for entry in entries:
        position += 1 + len(entry.row)
        ends.append(position)
    rows = (
        array("i", (e.first for e in entries)).tobytes(),
        array("i", (e.until for e in entries)).tobytes(),
        ends.tobytes(),
        bytes(e.modes for e in entries),
        bytes(e.tag for e in entries),
    )
    padding = bytes(-2 * len(entries) % 4)  # aligns the stretches
    stretches = _stretches(entries, ends)
    if stretches is None:
        index = b"".join((_HEADER.pack(len(entries), -1), *rows))
    else:
        header = _HEADER.pack(len(entries), len(stretches[0]))
        index = b"".join((header, *rows, padding, *(part.tobytes() for part in stretches)))
    return index, b",".join(e.row for e in entries)


def _stretches(
    entries: list[Entry], ends: Sequence[int]
) -> "tuple[array[int], array[int], array[int], array[int]] | None":
    """The answer for the latest vintages: from each day on, the number of rows and their byte ranges."""
    latest = [(n, e.first, e.until) for n, e in enumerate(entries) if e.modes & _LATEST]
    changes = sorted({day for _, first, until in latest for day in (first, until)} - {FOREVER})
    if len(changes) > _MOST_STRETCHES:
        return None
    days, counts, bounds, slices = array("i", changes), array("I"), array("I", [0]), array("I")
    for day in changes:
        visible_rows = [n for n, first, until in latest if visible(first, until, day)]
        counts.append(len(visible_rows))
        slices.extend(chain.from_iterable(slices_of(ends, visible_rows)))
        bounds.append(len(slices))
    return days, counts, bounds, slices


def slices_of(ends: Sequence[int], numbers: list[int]) -> Iterator[tuple[int, int]]:
    """The byte ranges of these rows, neighbours together with the commas between them."""
    start = previous = -2
    for row in numbers:
        if row != previous + 1:
            if start >= 0:
                yield (ends[start - 1] + 1 if start else 0), ends[previous]
            start = row
        previous = row
    if start >= 0:
        yield (ends[start - 1] + 1 if start else 0), ends[previous]


def first_rows(
    ends: Sequence[int], slices: Iterable[tuple[int, int]], room: int
) -> Iterator[tuple[int, int]]:
    """The byte ranges of the first `room` rows among those from `slices_of`."""
    for start, end in slices:
        if not room:
            return
        first = bisect_left(ends, start)
        rows = bisect_left(ends, end, first) + 1 - first
        if rows > room:
            rows, end = room, ends[first + room - 1]
        room -= rows
        yield start, end


def cut(rows: RowSlice, slices: Iterable[tuple[int, int]], *, sparse: bool) -> list[RowSlice]:
    """Slices of the rows of a block: views, or copies if few, as a view holds the block in memory."""
    if sparse:
        return [bytes(rows[a:b]) for a, b in slices]
    view = memoryview(rows)
    return [view[a:b] for a, b in slices]


def shows_any(index: bytes | memoryview, day: int, modes: int) -> bool:
    """False if the index alone shows that `select` finds no row of a block on a day."""
    if not index or modes != _LATEST:
        return True
    count, stretches = _HEADER.unpack_from(index)
    if stretches < 1:
        return bool(stretches)
    return bool(_DAY.unpack_from(index, _SIZE + (14 * count + 3) // 4 * 4)[0] <= day)


def select(block: Block, day: int, modes: int, tag: int, room: int) -> tuple[list[RowSlice], int]:
    """The rows of a block visible on a day, as slices without outer commas, and their number."""
    index, rows = block
    if not index:
        return ([rows], 1) if room and tag in (ANY_TAG, 0) else ([], 0)
    count, stretches = _HEADER.unpack_from(index)
    view = memoryview(index)
    if modes == _LATEST and tag == ANY_TAG and stretches >= 0:
        words = view[_SIZE + (14 * count + 3) // 4 * 4 :].cast("i")
        stretch = bisect_right(words, day, 0, stretches) - 1
        if stretch < 0:
            return [], 0
        count_on_day = words[stretches + stretch]
        bound = 2 * stretches + stretch
        first = 3 * stretches + 1
        bounds = words[first + words[bound] : first + words[bound + 1]].tolist()
        slices: Iterable[tuple[int, int]] = zip(bounds[::2], bounds[1::2], strict=True)
        if count_on_day > room:
            count_on_day = room
            slices = first_rows(view[_SIZE + 8 * count : _SIZE + 12 * count].cast("I"), slices, room)
        return cut(rows, slices, sparse=4 * count_on_day < count), count_on_day
    firsts, untils, ends = (
        view[_SIZE + n * 4 * count : _SIZE + (n + 1) * 4 * count].cast("i").tolist() for n in range(3)
    )
    row_modes = index[_SIZE + 12 * count : _SIZE + 13 * count]
    tags = index[_SIZE + 13 * count : _SIZE + 14 * count]
    numbers = [
        row
        for row in rows_visible_on(day, firsts, untils)
        if row_modes[row] & modes and (tag == ANY_TAG or tags[row] == tag)
    ]
    del numbers[room:]
    return cut(rows, slices_of(ends, numbers), sparse=4 * len(numbers) < count), len(numbers)


def select_where(
    block: Block, day: int, modes: int, tag: int, room: int, where: Callable[[bytes], bool]
) -> tuple[list[RowSlice], int]:
    """Like `select`, for rows whose bytes pass a test. Slower: it tests every row."""
    rows = [
        entry.row
        for entry in entries_of(block)
        if visible(entry.first, entry.until, day)
        and admitted(entry.modes, entry.tag, modes, tag)
        and where(entry.row)
    ][:room]
    return list[RowSlice](rows), len(rows)


def without_first(slices: Sequence[RowSlice], number: int) -> list[RowSlice]:
    rows = _raws(b"[%b]" % b",".join(slices))
    return [bytes(row) for row in rows[number:]]


def between(block: Block, first: int, end: int) -> RowSlice:
    """The rows [first, end) of a block, with the commas between them."""
    index, rows = block
    if not index:
        return rows
    count = _HEADER.unpack_from(index)[0]
    ends = memoryview(index)[_SIZE + 8 * count : _SIZE + 12 * count].cast("I")
    return memoryview(rows)[ends[first - 1] + 1 if first else 0 : ends[min(end, count) - 1]]


def row_count(block: Block) -> int:
    """How many rows a block has."""
    index = block[0]
    return int(_HEADER.unpack_from(index)[0]) if index else 1


def row_ends(block: Block) -> list[int]:
    """The end of each row of a block; a comma separates it from the next."""
    if not block[0]:
        return [len(block[1])]
    count = row_count(block)
    return memoryview(block[0])[_SIZE + 8 * count : _SIZE + 12 * count].cast("i").tolist()


class RowColumns(NamedTuple):
    firsts: list[int]
    untils: list[int]
    ends: list[int]
    modes: bytes
    tags: bytes


def row_columns(block: Block) -> RowColumns:
    """The index of a block by column (see `Entry` and `row_ends`)."""
    index, rows = block
    if not index:
        first, until, modes, tag = _ALWAYS
        return RowColumns([first], [until], [len(rows)], bytes((modes,)), bytes((tag,)))
    count = _HEADER.unpack_from(index)[0]
    numbers = memoryview(index)[_SIZE : _SIZE + 12 * count].cast("i").tolist()
    marks = bytes(index[_SIZE + 12 * count : _SIZE + 14 * count])
    return RowColumns(
        numbers[:count], numbers[count : 2 * count], numbers[2 * count :], marks[:count], marks[count:]
    )


Rewrite = Callable[[bytes, Sequence[int]], tuple[bytes, Sequence[int]]]
"""Rewrites rows with the given ends; returns the rows and their new ends. One byte separates two rows."""


def with_rewritten_rows(block: Block, rewrite: Rewrite) -> Block:
    index, stored = block
    ends = row_ends(block)
    rows, moved = rewrite(bytes(stored), ends)
    if not index:
        return index, rows
    count, stretches = _HEADER.unpack_from(index)
    at, slices = _SIZE + 8 * count, len(index)
    if stretches > 0:
        slices = _SIZE + (14 * count + 3) // 4 * 4 + 4 * (3 * stretches + 1)
    shifts = [0, *map(sub, moved, ends)]
    bounds = memoryview(index)[slices:].cast("I") if slices < len(index) else ()
    parts = (
        index[:at],
        array("I", moved).tobytes(),
        index[at + 4 * count : slices],
        array("I", [bound + shifts[bisect_right(ends, bound)] for bound in bounds]).tobytes(),
    )
    return b"".join(parts), rows


def entries_of(block: Block) -> Iterator[Entry]:
    """Every entry of a block, as packed."""
    rows = block[1]
    start = 0
    for first, until, end, modes, tag in zip(*row_columns(block), strict=True):
        yield Entry(bytes(rows[start:end]), first, until, modes, tag)
        start = end + 1


SortKey = tuple[int | str, ...]
"""Values of the sort fields of a row; unknown values are empty text."""

LONGEST_TEXT: Final = 200
"""Characters of a text in a sort key: a cursor is part of a URL."""
_TAILS: Final = (4_096, 65_536)


class RowOrder:
    """Rows ordered by some of their fields. A field after `-` sorts in descending order.

    `a.b` is the member `b` of the object `a`; `a|b` is `b` if `a` is null. `ranks` maps values that do not
    sort as text; decimals have the rank `Decimal`.
    """

    def __init__(self, *fields: str, ranks: Mapping[str, Callable[[Any], Any]] | None = None) -> None:
        names = [field.lstrip("-") for field in fields]
        self._descending = tuple(field.startswith("-") for field in fields)
        self._ranks = tuple((ranks or {}).get(name) for name in names)
        self._paths = tuple(tuple(one.split(".") for one in name.split("|")) for name in names)
        members = dict.fromkeys(path[0] for paths in self._paths for path in paths)
        exact = {name for name, rank in zip(names, self._ranks, strict=True) if rank is Decimal}
        types = [
            (name, msgspec.Raw if name in exact else dict[str, str | None] | str | int | None, None)
            for name in members
        ]
        self._decode = msgspec.json.Decoder(msgspec.defstruct("SortFields", types)).decode
        self._names = tuple(paths[0][0] for paths in self._paths)

    def key_of(self, row: RowSlice) -> SortKey:
        fields = self._decode(row)
        values = [getattr(fields, name) for name in self._names]
        return tuple(
            [
                value
                if type(value) is int or (type(value) is str and len(value) <= LONGEST_TEXT)
                else _first_value(fields, paths)
                for value, paths in zip(values, self._paths, strict=True)
            ]
        )

    def is_behind(self, key: Sequence[int | str], other: Sequence[int | str]) -> bool:
        """Whether a row with this key comes after a row with the other."""
        for value, than, descending, rank in zip(key, other, self._descending, self._ranks, strict=True):
            a: Any = value if rank is None else rank(value)
            b: Any = than if rank is None else rank(than)
            if a != b:
                return bool(a < b if descending else a > b)
        return False

    def behind(self, key: Sequence[int | str]) -> Callable[[RowSlice], bool]:
        """A test for encoded rows: whether one comes after a key."""
        return lambda row: self.is_behind(self.key_of(row), key)


def _first_value(fields: Any, paths: tuple[list[str], ...]) -> int | str:
    for name, *member in paths:
        value = getattr(fields, name)
        if member and value is not None:
            value = value.get(member[0])
        if isinstance(value, msgspec.Raw):
            return bytes(value).decode()
        if value is not None:
            return value[:LONGEST_TEXT] if isinstance(value, str) else int(value)
    return ""


def last_row(row_slice: RowSlice) -> bytes:
    """The last row of a slice. All rows begin with the same member, which never occurs inside a row."""
    beginning = bytes(row_slice[:64])
    mark = b"," + beginning[: beginning.index(b":") + 1]
    for size in _TAILS:
        if size < len(row_slice) and (at := (tail := bytes(row_slice[-size:])).rfind(mark)) >= 0:
            return tail[at + 1 :]
    whole = bytes(row_slice)
    return whole[whole.rfind(mark) + 1 :]


def without_last(slices: Sequence[RowSlice]) -> list[RowSlice]:
    rest = slices[-1][: max(len(slices[-1]) - len(last_row(slices[-1])) - 1, 0)]
    return [*slices[:-1], rest] if len(rest) else list(slices[:-1])


CROSSWALK_ORDER: Final = RowOrder("id_type", "scheme", "id_value", ranks={"id_type": ID_TYPES.index})
FUNDAMENTALS_ORDER: Final = RowOrder(
    "-period_end", "period_type", "line_item", "vintage", "concept|line_item", "unit", "period_start"
)
