"""GET /v1/tenders and GET /v1/tender-parties."""

import re
from datetime import date
from decimal import Decimal
from typing import Final

from sankofa.edition.format.keys import party_key, searched_words
from sankofa.edition.format.row_blocks import RowOrder
from sankofa.edition.read.tender_filters import TenderFilter, tender_key, without_release
from sankofa.edition.read.tenders import find_of_all, find_of_country, tenders_of_all, tenders_of_country
from sankofa.model.ocds.parties import role as canonical_role
from sankofa.model.provenance import TENDER
from sankofa.model.tender_rows import CompactTenderRow, TenderPartyRow, TenderRow
from sankofa.operations import parameters
from sankofa.operations.contract import NO_ROWS, AgentView, Answer, Call, operation
from sankofa.operations.nearest import refuse_other_identifier
from sankofa.operations.paging import first_page
from sankofa.operations.parameter_types import JsonSchema

_NARROWING: Final = (
    "to",
    "closing_from",
    "closing_to",
    "buyer",
    "supplier",
    "category",
    "status",
    "min_value",
    "buyer_query",
    "method",
)
_SERVICE_ID: Final = re.compile(r"DC[0-9A-F]{24}\Z", re.IGNORECASE)
_FILTERS: Final[dict[str, JsonSchema]] = {
    "filters": {
        "type": "object",
        "description": "What was applied: null if nothing narrows the answer by it.",
        "properties": {
            name: {"type": ["string", "null"]}
            for name in ("country", "from", "query", "detail", "ocid", *_NARROWING)
        },
        "required": ["country", "from", "query", "detail"],
        "additionalProperties": False,
    }
}
_PARTY_ORDER: Final = RowOrder(
    "-release_count", "name", "role", "country", "identifier.scheme", "identifier.id", "org_evidence"
)
_TENDERS_FOR_AGENTS: Final = AgentView(
    defaults={"country": None, "detail": "compact"}, compact=without_release
)


@operation(
    "/v1/tenders",
    dataset=TENDER,
    row=TenderRow,
    also=(CompactTenderRow,),
    errors=(400, 401, 402, 429, 503),
    tool="search_tenders",
    tool_names={"from": "from_date", "to": "to_date"},
    members=_FILTERS,
    sample_pages=True,
    extensions=("query", "detail", "ocid", *_NARROWING),
    agent=_TENDERS_FOR_AGENTS,
)
async def search_tenders(
    call: Call,
    *,
    country: parameters.Country = "ZA",
    from_: parameters.ReleasedFrom = None,
    limit: parameters.Limit = None,
    cursor: parameters.Cursor = None,
    query: parameters.TenderQuery = None,
    detail: parameters.Detail = "full",
    ocid: parameters.Ocid = None,
    to: parameters.ReleasedTo = None,
    closing_from: parameters.ClosingFrom = None,
    closing_to: parameters.ClosingTo = None,
    buyer: parameters.Buyer = None,
    supplier: parameters.Supplier = None,
    category: parameters.TenderCategory = None,
    status: parameters.Status = None,
    min_value: parameters.MinValue = None,
    buyer_query: parameters.BuyerQuery = None,
    method: parameters.Method = None,
) -> Answer:
    """Public tenders: OCDS releases, only from portals whose licences permit commercial redistribution.

    Newest release first, then by ocid and release id. A page ends with `next_cursor`, to be passed back
    verbatim with the same filters; null on the last page. Pages stay on the edition of the first one while
    it is kept, so that every release comes exactly once; then they go on in the current one. `ocid` gives
    one process. All filters apply to the row's own values; a row without one is left out. People are
    withheld: `withheld_parties` counts them.
    """
    words = tuple(sorted(searched_words(query))) if query is not None else None
    texts = {"buyer": buyer, "supplier": supplier, "category": category, "status": status, "method": method}
    days = {"to": to, "closing_from": closing_from, "closing_to": closing_to}
    narrowing: dict[str, str | date | Decimal | None] = {
        **days, **texts, "min_value": min_value, "buyer_query": buyer_query,
    }  # fmt: skip
    bound = [(name, str(value)) for name, value in narrowing.items() if value is not None]
    page = await first_page(
        call, "tenders", country, from_, words, *_process(ocid), *bound, open_to_sample=True, cursor=cursor
    )
    most = call.grant.rows(limit)
    buyer_words = sorted(searched_words(buyer_query) or {""}) if buyer_query is not None else []
    wanted = TenderFilter(
        from_.toordinal() if from_ else 0,
        words,
        ocid,
        latest=_ordinal(to),
        values=(
            *(_by_value(name, value) for name, value in texts.items() if value is not None),
            *(("buyer_word", word) for word in buyer_words),
        ),
        closing_from=_ordinal(closing_from),
        closing_to=_ordinal(closing_to),
        min_value=min_value,
    )
    compact = detail == "compact"
    if country is None:
        start = await page.start(find_of_all)
        selection = await tenders_of_all(page.edition, wanted, most, start, compact=compact)
    else:
        start = await page.start(lambda edition, behind: find_of_country(edition, country, behind))
        selection = await tenders_of_country(page.edition, country, wanted, most, start, compact=compact)
    applied = {
        "country": country,
        "from": from_ and from_.isoformat(),
        "query": query,
        "detail": detail,
    }
    if ocid is not None:
        applied["ocid"] = ocid
    applied |= dict(bound)
    shape = CompactTenderRow if compact else TenderRow
    last = () if selection.following is None else tender_key(selection.last_row)
    return page.answer(selection, last, members={"filters": applied}, shape=shape)


def _ordinal(day: date | None) -> int | None:
    return None if day is None else day.toordinal()


def _by_value(name: str, value: str) -> tuple[str, str]:
    """A field of the index of filters, and its value: organisations by service_id or by name."""
    by_id = name in ("buyer", "supplier") and _SERVICE_ID.match(value)
    return (f"{name}_id", value.upper()) if by_id else (name, value)


def _process(ocid: str | None) -> tuple[str, ...]:
    """The filter by process; none where all are asked for, so that cursors given before it are still good."""
    return () if ocid is None else ("ocid", ocid)


@operation(
    "/v1/tender-parties",
    dataset=TENDER,
    row=TenderPartyRow,
    errors=(401, 429, 503),
    tool="get_resolved_parties",
    not_by_day="Parties are counted over all releases and matched with the organisations of today, so a "
    "locked view lists none: /v1/tenders has the releases of the day, each with its buyer.",
    extensions=("cursor",),
)
async def get_resolved_parties(
    call: Call,
    *,
    country: parameters.Country = None,
    role: parameters.Role = None,
    service_id: parameters.OptionalServiceId = None,
    limit: parameters.Limit = None,
    cursor: parameters.Cursor = None,
) -> Answer:
    """Buyers and suppliers named in releases, resolved to organisations.

    `service_id` is given where an identifier, or a name that only one organisation of the country has, leads
    to it; `match_method` says which, `match_score` how sure it is (`similar_name`: less than sure).
    Most releases first, then by name, role, country and identifier.
    Parties not established to be organisations are withheld; `org_evidence` says why a party is not.
    """
    key = service_id and service_id.upper()
    ocds_role = canonical_role(role) if role else None
    page = await first_page(call, "parties", country, ocds_role and ocds_role.lower(), key, cursor=cursor)
    most = call.grant.rows(limit)
    if key is None:
        listed, where = party_key(country, ocds_role), None
    else:
        fields = [f'"role":"{ocds_role.lower()}"'.encode()] if ocds_role else []
        fields += [f'"country":"{country.lower()}"'.encode()] if country else []
        listed = party_key(service_id=key)
        where = (lambda row: all(field in row.lower() for field in fields)) if fields else None
    selection = await page.select("tender_party", listed, _PARTY_ORDER, most, where=where)
    if selection is None and service_id is not None:
        await refuse_other_identifier(call, service_id)
    return page.answer(selection or NO_ROWS, _PARTY_ORDER)
