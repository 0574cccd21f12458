"""Blocks: rows in served order as the bytes that go on the wire, under an index of when each is seen.

An edition never changes, so a row is encoded once, at the build. Rows of one key are kept
together in order, about a hundred to a block. The index of a block holds for each row the days
[first, until) on which it is seen, the modes that see it, and a tag to filter by; and, for the
question asked most - the latest vintages on a day - the answer itself: the days on which it
changes, and for each stretch between them which bytes of the block it is. A point-in-time answer
is then a few slices; no row is decoded or encoded at request time.
"""

import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import msgspec

from sankofa.edition.format.visibility import ANY_TAG, admitted, visible
from sankofa.engines.datastore import Block
from sankofa.model.days import FOREVER
from sankofa.model.vintages import Mode

_LATEST = int(Mode.LATEST)
_TARGET_BYTES = 64 * 1024
_MOST_ROWS = 512
_MOST_STRETCHES = 64
_HEADER = struct.Struct("<Ii")  # rows; stretches, or -1 where they are not worked out
_SIZE = _HEADER.size
_DAY = struct.Struct("<i")


class Entry(NamedTuple):
    """One row on the wire, and when it is seen."""

    row: bytes
    first: int = 0
    until: int = FOREVER
    modes: int = int(Mode.LATEST | Mode.AS_REPORTED | Mode.ALL)
    tag: int = 0


_ALWAYS = Entry(b"")[1:]
_raws = msgspec.json.Decoder(list[msgspec.Raw]).decode

Run = bytes | memoryview
"""Some rows of a block: not copied until the answer is put together."""


def pack(entries: Iterable[Entry], rows_per_block: int = 0) -> Iterator[tuple[bytes, bytes]]:
    """Cut ordered entries into blocks: by size, or after so many rows where a number is given."""
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
    """Index: header; per row first, until, end of its bytes, modes, tag; then the stretches.

    A single row that is always seen, as most of an edition's millions of small records are, needs none.
    """
    if len(entries) == 1 and entries[0][1:] == _ALWAYS:
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
    padding = bytes(-2 * len(entries) % 4)  # so that what follows can be read in place
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
    """The answer for the latest vintages: from each day on how many rows, and which runs of bytes."""
    latest = [(n, e.first, e.until) for n, e in enumerate(entries) if e.modes & _LATEST]
    changes = sorted({day for _, first, until in latest for day in (first, until)} - {FOREVER})
    if len(changes) > _MOST_STRETCHES:
        return None
    days, counts, bounds, runs = array("i", changes), array("I"), array("I", [0]), array("I")
    for day in changes:
        seen = [n for n, first, until in latest if first <= day < until]
        counts.append(len(seen))
        runs.extend(chain.from_iterable(runs_of(ends, seen)))
        bounds.append(len(runs))
    return days, counts, bounds, runs


def runs_of(ends: Sequence[int], seen: list[int]) -> Iterator[tuple[int, int]]:
    """The bytes of the rows seen, neighbours together with the commas between them."""
    start = previous = -2
    for row in seen:
        if row != previous + 1:
            if start >= 0:
                yield (ends[start - 1] + 1 if start else 0), ends[previous]
            start = row
        previous = row
    if start >= 0:
        yield (ends[start - 1] + 1 if start else 0), ends[previous]


def first_rows(ends: Sequence[int], runs: Iterable[tuple[int, int]], room: int) -> Iterator[tuple[int, int]]:
    """Of runs as `runs_of` has them, those of the first so many rows."""
    for start, end in runs:
        if not room:
            return
        first = bisect_left(ends, start)
        rows = bisect_left(ends, end, first) + 1 - first
        if rows > room:
            rows, end = room, ends[first + room - 1]
        room -= rows
        yield start, end


def cut(rows: Run, runs: Iterable[tuple[int, int]], *, sparse: bool) -> list[Run]:
    """Runs of a block's rows: views of it; copies of few, which would keep all of it in memory."""
    if sparse:
        return [bytes(rows[a:b]) for a, b in runs]
    view = memoryview(rows)
    return [view[a:b] for a, b in runs]


def shows_any(index: bytes | memoryview, day: int, modes: int) -> bool:
    """False where it is told at a glance that no row of a block was seen by a day: `select` has no use for
    its rows then."""
    if not index or modes != _LATEST:
        return True
    count, stretches = _HEADER.unpack_from(index)
    if stretches < 1:
        return bool(stretches)
    return bool(_DAY.unpack_from(index, _SIZE + (14 * count + 3) // 4 * 4)[0] <= day)


def select(block: Block, day: int, modes: int, tag: int, room: int) -> tuple[list[Run], int]:
    """The rows of a block seen on a day, as runs of wire bytes without outer commas, and how many rows."""
    index, rows = block
    if not index:
        return ([rows], 1) if room and tag in (ANY_TAG, 0) else ([], 0)
    count, stretches = _HEADER.unpack_from(index)
    view = memoryview(index)
    if modes == _LATEST and tag == ANY_TAG and stretches >= 0:
        start = _SIZE + (14 * count + 3) // 4 * 4
        words = view[start:].cast("I")
        stretch = bisect_right(view[start : start + 4 * stretches].cast("i"), day) - 1
        if stretch < 0:
            return [], 0
        seen_rows = words[stretches + stretch]
        bound = 2 * stretches + stretch
        first = 3 * stretches + 1
        bounds = iter(words[first + words[bound] : first + words[bound + 1]].tolist())
        runs: Iterable[tuple[int, int]] = zip(bounds, bounds, strict=True)
        if seen_rows > room:
            seen_rows = room
            runs = first_rows(view[_SIZE + 8 * count : _SIZE + 12 * count].cast("I"), runs, room)
        return cut(rows, runs, sparse=4 * seen_rows < count), seen_rows
    firsts, untils, ends = (
        view[_SIZE + n * 4 * count : _SIZE + (n + 1) * 4 * count].cast("i").tolist() for n in range(3)
    )
    seen_by = index[_SIZE + 12 * count : _SIZE + 13 * count]
    tags = index[_SIZE + 13 * count : _SIZE + 14 * count]
    seen = [
        row
        for row, (first, until, mode) in enumerate(zip(firsts, untils, seen_by, strict=True))
        if first <= day < until and mode & modes and (tag == ANY_TAG or tags[row] == tag)
    ]
    del seen[room:]
    return cut(rows, runs_of(ends, seen), sparse=4 * len(seen) < count), len(seen)


def select_where(
    block: Block, day: int, modes: int, tag: int, room: int, where: Callable[[bytes], bool]
) -> tuple[list[Run], int]:
    """As `select`, of the rows whose bytes pass a test: slower, for what no index answers."""
    rows = [
        entry.row
        for entry in entries_of(block)
        if visible(entry.first, entry.until, day)
        and admitted(entry.modes, entry.tag, modes, tag)
        and where(entry.row)
    ][:room]
    return list[Run](rows), len(rows)


def without_first(runs: Sequence[Run], number: int) -> list[Run]:
    """Runs of rows without the first so many rows."""
    rows = _raws(b"[%b]" % b",".join(runs))
    return [bytes(row) for row in rows[number:]]


def between(block: Block, first: int, end: int) -> Run:
    """The rows [first, end) of a block by their number in it, with the commas between them."""
    index, rows = block
    if not index:
        return rows
    count = _HEADER.unpack_from(index)[0]
    ends = memoryview(index)[_SIZE + 8 * count : _SIZE + 12 * count].cast("I")
    return memoryview(rows)[ends[first - 1] + 1 if first else 0 : ends[min(end, count) - 1]]


def row_ends(block: Block) -> list[int]:
    """Where each row of a block ends; the next begins behind a comma."""
    return row_columns(block).ends


class RowColumns(NamedTuple):
    """What the index of a block says of each of its rows."""

    firsts: list[int]
    untils: list[int]
    ends: list[int]
    modes: bytes
    tags: bytes


def row_columns(block: Block) -> RowColumns:
    """The index of a block by column: see `Entry`, and `row_ends`."""
    index, rows = block
    if not index:
        _, first, until, modes, tag = Entry(b"")
        return RowColumns([first], [until], [len(rows)], bytes((modes,)), bytes((tag,)))
    count = _HEADER.unpack_from(index)[0]
    numbers = memoryview(index)[_SIZE : _SIZE + 12 * count].cast("i").tolist()
    marks = bytes(index[_SIZE + 12 * count : _SIZE + 14 * count])
    return RowColumns(
        numbers[:count], numbers[count : 2 * count], numbers[2 * count :], marks[:count], marks[count:]
    )


def entries_of(block: Block) -> Iterator[Entry]:
    """Every entry of a block, as it was packed: for checks and bulk reading."""
    rows = block[1]
    start = 0
    for first, until, end, modes, tag in zip(*row_columns(block), strict=True):
        yield Entry(bytes(rows[start:end]), first, until, modes, tag)
        start = end + 1
