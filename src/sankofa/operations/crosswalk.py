"""GET /v1/crosswalk/{service_id} and GET /v1/crosswalk."""

import msgspec

from sankofa.edition.format.keys import FREE, FREE_ID_TYPES, ID_TYPES, PAID
from sankofa.edition.read.edition import Selection
from sankofa.model.errors import InvalidParameter
from sankofa.model.identifiers import lookup_key_of_text
from sankofa.model.provenance import ORGANISATIONS
from sankofa.model.rows import CrosswalkMatchRow, CrosswalkRow
from sankofa.operations.contract import NO_ROWS, Answer, Call, operation
from sankofa.operations.nearest import unknown_organisation
from sankofa.operations.parameters import IdTypeParameter, IdValueParameter, ServiceIdParameter

MOST_MATCHES = 20


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
)
async def get_crosswalk(call: Call, *, service_id: ServiceIdParameter) -> Answer:
    """Every identifier held for one organisation.

    Current mappings only, ordered by id_type, scheme and value. The LEI and the listing ticker are free on
    every tier; on the sample tier the other kinds are named in `withheld_id_types` instead of being returned,
    and the answer is `truncated`.
    `crosswalk_loaded` is false until identifiers were loaded.
    """
    day = call.today.toordinal()
    modes = FREE if call.grant.sample else FREE | PAID
    selection = await call.edition.select("crosswalk", service_id.upper(), day=day, modes=modes)
    if selection is None:
        raise await unknown_organisation(call, service_id)
    withheld: set[str] = set()
    if call.grant.sample:
        paid = await call.edition.select("crosswalk", service_id.upper(), day=day, modes=PAID)
        if paid is not None and paid.count:
            rows = msgspec.json.decode(b"[%b]" % paid.rows, type=list[_Withheld])
            withheld = {row.id_type for row in rows}
    members = {
        "withheld_id_types": sorted(withheld, key=ID_TYPES.index),
        "crosswalk_loaded": bool(call.edition.manifest.get("crosswalk_loaded")),
    }
    if withheld:
        selection = Selection(selection.runs, selection.count, truncated=True)
    return Answer(selection, members=members)


@operation(
    "/v1/crosswalk",
    dataset=ORGANISATIONS,
    row=CrosswalkMatchRow,
    errors=(400, 401, 402, 429, 503),
    members={
        "ambiguous": {"type": "boolean", "description": "True where several organisations match."},
    },
)
async def find_by_identifier(call: Call, *, id_type: IdTypeParameter, id_value: IdValueParameter) -> Answer:
    """The organisations behind an outside identifier.

    `lei` and `ticker` work on any tier, the others need the starter tier or above. A registry number is
    unique only within its registry: where several organisations match, `ambiguous` is true. At most 20
    matches are returned, ordered by service_id.
    """
    try:
        key = lookup_key_of_text(id_type, id_value)
    except ValueError as failure:
        raise InvalidParameter("id_value", str(failure)) from None
    if id_type not in FREE_ID_TYPES:
        call.grant.requires_paid(f"A lookup by {id_type}")
    day = call.today.toordinal()
    matches = await call.edition.select("identifier", key, day=day, limit=MOST_MATCHES) or NO_ROWS
    return Answer(matches, members={"ambiguous": matches.count > 1})
