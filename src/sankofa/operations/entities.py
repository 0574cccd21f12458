"""GET /v1/entities/{service_id} and GET /v1/issuers."""

from sankofa.edition.format.row_blocks import SortKey
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.issuers import issuer_behind, issuer_key, issuers_on
from sankofa.model.catalogue_rows import IssuerRow
from sankofa.model.facts import FUND
from sankofa.model.identifiers import exchange as exchange_name
from sankofa.model.provenance import ORGANISATIONS
from sankofa.model.rows import EntityRow
from sankofa.operations.contract import AgentView, Answer, Call, operation
from sankofa.operations.nearest import predecessors, unknown_organisation
from sankofa.operations.paging import Start, first_page
from sankofa.operations.parameters import (
    AsOfParameter,
    CountryParameter,
    CursorParameter,
    ExchangeParameter,
    LimitParameter,
    ServiceIdParameter,
)

_ENTITY_FOR_AGENTS = AgentView(
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
    agent=_ENTITY_FOR_AGENTS,
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


_ISSUERS_FOR_AGENTS = AgentView(
    description="""\
The companies that had a public figure by a day, including those that stopped reporting since: the universe
of a backtest. Next: get_statement, get_metrics.
Example: {"country":"ZA","as_of":"2023-06-30","limit":20}""",
    narrow_by=("country", "exchange", "limit"),
)


@operation(
    "/v1/issuers",
    dataset=FUND,
    row=IssuerRow,
    errors=(400, 401, 402, 429, 503),
    tool="list_issuers",
    extension=True,
    agent=_ISSUERS_FOR_AGENTS,
)
async def list_issuers(
    call: Call,
    *,
    country: CountryParameter = None,
    exchange: ExchangeParameter = None,
    as_of: AsOfParameter = None,
    limit: LimitParameter = None,
    cursor: CursorParameter = None,
) -> Answer:
    """The issuers known on a day: every issuer with a figure that was public by then.

    An issuer is in from the day its first figure was public and never leaves, whether it was delisted or
    stopped reporting since: draw a backtest's universe from here, not from today's screen. The dates and
    `fact_count` are those of that day; names, LEI and listings are today's. Ordered by country, those of none
    last, then service_id.
    """
    name = None if exchange is None else exchange_name(exchange)
    page = first_page(call, "issuers", country, name, as_of=as_of)
    if cursor is not None:
        page = await page.after(cursor)

    async def locate(edition: Edition, key: SortKey) -> Start:
        return (await issuer_behind(edition, key),)

    start = await page.start(locate)
    first = int(start[0]) if start else 0
    selection = await issuers_on(
        page.edition, page.day.toordinal(), country, name, first, call.grant.rows(limit)
    )
    last = () if selection.following is None else issuer_key(selection.last_row)
    return page.answer(selection, last, as_of=page.day)
