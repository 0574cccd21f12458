"""Finds where a list continues after a sort key, in any edition, by binary search over blocks.

`is_behind` is true for the rows after the key.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from sankofa.edition.format.row_blocks import RowSlice, between, select_where
from sankofa.edition.format.visibility import ANY_TAG
from sankofa.edition.read.edition import Edition
from sankofa.engines.block_file import Block
from sankofa.model.vintages import Mode

_EVERY_ROW: Final = 2**31 - 1

IsBehind = Callable[[RowSlice], bool]


async def last_before(is_past: Callable[[int], Awaitable[bool]]) -> int:
    """The last number that is not past a position; 0 if all are past it.

    It doubles, then halves, so the number of items need not be known.
    """
    low, step = 0, 1
    while not await is_past(low + step):
        low += step
        step *= 2
    return low + await first_past(step - 1, lambda number: is_past(low + 1 + number))


async def first_past(count: int, is_past: Callable[[int], Awaitable[bool]]) -> int:
    """The first of `count` numbers that is past a position; `count` if none is."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if await is_past(middle):
            high = middle
        else:
            low = middle + 1
    return low


async def last_block(edition: Edition, kind: str, key: str, is_past: Callable[[Block], bool]) -> int:
    """The number of the last block under a key that is not past a position; 0 if all are past it."""

    async def at(number: int) -> bool:
        blocks = await edition.blocks(kind, key, number, 1)
        return not blocks or is_past(blocks[0])

    return await last_before(at)


async def find(
    edition: Edition,
    kind: str,
    key: str,
    is_behind: IsBehind,
    *,
    day: int,
    modes: int = int(Mode.LATEST),
    tag: int = ANY_TAG,
    where: Callable[[bytes], bool] | None = None,
) -> tuple[int, int]:
    """`skip` and `passed` with which `Edition.select` begins at the first row after the key."""

    block = await last_block(edition, kind, key, lambda block: is_behind(between(block, 0, 1)))
    blocks = await edition.blocks(kind, key, block, 1)

    def is_served(row: bytes) -> bool:
        return (where is None or where(row)) and not is_behind(row)

    served = select_where(blocks[0], day, modes, tag, _EVERY_ROW, is_served)[1] if blocks else 0
    return block, served


async def find_in_list(
    edition: Edition, kind: str, is_behind: IsBehind, *, day: int, modes: int
) -> tuple[str, int, int]:
    """`start` with which `Edition.select_list` begins at the first row after the key."""
    segments = edition.segments(kind)

    async def is_past(number: int) -> bool:
        for key in segments[number:]:  # a segment may have no rows of this kind
            if blocks := await edition.blocks(kind, key, 0, 1):
                return is_behind(between(blocks[0], 0, 1))
        return True

    segment = segments[await last_before(is_past)] if segments else ""
    return segment, *await find(edition, kind, segment, is_behind, day=day, modes=modes)
