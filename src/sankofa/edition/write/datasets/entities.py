"""Organisations by service_id, their identifiers, and the organisations behind an identifier.

An identifier is shown on the days on which it was the organisation's.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Annotated, Any, Final, TypeVar

import msgspec

from sankofa.edition.format import keys
from sankofa.edition.format.row_blocks import Entry
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import Building, Input, KeyRows, Outcome, dataset, provenance
from sankofa.edition.write.tables import TableRows, table
from sankofa.engines.edition_reader import ALIASES
from sankofa.ledger.entities import NEVER, Claim, Entity
from sankofa.ledger.spells import PARENT, is_dated, states
from sankofa.model.countries import alpha3_of, country_name
from sankofa.model.days import FOREVER, ordinal
from sankofa.model.identifiers import (
    FREE_ID_TYPES,
    Identifier,
    free_location,
    stored_identifier,
    stored_lookup_key,
)
from sankofa.model.provenance import FUND, SERVICE, source_ref
from sankofa.model.rows import (
    CrosswalkMatchRow,
    CrosswalkRow,
    EntityRow,
    Listing,
    Parent,
    RelationRow,
    Row,
    doc,
    wire,
)

T = TypeVar("T")
_TODAY: Final = "9999-12-31"
"""Later than every day, and earlier than `NEVER`."""


@dataset(keys.ENTITIES, EntityRow, reads=(Input.DESCRIPTIONS,), by_organisation=True)
def entities(context: BuildContext, some: Sequence[Entity]) -> Building:
    sources: set[str] = set()
    for entity in some:
        sources.update(statement.source_id for statement in entity.statements)
        sources.update(context.captures[claim.capture_id].source_id for claim in entity.claims)
        sources.update(relation.evidence.source_id for relation in entity.relations)
        yield KeyRows(entity.service_id, [Entry(wire.encode(_entity_row(context, entity)))], entity.aliases)
    return Outcome(sources=sources)


def _shown_elsewhere(row: EntityRow) -> tuple[object, ...]:
    """The fields that searches use and rows of other datasets repeat."""
    return row.legal_name, row.other_names, row.country, row.lei, row.listings


def _states(context: BuildContext, entity: Entity) -> Iterator[tuple[str, Entity]]:
    if not is_dated(entity):
        yield "", entity
        return
    for day, statements, claims in states(entity, context.captures):
        yield day, replace(entity, statements=statements, claims=claims, earlier=[])


@dataset(keys.KNOWN, None, reads=(Input.DESCRIPTIONS, Input.ISSUERS))
def known_days(context: BuildContext) -> Building:
    """The first day of each organisation, apart from tenders, and by number: those whose row changed, those
    of them whose names, country, LEI or listings changed, and those that only tenders name.

    Returns the changed rows, each with its first day and the evidence of what is not of its first record.
    """
    ids = bytearray()
    days, dated, renamed, from_tenders = (array("i") for _ in range(4))
    changed_rows: dict[str, bytes] = {}
    for number, entity in enumerate(context.entities):
        if entity.from_tenders:
            from_tenders.append(number)
        changes = list(_states(context, entity))
        known = [ordinal(day) for day, _ in changes if day]
        if first_figure := context.issuers.first_figure(entity.service_id):
            known.append(first_figure)
        ids += entity.service_id.encode()
        days.append(min((*known, ordinal(context.captures[entity.first_capture].day))))
        if len(changes) == 1 and len(entity.statements) < 2:  # most organisations
            continue
        described = [_entity_row(context, own, day) for day, own in changes]
        rows = [
            (ordinal(day) if day else 0, wire.encode(row), _evidence(context, own))
            for (day, own), row in zip(changes, described, strict=True)
        ]
        distinct = [one for n, one in enumerate(rows) if not n or one[1:] != rows[n - 1][1:]]
        if len(distinct) > 1 or distinct[0][2]:
            dated.append(number)
            today = _shown_elsewhere(_entity_row(context, entity))
            if any(_shown_elsewhere(row) != today for row in described):
                renamed.append(number)
            changed_rows[entity.service_id] = _write(distinct)
    yield KeyRows("dated", [Entry(dated.tobytes())])
    yield KeyRows("days", [Entry(days.tobytes())])
    yield KeyRows("from_tenders", [Entry(from_tenders.tobytes())])
    yield KeyRows("ids", [Entry(bytes(ids))])
    yield KeyRows("renamed", [Entry(renamed.tobytes())])
    return Outcome(changed_rows)


@dataset(keys.STATES, None, needs=(keys.KNOWN,), reads=())
def changed_rows(context: BuildContext, known: dict[str, bytes]) -> Iterator[KeyRows]:
    for service_id in sorted(known):
        yield KeyRows(service_id, [Entry(known[service_id])])


@dataset(keys.TENDER_KNOWN, None, needs=(keys.TENDERS,), reads=())
def parties_known(context: BuildContext, releases: None) -> Iterator[KeyRows]:
    """The day of the first release that names an organisation; not before its registers knew it."""
    days: dict[str, int] = {}
    registered = dict(_registered(context.entities))
    for country in context.tenders.countries:
        for tender in context.tenders.of(country):
            day = ordinal(tender.row.release_date[:10])
            for party, _ in tender.parties:
                if own := party.match.service_id:
                    known = max(day, registered.get(own, 0))
                    days[own] = min(known, days.get(own, known))
    ids = sorted(days)
    yield KeyRows("days", [Entry(array("i", map(days.__getitem__, ids)).tobytes())])
    yield KeyRows("ids", [Entry("".join(ids).encode())])


def _registered(entities: Iterable[Entity]) -> Iterator[tuple[str, int]]:
    """The first registration of each organisation, if all its records have a registration."""
    for entity in entities:
        days = [one.profile.registered for one in (*entity.statements, *entity.earlier)]
        if days and all(days):
            yield entity.service_id, ordinal(min(days))


@dataset(ALIASES, None, reads=(Input.NAMES,))
def aliases(context: BuildContext) -> Iterator[KeyRows]:
    """Ids of merged organisations, each leading to the one that remains."""
    merged = sorted((alias, entity.service_id) for entity in context.entities for alias in entity.aliases)
    for alias, service_id in merged:
        yield KeyRows(alias, [Entry(service_id.encode())])


@dataset(keys.RELATIONS, RelationRow, by_organisation=True)
def relations(context: BuildContext, some: Sequence[Entity]) -> Building:
    """Successors and predecessors keep their own records and figures."""
    sources: set[str] = set()
    for entity in some:
        entries = []
        for kind, relationship, value, first, until, evidence, _ in entity.relations:
            location = relationship or _location(entity, evidence.subject)
            row = RelationRow(
                kind=kind,
                value=value,
                relationship=relationship or None,
                **provenance(context.captures[evidence.capture_id], location, evidence.profile.document),
            )
            days = ordinal(first) if first else 0, FOREVER if until == NEVER else ordinal(until)
            entries.append(Entry(wire.encode(row), *days))
            sources.add(evidence.source_id)
        if entries:
            yield KeyRows(entity.service_id, entries, entity.aliases)
    return Outcome(sources=sources)


def _parent(entity: Entity, relationship: str, day: str) -> Parent | None:
    """The parents that consolidate it on a day, with their names of that day."""
    for one in entity.relations:
        if one.kind == PARENT and one.relationship == relationship and one.first <= day < one.until:
            known = [(service_id, name) for since, service_id, name in one.named if since <= day]
            service_id, name = known[-1] if known else (None, None)
            return Parent(service_id, one.value, name)
    return None


def _entity_row(context: BuildContext, entity: Entity, day: str = _TODAY) -> EntityRow:
    profiles = [statement.profile for statement in entity.statements]
    identifiers = [stored_identifier(claim.identifier) for claim in entity.claims]
    legal_name = entity.legal_name
    others = {name for p in profiles for name in (p.legal_name, *p.other_names) if name} - {legal_name}
    spoken = entity.statements[0] if entity.statements else None
    capture = context.captures[spoken.capture_id if spoken else entity.first_capture]
    document = spoken.profile.document if spoken else ""
    return EntityRow(
        service_id=entity.service_id,
        legal_name=legal_name,
        other_names=sorted(others),
        jurisdiction=_first(p.jurisdiction for p in profiles),
        country=entity.country,
        status=_first(p.status for p in profiles),
        category=_first(p.category for p in profiles),
        legal_form=_first(p.legal_form for p in profiles),
        lei=_first(i.value for i in identifiers if i.id_type == "lei"),
        listings=[Listing(i.scheme or "", i.value) for i in identifiers if i.id_type == "ticker"],
        direct_parent=_parent(entity, "direct", day),
        ultimate_parent=_parent(entity, "ultimate", day),
        **provenance(capture, _location(entity, spoken.subject if spoken else entity.subjects[0]), document),
    )


def _evidence(context: BuildContext, entity: Entity) -> dict[str, tuple[str, str, str]]:
    """Provenance of what another record gives than the first, by the field of the row."""
    evidence = {}
    for field in ("legal_name", "status", "legal_form", "jurisdiction"):
        has_it = (one for one in entity.statements if getattr(one.profile, field) is not None)
        one = next(has_it, entity.statements[0]) if entity.statements else None
        if one is not None and one is not entity.statements[0]:
            location, capture = _location(entity, one.subject), context.captures[one.capture_id]
            evidence[field] = tuple(provenance(capture, location, one.profile.document).values())
    return evidence


def _location(entity: Entity, subject: str) -> str:
    """Location of an organisation in a document: its LEI or ticker, or its service_id."""
    location = free_location(subject)
    return location if location == subject else f"{location} {entity.service_id}"


def _first(values: "Iterator[T | None]") -> T | None:
    return next((value for value in values if value is not None), None)


class SharedEntity(Row, frozen=True, kw_only=True):
    """The subject of facts: an organisation, or a country by its alpha-3 code."""

    entity_id: Annotated[str, doc("Identifier: a service_id, or an ISO 3166-1 alpha-3 code.")]
    entity_type: Annotated[str, doc("Kind of entity: `organisation` or `country`.")]
    entity_name: Annotated[str | None, doc("Name of the organisation or country.")]
    country_iso3: Annotated[str | None, doc("ISO 3166-1 alpha-3 code of its country.")]


class _OrganisationsAndCountries(TableRows):
    def take(self, key: str, row: EntityRow) -> Iterable[msgspec.Struct]:
        yield SharedEntity(
            entity_id=row.service_id,
            entity_type="organisation",
            entity_name=row.legal_name,
            country_iso3=alpha3_of().get(row.country or ""),
            source_ref=row.source_ref,
            license_class=row.license_class,
            observed_at=row.observed_at,
        )

    def make(self) -> Iterator[SharedEntity]:
        for alpha2, alpha3 in sorted(alpha3_of().items(), key=lambda pair: pair[1]):
            yield SharedEntity(
                entity_id=alpha3,
                entity_type="country",
                entity_name=country_name(alpha2),
                country_iso3=alpha3,
                source_ref=source_ref(SERVICE, "ISO 3166-1", alpha3),
                license_class="public-domain",
                observed_at=self.context.first_observed,
            )


table(
    "af-fund-entities",
    EntityRow,
    FUND,
    "The resolved organisations, as `/v1/entities` serves them.",
    takes_from="entity",
    derived=True,
    sorted_by=("service_id",),
)
table(
    "shared-entity",
    SharedEntity,
    None,
    "The organisations and countries that facts are about.",
    takes_from="entity",
    derived=True,
    rows=_OrganisationsAndCountries,
)


_write = msgspec.msgpack.Encoder().encode


@dataset("crosswalk", CrosswalkRow, by_organisation=True)
def crosswalk(context: BuildContext, some: Sequence[Entity]) -> Iterator[KeyRows]:
    """Ordered by id_type (the free ones first), scheme and value."""
    for entity in some:
        owned = sorted(
            ((stored_identifier(claim.identifier), claim) for claim in (*entity.claims, *entity.past)),
            key=lambda pair: (keys.ID_TYPES.index(pair[0].id_type), pair[0].scheme or "", pair[0].value),
        )
        yield KeyRows(
            entity.service_id,
            [
                Entry(
                    wire.encode(CrosswalkRow(**_claim_fields(context, entity, identifier, claim))),
                    *_days(claim),
                    modes=keys.FREE if identifier.id_type in FREE_ID_TYPES else keys.PAID,
                    tag=keys.ID_TYPES.index(identifier.id_type),
                )
                for identifier, claim in owned
            ],
            entity.aliases,
        )


@dataset("identifier", CrosswalkMatchRow, reads=(Input.CLAIMS,), partitioned=True, of_organisations=True)
def identifiers(context: BuildContext) -> Iterator[KeyRows]:
    """By look-up key; several organisations may share a registry number.

    If several registers give an organisation the same number, it appears once, by its first identifier.
    """
    entities = context.entities
    claimed = sorted(
        (stored_lookup_key(claim.identifier), number, position)
        for number, entity in enumerate(entities)
        for position, claim in enumerate((*entity.claims, *entity.past))
    )
    for key, matches in groupby(claimed, key=itemgetter(0)):
        matched: list[tuple[Entity, Claim]] = []
        for _, of, position in matches:
            entity = entities[of]
            claim = (*entity.claims, *entity.past)[position]
            again = any(entity is other and _overlap(claim, known) for other, known in matched)
            if not again:
                matched.append((entity, claim))
        yield KeyRows(key, _matches(context, matched))


def _days(claim: Claim) -> tuple[int, int]:
    """The days on which an identifier is shown: from the first on, until the day after the last."""
    first = ordinal(claim.first) if claim.first else 0
    return first, ordinal(claim.last) + 1 if claim.last else FOREVER


def _overlap(one: Claim, other: Claim) -> bool:
    return one.first < other.until and other.first < one.until


def _matches(context: BuildContext, matched: list[tuple[Entity, Claim]]) -> Iterator[Entry]:
    for entity, claim in matched:
        fields = _claim_fields(context, entity, stored_identifier(claim.identifier), claim)
        yield Entry(wire.encode(CrosswalkMatchRow(legal_name=entity.legal_name, **fields)), *_days(claim))


def _claim_fields(
    context: BuildContext, entity: Entity, identifier: Identifier, claim: Claim
) -> dict[str, Any]:
    capture = context.captures[claim.capture_id]
    id_type, scheme, value = identifier
    return {
        "service_id": entity.service_id,
        "id_type": id_type,
        "id_value": f"{scheme}:{value}" if id_type == "ticker" else value,
        "scheme": scheme,
        "source_ref": claim.source_ref,
        "license_class": capture.license_class,
        "observed_at": capture.observed_at,
    }
