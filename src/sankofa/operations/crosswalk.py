"""GET /v1/crosswalk/{service_id} and GET /v1/crosswalk."""

from collections.abc import Mapping
from typing import Any

import msgspec

from sankofa.access.tiers import Grant
from sankofa.edition.format.keys import ENTITIES, FREE, ID_TYPES, PAID
from sankofa.edition.format.row_blocks import CROSSWALK_ORDER, RowOrder
from sankofa.edition.read.edition import Selection
from sankofa.model.errors import InvalidParameter
from sankofa.model.identifiers import FREE_ID_TYPES, lookup_key_of_text
from sankofa.model.provenance import ORGANISATIONS
from sankofa.model.rows import CrosswalkMatchRow, CrosswalkRow
from sankofa.operations.contract import NO_ROWS, Answer, Call, operation
from sankofa.operations.nearest import unknown_organisation
from sankofa.operations.paging import first_page
from sankofa.operations.parameters import (
    MOST_MATCHES,
    AsOfParameter,
    CursorParameter,
    IdTypeParameter,
    IdValueParameter,
    LimitOrAllParameter,
    MatchLimitParameter,
    ServiceIdParameter,
)

_MATCH_ORDER = RowOrder("service_id")


class _Withheld(msgspec.Struct):
    id_type: str


@operation(
    "/v1/crosswalk/{service_id}",
    dataset=ORGANISATIONS,
    row=CrosswalkRow,
    errors=(401, 404, 429, 503),
    members={
        "withheld_id_types": {
            "type": "array",
            "items": {"type": "string", "enum": list(ID_TYPES)},
            "description": "Kinds held for it that the sample tier does not return.",
        },
        "crosswalk_loaded": {"type": "boolean", "description": "False until identifiers were loaded."},
    },
    extensions=("as_of", "limit", "cursor"),
)
async def get_crosswalk(
    call: Call,
    *,
    service_id: ServiceIdParameter,
    as_of: AsOfParameter = None,
    limit: LimitOrAllParameter = None,
    cursor: CursorParameter = None,
) -> Answer:
    """Every identifier held for one organisation.

    Under `as_of` those that it had on that day. Ordered by id_type, scheme and value. The LEI and the listing
    ticker are free on every tier; on the sample tier the other kinds are named in `withheld_id_types` instead
    of being returned, and the answer is `truncated`.
    `crosswalk_loaded` is false until identifiers were loaded.
    """
    key = service_id.upper()
    page = await first_page(call, "crosswalk", key, as_of=as_of, dated=True, cursor=cursor)
    day, edition = page.day.toordinal(), page.edition
    modes = FREE if call.grant.sample else FREE | PAID
    # The sample tier gets every identifier that is free, however many: only a limit of its own is capped.
    most = None if limit is None else call.grant.rows(limit)
    selection = await page.select("crosswalk", key, CROSSWALK_ORDER, most, modes=modes)
    if selection is None:
        if not await call.edition.holds(ENTITIES, key):
            raise await unknown_organisation(call, service_id)
        selection = NO_ROWS
    withheld: set[str] = set()
    if call.grant.sample:
        paid = await edition.select("crosswalk", key, day=day, modes=PAID)
        if paid is not None and paid.count:
            rows = msgspec.json.decode(b"[%b]" % paid.rows, type=list[_Withheld])
            withheld = {row.id_type for row in rows}
    members: dict[str, object] = {
        "withheld_id_types": sorted(withheld, key=ID_TYPES.index),
        "crosswalk_loaded": bool(edition.manifest.get("crosswalk_loaded")),
    }
    if withheld:
        selection = Selection(
            selection.slices, selection.count, truncated=True, following=selection.following
        )
    return page.answer(selection, CROSSWALK_ORDER, as_of=page.day, members=members)


def _check_lookup(grant: Grant, arguments: Mapping[str, Any]) -> None:
    try:
        lookup_key_of_text(arguments["id_type"], arguments["id_value"])
    except ValueError as failure:
        raise InvalidParameter("id_value", str(failure)) from None
    if arguments["id_type"] not in FREE_ID_TYPES:
        grant.requires_paid(f"A lookup by {arguments['id_type']}")


@operation(
    "/v1/crosswalk",
    check=_check_lookup,
    dataset=ORGANISATIONS,
    row=CrosswalkMatchRow,
    errors=(400, 401, 402, 429, 503),
    tool="lookup_identifier",
    extensions=("as_of", "limit", "cursor"),
    members={
        "ambiguous": {"type": "boolean", "description": "True if several organisations match."},
    },
)
async def find_by_identifier(
    call: Call,
    *,
    id_type: IdTypeParameter,
    id_value: IdValueParameter,
    as_of: AsOfParameter = None,
    limit: MatchLimitParameter = None,
    cursor: CursorParameter = None,
) -> Answer:
    """The organisations behind an outside identifier.

    `lei` and `ticker` work on any tier, the others need the starter tier or above. A registry number is
    unique only within its registry: where several organisations match, `ambiguous` is true. Under `as_of`
    the match is who had the identifier on that day, by the name of that day. At most 20 matches are
    returned, ordered by service_id.
    """
    key = lookup_key_of_text(id_type, id_value)
    page = await first_page(call, "identifier", key, as_of=as_of, dated=True, cursor=cursor)
    most = MOST_MATCHES if limit is None else call.grant.rows(limit)
    matches = await page.select("identifier", key, _MATCH_ORDER, most) or NO_ROWS
    several = matches.count > 1 or matches.truncated or bool(page.key)
    return page.answer(matches, _MATCH_ORDER, as_of=page.day, members={"ambiguous": several})
