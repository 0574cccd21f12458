"""GET /v1/entities/{service_id}."""

from sankofa.model.provenance import ORGANISATIONS
from sankofa.model.rows import EntityRow
from sankofa.operations.contract import AgentView, Answer, Call, operation
from sankofa.operations.nearest import predecessors, unknown_organisation
from sankofa.operations.parameters import ServiceIdParameter

_FOR_AGENTS = AgentView(
    description="""\
One organisation's record: names, country, status, LEI, listings. Take `service_id` from search_entities
(names) or lookup_identifier (LEI, ticker, ...). Next: get_fundamentals, get_metrics, get_resolved_parties.
Example: {"service_id":"DC46AF1B1AAA424B58D1368176"}""",
)


@operation(
    "/v1/entities/{service_id}",
    dataset=ORGANISATIONS,
    row=EntityRow,
    errors=(401, 404, 429, 503),
    tool="get_entity",
    members={
        "successor": {
            "type": ["string", "null"],
            "description": "service_id of the organisation that took it over, where a source names one.",
        },
        "predecessors": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "service_id": {"type": "string", "description": "Its figures are under this id."},
                    "legal_name": {"type": ["string", "null"], "description": "As registered."},
                },
                "required": ["service_id", "legal_name"],
                "additionalProperties": False,
            },
            "description": "The organisations that it took over from, where a source names them.",
        },
    },
    agent=_FOR_AGENTS,
)
async def get_entity(call: Call, *, service_id: ServiceIdParameter) -> Answer:
    """One organisation's resolved entity record.

    `/v1/search` finds organisations by name. An id that was merged into another answers with the surviving
    one in `service_id`; one that its register calls merged keeps its own record, and `successor` leads on.
    `predecessors` leads back: figures reported by a predecessor are under its own id.
    """
    selection = await call.edition.select("entity", service_id.upper(), day=call.today.toordinal())
    if selection is None:
        raise await unknown_organisation(call, service_id)
    successor = await call.edition.raw("successor", service_id.upper())
    members: dict[str, object] = {"successor": None if successor is None else bytes(successor).decode()}
    members["predecessors"] = await predecessors(call.edition, service_id)
    return Answer(selection, members=members)
