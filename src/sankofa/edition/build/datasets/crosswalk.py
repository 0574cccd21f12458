"""Every identifier held for an organisation, by service_id; and the organisations behind an identifier.

Both hold current mappings only; their history stays in the ledger.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from sankofa.edition.build.context import BuildContext
from sankofa.edition.build.dataset import KeyRows, dataset
from sankofa.edition.build.inputs import CLAIMS
from sankofa.edition.format.keys import FREE, FREE_ID_TYPES, ID_TYPES, PAID
from sankofa.edition.format.row_blocks import Entry
from sankofa.ledger.entities import Claim, Entity
from sankofa.model.identifiers import Identifier, lookup_key, stored_identifier
from sankofa.model.rows import CrosswalkMatchRow, CrosswalkRow, wire


@dataset("crosswalk", CrosswalkRow, by_organisation=True)
def crosswalk(context: BuildContext, some: Sequence[Entity]) -> Iterator[KeyRows]:
    """Ordered by id_type (the free ones first), scheme and value."""
    for entity in some:
        held = sorted(
            ((stored_identifier(claim.identifier), claim) for claim in entity.claims),
            key=lambda pair: (ID_TYPES.index(pair[0].id_type), pair[0].scheme or "", pair[0].value),
        )
        yield KeyRows(
            entity.service_id,
            [
                Entry(
                    wire.encode(CrosswalkRow(**_fields(context, entity, identifier, claim))),
                    modes=FREE if identifier.id_type in FREE_ID_TYPES else PAID,
                    tag=ID_TYPES.index(identifier.id_type),
                )
                for identifier, claim in held
            ],
            entity.aliases,
        )


@dataset("identifier", CrosswalkMatchRow, reads=(CLAIMS,), partitioned=True, of_organisations=True)
def identifiers(context: BuildContext) -> Iterator[KeyRows]:
    """By what a lookup asks for; several organisations may share a registry number.

    An organisation answers once, by the first of its identifiers where registers agree on its number.
    """
    entities = context.entities
    claims = sorted(
        (lookup_key(stored_identifier(claim.identifier)), number, position)
        for number, entity in enumerate(entities)
        for position, claim in enumerate(entity.claims)
    )
    for key, matches in groupby(claims, key=lambda one: one[0]):
        first_of = [next(same) for _, same in groupby(matches, key=lambda one: one[1])]
        matched = [(entities[number], entities[number].claims[position]) for _, number, position in first_of]
        inputs = [
            (one.service_id, one.legal_name, claim, context.captures[claim.capture_id])
            for one, claim in matched
        ]
        yield KeyRows(key, _matches(context, matched), inputs=inputs)


def _matches(context: BuildContext, matched: list[tuple[Entity, Claim]]) -> Iterator[Entry]:
    for entity, claim in matched:
        fields = _fields(context, entity, stored_identifier(claim.identifier), claim)
        yield Entry(wire.encode(CrosswalkMatchRow(legal_name=entity.legal_name, **fields)))


def _fields(context: BuildContext, entity: Entity, identifier: Identifier, claim: Claim) -> dict[str, Any]:
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
