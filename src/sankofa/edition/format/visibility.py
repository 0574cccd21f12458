"""Visibility of rows, the first row of each day, and counts of what was known on each day.

A row is visible on the days [first, until), to some modes, and has a tag to filter by. This module defines
the range test. Blocks, series, the order of facts, Arrow columns and the screen index each implement it with
their own index; `tests/unit/edition/format/test_visibility.py` compares all of them with it.

A day index has one of two shapes: the number of the first row of each day (`DayRows`), or, if days are many
and blocks few, the day of the first row of each block (`first_day_of_blocks`, `blocks_within`).

`KnownCounts` are running totals by dataset, country and source for locked views (contract: LOCK-3), one step
for each day on which something became known.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from operator import neg
from typing import Final, NamedTuple

import msgspec

from sankofa.model.days import FOREVER

ANY_TAG: Final = -1
"""Asks for rows of every tag."""

AS_KNOWN: Final = 64
"""The mode that sees derived rows of `basis=as_known`; LATEST sees those of `basis=current`."""

KIND_MODES: Final = {"income": 8, "balance": 16, "cash": 32}
"""The modes that see rows of one kind of statement; LATEST sees all rows."""


def visible(first: int, until: int, day: int) -> bool:
    """Whether a row that is visible on the days [first, until) is visible on this day."""
    return first <= day < until


def rows_visible_on(day: int, firsts: Sequence[int], untils: Sequence[int]) -> list[int]:
    """The numbers of the rows that are visible on a day, out of the columns of their first and until days."""
    return [
        row for row, (first, until) in enumerate(zip(firsts, untils, strict=True)) if first <= day < until
    ]


def admitted(row_modes: int, row_tag: int, modes: int, tag: int) -> bool:
    """Whether a row is visible to one of the modes, and has the tag."""
    return bool(row_modes & modes) and tag in (ANY_TAG, row_tag)


def day_rows(days: Sequence[int], *, ended: bool) -> "array[int]":
    """Pairs of a day and the number of its first row, from the day of each row, newest first. `ended` adds a
    last pair with the number of rows."""
    pairs = array("i")
    for row, day in enumerate(days):
        if not row or days[row - 1] != day:
            pairs.extend((day, row))
    return pairs + array("i", (0, len(days))) if ended else pairs


class DayRows:
    def __init__(self, pairs: Sequence[int]) -> None:
        self._pairs = pairs

    def __bool__(self) -> bool:
        return len(self._pairs) > 0

    def first_row(self, day: int) -> int | None:
        """The number of the first row on this day or earlier; None if there is none."""
        n = bisect_left(range(len(self._pairs) // 2), -day, key=lambda n: -self._pairs[2 * n])
        return None if 2 * n == len(self._pairs) else int(self._pairs[2 * n + 1])

    # The methods below need the pair for the end.

    @property
    def count(self) -> int:
        return int(self._pairs[len(self._pairs) - 1]) if self else 0

    def days(self) -> list[int]:
        return list(self._pairs[:-2:2])

    def day_of(self, row: int) -> int:
        n = bisect_right(range(len(self._pairs) // 2), row, key=lambda n: self._pairs[2 * n + 1])
        return int(self._pairs[2 * n - 2])

    def rows_of(self, day: int) -> tuple[int, int]:
        """The numbers [first, end) of the rows of a day."""
        if not self:
            return 0, 0
        following = self.first_row(day - 1)
        return self.first_row(day) or 0, self.count if following is None else following


def first_day_of_blocks(days: Sequence[int], rows_per_block: int) -> bytes:
    """The day of the first row of each block; `days` has the day of every row, newest first."""
    return array("i", days[::rows_per_block]).tobytes()


def blocks_within(first_days: bytes | memoryview, since: int = 0, until: int = FOREVER) -> tuple[int, int]:
    """The blocks [first, end) that may have rows of the days from `since` up to `until`."""
    newest = memoryview(first_days).cast("i")
    first = bisect_left(newest, -until, key=neg) - 1
    return max(0, first), bisect_right(newest, -since, key=neg)


class CountOnDay(NamedTuple):
    """The totals of one dataset, country and source on a day."""

    day: int
    """The last day on which something became known."""
    counted: int
    rows: int
    first: int
    last: int
    """The earliest and the latest date of the data; 0 for none."""
    published: int
    """The newest evidenced day of publication; 0 for none."""


class KnownCounts(msgspec.Struct, frozen=True, array_like=True):
    """The steps of a key. Records of sources of identifiers have no sku."""

    sku: str
    country: str
    source_id: str
    unit: str
    steps: bytes
    """32-bit numbers: the fields of `CountOnDay`, column by column."""

    def on(self, day: int) -> CountOnDay | None:
        """The counts on a day; None if nothing was known."""
        columns = memoryview(self.steps).cast("i")
        size = len(columns) // len(CountOnDay._fields)
        step = bisect_right(columns[:size], day) - 1
        return None if step < 0 else CountOnDay(*columns[step::size])


def pack_steps(steps: Iterable[CountOnDay]) -> bytes:
    """Steps in the order of their days."""
    return b"".join(array("i", column).tobytes() for column in zip(*steps, strict=True))


read_known_counts = msgspec.msgpack.Decoder(list[KnownCounts]).decode
write_known_counts = msgspec.msgpack.Encoder().encode
