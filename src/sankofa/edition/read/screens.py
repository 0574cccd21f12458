"""The read side of screens: who leads a metric on a day, off a page that is already in order."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from itertools import chain, compress, islice

import msgspec

from sankofa.edition.format.row_order import RowOrder, SortKey
from sankofa.edition.format.screen_index import (
    AS_OF,
    BYTE_RANGE,
    DAYS_PER_MARK,
    EVERYWHERE,
    LAST_DAY,
    SCREEN,
    SCREEN_RANGES,
    STANDING,
    STATES,
)
from sankofa.edition.read.edition import Edition, Selection
from sankofa.edition.read.seek import last_before
from sankofa.engines.datastore import ByteRange
from sankofa.model.rows import REASONS, State

_LISTED = 10_000
_EVERYBODY = 2**31 - 1
_AT_ONCE = 256  # marks that are looked at together

_REASONS = tuple((int(state), reason) for state, reason in REASONS.items())
_RANKS = (b'{"rank":1,', *(b',{"rank":%d,' % rank for rank in range(2, _LISTED + 1)))


class Screen(msgspec.Struct, frozen=True):
    """The rows of a screen, ranked, and how many issuers have none, by reason."""

    selection: Selection
    omitted: dict[str, int]


async def screen(
    edition: Edition,
    metric: str,
    country: str | None,
    day: date,
    *,
    smallest_first: bool,
    most: int,
    after: int = 0,
) -> Screen:
    """The first so many by size after a rank, on a day, of a country or of all."""
    pages = await _pages(edition, metric, country, day)
    if pages is None:
        return Screen(Selection((), 0, truncated=False), omissions([0] * STATES))
    last = after + most
    counts, ranges = _read(*pages, day.toordinal(), smallest_first, after, last)
    rows = await edition.rows_at("metrics", ranges)
    more = counts[State.STANDS] > last
    selection = Selection(
        _ranked(rows, day, after),
        len(rows),
        truncated=more,
        between=b"",
        runs_in_a_row=3,
        following=(last,) if more else None,
    )
    return Screen(selection, omissions(counts))


async def rank_of(
    edition: Edition, metric: str, country: str | None, day: date, key: SortKey, *, smallest_first: bool
) -> int:
    """How many stand before the first value behind a sort key."""
    pages = await _pages(edition, metric, country, day)
    if pages is None:
        return 0
    _, ranges = _read(*pages, day.toordinal(), smallest_first, 0, _EVERYBODY)
    is_behind = screen_order(smallest_first=smallest_first).behind(key)

    async def is_past(number: int) -> bool:
        if number >= len(ranges):
            return True
        (row,) = await edition.rows_at("metrics", ranges[number : number + 1])
        return is_behind(b"{%b" % bytes(row))

    return 0 if await is_past(0) else 1 + await last_before(is_past)


def screen_order(*, smallest_first: bool) -> RowOrder:
    return _SMALLEST_FIRST if smallest_first else _LARGEST_FIRST


_SMALLEST_FIRST = RowOrder("value", "service_id", ranks={"value": Decimal})
_LARGEST_FIRST = RowOrder("-value", "service_id", ranks={"value": Decimal})


async def _pages(
    edition: Edition, metric: str, country: str | None, day: date
) -> tuple[memoryview, memoryview, int] | None:
    """The page of the year of a day, the byte ranges of its rows, and the year that it is found under."""
    if not (years := edition.manifest.get("screen_years")):
        return None
    year: int = years[max(bisect_right(years, day.year) - 1, 0)]
    key = f"{metric}|{country or EVERYWHERE}|{year}"
    page, stored_ranges = await edition.raw(SCREEN, key), await edition.raw(SCREEN_RANGES, key)
    if page is None or stored_ranges is None:
        return None
    return memoryview(page), memoryview(stored_ranges), year


def _ranked(rows: Sequence[bytes | memoryview], day: date, after: int) -> list[bytes | memoryview]:
    """Rows behind their rank and the day applied, in parts that follow one another."""
    count = len(rows)
    ranks = _RANKS[after : after + count]
    if after + count > _LISTED:
        beyond = range(max(after, _LISTED) + 1, after + count + 1)
        ranks += tuple(b',{"rank":%d,' % rank for rank in beyond)
    if after and count:
        ranks = (ranks[0].removeprefix(b","), *ranks[1:])
    parts: list[bytes | memoryview] = [b'"as_of":"%b",' % day.isoformat().encode()] * (3 * count)
    parts[0::3] = ranks
    parts[2::3] = rows
    return parts


def omissions(counts: Sequence[int]) -> dict[str, int]:
    """Counts by state as the envelope has them: by reason."""
    return {reason: counts[state] for state, reason in _REASONS}


def dated(rows: bytes, day: date) -> bytes:
    """Rows with the day applied."""
    return rows.replace(AS_OF, b'"as_of":"%b"' % day.isoformat().encode())


def _read(
    page: memoryview,
    ranges: memoryview,
    year: int,
    day: int,
    smallest_first: bool,
    after: int,
    last: int,
) -> tuple[list[int], list[ByteRange]]:
    """The counts by state on a day, and where the rows after a rank are; of each the part behind its day."""
    words = page.cast("I")
    days = words[0]
    tally = bisect_right(page[4 : 4 + 4 * days].cast("i"), day) - 1
    at = 1 + days + STATES * tally
    counts: list[int] = words[at : at + STATES].tolist()
    at = 1 + days + STATES * days
    size = words[at]
    order = 4 * (at + 1)
    marks = order + 4 * size
    # What stands after the last year stands on its last day; before the first, by the counts, nothing does.
    marked, of_them = divmod(min(max(day - date(year, 1, 1).toordinal(), 0), LAST_DAY), DAYS_PER_MARK)
    marks += marked * size
    own, standing = page[marks : marks + size], STANDING[of_them]
    listed: Iterator[ByteRange]
    if smallest_first:
        numbers = (n for n in page[order : order + 4 * size].cast("I") if standing[own[n]])
        listed = (BYTE_RANGE.unpack_from(ranges, BYTE_RANGE.size * n) for n in numbers)
    else:
        runs = (bytes(own[n : n + _AT_ONCE]).translate(standing) for n in range(0, size, _AT_ONCE))
        listed = compress(BYTE_RANGE.iter_unpack(ranges), chain.from_iterable(runs))
    return counts, list(islice(listed, after, max(after, min(last, counts[State.STANDS]))))
