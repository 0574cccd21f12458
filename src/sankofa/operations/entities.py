"""GET /v1/entities/{service_id}, its history, GET /v1/issuers and /v1/crosswalk."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from sankofa.access.tiers import Grant
from sankofa.edition.format.keys import ENTITIES, FREE, ID_TYPES, PAID, RELATIONS
from sankofa.edition.format.row_blocks import CROSSWALK_ORDER, Entry, RowOrder, entries_of
from sankofa.edition.read.day_view import DayView, FieldEvidence, FieldSource
from sankofa.edition.read.edition import Selection
from sankofa.edition.read.issuers import issuers_in_order, issuers_on
from sankofa.model.catalogue_rows import IssuerRow
from sankofa.model.days import FOREVER
from sankofa.model.errors import InvalidParameter
from sankofa.model.identifiers import FREE_ID_TYPES, lookup_key_of_text
from sankofa.model.identifiers import exchange as exchange_name
from sankofa.model.provenance import FUND, ORGANISATIONS
from sankofa.model.rows import CrosswalkMatchRow, CrosswalkRow, EntityRow, RelationRow, SpellRow, wire
from sankofa.operations import parameters
from sankofa.operations.contract import MEMBERS, NO_ROWS, Answer, Call, operation
from sankofa.operations.locked import named_on
from sankofa.operations.nearest import predecessors, relations, unknown_organisation
from sankofa.operations.paging import first_page, view_on


@operation(
    "/v1/entities/{service_id}",
    dataset=ORGANISATIONS,
    row=EntityRow,
    malformed_id_is_unknown=True,
    tool="get_entity",
    extensions=("as_of",),
    members={name: MEMBERS[name] for name in ("successor", "predecessors")},
)
async def get_entity(
    call: Call, *, service_id: parameters.ServiceId, as_of: parameters.AsOf = None
) -> Answer:
    """One organisation's resolved entity record.

    `/v1/search` finds organisations by name. If an id was merged into another, `service_id` is the surviving
    id. An organisation that its register calls merged keeps its own record, and `successor` names the one
    that took it over. `predecessors` names those it took over from; their figures are under their own ids.
    With `as_of` the record has the names, status, listings and parents of that day; there is no row if the
    organisation was not known yet. A parent is the organisation that consolidates its accounts. A parent
    without a record here has only a LEI.
    """
    key, day = service_id.upper(), as_of or call.today
    edition = view_on(call, call.edition, day)
    selection = await edition.select(ENTITIES, key, day=day.toordinal())
    if selection is None and not await call.edition.holds(ENTITIES, key):
        raise await unknown_organisation(call, service_id)
    related = await relations(edition, key, day) if selection else []
    successors = [one.value for one in related if one.kind == "successor"]
    members: dict[str, object] = {"successor": None}
    if successors and await edition.holds(ENTITIES, successors[0]):  # a later organisation is not known yet
        members["successor"] = successors[0]
    members["predecessors"] = await predecessors(edition, related, day)
    return Answer(selection or NO_ROWS, as_of=day, members=members)


class _State(msgspec.Struct):
    """The fields of an entity row that have a history, and the row's provenance."""

    legal_name: str | None
    status: str | None
    legal_form: str | None
    jurisdiction: str | None
    lei: str | None
    listings: list[dict[str, str]]
    source_ref: str
    license_class: str
    observed_at: str | None

    def values(self, evidence: FieldEvidence) -> Iterator[tuple[tuple[str, str], "_Origin"]]:
        for kind in ("name", "status", "legal_form", "jurisdiction"):
            field = "legal_name" if kind == "name" else kind
            if value := getattr(self, field):
                yield (kind, value), evidence.get(field, self)
        if self.lei:
            yield ("identifier", f"lei:{self.lei}"), self
        yield from ((("listing", f"{one['exchange']}:{one['ticker']}"), self) for one in self.listings)


_Origin = _State | FieldSource | CrosswalkRow | RelationRow
_state = msgspec.json.Decoder(_State).decode
_identified = msgspec.json.Decoder(CrosswalkRow).decode
_related = msgspec.json.Decoder(RelationRow).decode


@operation(
    "/v1/entities/{service_id}/history",
    dataset=ORGANISATIONS,
    row=SpellRow,
    tool="get_entity_history",
    extension=True,
)
async def get_entity_history(
    call: Call, *, service_id: parameters.ServiceId, as_of: parameters.AsOf = None
) -> Answer:
    """Every name, status, listing, parent and identifier of an organisation, with first and last days.

    One row for each name, status, legal form, jurisdiction, listing, identifier, parent, successor and
    predecessor. `from` is the first day on which it was known and `until` the last; `until` is null while it
    is current. With `as_of`, an `until` after that day is null. The sample tier gets no identifier but the
    LEI. Ordered by kind, then `from`.
    """
    key, day = service_id.upper(), as_of or call.today
    view = DayView(call.edition, day, locked=call.lock is not None)
    states = await view.entity_states(key)
    if not states and not await call.edition.holds(ENTITIES, key):
        raise await unknown_organisation(call, service_id)
    spells: list[SpellRow] = []
    paid: list[SpellRow] = []
    if states:
        since = date.fromordinal(states[0][0])
        held = await _identifiers(view, key)
        for entry, one in held:
            if entry.modes & PAID:
                paid.append(_spell("identifier", _named(one), one, *_days(entry, view, since)))
        spells += [*_spells(states, held), *([] if call.grant.sample else paid)]
        spells += await _relations(view, key, since)
    spells.sort(key=lambda one: (one.kind, one.from_, one.value))
    withheld = call.grant.sample and bool(paid)
    rows = [wire.encode(one) for one in spells]
    return Answer(Selection(rows, len(rows), truncated=withheld), as_of=day)


async def _identifiers(view: DayView, key: str) -> list[tuple[Entry, CrosswalkRow]]:
    """The crosswalk of an organisation up to the day of the view."""
    blocks = await view.whole.blocks("crosswalk", key, 0, FOREVER)
    entries = (entry for block in blocks for entry in entries_of(block))
    return [(entry, _identified(entry.row)) for entry in entries if entry.first <= view.day]


def _spells(
    states: Sequence[tuple[int, bytes, FieldEvidence]], held: Sequence[tuple[Entry, CrosswalkRow]]
) -> Iterator[SpellRow]:
    """When each value was valid: from the first record that has it to the first that lacks it."""
    since: dict[tuple[str, str], tuple[_Origin, date]] = {}
    for number, row, evidence in states:
        day = date.fromordinal(number)
        values = dict(_state(row).values(evidence))
        for ended in [value for value in since if value not in values]:
            yield _spell(*ended, *since.pop(ended), day - timedelta(days=1))
        # An identifier has the evidence that the crosswalk has.
        for entry, one in held:
            spell = ("listing", one.id_value) if one.id_type == "ticker" else ("identifier", _named(one))
            if entry.first <= number < entry.until and spell in values:
                values[spell] = one
        for value, origin in values.items():
            since.setdefault(value, (origin, day))
    yield from (_spell(*value, *origin_and_day, None) for value, origin_and_day in since.items())


def _days(entry: Entry, view: DayView, since: date) -> tuple[date, date | None]:
    """The first and last day of an entry, as known on the day of the view."""
    first = max(date.fromordinal(entry.first), since) if entry.first else since
    return first, date.fromordinal(entry.until - 1) if entry.until <= view.day else None


def _spell(kind: str, value: str, origin: _Origin, first: date, until: date | None) -> SpellRow:
    return SpellRow(
        kind=kind,
        value=value,
        relationship=origin.relationship if isinstance(origin, RelationRow) else None,
        from_=first,
        until=until,
        source_ref=origin.source_ref,
        license_class=origin.license_class,
        observed_at=origin.observed_at or "",
    )


def _named(one: CrosswalkRow) -> str:
    value = f"{one.scheme}:{one.id_value}" if one.scheme and one.id_type != "isin" else one.id_value
    return f"{one.id_type}:{value}"


async def _relations(view: DayView, key: str, since: date) -> list[SpellRow]:
    spells = []
    for block in await view.whole.blocks(RELATIONS, key, 0, FOREVER):
        for entry in entries_of(block):
            one = _related(entry.row)
            if entry.first <= view.day and (one.kind == "parent" or await view.holds(ENTITIES, one.value)):
                spells.append(_spell(one.kind, one.value, one, *_days(entry, view, since)))
    return spells


@operation("/v1/issuers", dataset=FUND, row=IssuerRow, tool="list_issuers", extension=True)
async def list_issuers(
    call: Call,
    *,
    country: parameters.Country = None,
    exchange: parameters.Exchange = None,
    as_of: parameters.AsOf = None,
    limit: parameters.Limit = None,
    cursor: parameters.Cursor = None,
) -> Answer:
    """The issuers known on a day: every issuer with a figure that was public by then.

    An issuer is listed from the day its first figure became public, and stays even if it is delisted or stops
    reporting. Take a backtest's universe from here, not from today's screen. Dates, `fact_count`, names, LEI
    and listings are those of the day; `country` and `exchange` filter by the country and listings of the day.
    Ordered by country (issuers without a country last), then service_id.
    """
    name = None if exchange is None else exchange_name(exchange)
    page = await first_page(call, "issuers", country, name, as_of=as_of, cursor=cursor)

    day = page.day.toordinal()
    order = await issuers_in_order(page.edition, day)

    first = await page.position(lambda _, key: order.behind(key))
    selection = await issuers_on(order, day, country, name, first, call.grant.rows(limit))
    last = () if selection.following is None else order.key(selection.last_row)
    selection = await named_on(call, page.edition, page.day, selection)
    return page.answer(selection, last, as_of=page.day)


MEMBERS["withheld_id_types"]["items"]["enum"] = list(ID_TYPES)
_MATCH_ORDER = RowOrder("service_id")


@operation(
    "/v1/crosswalk/{service_id}",
    dataset=ORGANISATIONS,
    row=CrosswalkRow,
    malformed_id_is_unknown=True,
    members={name: MEMBERS[name] for name in ("withheld_id_types", "crosswalk_loaded")},
    extensions=("as_of", "limit", "cursor"),
)
async def get_crosswalk(
    call: Call,
    *,
    service_id: parameters.ServiceId,
    as_of: parameters.AsOf = None,
    limit: parameters.LimitOrAll = None,
    cursor: parameters.Cursor = None,
) -> Answer:
    """Every identifier held for one organisation.

    With `as_of`, those it had on that day. Ordered by id_type, scheme and value. The LEI and the listing
    ticker are free on every tier. On the sample tier the other kinds are only named, in `withheld_id_types`,
    and the answer is `truncated`. `crosswalk_loaded` is false until identifiers are loaded.
    """
    key = service_id.upper()
    page = await first_page(call, "crosswalk", key, as_of=as_of, dated=True, cursor=cursor)
    day, edition = page.day.toordinal(), page.edition
    modes = FREE if call.grant.sample else FREE | PAID
    # The sample tier gets all free identifiers; the cap applies only to a `limit` that the client sends.
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
            withheld = {row["id_type"] for row in msgspec.json.decode(b"[%b]" % paid.rows)}
    of_older_version = "" if edition.manifest.get("crosswalk_loaded") else None
    since: str | None = edition.manifest.get("crosswalk_since", of_older_version)
    members: dict[str, object] = {
        "withheld_id_types": sorted(withheld, key=ID_TYPES.index),
        "crosswalk_loaded": since is not None and (call.lock is None or since <= str(call.lock)),
    }
    if withheld:
        selection = replace(selection, row_filter=None, truncated=True)
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
    tool="lookup_identifier",
    extensions=("as_of", "limit", "cursor"),
    members={"ambiguous": MEMBERS["ambiguous"]},
)
async def find_by_identifier(
    call: Call,
    *,
    id_type: parameters.IdType,
    id_value: parameters.IdValue,
    as_of: parameters.AsOf = None,
    limit: parameters.MatchLimit = None,
    cursor: parameters.Cursor = None,
) -> Answer:
    """The organisations behind an outside identifier.

    `lei` and `ticker` work on any tier; the others need the starter tier or above. A registry number is
    unique only within its registry: if several organisations match, `ambiguous` is true. With `as_of`,
    matches are the organisations that had the identifier on that day, with their names of that day. At most
    20 matches are returned, ordered by service_id.
    """
    key = lookup_key_of_text(id_type, id_value)
    page = await first_page(call, "identifier", key, as_of=as_of, dated=True, cursor=cursor)
    most = parameters.MOST_MATCHES if limit is None else call.grant.rows(limit)
    matches = await page.select("identifier", key, _MATCH_ORDER, most) or NO_ROWS
    several = matches.count > 1 or matches.truncated or bool(page.key)
    return page.answer(matches, _MATCH_ORDER, as_of=page.day, members={"ambiguous": several})
