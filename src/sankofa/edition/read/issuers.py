"""Reads lists of issuers known on a day, and screens, which rank issuers by a metric."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from itertools import chain, compress, groupby, islice
from typing import Final, NamedTuple

from sankofa.edition.format.issuer_pages import (
    AS_OF,
    BYTE_RANGE,
    DAYS_PER_MARK,
    EVERYWHERE,
    ISSUERS_ON_A_PAGE,
    LAST_DAY,
    MARKS_PER_YEAR,
    MOVED_ISSUERS,
    PERIOD_END,
    SCREEN,
    SCREEN_RANGES,
    SLICES_PER_ROW,
    STATES,
    VALID_ON,
    IssuerPage,
    MovedIssuer,
    read_moved,
)
from sankofa.edition.format.keys import ISSUERS, listed_under
from sankofa.edition.format.row_blocks import RowOrder, RowSlice, SortKey
from sankofa.edition.read.edition import Edition, Selection
from sankofa.edition.read.row_forms import SingleRows
from sankofa.edition.read.seek import first_past
from sankofa.edition.read.yield_points import YieldPoints
from sankofa.engines.block_file import ByteRange
from sankofa.model.rows import REASONS, State

_PAGES_PER_YIELD = 8
_PAGES_AT_ONCE = 16
_ORDERS_KEPT = 4
_COUNTRY = b'"country":'
_SERVICE_ID = b'"service_id":"'


class IssuerOrder(NamedTuple):
    """The issuers in the order of a day: by country, without a country last, then by service_id."""

    edition: Edition
    numbers: Sequence[int]
    moved: Mapping[str, SortKey]
    """The sort keys of issuers that were then in another country than today, by service_id."""

    def key(self, row: bytes) -> SortKey:
        key = issuer_key(row)
        return self.moved.get(str(key[1]), key)

    async def behind(self, key: SortKey, *, or_at: bool = False) -> int:
        """The position of the first issuer at or after a sort key."""

        async def is_past(position: int) -> bool:
            page, own = divmod(self.numbers[position], ISSUERS_ON_A_PAGE)
            ((_, cached),) = await _read_pages(self.edition, [page], 1)
            other = self.key(cached.beginning(own))
            return other > key or (or_at and other == key)

        return await first_past(len(self.numbers), is_past)


async def issuers_in_order(edition: Edition, day: int) -> IssuerOrder:
    """Issuers are stored in today's order; an issuer that was in another country on the day is moved
    there."""
    counted = await edition.numbers(f"{ISSUERS}-days", "", keep=True)
    everybody = range(counted[0] if len(counted) else 0)
    name = (MOVED_ISSUERS, "", 0)
    moved: list[MovedIssuer] | None = edition.parts.get(name)
    if moved is None:
        moved = read_moved(await edition.raw(MOVED_ISSUERS, "") or b"\x90")
        edition.parts.put(name, moved)
    if not moved or day >= moved[0].until:  # none moved later
        return IssuerOrder(edition, everybody, {})
    spells = [one for one in moved if one.first <= day < one.until]
    if not spells:
        return IssuerOrder(edition, everybody, {})
    orders = edition.cache("issuer orders", _ORDERS_KEPT)
    numbers: list[int] | None = orders.get(day)
    if numbers is None:
        elsewhere = {one.number for one in spells}
        numbers, start = [], 0
        for one in sorted(spells, key=lambda one: (one.before, one.key)):
            numbers += [n for n in range(start, one.before) if n not in elsewhere]
            numbers.append(one.number)
            start = one.before
        numbers += [n for n in range(start, len(everybody)) if n not in elsewhere]
        orders.put(day, numbers)
    return IssuerOrder(edition, numbers, {one.key[1]: one.key for one in spells})


async def issuers_on(
    order: IssuerOrder, day: int, country: str | None, exchange: str | None, first: int, most: int
) -> Selection:
    """Issuers known on a day, from a position on; `following` is the position of the next."""
    edition = order.edition
    counted = await edition.numbers(f"{ISSUERS}-days", "", keep=True)
    if not len(counted):
        return Selection((), 0, truncated=False)
    positions: Sequence[int] = range(first, len(order.numbers))
    if country is not None or exchange is not None:
        spells = await edition.numbers(f"{ISSUERS}-list", listed_under(country, exchange))
        own = [spells[n] for n in range(0, len(spells), 3) if spells[n + 1] <= day < spells[n + 2]]
        if order.moved:
            chosen = set(own)
            positions = [at for at in positions if order.numbers[at] in chosen]
        else:
            positions = own[bisect_left(own, first) :]
    slices: list[RowSlice] = []
    yield_points = YieldPoints(_PAGES_PER_YIELD)
    pages = (one for one in _by_page(order.numbers, positions) if counted[1 + one[0]] <= day)
    # Enough pages if every issuer is known, and one more.
    at_once = min(1 + (first % ISSUERS_ON_A_PAGE + most) // ISSUERS_ON_A_PAGE, _PAGES_AT_ONCE)
    while together := list(islice(pages, at_once)):
        read = await _read_pages(edition, [page for page, _, _ in together], at_once)
        for (_, numbers, at), (text, cached) in zip(together, read, strict=True):
            await yield_points.step()
            known = cached.rows_on(text, day, numbers, most - len(slices) // SLICES_PER_ROW)
            slices += known.slices
            if known.following is not None:
                return _selection(slices, (at[numbers.index(known.following)],))
    return _selection(slices, None)


async def first_day_of_issuers(edition: Edition, country: str | None) -> int | None:
    """The first day on which an issuer, or an issuer of a country, is known; None if none ever is."""
    if country is None:
        counted = await edition.numbers(f"{ISSUERS}-days", "", keep=True)
        return min(counted[1:], default=None)
    spells = await edition.numbers(f"{ISSUERS}-list", listed_under(country, None))
    first = None
    yield_points = YieldPoints(_PAGES_PER_YIELD)
    triples = zip(spells[::3], spells[1::3], spells[2::3], strict=True)
    for page, listed in groupby(sorted(triples), key=lambda one: one[0] // ISSUERS_ON_A_PAGE):
        await yield_points.step()
        ((_, cached),) = await _read_pages(edition, [page], 1)
        known = cached.first_days()
        for number, since, until in listed:
            day = max(known[number % ISSUERS_ON_A_PAGE], since)
            if day < until and (first is None or day < first):
                first = day
    return first


def issuer_key(row: bytes) -> SortKey:
    """The sort key of the beginning of a row: its country (none sorts last) and its id."""
    start = row.index(_COUNTRY) + len(_COUNTRY)
    country = row[start : row.index(b",", start)].strip(b'"').decode()
    start = row.index(_SERVICE_ID) + len(_SERVICE_ID)
    return "~" if country == "null" else country, row[start : row.index(b'"', start)].decode()


async def _read_pages(edition: Edition, pages: list[int], at_once: int) -> list[tuple[RowSlice, IssuerPage]]:
    """The text of pages in order, each with its decoded index, which is cached."""
    start, end = min(pages), max(pages) + 1
    if end - start <= 2 * at_once:  # close together, so one read
        together = await edition.blocks(ISSUERS, "", start, end - start)
        blocks = [together[page - start] for page in pages]
    else:
        blocks = [(await edition.blocks(ISSUERS, "", page, 1))[0] for page in pages]
    read = []
    for page, block in zip(pages, blocks, strict=True):
        cached: IssuerPage | None = edition.parts.get((ISSUERS, "", page))
        if cached is None:
            cached = IssuerPage(block)
            edition.parts.put((ISSUERS, "", page), cached)
        read.append((block[1], cached))
    return read


def _selection(slices: list[RowSlice], following: tuple[int] | None) -> Selection:
    """Rows of pages, without the comma before the first."""
    if slices:
        slices[0] = slices[0][1:]
    count = len(slices) // SLICES_PER_ROW
    return Selection(
        slices, count, following is not None, between=b"", slices_per_row=SLICES_PER_ROW, following=following
    )


def _by_page(
    numbers: Sequence[int], positions: Sequence[int]
) -> Iterator[tuple[int, Sequence[int], Sequence[int]]]:
    """The pages of some issuers with their numbers on them, and their positions."""
    if isinstance(numbers, range) and isinstance(positions, range):  # all rows: the usual case
        at, end = positions.start, positions.stop
        while at < end:
            page, own = divmod(at, ISSUERS_ON_A_PAGE)
            stop = min(at - own + ISSUERS_ON_A_PAGE, end)
            yield page, range(own, own + stop - at), range(at, stop)
            at = stop
        return
    for page, some in groupby(positions, key=lambda at: numbers[at] // ISSUERS_ON_A_PAGE):
        at_page = list(some)
        yield page, [numbers[at] - page * ISSUERS_ON_A_PAGE for at in at_page], at_page


_LISTED = 10_000
_EVERYBODY = 2**31 - 1
_AT_ONCE = 256  # marks that are looked at together

_REASONS = tuple((int(state), reason) for state, reason in REASONS.items())
TOO_OLD: Final = "too_old"
"""The reason for a value whose year ended longer ago than requested."""
_RANKS = (b'{"rank":1,', *(b',{"rank":%d,' % rank for rank in range(2, _LISTED + 1)))


class Ranking(NamedTuple):
    metric: str
    country: str | None
    """None for all countries."""
    day: date
    smallest_first: bool = False
    known: bool = False
    """Whether to use the values known on the day instead of today's."""
    oldest: int = 0
    """The earliest last day that a value's year may have."""


async def screen(
    edition: Edition, ranking: Ranking, *, most: int, after: int = 0
) -> tuple[Selection, dict[str, int]]:
    """The first values by size after a rank, and how many issuers have none, by reason."""
    pages = await _screen_pages(edition, ranking)
    if pages is None:
        return Selection((), 0, truncated=False), omissions([0] * STATES)
    last = after + most
    counts, ranges, years = _read_screen(*pages, ranking, after, last)
    rows = await edition.rows_at("metrics", ranges)
    more = counts[State.STANDS] > last
    bare = rows if isinstance(rows, SingleRows) else None
    selection = Selection(
        _ranked(rows, years, ranking.day, after),
        len(rows),
        truncated=more,
        between=b"",
        slices_per_row=3,
        following=(last,) if more else None,
        sources=None if bare is None else bare.sources,
        organisations=None if bare is None else bare.organisations,
    )
    omitted = omissions(counts)
    return selection, {**omitted, TOO_OLD: counts[STATES]} if ranking.oldest else omitted


async def rank_of(edition: Edition, ranking: Ranking, key: SortKey) -> int:
    """The number of values before the first one after a sort key."""
    pages = await _screen_pages(edition, ranking)
    if pages is None:
        return 0
    _, ranges, _ = _read_screen(*pages, ranking, 0, _EVERYBODY)
    is_behind = screen_order(smallest_first=ranking.smallest_first).behind(key)

    async def is_past(number: int) -> bool:
        (row,) = await edition.rows_at("metrics", ranges[number : number + 1])
        return is_behind(b"{%b" % bytes(row))

    return await first_past(len(ranges), is_past)


def screen_order(*, smallest_first: bool) -> RowOrder:
    return _SMALLEST_FIRST if smallest_first else _LARGEST_FIRST


_SMALLEST_FIRST = RowOrder("value", "service_id", ranks={"value": Decimal})
_LARGEST_FIRST = RowOrder("-value", "service_id", ranks={"value": Decimal})


async def _screen_pages(edition: Edition, ranking: Ranking) -> tuple[memoryview, memoryview, int] | None:
    """The page for a day, the byte ranges of its rows, and its year."""
    if not (years := edition.manifest.get("screen_years")):
        return None
    year: int = years[max(bisect_right(years, ranking.day.year) - 1, 0)]
    key = f"{ranking.metric}|{ranking.country or EVERYWHERE}|{year}"
    page, stored_ranges = await edition.raw(SCREEN, key), await edition.raw(SCREEN_RANGES, key)
    if page is None or stored_ranges is None:
        return None
    return memoryview(page), memoryview(stored_ranges), year


def _ranked(
    rows: Sequence[bytes | memoryview], years: Sequence[int], day: date, after: int
) -> list[bytes | memoryview]:
    """Rows in three slices: the rank, the applied day with the age, and the rest."""
    count = len(rows)
    ranks = _RANKS[after : after + count]
    if after + count > _LISTED:
        beyond = range(max(after, _LISTED) + 1, after + count + 1)
        ranks += tuple(b',{"rank":%d,' % rank for rank in beyond)
    if after and count:
        ranks = (ranks[0].removeprefix(b","), *ranks[1:])
    days = {end: b"%b," % _day_and_age(day, end) for end in set(years)}
    parts: list[bytes | memoryview] = [b""] * (3 * count)
    parts[0::3] = ranks
    parts[1::3] = [days[end] for end in years]
    parts[2::3] = rows
    return parts


def omissions(counts: Sequence[int] | Mapping[int, int]) -> dict[str, int]:
    """Counts by reason, as the envelope has them."""
    return {reason: counts[state] for state, reason in _REASONS}


def _day_and_age(day: date, end: int) -> bytes:
    """The day applied to a row, and the age of its year, by the last day of that."""
    return b'"as_of":"%b","age_days":%d' % (day.isoformat().encode(), day.toordinal() - end)


def year_end(rows: bytes) -> int:
    """The last day of the year of rows for one issuer and day."""
    at = rows.index(PERIOD_END) + len(PERIOD_END)
    return date.fromisoformat(rows[at : at + 10].decode()).toordinal()


def dated(rows: bytes, day: date) -> bytes:
    """Rows of one issuer with the day applied."""
    return rows.replace(AS_OF, _day_and_age(day, year_end(rows))) if rows else rows


def _read_screen(
    page: memoryview, ranges: memoryview, year: int, ranking: Ranking, after: int, last: int
) -> tuple[list[int], list[ByteRange], list[int]]:
    """The counts by state on a day; for the rows after a rank, byte ranges without their day, and years.

    After the counts comes the number of values that are too old; they do not count as values.
    """
    words, day = page.cast("I"), ranking.day.toordinal()
    at, counts = 0, list[int]()
    for known in (False, True):
        days = words[at]
        if known is ranking.known:
            tally = bisect_right(page[4 * at + 4 : 4 * (at + 1 + days)].cast("i"), day) - 1
            first = at + 1 + days + STATES * tally
            counts = [*words[first : first + STATES], 0]
        at += 1 + days + STATES * days
    size = words[at]
    order, years = 4 * (at + 1), 4 * (at + 1 + size)
    marks = years + 4 * size + ranking.known * MARKS_PER_YEAR * size
    # Values valid after the last year are valid on its last day; before the first year none is.
    marked, of_them = divmod(min(max(day - date(year, 1, 1).toordinal(), 0), LAST_DAY), DAYS_PER_MARK)
    marks += marked * size
    own, valid = page[marks : marks + size], VALID_ON[of_them]
    numbers: Iterator[int]
    if ranking.smallest_first:
        numbers = (n for n in page[order : order + 4 * size].cast("I") if valid[own[n]])
    else:
        slices = (bytes(own[n : n + _AT_ONCE]).translate(valid) for n in range(0, size, _AT_ONCE))
        numbers = compress(range(size), chain.from_iterable(slices))
    ends = page[years : years + 4 * size].cast("i")
    if ranking.oldest:
        young = [n for n in numbers if ends[n] >= ranking.oldest]
        counts[STATES] = counts[State.STANDS] - len(young)
        counts[State.STANDS] = len(young)
        numbers = iter(young)
    listed = list(islice(numbers, after, max(after, min(last, counts[State.STANDS]))))
    skip = BYTE_RANGE.size
    return counts, [BYTE_RANGE.unpack_from(ranges, skip * n) for n in listed], [ends[n] for n in listed]
