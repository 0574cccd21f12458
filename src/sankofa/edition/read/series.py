"""Rows of series and of indicators read back: a page of a list, and a few blocks (`format.series_blocks`)."""

from collections.abc import Callable

from sankofa.edition.format.day_index import blocks_within
from sankofa.edition.format.row_blocks import Run
from sankofa.edition.format.series_blocks import ROWS_IN_A_BLOCK, DayRange, read_page, select
from sankofa.edition.read.edition import Edition, Selection
from sankofa.edition.read.turns import Turns
from sankofa.model.days import FOREVER

_PAGES_A_TURN = 4
_BLOCKS_A_TURN = 32


async def read_series(
    edition: Edition,
    kind: str,
    listed: str,
    span: DayRange,
    limit: int,
    admits: Callable[[str], bool] = lambda key: True,
) -> Selection:
    """The first rows of the columns on a list, those of one before those of the next."""
    taken = _Taken(edition, kind, span, limit)
    page = 0
    turns = Turns(_PAGES_A_TURN)
    while True:
        await turns.step()
        blocks = await edition.blocks(f"{kind}-list", listed, page, 1)
        if not blocks:
            return taken.selection(truncated=False)
        for one in read_page(blocks[0][1]):
            passed = one.oldest > span.until or one.newest < span.since or one.known > span.known_on
            if not passed and admits(one.key) and await taken.take(one.key, one.newest) > limit:
                return taken.selection(truncated=True)
        page += 1


async def read_one_series(
    edition: Edition, kind: str, key: str, span: DayRange, limit: int, newest: int = FOREVER
) -> Selection | None:
    """The first rows of one column that no list is needed to find; None where there is no such column.

    `newest` is a day after which there can be no row.
    """
    taken = _Taken(edition, kind, span, limit)
    matched = await taken.take(key, newest)
    return None if matched < 0 else taken.selection(truncated=matched > limit)


class _Taken:
    """Rows on their way into an answer."""

    def __init__(self, edition: Edition, kind: str, span: DayRange, limit: int) -> None:
        self._edition = edition
        self._kind = kind
        self._span = span
        self._limit = limit
        self._runs: list[Run] = []
        self._count = 0

    async def take(self, key: str, newest: int) -> int:
        """How many rows there are now, one too many where more matched; -1 where there is no such column."""
        span, limit = self._span, self._limit
        cut = span.until < newest or span.since > 0
        turns = Turns(_BLOCKS_A_TURN)
        skip, last = await self._within(key) if cut else (0, FOREVER)
        while skip < last:
            # An answer that begins within a block most often ends in the next.
            most = min(last - skip, 1 + cut + (limit - self._count) // ROWS_IN_A_BLOCK)
            blocks = await self._edition.blocks(self._kind, key, skip, most)
            for block in blocks:
                await turns.step()
                runs, taken, more = select(block, span, limit - self._count)
                self._runs += runs
                self._count += taken
                if more:
                    return limit + 1
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

    def selection(self, *, truncated: bool) -> Selection:
        return Selection(self._runs, self._count, truncated)
