"""Rows of series and of indicators read back: a page of a list, and a few blocks (`format.series_blocks`)."""

from collections.abc import Callable
from typing import NamedTuple

from sankofa.edition.format.day_index import blocks_within
from sankofa.edition.format.row_blocks import Run, without_first
from sankofa.edition.format.series_blocks import ROWS_IN_A_BLOCK, DayRange, read_page, select
from sankofa.edition.read.edition import Edition, Selection
from sankofa.edition.read.turns import Turns
from sankofa.model.days import FOREVER

_PAGES_A_TURN = 4
_BLOCKS_A_TURN = 32


class SeriesPosition(NamedTuple):
    """Where the rows of a list of columns go on: in which column, and after how many rows of a block."""

    page: int
    key: str
    block: int
    passed: int


async def read_series(
    edition: Edition,
    kind: str,
    listed: str,
    span: DayRange,
    limit: int,
    admits: Callable[[str], bool] = lambda key: True,
    start: SeriesPosition | None = None,
) -> Selection:
    """The first rows of the columns on a list, those of one before those of the next.

    `start` is `following` of the rows before these.
    """
    taken = _Taken(edition, kind, span, limit)
    page = start.page if start else 0
    turns = Turns(_PAGES_A_TURN)
    while True:
        await turns.step()
        blocks = await edition.blocks(f"{kind}-list", listed, page, 1)
        if not blocks:
            return taken.selection()
        for one in read_page(blocks[0][1]):
            if start is not None and one.key != start.key:
                continue
            block, passed = (start.block, start.passed) if start is not None else (0, 0)
            start = None
            seen = one.oldest <= span.until and one.newest >= span.since and one.known <= span.known_on
            if seen and admits(one.key) and await taken.take(one.key, one.newest, block, passed) > limit:
                return taken.selection(page, one.key)
        page += 1


async def read_one_series(
    edition: Edition,
    kind: str,
    key: str,
    span: DayRange,
    limit: int,
    newest: int = FOREVER,
    start: SeriesPosition | None = None,
) -> Selection | None:
    """The first rows of one column that no list is needed to find; None where there is no such column.

    `newest` is a day after which there can be no row.
    """
    taken = _Taken(edition, kind, span, limit)
    block, passed = (start.block, start.passed) if start is not None else (0, 0)
    matched = await taken.take(key, newest, block, passed)
    if matched < 0:
        return None
    return taken.selection(0, key) if matched > limit else taken.selection()


class _Taken:
    """Rows on their way into an answer."""

    def __init__(self, edition: Edition, kind: str, span: DayRange, limit: int) -> None:
        self._edition = edition
        self._kind = kind
        self._span = span
        self._limit = limit
        self._runs: list[Run] = []
        self._count = 0
        self._next_row = (0, 0)
        """The block of the first row that was too many, and how many matching rows it has before that."""

    async def take(self, key: str, newest: int, block: int = 0, passed: int = 0) -> int:
        """How many rows there are now, one too many where more matched; -1 where there is no such column.

        Begins in a block, after so many matching rows of it.
        """
        span, limit = self._span, self._limit
        cut = span.until < newest or span.since > 0
        turns = Turns(_BLOCKS_A_TURN)
        skip, last = await self._within(key) if cut else (0, FOREVER)
        skip = max(skip, block)
        while skip < last:
            # An answer that begins within a block most often ends in the next.
            begun = cut or passed > 0
            most = min(last - skip, 1 + begun + (limit - self._count) // ROWS_IN_A_BLOCK)
            blocks = await self._edition.blocks(self._kind, key, skip, most)
            for number, one in enumerate(blocks, skip):
                await turns.step()
                runs, taken, more = select(one, span, passed + limit - self._count)
                self._runs += without_first(runs, passed) if passed else runs
                self._count += taken - passed
                if more:
                    self._next_row = number, taken
                    return limit + 1
                passed = 0
            if len(blocks) < most:
                return self._count if blocks or skip else -1
            skip += most
        return self._count

    async def _within(self, key: str) -> tuple[int, int]:
        """The blocks that may have rows within the days asked about."""
        first_days = await self._edition.raw(f"{self._kind}-days", key)
        if first_days is None:
            return 0, FOREVER
        return blocks_within(first_days, self._span.since, self._span.until)

    def selection(self, page: int = 0, key: str | None = None) -> Selection:
        """What was taken; the page and the key of the column that has more, if any has."""
        following = None if key is None else SeriesPosition(page, key, *self._next_row)
        return Selection(self._runs, self._count, key is not None, following=following)
