"""Blocks: rows in served order as the bytes that go on the wire, under an index of when each is seen.

An edition never changes, so a row is encoded once, at the build. Rows of one key are kept
together in order, about a hundred to a block; the index of a block holds for each row the days
[first, until) on which it is seen, the modes that see it, and a tag to filter by. A point-in-time
answer is then a few slices of the block: no row is decoded or encoded at request time.
"""

import struct
from array import array
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from sankofa.model.days import FOREVER
from sankofa.model.knowable import Mode

ANY_TAG = -1
_TARGET_BYTES = 64 * 1024
_MOST_ROWS = 512
_HEADER = struct.Struct("<IiiI")  # rows; latest first day; earliest until; modes that see every row


class Entry(NamedTuple):
    """One row on the wire, and when it is seen."""

    row: bytes
    first: int = 0
    until: int = FOREVER
    modes: int = int(Mode.LATEST | Mode.AS_REPORTED | Mode.ALL)
    tag: int = 0


class Block(NamedTuple):
    index: bytes
    rows: bytes


def pack(entries: Iterable[Entry]) -> Iterator[Block]:
    """Cut ordered entries into blocks."""
    pending: list[Entry] = []
    size = 0
    for entry in entries:
        pending.append(entry)
        size += len(entry.row)
        if size >= _TARGET_BYTES or len(pending) >= _MOST_ROWS:
            yield _block(pending)
            pending, size = [], 0
    if pending:
        yield _block(pending)


def _block(entries: list[Entry]) -> Block:
    ends = array("I")
    position = -1
    for entry in entries:
        position += 1 + len(entry.row)
        ends.append(position)
    common = 0xFF
    for entry in entries:
        common &= entry.modes
    index = b"".join(
        (
            _HEADER.pack(len(entries), max(e.first for e in entries), min(e.until for e in entries), common),
            array("i", (e.first for e in entries)).tobytes(),
            array("i", (e.until for e in entries)).tobytes(),
            ends.tobytes(),
            bytes(e.modes for e in entries),
            bytes(e.tag for e in entries),
        )
    )
    return Block(index, b",".join(e.row for e in entries))


def select(block: tuple[bytes, bytes], day: int, modes: int, tag: int, room: int) -> tuple[list[bytes], int]:
    """The rows of a block seen on a day, as runs of wire bytes without outer commas, and how many rows."""
    index, rows = block
    count, latest_first, earliest_until, common = _HEADER.unpack_from(index)
    view = memoryview(index)[_HEADER.size :]
    if latest_first <= day < earliest_until and common & modes and tag == ANY_TAG:
        if count <= room:
            return [rows], count
        ends = view[8 * count : 12 * count].cast("I")
        return [rows[: ends[room - 1]]], room
    firsts = view[: 4 * count].cast("i")
    untils = view[4 * count : 8 * count].cast("i")
    ends = view[8 * count : 12 * count].cast("I")
    seen_by = view[12 * count : 13 * count]
    tags = view[13 * count : 14 * count]
    runs: list[bytes] = []
    taken, start = 0, -1
    for position, (first, until, mode, own_tag) in enumerate(zip(firsts, untils, seen_by, tags, strict=True)):
        if first <= day < until and mode & modes and (tag == own_tag or tag == ANY_TAG):
            if start < 0:
                start = position
            taken += 1
            if taken == room:
                runs.append(rows[ends[start - 1] + 1 if start else 0 : ends[position]])
                return runs, taken
        elif start >= 0:
            runs.append(rows[ends[start - 1] + 1 if start else 0 : ends[position - 1]])
            start = -1
    if start >= 0:
        runs.append(rows[ends[start - 1] + 1 if start else 0 :])
    return runs, taken


def select_where(
    block: tuple[bytes, bytes], day: int, modes: int, tag: int, room: int, where: Callable[[bytes], bool]
) -> tuple[list[bytes], int]:
    """As `select`, of the rows whose bytes pass a test: slower, for the rare question an index does not answer."""
    rows = [
        entry.row
        for entry in entries_of(block)
        if entry.first <= day < entry.until
        and entry.modes & modes
        and tag in (ANY_TAG, entry.tag)
        and where(entry.row)
    ][:room]
    return rows, len(rows)


def entries_of(block: tuple[bytes, bytes]) -> Iterator[Entry]:
    """Every entry of a block, as it was packed: for checks and bulk reading."""
    index, rows = block
    count, *_ = _HEADER.unpack_from(index)
    view = memoryview(index)[_HEADER.size :]
    ends = view[8 * count : 12 * count].cast("I")
    start = 0
    for position in range(count):
        yield Entry(
            rows[start : ends[position]],
            view[: 4 * count].cast("i")[position],
            view[4 * count : 8 * count].cast("i")[position],
            view[12 * count + position],
            view[13 * count + position],
        )
        start = ends[position] + 1
