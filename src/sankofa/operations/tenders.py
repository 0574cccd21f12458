"""GET /v1/tenders and GET /v1/tender-parties."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final

from sankofa.access.cursors import Position
from sankofa.edition.format.day_index import DayRows
from sankofa.edition.format.keys import TENDERS_PER_BLOCK, party_key, searched_words
from sankofa.edition.format.row_blocks import Run
from sankofa.edition.read.edition import Edition, Selection
from sankofa.edition.read.turns import Turns
from sankofa.model.facts import TENDER
from sankofa.model.ocds.parties import role as role_named
from sankofa.model.rows import TenderPartyRow, TenderRow
from sankofa.operations.contract import Answer, Call, operation
from sankofa.operations.parameters import (
    CountryParameter,
    CursorParameter,
    LimitParameter,
    OptionalServiceIdParameter,
    ReleasedFromParameter,
    RoleParameter,
    TenderCountryParameter,
    TenderQueryParameter,
)

_LOOKED_AT: Final = 4_096
"""Rows that a search looks at before others have a turn."""
_NO_ROWS: Final = Selection((), 0, truncated=False)


@operation(
    "/v1/tenders",
    dataset=TENDER,
    row=TenderRow,
    errors=(400, 401, 402, 429, 503),
    tool="search_tenders",
    tool_names={"from": "from_date"},
    sample_walks=True,
)
async def search_tenders(
    call: Call,
    *,
    country: TenderCountryParameter = "ZA",
    from_: ReleasedFromParameter = None,
    limit: LimitParameter = None,
    cursor: CursorParameter = None,
    query: TenderQueryParameter = None,
) -> Answer:
    """Public tenders: OCDS releases, only from portals whose licences permit commercial redistribution.

    Newest release first, then by ocid and release id. A page ends with `next_cursor`, to be passed back
    verbatim with the same filters; null on the last page. A walk stays on the edition it began with, so that
    it gives every release exactly once. People are withheld: `withheld_parties` counts them.
    """
    words = sorted(searched_words(query)) if query else []
    filters = f"{country}|{from_ or ''}|{' '.join(words)}"
    edition, first = call.edition, 0
    if cursor is not None:
        position = call.cursors.read(cursor, filters)
        edition = await call.edition_for_cursor(position.edition)
        first = int(position.after[0])
    most = call.grant.rows(limit)
    end = await _end(edition, country, from_.toordinal() if from_ else 0)
    if query is not None and not words:  # nothing has the words of a query that has none
        end = 0
    if words:
        runs, count, after = await _found(edition, country, words, first, end, most)
    else:
        after = min(first + most, end)
        runs = await edition.rows("tender", country, TENDERS_PER_BLOCK, first, after)
        count = max(after - first, 0)
    more = after < end
    following = call.cursors.issue(Position(edition.id, filters, (after,))) if more else None
    return Answer(
        Selection(runs, count, truncated=more), members={"next_cursor": following}, edition_id=edition.id
    )


async def _end(edition: Edition, country: str, earliest: int) -> int:
    """The number of the first row that is too old, or of none: every row before it counts."""
    days = DayRows(await edition.numbers("tender_day", country, keep=True))
    return (days.first_row(earliest - 1) or 0) if earliest else days.count


async def _found(
    edition: Edition, country: str, words: list[str], first: int, end: int, most: int
) -> tuple[list[Run], int, int]:
    """The next rows that have every word, and the number of the row to go on with."""
    turns = Turns(_LOOKED_AT)
    holders = []
    for word in words:
        holders.append(await edition.numbers("tender_word", f"{country}|{word}"))
        await turns.step(_LOOKED_AT // 4)
    holders.sort(key=len)
    rarest, others = holders[0], holders[1:]
    hits: list[int] = []  # one more than asked for tells that the page is not the last
    begin, stop = bisect_left(rarest, first), bisect_left(rarest, end)
    for at in range(begin, stop, _LOOKED_AT):
        numbers = rarest[at : min(at + _LOOKED_AT, stop)].tolist()
        for held in others:
            numbers = _in_both(numbers, held)
            await turns.step(_LOOKED_AT)
        hits += numbers
        if len(hits) > most:
            break
        await turns.step(_LOOKED_AT)
    after = hits[most] if len(hits) > most else end
    served = hits[:most]
    runs: list[Run] = []
    for number in served:
        runs += await edition.rows("tender", country, TENDERS_PER_BLOCK, number, number + 1)
        await turns.step(8)
    return runs, len(served), after


def _in_both(numbers: Sequence[int], held: memoryview) -> list[int]:
    """Those of the numbers that a list, in order, has too: each looked up where the list is far longer."""
    if not numbers:
        return []
    between = held[bisect_left(held, numbers[0]) : bisect_right(held, numbers[-1])]
    if len(between) <= 16 * len(numbers):
        return sorted(set(between).intersection(numbers))
    return [n for n in numbers if between[min(bisect_left(between, n), len(between) - 1)] == n]


@operation(
    "/v1/tender-parties",
    dataset=TENDER,
    row=TenderPartyRow,
    errors=(401, 429, 503),
    tool="get_resolved_parties",
)
async def get_resolved_parties(
    call: Call,
    *,
    country: CountryParameter = None,
    role: RoleParameter = None,
    service_id: OptionalServiceIdParameter = None,
    limit: LimitParameter = None,
) -> Answer:
    """Buyers and suppliers named in releases, resolved to organisations.

    `service_id` is given where an identifier, or a name that only one organisation of the country has, leads
    to it; `match_method` says which. Most releases first, then by name, role, country and identifier.
    Parties not established to be organisations are withheld; `org_evidence` says why a party is not.
    """
    most = call.grant.rows(limit)
    day = call.today.toordinal()
    named = role_named(role) if role else None
    if service_id is None:
        found = await call.edition.select("tender_party", party_key(country, named), day=day, limit=most)
    else:
        marks = [f'"role":"{named.lower()}"'.encode()] if named else []
        marks += [f'"country":"{country.lower()}"'.encode()] if country else []
        found = await call.edition.select(
            "tender_party",
            party_key(service_id=service_id.upper()),
            day=day,
            limit=most,
            where=(lambda row: all(mark in row.lower() for mark in marks)) if marks else None,
        )
    return Answer(found or _NO_ROWS)
