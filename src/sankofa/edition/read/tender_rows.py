"""Releases by their number: whole, in their compact form, and with their sort key.

The compact form of a release and its sort key are computed a block at a time and cached.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple

from sankofa.edition.format.keys import TENDERS, TENDERS_PER_BLOCK
from sankofa.edition.format.row_blocks import LONGEST_TEXT, Run, SortKey
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.yield_points import YieldPoints

_ROWS_PER_YIELD: Final = 256
_BLOCKS_PER_YIELD: Final = 8
_RELEASE: Final = b',"release":'
_BEGINNING: Final = 4_096
_NEWEST_FIRST: Final = bytes(255 - n for n in range(256))


class Brief(NamedTuple):
    """The sort key of a release among all countries, and its compact row."""

    place: tuple[bytes, bytes, bytes]
    row: bytes


def without_release(row: Run) -> bytes:
    """A tender row without its last field, the release. Inside a text its quotes would be escaped."""
    head = bytes(row[:_BEGINNING])  # the release may be a thousand times as long
    if _RELEASE not in head:
        head = bytes(row)
    return head[: head.index(_RELEASE)] + b"}"


async def compact_rows(edition: Edition, country: str, numbers: Sequence[int]) -> list[Run]:
    rows: list[Run] = []
    yield_points = YieldPoints(_ROWS_PER_YIELD)
    for number in numbers:
        block, row = divmod(number, TENDERS_PER_BLOCK)
        rows.append((await briefs(edition, country, block))[row].row)
        await yield_points.step()
    return rows


async def single_rows(edition: Edition, country: str, numbers: Sequence[int]) -> list[Run]:
    """Rows by number, one slice each."""
    yield_points = YieldPoints(_BLOCKS_PER_YIELD)
    runs: list[Run] = []
    for number in numbers:
        runs += await edition.single_rows(TENDERS, country, TENDERS_PER_BLOCK, number, number + 1)
        await yield_points.step()
    return runs


async def briefs(edition: Edition, country: str, block: int) -> Sequence[Brief]:
    """The sort keys and compact rows of the releases of a block, cached."""
    kept: Sequence[Brief] | None = edition.kept_parts.get((TENDERS, country, block))
    if kept is None:
        first = block * TENDERS_PER_BLOCK
        rows = await edition.single_rows(
            TENDERS, country, TENDERS_PER_BLOCK, first, first + TENDERS_PER_BLOCK
        )
        kept = [_brief(row) for row in rows]
        await asyncio.sleep(0)  # many countries take long
        edition.keep_part((TENDERS, country, block), kept)
    return kept


def _brief(row: Run) -> Brief:
    compact = without_release(row)
    return Brief(place_of(*_sort_fields(compact)), compact)


def _sort_fields(compact: bytes) -> tuple[bytes, bytes, bytes]:
    """The release date, ocid and release id of a compact row, as written."""
    return _text(compact, b'"release_date":"'), _text(compact, b'"ocid":"'), _text(compact, b'"release_id":"')


def place_of(released: bytes, ocid: bytes, release_id: bytes) -> tuple[bytes, bytes, bytes]:
    """The sort key of a release among all countries."""
    # A longer instant is later and sorts first, so the end of the text sorts last.
    return released.rstrip(b"Z").translate(_NEWEST_FIRST) + b"\xff", ocid, release_id


def tender_key(row: bytes) -> SortKey:
    """The sort key of a row of tenders: release date, ocid, release id and country."""
    compact = without_release(row) if _RELEASE in row else row
    fields = (*_sort_fields(compact), _text(compact, b'"country":"'))
    return tuple(str(field[:LONGEST_TEXT], "utf-8", "ignore") for field in fields)


def _text(row: bytes, field: bytes) -> bytes:
    """A text field of an encoded row, as written."""
    start = row.index(field) + len(field)
    return row[start : row.index(b'"', start)]
