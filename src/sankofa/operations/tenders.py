"""GET /v1/tenders and /v1/tender-parties; /v1/contracts/{ocid}: a contracting process as it stood on a day
(contract: CON-1); and /v1/flags: red flags of processes, as they could be raised on a day (contract: FLAG-1).
"""

import re
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Final

from sankofa.edition.format.flag_steps import Flag, spellings
from sankofa.edition.format.keys import party_key, searched_words
from sankofa.edition.format.row_blocks import RowOrder
from sankofa.edition.read.day_view import is_stranger
from sankofa.edition.read.edition import Selection
from sankofa.edition.read.flags import Parties, flags_on, sort_key
from sankofa.edition.read.tenders import (
    TenderFilter,
    find_of_all,
    number_behind,
    process_releases,
    single_rows,
    tender_key,
    tenders_of_all,
    tenders_of_country,
    without_release,
)
from sankofa.edition.read.yield_points import in_thread_if_large
from sankofa.model.catalogue_rows import (
    CompactTenderRow,
    ContractRow,
    FlagRow,
    TenderPartyRow,
    TenderRow,
)
from sankofa.model.errors import Absence, NotFound
from sankofa.model.figures import quotient
from sankofa.model.ocds.compiled import Process, SetBy
from sankofa.model.ocds.red_flags import INDICATORS
from sankofa.model.ocds.release import decode
from sankofa.model.ocds.release import role as canonical_role
from sankofa.model.provenance import TENDER
from sankofa.model.rows import wire
from sankofa.operations import parameters
from sankofa.operations.contract import NO_ROWS, AgentView, Answer, Call, operation
from sankofa.operations.nearest import refuse_other_identifier
from sankofa.operations.paging import ListPage, first_page
from sankofa.operations.parameter_types import Choices, JsonSchema
from sankofa.operations.parameters import plain_text

_NARROWING: Final = tuple(
    "to closing_from closing_to buyer supplier category status min_value buyer_query supplier_query "
    "method".split()
)
_SERVICE_ID: Final = re.compile(r"DC[0-9A-F]{24}\Z", re.IGNORECASE)
_FILTERS: Final[dict[str, JsonSchema]] = {
    "filters": {
        "type": "object",
        "description": "The filters applied; null for those not used.",
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


@operation(
    "/v1/tenders",
    dataset=TENDER,
    row=TenderRow,
    also=(CompactTenderRow,),
    tool="search_tenders",
    members=_FILTERS,
    sample_pages=True,
    extensions=("query", "detail", "ocid", *_NARROWING),
    agent=AgentView(defaults={"country": None, "detail": "compact"}, compact=without_release),
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
    supplier_query: parameters.SupplierQuery = None,
    method: parameters.Method = None,
) -> Answer:
    """Public tenders: OCDS releases, only from portals whose licences permit commercial redistribution.

    Newest release first, then by ocid and release id. Pass `next_cursor` back verbatim with the same filters
    to get the next page; it is null on the last page. Pages use the edition of the first page while it is
    kept, so every release comes exactly once; then they go on in the current one. `ocid` selects one process.
    Filters apply to the row's own values; a row without a value for a filter is left out. People are
    withheld: `withheld_parties` counts them.
    """
    words = tuple(sorted(searched_words(query))) if query is not None else None
    texts = {"buyer": buyer, "supplier": supplier, "category": category, "status": status, "method": method}
    narrowing: dict[str, str | date | Decimal | None] = {
        "to": to, "closing_from": closing_from, "closing_to": closing_to, **texts,
        "min_value": min_value, "buyer_query": buyer_query, "supplier_query": supplier_query,
    }  # fmt: skip
    bound = [(name, str(value)) for name, value in narrowing.items() if value is not None]
    process = () if ocid is None else ("ocid", ocid)
    page = await first_page(
        call, "tenders", country, from_, words, *process, *bound, open_to_sample=True, cursor=cursor
    )
    most = call.grant.rows(limit)
    filters = TenderFilter(
        _ordinal(from_) or 0,
        words,
        ocid,
        latest=_ordinal(to),
        values=(
            *(_by_value(name, value) for name, value in texts.items() if value is not None),
            *_by_words("buyer_word", buyer_query),
            *_by_words("supplier_word", supplier_query),
        ),
        closing_from=_ordinal(closing_from),
        closing_to=_ordinal(closing_to),
        min_value=min_value,
    )
    compact = detail == "compact"
    if country is None:
        start = await page.start(find_of_all)
        selection = await tenders_of_all(page.edition, filters, most, start, compact=compact)
    else:
        first = await page.position(lambda edition, behind: number_behind(edition, country, behind))
        selection = await tenders_of_country(page.edition, country, filters, most, first, compact=compact)
    applied = {"country": country, "from": from_ and from_.isoformat(), "query": query, "detail": detail}
    applied |= dict([process, *bound] if process else bound)
    shape = CompactTenderRow if compact else TenderRow
    last = () if selection.following is None else tender_key(selection.last_row)
    return page.answer(selection, last, members={"filters": applied}, shape=shape)


def _ordinal(day: date | None) -> int | None:
    return None if day is None else day.toordinal()


def _by_value(name: str, value: str) -> tuple[str, str]:
    """The filter index's field and value for an organisation, by service_id or by name."""
    by_id = name in ("buyer", "supplier") and _SERVICE_ID.match(value)
    return (f"{name}_id", value.upper()) if by_id else (name, value)


def _by_words(field: str, words: str | None) -> list[tuple[str, str]]:
    """The filter index's field for each word; text without words matches nothing."""
    return [] if words is None else [(field, word) for word in sorted(searched_words(words) or {""})]


@operation(
    "/v1/tender-parties",
    dataset=TENDER,
    row=TenderPartyRow,
    tool="get_resolved_parties",
    not_by_day="Parties are counted over all releases and matched with today's organisations, so a "
    "locked view lists none. /v1/tenders has the releases of the day, each with its buyer.",
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

    `service_id` is set if an identifier matches, or a name that only one organisation of the country has.
    `match_method` says which, and `match_score` how sure the match is (`similar_name` is less than sure).
    Most releases first, then by name, role, country and identifier. Parties without evidence that they are
    organisations are withheld; `org_evidence` says why a party is served.
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


_READ_AT_ONCE: Final = 64
_CHANGES_SHOWN: Final = 100
_ROOM: Final = 40_000


def _brief(row: bytes) -> bytes:
    """Shortens a row: no `set_by`, the newest changes only, and no release if it is large."""
    fields: dict[str, Any] = decode(row)
    fields |= {"set_by": {}, "changes": fields["changes"][-_CHANGES_SHOWN:]}
    if len(wire.encode(fields)) > _ROOM:
        fields["release"] = {}
    return wire.encode(fields)


@operation(
    "/v1/contracts/{ocid}",
    dataset=TENDER,
    row=ContractRow,
    tool="get_contract",
    extension=True,
    agent=AgentView(compact=_brief),
)
async def get_contract(
    call: Call, *, ocid: parameters.Contract, as_of: parameters.ContractDay = None
) -> Answer:
    """One contracting process as it stood on a day, compiled from its releases up to then.

    The answer is one row. `release` is compiled by the merge rules of OCDS 1.1.5, without extensions, from
    every release with this ocid; releases with the same date are merged in the order of their ids. `set_by`
    names the release that set each value. `changes` lists amounts, deadlines, statuses and suppliers that a
    release replaced. Before its first release, a process has no row.
    """
    releases = await process_releases(call.edition, ocid)
    if not releases:
        raise NotFound(f"No contracting process with ocid {ocid}.")
    day = as_of or call.today
    known = [(country, number) for released, country, number in releases if released <= day]
    if not known:
        return Answer(NO_ROWS, as_of=day, absent=_not_yet(day, [released for released, _, _ in releases]))
    process, size, first_date = Process(), 0, ""
    last: dict[str, Any] = {}

    def add(rows: list[bytes]) -> None:
        nonlocal last, first_date
        for row in rows:
            last = decode(row)
            first_date = first_date or last["release_date"]
            process.add(last["release"], SetBy(last["release_id"], last["release_date"]))

    for start in range(0, len(known), _READ_AT_ONCE):
        rows = [
            bytes((await single_rows(call.edition, country, (number,)))[0])
            for country, number in known[start : start + _READ_AT_ONCE]
        ]
        size += sum(map(len, rows))
        await in_thread_if_large(sum(map(len, rows)), add, rows)
    row = await in_thread_if_large(size, _compiled, process, first_date, last, len(known))
    return Answer(Selection([row], 1, truncated=False), as_of=day)


def _not_yet(day: date, released: Sequence[date]) -> Absence:
    detail = f"Not known on {day}: its first release is dated {released[0]}."
    return Absence("not_yet_known", detail, released[0], released[-1])


def _compiled(process: Process, first: str, last: dict[str, Any], release_count: int) -> bytes:
    compiled = process.compiled()
    own = {name: last[name] for name in ("source_ref", "license_class", "observed_at", "country", "ocid")}
    return wire.encode(
        ContractRow(
            **own,
            release_count=release_count,
            first_release_date=first,
            last_release_date=last["release_date"],
            release=compiled.release,
            set_by=compiled.set_by,
            changes=compiled.changes,
        )
    )


FlagProcessParameter = Annotated[
    str | None,
    plain_text(400, "ocds-999sza-00134"),
    "Every indicator of this contracting process, flagged or not.",
]
FlagBuyerParameter = Annotated[
    str | None,
    plain_text(400, "Groot Sample District Municipality"),
    "Buyer: rows about it, its processes and its pairs with suppliers. A whole name, service_id or id used "
    "in releases, in any case.",
]
FlagSupplierParameter = Annotated[
    str | None,
    plain_text(400, "Duineveld Sample Civils (Pty) Ltd"),
    "Tenderer: rows about it and processes that awarded it a contract. Named as for `buyer`.",
]

FlagIndicatorsParameter = Annotated[
    tuple[str, ...] | None,
    Choices(tuple(INDICATORS), ("R003", "R018")),
    "Indicators: rows of these only, by code.",
]

METHODOLOGY: Final = "signals-v1/red-flags"
_ORDER: Final = RowOrder("country", "indicator", "subject_type", "subject")


@operation("/v1/flags", dataset=TENDER, row=FlagRow, tool="get_flags", extension=True)
async def get_flags(
    call: Call,
    *,
    country: parameters.Country = None,
    ocid: FlagProcessParameter = None,
    buyer: FlagBuyerParameter = None,
    supplier: FlagSupplierParameter = None,
    indicator: FlagIndicatorsParameter = None,
    as_of: parameters.ContractDay = None,
    limit: parameters.Limit = None,
    cursor: parameters.Cursor = None,
) -> Answer:
    """Red flags of contracting processes, buyers and tenderers, as they could be raised on a day.

    The indicators are those of Cardinal, with its defaults, and those of the guide of the Open Contracting
    Partnership that releases can carry. The population is every process of the country, compiled from its
    releases up to that day. Cardinal's prices are compared in the currency of most bids. With `ocid`
    you get every indicator of that process; if one cannot be computed, `flagged` is null and `reason` says
    why. Otherwise you get only what is flagged. `buyer` and `supplier` keep the rows about that party and its
    processes, and `indicator` the rows of these indicators. A flag is a reason to look, not proof. Ordered
    by country, indicator, subject_type and subject. The method is explained at
    `/methodology/signals-v1/red-flags`.
    """
    parties = _spelling(buyer), _spelling(supplier)
    codes = tuple(sorted(indicator or ()))
    filters = (country, ocid, *parties, *(("indicator", *codes) if codes else ()))
    page = await first_page(call, "flags", *filters, as_of=as_of, cursor=cursor)
    most = call.grant.rows(limit)
    countries: Sequence[str] = [country] if country else await page.edition.keys("tender_day")
    if ocid is not None:
        releases = await process_releases(page.edition, ocid)
        days = [released for released, of_country, _ in releases if of_country in countries]
        if days and days[0] > page.day:
            members: dict[str, object] = {"next_cursor": None}
            absent = _not_yet(page.day, days)
            return Answer(NO_ROWS, page.day, members, page.edition.id, absent=absent)
        countries = sorted({of_country for day, of_country, _ in releases if day <= page.day} & {*countries})
    rows: list[bytes] = []
    for one in countries:
        if len(rows) <= most and (not page.key or one >= str(page.key[0])):
            rows += await _rows(page, one, ocid, parties, codes, most + 1 - len(rows))
    more = len(rows) > most
    selection = Selection(rows[:most], len(rows[:most]), truncated=more, following=(0,) if more else None)
    return page.answer(selection, _ORDER, as_of=page.day)


async def _rows(
    page: ListPage, country: str, ocid: str | None, parties: Parties, indicators: tuple[str, ...], most: int
) -> list[bytes]:
    known = await flags_on(page.edition, country, page.day.toordinal())
    if known is None or any([await is_stranger(page.edition, one) for one in parties if one]):
        return []
    behind = tuple(map(str, page.key[1:])) if page.key and page.key[0] == country else ()
    if ocid is None:
        flags = await known.flags(parties, behind, most, indicators)
    else:
        flags = [
            one
            for one in await known.of_process(ocid, parties)
            if (not indicators or one.finding.indicator in indicators)
            and (not behind or sort_key(one.finding) > behind)
        ][:most]
    return [wire.encode(_row(country, flag, known.population)) for flag in flags]


def _spelling(party: str | None) -> str | None:
    return None if party is None else next(iter(spellings(party)), "")


def _row(country: str, flag: Flag, population: int) -> FlagRow:
    finding, subject = flag
    return FlagRow(
        country=country,
        indicator=finding.indicator,
        title=INDICATORS[finding.indicator]["title"],
        subject_type=finding.subject_type,
        subject=finding.subject,
        name=subject.name,
        service_id=subject.service_id,
        flagged=finding.flagged,
        value=_rounded(finding.value),
        threshold=_rounded(finding.threshold),
        formula=INDICATORS[finding.indicator]["formula"],
        inputs={name: _rounded(one) if type(one) is float else one for name, one in finding.inputs.items()},
        population=population,
        reason=finding.reason,
        methodology_ref=METHODOLOGY,
        source_ref=subject.source.source_ref,
        license_class=subject.source.license_class,
        observed_at=subject.source.observed_at,
    )


def _rounded(value: Any) -> Decimal | None:
    return None if value is None else quotient(Decimal(value), Decimal(1))
