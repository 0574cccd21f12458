"""Resolved organisations, by service_id."""

from collections.abc import Iterator
from typing import TypeVar

from sankofa.edition.build.context import BuildContext
from sankofa.edition.build.dataset import KeyRows, dataset
from sankofa.edition.format.row_blocks import Entry
from sankofa.ledger.entities import Entity
from sankofa.model.identifiers import stored_identifier
from sankofa.model.rows import EntityRow, Listing, wire

T = TypeVar("T")


@dataset("entity", EntityRow)
def entities(context: BuildContext) -> Iterator[KeyRows]:
    for entity in context.entities:
        yield KeyRows(entity.service_id, [Entry(wire.encode(_row(context, entity)))], entity.aliases)


@dataset("successor", None)
def successors(context: BuildContext) -> Iterator[KeyRows]:
    """By service_id, the one that took over where its register names one that is held."""
    holder = {subject: entity.service_id for entity in context.entities for subject in entity.subjects}
    for entity in context.entities:
        named = (statement.profile.successor for statement in entity.statements)
        found = next((holder[lei] for lei in named if lei in holder), None)
        if found is not None and found != entity.service_id:
            yield KeyRows(entity.service_id, [Entry(found.encode())], entity.aliases)


def _row(context: BuildContext, entity: Entity) -> EntityRow:
    profiles = [statement.profile for statement in entity.statements]
    identifiers = [stored_identifier(claim.identifier) for claim in entity.claims]
    legal_name = entity.legal_name
    others = {name for p in profiles for name in (p.legal_name, *p.other_names) if name} - {legal_name}
    spoken = entity.statements[0] if entity.statements else None
    capture = context.captures[spoken.capture_id if spoken else entity.first_capture]
    document = spoken.profile.document if spoken else ""
    context.sources_of["entity"].update(statement.source_id for statement in entity.statements)
    context.sources_of["entity"].update(
        context.captures[claim.capture_id].source_id for claim in entity.claims
    )
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
        source_ref=capture.ref(spoken.subject if spoken else entity.subjects[0], document),
        license_class=capture.license_class,
        observed_at=capture.observed_at,
    )


def _first(values: "Iterator[T | None]") -> T | None:
    return next((value for value in values if value is not None), None)
