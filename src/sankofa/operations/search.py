"""GET /v1/search, and the MCP tool search_entities, which searches organisations only."""

from collections.abc import Awaitable, Callable
from datetime import date
from itertools import chain
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from sankofa.edition.format.keys import ID_TYPES, MACRO_ITEMS
from sankofa.edition.format.keys import ORGANISATIONS as ORGANISATION_INDEX
from sankofa.edition.format.row_blocks import SortKey
from sankofa.edition.read.edition import Selection
from sankofa.edition.read.search import ORGANISATION, Hit, NameQuery, macro_spans, search_code, search_symbol
from sankofa.edition.read.series_catalogue import (
    annual_series_entry,
    country_entries,
    entries_on,
    entry_of,
    entry_on,
)
from sankofa.edition.read.yield_points import YieldPoints
from sankofa.engines.block_file import BoundedCache
from sankofa.model.catalogue_rows import SEARCH_TYPES, EntityMatchRow, SearchRow
from sankofa.model.countries import country_and_subject
from sankofa.model.identifiers import FREE_ID_TYPES, lookup_keys_of_text
from sankofa.model.provenance import ORGANISATIONS
from sankofa.model.rows import CrosswalkMatchRow, Match, wire
from sankofa.model.text import code_words, words
from sankofa.operations import parameters
from sankofa.operations.contract import Answer, Call, operation
from sankofa.operations.paging import ListPage, first_page

_ROWS_PER_YIELD: Final = 128
_EVERY_HIT: Final = 10_000
_MOST_ROWS_KEPT: Final = 16_384
_LONGEST_NAME_KEPT: Final = 512
"""Recently found organisations to keep: at most 16 MB, usually 8 MB."""
_matches = msgspec.json.Decoder(list[CrosswalkMatchRow]).decode
_NAMES: Final = ("legal_name", "other_name")
_ID_LENGTH: Final = 26
_MOST_IDENTIFIED: Final = 20


class _Record(msgspec.Struct):
    """The fields of an organisation or a series that a result repeats."""

    source_ref: str
    license_class: str
    observed_at: Any
    country: str | None
    name: str | None = None
    legal_name: str | None = None


_record = msgspec.json.Decoder(_Record).decode


@operation("/v1/search", row=SearchRow, extension=True)
async def search(
    call: Call,
    *,
    q: parameters.Search,
    country: parameters.Country = None,
    type: parameters.SearchType = None,
    as_of: parameters.AsOf = None,
    limit: parameters.Limit = None,
    cursor: parameters.Cursor = None,
) -> Answer:
    """Organisations, series and indicators by name or identifier.

    Case, accents, legal forms, word order and small typing errors do not matter. Words may be incomplete,
    from three letters on. An exact identifier comes first: LEI, ticker (`JSE:NPN` or `NPN`), series key,
    indicator code; ISIN, registry number, FIGI and aggregator id from the starter tier on. Ordered by score
    descending, then type and id. With `country`, or words that name one (`gdp kenya`), it finds only
    indicators that the country has. With `as_of` it finds what was known on that day.
    """
    page = await first_page(call, "search", q, country, type, as_of=as_of, dated=True, cursor=cursor)
    call = replace(call, edition=page.edition, today=page.day)
    most = call.grant.rows(limit)
    place, macro_words = country_and_subject(code_words(q), country)

    async def ranked(most: int) -> tuple[list[Hit], bool]:
        return await _everything(call, q, country, type, place, macro_words, most)

    hits, following, more = await _page(ranked, page, most)
    rows = await _rows(call, hits, place)
    selection = Selection(rows, len(rows), truncated=more, following=following)
    return page.answer(selection, following or (), as_of=page.day)


async def _everything(
    call: Call,
    q: str,
    country: str | None,
    type: str | None,
    place: str | None,
    macro_words: list[str],
    most: int,
) -> tuple[list[Hit], bool]:
    """Hits of every type, best first, and whether there are more."""
    hits: list[Hit] = []
    macro: list[Hit] = []
    more = others = False
    edition = call.edition
    identified = await _identified(call, q, country) if type in (None, ORGANISATION) else []
    organisations = NameQuery(edition, ORGANISATION_INDEX, words(q), country)
    items = NameQuery(edition, MACRO_ITEMS, macro_words, None)
    code = q.strip().upper()
    coded = await search_code(edition, code) if type != ORGANISATION and items.records else []
    if type != ORGANISATION and (entry := await annual_series_entry(edition, code)) is not None:
        coded.append(Hit(1.0, code, "series", code, type="series", entry=entry))
    for forgiving in (False, True) if type is None else (True,):
        if type in (None, ORGANISATION):
            hits, more = await _organisations(organisations, identified, most, forgiving=forgiving)
        if type != ORGANISATION and (coded or await items.is_known(forgiving=forgiving)):
            macro, others = await _macro_items(call, items, coded, place, type, most, forgiving=forgiving)
            if not macro and place != country:  # the country may be part of the name: coal of South Africa
                whole = NameQuery(edition, MACRO_ITEMS, code_words(q), None)
                macro, others = await _macro_items(call, whole, [], None, type, most, forgiving=forgiving)
        if hits or macro:
            break
    if macro or identified:  # otherwise they are in order
        hits = sorted([*hits, *macro], key=_best_first)
    return hits, more or others


def _best_first(hit: Hit) -> tuple[float, int, str]:
    return -hit.score, SEARCH_TYPES.index(hit.type), hit.id


async def _page(
    ranked: Callable[[int], Awaitable[tuple[list[Hit], bool]]], page: ListPage, most: int
) -> tuple[list[Hit], SortKey | None, bool]:
    """The hits of a page, the sort key to continue after, and whether there are more.

    For the first page `ranked` scores only enough candidates to find the best hits. Later pages score all
    candidates and leave out the first page's hits, so no hit is lost or repeated. For this a sort key begins
    with the first page's `limit`, or with 0 once the pages have moved to another edition.
    """
    if not page.key:
        hits, more = await ranked(most)
        more = more or len(hits) > most
        return hits[:most], _behind(most, hits[:most]) if more and hits else None, more
    first = int(page.key[0]) if page.edition.id == page.previous_edition else 0
    shown = {(hit.type, hit.id) for hit in (await ranked(first))[0][:first]} if first else set()
    hits, more = await ranked(_EVERY_HIT)
    rest = _rest([hit for hit in hits if (hit.type, hit.id) not in shown], shown, page.key)
    selection = rest[:most]
    following = _behind(first, selection) if len(rest) > most else None
    return selection, following, more or following is not None


def _behind(first: int, hits: list[Hit]) -> SortKey:
    last = hits[-1]
    return first, str(last.score), last.type, last.id


def _rest(hits: list[Hit], shown: set[tuple[str, str]], key: SortKey) -> list[Hit]:
    """The hits after a key: after that hit if it is still found, otherwise after its score, because scores
    depend on all names of an edition."""
    _, score, type, id = key
    if (type, id) in shown:
        return hits
    at = next((n for n, hit in enumerate(hits, 1) if (hit.type, hit.id) == (type, id)), None)
    place = _best_first(Hit(float(score), str(id), "", "", type=str(type)))
    return hits[at:] if at is not None else [hit for hit in hits if _best_first(hit) > place]


@operation("", row=EntityMatchRow, dataset=ORGANISATIONS, tool="search_entities")
async def search_entities(
    call: Call,
    *,
    query: parameters.Query,
    country: parameters.Country = None,
    as_of: parameters.AsOf = None,
    limit: parameters.Limit = None,
    cursor: parameters.Cursor = None,
) -> Answer:
    """Organisations by name, ticker or identifier.

    Accents, legal forms, word order and small typing errors do not matter. `match` says why each organisation
    was found and how well it matches; an exact identifier comes first. On the sample tier only LEIs and
    tickers are looked up. Use the `service_id` of a hit with the other tools.
    """
    page = await first_page(call, "entities", query, country, as_of=as_of, dated=True, cursor=cursor)
    call = replace(call, edition=page.edition, today=page.day)
    identified = await _identified(call, query, country)
    by_name = NameQuery(call.edition, ORGANISATION_INDEX, words(query), country)

    async def ranked(most: int) -> tuple[list[Hit], bool]:
        return await _organisations(by_name, identified, most)

    hits, following, more = await _page(ranked, page, call.grant.rows(limit))
    rows = []
    yield_points = YieldPoints(_ROWS_PER_YIELD)
    for hit in hits:
        record = await _entity(call, hit)
        match = {
            "type": hit.type,
            "id": hit.id,
            "name": _record(record).legal_name,
            "matched": _matched(hit),
            "score": hit.score,
            "match": Match(hit.matched_on, hit.matched_value, hit.score),
        }
        rows.append(b"%b,%b" % (record[:-1], wire.encode(match)[1:]))
        await yield_points.step()
    selection = Selection(rows, len(rows), truncated=more, following=following)
    return page.answer(selection, following or (), as_of=page.day)


async def _rows(call: Call, hits: list[Hit], country: str | None) -> list[bytes]:
    """The rows of hits. Organisations are cached."""
    known: BoundedCache[tuple[str, date], _Record] = call.edition.cache("search rows", _MOST_ROWS_KEPT)
    rows = []
    yield_points = YieldPoints(_ROWS_PER_YIELD)
    for hit in hits:
        is_organisation, key = hit.type == ORGANISATION, (hit.id, call.today)
        if not is_organisation or (one := known.get(key)) is None:
            await yield_points.step()
            one = await (_entity_record(call, hit) if is_organisation else _macro_record(call, hit, country))
            if is_organisation and len(one.legal_name or "") <= _LONGEST_NAME_KEPT:
                known.put(key, one)
        row = SearchRow(
            source_ref=one.source_ref,
            license_class=one.license_class,
            observed_at=one.observed_at,
            type=hit.type,
            id=hit.id,
            name=one.legal_name if is_organisation else one.name,
            country=one.country,
            matched=_matched(hit),
            score=hit.score,
        )
        rows.append(wire.encode(row))
    return rows


def _matched(hit: Hit) -> str:
    """The name that matched, or the identifier with its kind."""
    return hit.matched_value if hit.matched_on in _NAMES else f"{hit.matched_on}:{hit.matched_value}"


async def _organisations(
    query: NameQuery, exact: list[Hit], most: int, *, forgiving: bool = True
) -> tuple[list[Hit], bool]:
    """The organisations that match a query, `exact` ones first, and whether there are more."""
    by_name, more = await query.search(most + len(exact), forgiving=forgiving)
    return _without_repeats(exact, by_name), more


def _without_repeats(exact: list[Hit], by_name: list[Hit]) -> list[Hit]:
    best: dict[tuple[str, str], Hit] = {}
    for hit in chain(exact, by_name):
        best.setdefault((hit.type, hit.id), hit)
    return list(best.values()) if exact else by_name


async def _identified(call: Call, query: str, country: str | None) -> list[Hit]:
    """Organisations with the query as an identifier, of any kind that the tier may use."""
    hits: list[Hit] = []
    plain = "".join(query.replace("-", "").split())
    for _, key in lookup_keys_of_text(FREE_ID_TYPES if call.grant.sample else ID_TYPES, query):
        if rows := await _rows_seen(call, "identifier", key, _MOST_IDENTIFIED):
            hits += [Hit(1.0, one.service_id, one.id_type, one.id_value) for one in _matches(b"[%b]" % rows)]
    hits += await search_symbol(call.edition, query)
    if not hits and len(plain) == _ID_LENGTH and await call.edition.holds("entity", plain.upper()):
        hits.append(Hit(1.0, plain.upper(), "service_id", plain.upper()))
    if country is not None:
        hits = [h for h in hits if (await _entity_record(call, h)).country == country]
    return hits


async def _macro_items(
    call: Call,
    query: NameQuery,
    coded: list[Hit],
    country: str | None,
    type: str | None,
    most: int,
    *,
    forgiving: bool,
) -> tuple[list[Hit], bool]:
    """The series and indicators that match a query, best first, and whether there are more."""
    own = None if country is None else await country_entries(call.edition, country)
    spans = await macro_spans(call.edition)

    known = await entries_on(call.edition)

    def admits_hit(hit: Hit) -> bool:
        return admits(hit.number) if hit.entry < 0 else own is None or hit.entry in own

    def admits(number: int) -> bool:
        first, end = spans[2 * number], spans[2 * number + 1]
        return own is None or entry_of(own, first, end, known) is not None

    exact = [hit for hit in coded if type in (None, hit.type) and admits_hit(hit)]
    admitted = None if own is None else admits
    by_name, more = await query.search(most + len(exact), admitted, type, forgiving=forgiving)
    return _without_repeats(exact, by_name), more


async def _macro_record(call: Call, hit: Hit, country: str | None) -> _Record:
    """The catalogue entry of a series or an indicator, where possible of the country."""
    first, end = hit.entry, hit.entry + 1
    if hit.entry < 0:
        spans = await macro_spans(call.edition)
        first, end = spans[2 * hit.number], spans[2 * hit.number + 1]
    own = None if country is None else await country_entries(call.edition, country)
    known = await entries_on(call.edition)
    listed = range(first, end) if known is None else [n for n in range(first, end) if known(n)]
    number = listed[0] if own is None else entry_of(own, first, end, known) or listed[0]
    record = _record(await entry_on(call.edition, number) or b"")
    if len(listed) > 1 and country is None:
        record.country = None
    return record


async def _entity_record(call: Call, hit: Hit) -> _Record:
    return _record(await _entity(call, hit))


async def _entity(call: Call, hit: Hit) -> bytes:
    return await _rows_seen(call, "entity", hit.id)


async def _rows_seen(call: Call, kind: str, key: str, limit: int | None = None) -> bytes:
    blocks = await call.edition.blocks(kind, key, 0, 2)
    if len(blocks) == 1 and not blocks[0][0]:  # the usual case: one row, always visible
        return bytes(blocks[0][1])
    if not blocks:
        return b""
    selection = await call.edition.select(kind, key, day=call.today.toordinal(), limit=limit)
    return b"" if selection is None else selection.rows
