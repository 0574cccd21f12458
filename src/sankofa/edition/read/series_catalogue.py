"""The catalogue of series read back: a page of its rows, and the days of release of one series."""

from bisect import bisect_left
from collections.abc import AsyncIterator, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

from sankofa.edition.format.keys import ENTRIES_PER_BLOCK, SERIES_ENTRIES, SERIES_RELEASES
from sankofa.edition.format.release_pages import RELEASES_ON_A_PAGE, rows_of
from sankofa.edition.format.row_blocks import Run
from sankofa.edition.format.row_order import RowOrder, SortKey
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.seek import last_before
from sankofa.edition.read.turns import Turns

_ROWS_A_TURN = 64
_LONGEST_RUN = 16 * ENTRIES_PER_BLOCK

Span = tuple[int, int]
"""Some entries of the catalogue that follow one another, by their numbers [first, end)."""


CATALOGUE_ORDER: Final = RowOrder(
    "series", "vintages", "frequency", "country", ranks={"vintages": lambda vintages: vintages == 0}
)
"""The indicators of a name, which have no vintages, come behind its series."""
RELEASE_ORDER: Final = RowOrder("-release_date", "frequency", "country")


class CataloguePage(NamedTuple):
    """Rows, how many they are, and the number of the entry that the next page begins with."""

    runs: list[Run]
    row_count: int
    following: int | None


def entry_count(edition: Edition) -> int:
    return int(edition.manifest.get("rows", {}).get(SERIES_ENTRIES, 0))


async def country_entries(edition: Edition, country: str) -> memoryview:
    """The numbers of a country's entries, in order."""
    return await edition.numbers(f"{SERIES_ENTRIES}-country", country)


def entry_of(own: Sequence[int], first: int, end: int) -> int | None:
    """The first of a country's entries within [first, end); None where it has none."""
    at = bisect_left(own, first)
    return own[at] if at < len(own) and own[at] < end else None


async def catalogue_page(
    edition: Edition, spans: Sequence[Span], country: str | None, first: int, most: int
) -> CataloguePage:
    """The entries within spans, from a number on, of a country where one is given."""
    own = None if country is None else await country_entries(edition, country)
    runs: list[Run] = []
    count = 0
    turns = Turns(_ROWS_A_TURN)
    for start, end in _runs(spans, own, first):
        if count == most:
            return CataloguePage(runs, count, start)
        stop = min(end, start + most - count)
        runs += await edition.rows(SERIES_ENTRIES, "", ENTRIES_PER_BLOCK, start, stop)
        count += stop - start
        await turns.step(8)
        if stop < end:
            return CataloguePage(runs, count, stop)
    return CataloguePage(runs, count, None)


async def entry_behind(edition: Edition, key: SortKey) -> int:
    """The number of the first entry of the catalogue behind a sort key."""
    is_behind, count = CATALOGUE_ORDER.behind(key), entry_count(edition)

    async def is_past(number: int) -> bool:
        if number >= count:
            return True
        (row,) = await edition.rows(SERIES_ENTRIES, "", ENTRIES_PER_BLOCK, number, number + 1)
        return is_behind(row)

    return 0 if await is_past(0) else 1 + await last_before(is_past)


def _runs(spans: Sequence[Span], own: Sequence[int] | None, first: int) -> Iterator[Span]:
    """The entries to be read, neighbours together."""
    for start, end in spans:
        start = max(start, first)
        if own is None:
            yield from ((at, min(at + _LONGEST_RUN, end)) for at in range(start, end, _LONGEST_RUN))
            continue
        at = bisect_left(own, start)
        while at < len(own) and own[at] < end:
            run = at + 1
            while run < len(own) and own[run] < end and own[run] == own[run - 1] + 1:
                run += 1
            yield own[at], own[run - 1] + 1
            at = run


async def release_rows(
    edition: Edition, series: str, first: int, most: int
) -> tuple[list[bytes], bool] | None:
    """Rows of the releases of a series by number, and whether more follow; None where it has none."""
    if not await edition.holds(SERIES_RELEASES, series):
        return None
    rows: list[bytes] = []
    async for row in _releases(edition, series, first):
        if len(rows) == most:
            return rows, True
        rows.append(row)
    return rows, False


async def release_behind(edition: Edition, series: str, key: SortKey) -> int:
    """The number of the first release of a series behind a sort key."""
    is_behind = RELEASE_ORDER.behind(key)
    number = 0
    async for row in _releases(edition, series, 0):
        if is_behind(row):
            break
        number += 1
    return number


async def _releases(edition: Edition, series: str, first: int) -> AsyncIterator[bytes]:
    page, skip = divmod(first, RELEASES_ON_A_PAGE)
    turns = Turns(1)
    while blocks := await edition.blocks(SERIES_RELEASES, series, page, 1):
        for row in islice(rows_of(blocks[0][1]), skip, None):
            yield row
        await turns.step()
        page, skip = page + 1, 0
