"""The read side of issuers: a page of those that were known on a day."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice

from sankofa.edition.format.issuer_pages import (
    ISSUERS_ON_A_PAGE,
    RUNS_IN_A_ROW,
    PagePieces,
    pieces_of,
    rows_on,
)
from sankofa.edition.format.keys import ISSUERS, listed_under
from sankofa.edition.format.row_blocks import Run
from sankofa.edition.read.edition import Edition, Selection
from sankofa.edition.read.turns import Turns
from sankofa.engines.datastore import Block

_PAGES_A_TURN = 8
_PAGES_AT_ONCE = 16
_PAGES_KEPT_WHOLE = 8
"""The first, with which every walk begins: some 400 KB each in memory, with the histories of 64 issuers."""
_OFTEN = 32


async def issuers_on(
    edition: Edition, day: int, country: str | None, exchange: str | None, first: int, most: int
) -> Selection:
    """Those known on a day, from the one of a number on; `following` is the number of the next."""
    counted = await edition.numbers(f"{ISSUERS}-days", "", keep=True)
    if not len(counted):
        return Selection((), 0, truncated=False)
    if country is None and exchange is None:
        by_page = _every_page(counted[0], first)
    else:
        own = await edition.numbers(f"{ISSUERS}-list", listed_under(country, exchange))
        by_page = _by_page(own, first)
    runs: list[Run] = []
    turns = Turns(_PAGES_A_TURN)
    pages = ((page, wanted) for page, wanted in by_page if counted[1 + page] <= day)
    # As many pages as it takes where every issuer is known, the one after the last of them included.
    at_once = min(1 + (first % ISSUERS_ON_A_PAGE + most) // ISSUERS_ON_A_PAGE, _PAGES_AT_ONCE)
    while together := list(islice(pages, at_once)):
        start, end = together[0][0], together[-1][0] + 1
        close = end - start <= 2 * at_once
        blocks = await edition.blocks(ISSUERS, "", start, end - start) if close else ()
        for page, wanted in together:
            block = blocks[page - start] if close else (await edition.blocks(ISSUERS, "", page, 1))[0]
            await turns.step()
            pieces = _kept_pieces(edition, page, block)
            known = rows_on(block, day, wanted, most - len(runs) // RUNS_IN_A_ROW, pieces)
            runs += known.runs
            if known.following is not None:
                return _selection(runs, (page * ISSUERS_ON_A_PAGE + known.following,))
    return _selection(runs, None)


class _Read:
    """A page that was read, and how often."""

    __slots__ = ("pieces", "times")

    def __init__(self, pieces: PagePieces) -> None:
        self.pieces = pieces
        self.times = 0


def _kept_pieces(edition: Edition, page: int, block: Block) -> PagePieces:
    """The pieces of a page. The ends of its rows are many: those of the few pages read most are kept."""
    read: _Read | None = edition.kept_parts.get((ISSUERS, "", page))
    if read is None:
        read = _Read(pieces_of(block))
        edition.keep_part((ISSUERS, "", page), read)
    read.times += 1
    if page < _PAGES_KEPT_WHOLE and read.times == _OFTEN:
        read.pieces = pieces_of(block, ends=True)
    return read.pieces


def _selection(runs: list[Run], following: tuple[int] | None) -> Selection:
    """Rows of pages, of which the first has no comma before it."""
    if runs:
        runs[0] = runs[0][1:]
    count = len(runs) // RUNS_IN_A_ROW
    return Selection(
        runs, count, following is not None, between=b"", runs_in_a_row=RUNS_IN_A_ROW, following=following
    )


def _every_page(issuers: int, first: int) -> Iterator[tuple[int, Sequence[int]]]:
    """The same of every issuer, of whom there are so many."""
    while first < issuers:
        page, number = divmod(first, ISSUERS_ON_A_PAGE)
        begin = first - number
        first = min(begin + ISSUERS_ON_A_PAGE, issuers)
        yield page, range(number, first - begin)


def _by_page(own: Sequence[int], first: int) -> Iterator[tuple[int, Sequence[int]]]:
    """The pages that issuers are on, with their numbers there, from the issuer of a number on."""
    at = bisect_left(own, first)
    while at < len(own):
        page = own[at] // ISSUERS_ON_A_PAGE
        begin = page * ISSUERS_ON_A_PAGE
        end = bisect_left(own, begin + ISSUERS_ON_A_PAGE, at)
        yield page, [issuer - begin for issuer in own[at:end]]
        at = end
