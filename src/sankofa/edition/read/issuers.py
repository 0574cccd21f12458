"""The read side of issuers: a page of those that were known on a day."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from sankofa.edition.format.issuer_pages import ISSUERS_ON_A_PAGE, rows_on
from sankofa.edition.format.keys import ISSUERS, listed_under
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.turns import Turns

_PAGES_A_TURN = 8
_PAGES_AT_ONCE = 16


class IssuerPage(NamedTuple):
    """Rows, and the number of the issuer that the next page begins with; None on the last."""

    rows: list[bytes]
    following: int | None


async def issuers_on(
    edition: Edition, day: int, country: str | None, exchange: str | None, first: int, most: int
) -> IssuerPage:
    """Those known on a day, from the one of a number on."""
    counted = await edition.numbers(f"{ISSUERS}-days", "", keep=True)
    if not len(counted):
        return IssuerPage([], None)
    if country is None and exchange is None:
        own: Sequence[int] = range(counted[0])
    else:
        own = await edition.numbers(f"{ISSUERS}-list", listed_under(country, exchange))
    rows: list[bytes] = []
    turns = Turns(_PAGES_A_TURN)
    pages = ((page, wanted) for page, wanted in _by_page(own, first) if counted[1 + page] <= day)
    at_once = min(2 + most // ISSUERS_ON_A_PAGE, _PAGES_AT_ONCE)
    while together := list(islice(pages, at_once)):
        start, end = together[0][0], together[-1][0] + 1
        close = end - start <= 2 * at_once
        blocks = await edition.blocks(ISSUERS, "", start, end - start) if close else ()
        for page, wanted in together:
            block = blocks[page - start] if close else (await edition.blocks(ISSUERS, "", page, 1))[0]
            await turns.step()
            for number, row in rows_on(block, day, wanted):
                if len(rows) == most:
                    return IssuerPage(rows, page * ISSUERS_ON_A_PAGE + number)
                rows.append(row)
    return IssuerPage(rows, None)


def _by_page(own: Sequence[int], first: int) -> Iterator[tuple[int, Sequence[int]]]:
    """The pages that issuers are on, with their numbers there, from the issuer of a number on."""
    at = bisect_left(own, first)
    while at < len(own):
        page = own[at] // ISSUERS_ON_A_PAGE
        begin = page * ISSUERS_ON_A_PAGE
        end = bisect_left(own, begin + ISSUERS_ON_A_PAGE, at)
        yield page, [issuer - begin for issuer in own[at:end]]
        at = end
