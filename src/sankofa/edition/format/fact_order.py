"""Blocks of `fact_order`: where the facts of a country stand, in their order, and when each is seen.

A block is five columns of 32-bit numbers: the days [first, until) of each fact, and the block, start and end
of its row.
"""

from array import array
from collections.abc import Sequence

from sankofa.edition.format.row_blocks import Run
from sankofa.engines.datastore import ByteRange

FactRange = tuple[int, int, ByteRange]
"""The days [first, until) on which a fact is seen, and where its row stands."""


def encode_ranges(facts: Sequence[FactRange]) -> bytes:
    """The facts of one block."""
    columns = zip(*((first, until, *byte_range) for first, until, byte_range in facts), strict=True)
    return b"".join(array("i", column).tobytes() for column in columns)


def first_range(block: Run) -> ByteRange:
    """Where the first fact of a block stands."""
    numbers = memoryview(block).cast("i")
    count = len(numbers) // 5
    return numbers[2 * count], numbers[3 * count], numbers[4 * count]


def visible_ranges(block: Run, day: int) -> list[ByteRange]:
    """Where the facts of a block stand that are seen on a day."""
    numbers = memoryview(block).cast("i")
    count = len(numbers) // 5
    firsts, untils, blocks, starts, ends = (numbers[n * count : (n + 1) * count].tolist() for n in range(5))
    return [
        (number, start, end)
        for first, until, number, start, end in zip(firsts, untils, blocks, starts, ends, strict=True)
        if first <= day < until
    ]
