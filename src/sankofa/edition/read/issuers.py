"""The read side of issuers: a page of those that were known on a day."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice

from sankofa.edition.format.issuer_pages import (
    ISSUERS_ON_A_PAGE,
    RUNS_IN_A_ROW,
    PageIndex,
    PagePieces,
    pieces_of,
    rows_on,
)
from sankofa.edition.format.keys import ISSUERS, listed_under
from sankofa.edition.format.row_blocks import Run
from sankofa.edition.format.row_order import SortKey
from sankofa.edition.read.edition import Edition, Selection
from sankofa.edition.read.seek import last_before
from sankofa.edition.read.turns import Turns
from sankofa.engines.datastore import Block

_PAGES_A_TURN = 8
_PAGES_AT_ONCE = 16
_PAGES_KEPT_WHOLE = 8
"""The first, with which every walk begins: some 400 KB each in memory, with the histories of 64 issuers."""
_OFTEN = 32
_COUNTRY = b'"country":'
_SERVICE_ID = b'"service_id":"'


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
        read = await _read_pages(edition, [page for page, _ in together], at_once)
        for (page, wanted), (block, kept) in zip(together, read, strict=True):
            await turns.step()
            room = most - len(runs) // RUNS_IN_A_ROW
            known = rows_on(block, day, wanted, room, kept.pieces, kept.index)
            runs += known.runs
            if known.following is not None:
                return _selection(runs, (page * ISSUERS_ON_A_PAGE + known.following,))
    return _selection(runs, None)


async def issuer_behind(edition: Edition, key: SortKey) -> int:
    """The number of the first issuer behind a sort key."""
    counted = await edition.numbers(f"{ISSUERS}-days", "", keep=True)
    if not len(counted):
        return 0

    async def is_past(number: int) -> bool:
        if number >= counted[0]:
            return True
        page, own = divmod(number, ISSUERS_ON_A_PAGE)
        ((_, kept),) = await _read_pages(edition, [page], 1)
        return issuer_key(bytes(kept.pieces.beginnings[own])) > key

    return 0 if await is_past(0) else 1 + await last_before(is_past)


def issuer_key(row: bytes) -> SortKey:
    """The sort key of a row, of which the end may be missing: its country, those of none last, and its id."""
    start = row.index(_COUNTRY) + len(_COUNTRY)
    country = row[start : row.index(b",", start)].strip(b'"').decode()
    start = row.index(_SERVICE_ID) + len(_SERVICE_ID)
    return "~" if country == "null" else country, row[start : row.index(b'"', start)].decode()


class _KeptPage:
    """A page that was read, and how often."""

    __slots__ = ("index", "pieces", "times", "without_text")

    def __init__(self, block: Block) -> None:
        self.pieces: PagePieces = pieces_of(block)
        self.index = PageIndex(block[0]) if isinstance(block[0], memoryview) else None
        """Of a mapped file, which takes no memory, and of a page that is kept whole."""
        self.times = 0
        self.without_text: Block | None = None
        """The page where its text is not needed any more, as it is kept in pieces."""


async def _read_pages(edition: Edition, pages: list[int], at_once: int) -> list[tuple[Block, _KeptPage]]:
    """Some pages in their order, none of them read that is kept whole."""
    kept: list[tuple[Block, _KeptPage]] = []
    for page in pages:
        known: _KeptPage | None = edition.kept_parts.get((ISSUERS, "", page))
        if known is None or known.without_text is None:
            break
        kept.append((known.without_text, known))
    if len(kept) == len(pages):
        return kept
    start, end = pages[0], pages[-1] + 1
    if end - start <= 2 * at_once:  # close to each other: in one read
        together = await edition.blocks(ISSUERS, "", start, end - start)
        blocks = [together[page - start] for page in pages]
    else:
        blocks = [(await edition.blocks(ISSUERS, "", page, 1))[0] for page in pages]
    return [(block, _kept_page(edition, page, block)) for page, block in zip(pages, blocks, strict=True)]


def _kept_page(edition: Edition, page: int, block: Block) -> _KeptPage:
    """The pieces of a page. The ends of its rows are many: those of the few pages read most are kept."""
    kept: _KeptPage | None = edition.kept_parts.get((ISSUERS, "", page))
    if kept is None:
        kept = _KeptPage(block)
        edition.keep_part((ISSUERS, "", page), kept)
    kept.times += 1
    if page < _PAGES_KEPT_WHOLE and kept.times == _OFTEN:
        kept.pieces = pieces_of(block, ends=True)
        kept.index = kept.index or PageIndex(block[0])
        kept.without_text = block[0], b""
    return kept


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
