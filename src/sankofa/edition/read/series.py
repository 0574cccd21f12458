"""Rows of series and of indicators read back: a page of a list, and a few blocks (`format.series_blocks`)."""

from collections.abc import Callable
from typing import NamedTuple

from sankofa.edition.format.day_index import blocks_within
from sankofa.edition.format.row_blocks import Run, without_first
from sankofa.edition.format.series_blocks import ROWS_IN_A_BLOCK, DayRange, read_page, select
from sankofa.edition.read.edition import Edition, Selection
from sankofa.edition.read.seek import last_before
from sankofa.edition.read.turns import Turns
from sankofa.model.days import FOREVER

_PAGES_A_TURN = 4
_BLOCKS_A_TURN = 32


class SeriesStart(NamedTuple):
    """Where a list of columns goes on: on which page, in which column, at which day or before it."""

    page: int
    key: str
    until: int


async def read_series(
    edition: Edition,
    kind: str,
    listed: str,
    span: DayRange,
    limit: int,
    admits: Callable[[str], bool] = lambda key: True,
    start: SeriesStart | None = None,
) -> Selection:
    """The first rows of the columns on a list, those of one before those of the next.

    `following` of a selection is the page of its last row.
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
            until = span.until
            if start is not None:
                if (place := column_order(one.key)) < column_order(start.key):
                    continue
                if place == column_order(start.key):
                    until = min(until, start.until)
                start = None
            seen = one.oldest <= until and one.newest >= span.since and one.known <= span.known_on
            if seen and admits(one.key) and await taken.take(one.key, one.newest, until) > limit:
                return taken.selection(page)
        page += 1


def column_order(key: str) -> list[str]:
    """What the columns of a list are sorted by."""
    return key.split("|")


async def page_of(edition: Edition, kind: str, listed: str, key: str) -> int:
    """The page of a list that has a column, or would have it."""
    place = column_order(key)

    async def is_past(number: int) -> bool:
        blocks = await edition.blocks(f"{kind}-list", listed, number, 1)
        return not blocks or column_order(read_page(blocks[0][1])[0].key) > place

    return await last_before(is_past)


async def read_one_series(
    edition: Edition,
    kind: str,
    key: str,
    span: DayRange,
    limit: int,
    newest: int = FOREVER,
    passed: int = 0,
) -> Selection | None:
    """The first rows of one column that no list is needed to find; None where there is no such column.

    `newest` is a day after which there can be no row. `passed` rows are left out.
    """
    taken = _Taken(edition, kind, span, limit)
    matched = await taken.take(key, newest, span.until, passed)
    if matched < 0:
        return None
    return taken.selection(0) if matched > limit else taken.selection()


class _Taken:
    """Rows on their way into an answer."""

    def __init__(self, edition: Edition, kind: str, span: DayRange, limit: int) -> None:
        self._edition = edition
        self._kind = kind
        self._span = span
        self._limit = limit
        self._runs: list[Run] = []
        self._count = 0

    async def take(self, key: str, newest: int, until: int, passed: int = 0) -> int:
        """How many rows there are now, one too many where more matched; -1 where there is no such column.

        Begins at a day, and leaves out so many rows.
        """
        span, limit = self._span._replace(until=until), self._limit
        cut = span.until < newest or span.since > 0
        turns = Turns(_BLOCKS_A_TURN)
        skip, last = await self._within(key, span) if cut else (0, FOREVER)
        while skip < last:
            # An answer that begins within a block most often ends in the next.
            begun = cut or passed > 0
            most = min(last - skip, 1 + begun + (limit - self._count) // ROWS_IN_A_BLOCK)
            blocks = await self._edition.blocks(self._kind, key, skip, most)
            for one in blocks:
                await turns.step()
                runs, taken, more = select(one, span, passed + limit - self._count)
                left_out = min(passed, taken)
                self._runs += without_first(runs, left_out) if left_out else runs
                self._count += taken - left_out
                if more:
                    return limit + 1
                passed -= left_out
            if len(blocks) < most:
                return self._count if blocks or skip else -1
            skip += most
        return self._count

    async def _within(self, key: str, span: DayRange) -> tuple[int, int]:
        """The blocks that may have rows within the days asked about."""
        first_days = await self._edition.raw(f"{self._kind}-days", key)
        if first_days is None:
            return 0, FOREVER
        return blocks_within(first_days, span.since, span.until)

    def selection(self, page: int | None = None) -> Selection:
        """What was taken; with the page of the column that has more, if any has."""
        following = None if page is None else (page,)
        return Selection(self._runs, self._count, following is not None, following=following)
