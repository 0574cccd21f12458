"""GET /v1/tenders and GET /v1/tender-parties."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final

from sankofa.access.cursors import Position
from sankofa.edition.format.keys import TENDERS_PER_BLOCK, party_key, searched_words
from sankofa.edition.format.row_blocks import Run
from sankofa.edition.read.edition import Edition, Selection
from sankofa.edition.read.turns import Turns
from sankofa.model.facts import TENDER
from sankofa.model.ocds.parties import role as canonical_role
from sankofa.model.rows import TenderPartyRow, TenderRow
from sankofa.operations.contract import NO_ROWS, Answer, Call, operation
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

_EXAMINED_A_TURN: Final = 4_096
"""Rows that a search examines before it yields to other requests."""


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
        runs, count, after = await _search(edition, country, words, first, end, most)
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
    """The number of the first row older than `earliest`, or the number of rows."""
    starts = await edition.numbers("tender_day", country, keep=True)
    if not len(starts):
        return 0
    if not earliest:
        return int(starts[-1])
    day_number = bisect_left(range(len(starts) // 2 - 1), True, key=lambda n: starts[2 * n] < earliest)
    return int(starts[2 * day_number + 1])


async def _search(
    edition: Edition, country: str, words: list[str], first: int, end: int, most: int
) -> tuple[list[Run], int, int]:
    """The next rows that have every word, and the number of the row to go on with."""
    turns = Turns(_EXAMINED_A_TURN)
    holders = []
    for word in words:
        holders.append(await edition.numbers("tender_word", f"{country}|{word}"))
        await turns.step(_EXAMINED_A_TURN // 4)
    holders.sort(key=len)
    rarest, others = holders[0], holders[1:]
    hits: list[int] = []  # one more than asked for tells that the page is not the last
    begin, stop = bisect_left(rarest, first), bisect_left(rarest, end)
    for start in range(begin, stop, _EXAMINED_A_TURN):
        numbers = rarest[start : min(start + _EXAMINED_A_TURN, stop)].tolist()
        for other in others:
            numbers = _intersection(numbers, other)
            await turns.step(_EXAMINED_A_TURN)
        hits += numbers
        if len(hits) > most:
            break
        await turns.step(_EXAMINED_A_TURN)
    after = hits[most] if len(hits) > most else end
    served = hits[:most]
    runs: list[Run] = []
    for number in served:
        runs += await edition.rows("tender", country, TENDERS_PER_BLOCK, number, number + 1)
        await turns.step(8)
    return runs, len(served), after


def _intersection(numbers: Sequence[int], holders: memoryview) -> list[int]:
    """The numbers that a sorted list has too; each is looked up where the list is much longer."""
    if not numbers:
        return []
    between = holders[bisect_left(holders, numbers[0]) : bisect_right(holders, numbers[-1])]
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
    ocds_role = canonical_role(role) if role else None
    if service_id is None:
        selection = await call.edition.select(
            "tender_party", party_key(country, ocds_role), day=day, limit=most
        )
    else:
        fields = [f'"role":"{ocds_role.lower()}"'.encode()] if ocds_role else []
        fields += [f'"country":"{country.lower()}"'.encode()] if country else []
        selection = await call.edition.select(
            "tender_party",
            party_key(service_id=service_id.upper()),
            day=day,
            limit=most,
            where=(lambda row: all(field in row.lower() for field in fields)) if fields else None,
        )
    return Answer(selection or NO_ROWS)
