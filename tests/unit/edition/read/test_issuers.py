"""Pages of issuers that are asked for again and again."""

from array import array

from sankofa.edition.format.issuer_pages import ISSUERS_ON_A_PAGE, Step, encode_page
from sankofa.edition.format.keys import ISSUERS
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.issuers import issuers_on
from tests.loop import wait
from tests.memory import MemoryReader

_ISSUERS = 2 * ISSUERS_ON_A_PAGE + 5
_OFTEN = 40


def an_edition() -> Edition:
    """Issuers whose figures change on days of their own."""
    issuers = [
        (b'{"number":%d,' % n, [Step(day, 1, day, day, 0) for day in range(1 + n % 7, 90, 5 + n % 3)])
        for n in range(_ISSUERS)
    ]
    firsts = range(0, _ISSUERS, ISSUERS_ON_A_PAGE)
    pages = [encode_page(issuers[first : first + ISSUERS_ON_A_PAGE]) for first in firsts]
    reader = MemoryReader()
    reader.shelve(ISSUERS, "", pages)
    reader.shelve(f"{ISSUERS}-days", "", [(b"", array("i", [_ISSUERS, *(1 for _ in pages)]).tobytes())])
    return Edition("e", reader)


def test_a_page_asked_for_often_is_the_same_and_is_not_read_again() -> None:
    edition = an_edition()
    for day in (1, 4, 30, 200):
        fresh = wait(issuers_on(an_edition(), day, None, None, 3, 100))
        for _ in range(_OFTEN):
            page = wait(issuers_on(edition, day, None, None, 3, 100))
            assert (page.rows, page.count, page.following) == (fresh.rows, fresh.count, fresh.following)
    read = edition._reader.asked  # type: ignore[attr-defined]
    wait(issuers_on(edition, 30, None, None, 3, 100))
    assert edition._reader.asked == read  # type: ignore[attr-defined]
