"""The MCP tool search_entities. REST has no name search, by the specification."""

import msgspec

from sankofa.edition.datasets.crosswalk import FREE_TYPES, ORDER
from sankofa.edition.reading import Edition, Selection
from sankofa.edition.search import Hit, search_names, search_symbol
from sankofa.model.identifiers import asked_key
from sankofa.model.rows import CrosswalkMatchRow, EntityMatchRow, EntityRow, Match, wire
from sankofa.operations.contract import Answer, Call, operation
from sankofa.operations.parameters import CountryParameter, LimitParameter, QueryParameter

_matches = msgspec.json.Decoder(list[CrosswalkMatchRow]).decode
_entity = msgspec.json.Decoder(list[EntityRow]).decode


@operation(None, row=EntityMatchRow, errors=(400, 401, 402, 429, 503), tool="search_entities")
async def search_entities(
    call: Call, *, query: QueryParameter, country: CountryParameter = None, limit: LimitParameter = None
) -> Answer:
    """Organisations by name, ticker or identifier.

    Accents, legal forms, word order and small slips do not matter. Each hit says in `match` why it was found
    and how well; an exact identifier comes first. On the sample tier only LEIs and tickers are looked up. Use
    the `service_id` of a hit with the other tools.
    """
    most, cut = call.grant.rows(limit)
    exact = await _exact(call, query, country)
    named = await search_names(call.edition, query, country, most + 1)
    best: dict[str, Hit] = {}
    for hit in (*exact, *named):
        best.setdefault(hit.service_id, hit)
    hits = list(best.values())
    rows = [await _row(call.edition, hit, call.today.toordinal()) for hit in hits[:most]]
    truncated = cut or len(hits) > most
    return Answer(Selection([wire.encode(row) for row in rows], len(rows), truncated))


async def _exact(call: Call, query: str, country: str | None) -> list[Hit]:
    """What the query leads to read as an identifier of each kind the tier may use."""
    day = call.today.toordinal()
    hits: list[Hit] = []
    for id_type in FREE_TYPES if call.grant.sample else ORDER:
        try:
            key = asked_key(id_type, query)
        except ValueError:
            continue
        found = await call.edition.select("identifier", key, day=day, limit=20)
        if found is not None:
            rows = _matches(b"[%b]" % found.rows)
            hits += [Hit(1.0, row.service_id, row.id_type, row.id_value) for row in rows]
    hits += await search_symbol(call.edition, query, None)
    if not hits and await call.edition.holds("entity", query.strip().upper()):
        hits.append(Hit(1.0, query.strip().upper(), "service_id", query.strip().upper()))
    if country is not None:
        hits = [h for h in hits if (await _row(call.edition, h, day)).country == country]
    return hits


async def _row(edition: Edition, hit: Hit, day: int) -> EntityMatchRow:
    found = await edition.select("entity", hit.service_id, day=day)
    rows = b"" if found is None else found.rows
    (row,) = _entity(b"[%b]" % rows)
    match = Match(hit.matched_on, hit.matched_value, hit.score)
    return EntityMatchRow(**msgspec.structs.asdict(row), match=match)
