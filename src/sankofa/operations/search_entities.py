"""The MCP tool search_entities. REST has no name search (contract: ENTY-3)."""

import msgspec

from sankofa.edition.format.keys import FREE_ID_TYPES, ID_TYPES
from sankofa.edition.read.edition import Selection
from sankofa.edition.read.search import Hit, search_names, search_symbol
from sankofa.edition.read.turns import Turns
from sankofa.model.identifiers import lookup_key_of_text
from sankofa.model.provenance import ORGANISATIONS
from sankofa.model.rows import CrosswalkMatchRow, EntityMatchRow, Match, wire
from sankofa.operations.contract import AgentView, Answer, Call, operation
from sankofa.operations.parameters import CountryParameter, LimitParameter, QueryParameter

_ROWS_A_TURN = 256
_matches = msgspec.json.Decoder(list[CrosswalkMatchRow]).decode


class _Country(msgspec.Struct):
    country: str | None


_country = msgspec.json.Decoder(_Country).decode


_FOR_AGENTS = AgentView(
    description="""\
Find an organisation by name, ticker or identifier: the way to a `service_id`, which other tools need.
Accents, legal forms, word order and small slips do not matter; the best match first, and `match` says why.
100 rows where `limit` is omitted. Next: get_entity, get_fundamentals, get_metrics.
Example: {"query":"Dangote Cement","country":"NG","limit":5}""",
    narrow_by=("country", "limit"),
)


@operation(
    None,
    row=EntityMatchRow,
    errors=(400, 401, 402, 429, 503),
    dataset=ORGANISATIONS,
    tool="search_entities",
    agent=_FOR_AGENTS,
)
async def search_entities(
    call: Call, *, query: QueryParameter, country: CountryParameter = None, limit: LimitParameter = None
) -> Answer:
    """Organisations by name, ticker or identifier.

    Accents, legal forms, word order and small slips do not matter. Each hit says in `match` why it was found
    and how well; an exact identifier comes first. On the sample tier only LEIs and tickers are looked up. Use
    the `service_id` of a hit with the other tools.
    """
    most = call.grant.rows(limit)
    exact = await _exact(call, query, country)
    by_name, more = await search_names(call.edition, query, country, most + len(exact))
    best: dict[str, Hit] = {}
    for hit in (*exact, *by_name):
        best.setdefault(hit.service_id, hit)
    hits = list(best.values())
    rows = []
    turns = Turns(_ROWS_A_TURN)
    for hit in hits[:most]:
        rows.append(await _row(call, hit))
        await turns.step()
    return Answer(Selection(rows, len(rows), truncated=more or len(hits) > most))


async def _exact(call: Call, query: str, country: str | None) -> list[Hit]:
    """Matches of the query as an identifier of each kind that the tier may use."""
    day = call.today.toordinal()
    hits: list[Hit] = []
    for id_type in FREE_ID_TYPES if call.grant.sample else ID_TYPES:
        try:
            key = lookup_key_of_text(id_type, query)
        except ValueError:
            continue
        selection = await call.edition.select("identifier", key, day=day, limit=20)
        if selection is not None:
            rows = _matches(b"[%b]" % selection.rows)
            hits += [Hit(1.0, row.service_id, row.id_type, row.id_value) for row in rows]
    hits += await search_symbol(call.edition, query)
    if not hits and await call.edition.holds("entity", query.strip().upper()):
        hits.append(Hit(1.0, query.strip().upper(), "service_id", query.strip().upper()))
    if country is not None:
        hits = [h for h in hits if _country(await _row(call, h)).country == country]
    return hits


async def _row(call: Call, hit: Hit) -> bytes:
    """The entity's own row, with the reason added at its end."""
    selection = await call.edition.select("entity", hit.service_id, day=call.today.toordinal())
    row = b"" if selection is None else selection.rows
    match = wire.encode(Match(hit.matched_on, hit.matched_value, hit.score))
    return b'%b,"match":%b}' % (row.removesuffix(b"}"), match)
