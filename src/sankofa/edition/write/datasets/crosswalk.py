"""Every identifier held for an organisation, by service_id; and the organisations behind an identifier.

Both hold current mappings only; their history stays in the ledger.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import groupby
from typing import Any

import msgspec

from sankofa.edition.format.keys import FREE, ID_TYPES, PAID
from sankofa.edition.format.row_blocks import Entry
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import KeyIndex, KeyRows, dataset
from sankofa.edition.write.inputs import CLAIMS
from sankofa.ledger.entities import Claim, Entity
from sankofa.model.identifiers import FREE_ID_TYPES, Identifier, stored_identifier, stored_lookup_key
from sankofa.model.rows import CrosswalkMatchRow, CrosswalkRow, wire

_write = msgspec.msgpack.Encoder().encode


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
def identifiers(context: BuildContext) -> KeyIndex:
    """By what a lookup asks for; several organisations may share a registry number.

    An organisation answers once, by the first of its identifiers where registers agree on its number.
    """
    return _Identifiers(context)


class _Identifiers(KeyIndex):
    """What a range is made of is the organisations that any key of it leads to."""

    def __init__(self, context: BuildContext) -> None:
        self._context = context
        self._firsts: list[str] = []
        self._digests: list[int] = []
        self._claims: list[list[tuple[str, int, int]]] = []
        """Of each range: a key, and the numbers of an organisation and of its claim."""

    def split(self, firsts: Sequence[str]) -> list[str]:
        if self._firsts != firsts:
            self._split(list(firsts))
        return [f"{digest:x}" for digest in self._digests]

    def _split(self, firsts: list[str]) -> None:
        """Sums of digests: they do not depend on the order in which the organisations come."""
        self._firsts = firsts
        self._claims = [[] for _ in firsts]
        digests = self._digests = [0] * len(firsts)
        captures = self._context.captures
        for number, entity in enumerate(self._context.entities):
            said = [captures[claim.capture_id] for claim in entity.claims]
            known = _write((entity.service_id, entity.legal_name, entity.claims, said))
            digest = int.from_bytes(blake2b(known, digest_size=16).digest(), "little")
            for position, claim in enumerate(entity.claims):
                key = stored_lookup_key(claim.identifier)
                at = max(bisect_right(firsts, key) - 1, 0)
                digests[at] += digest
                self._claims[at].append((key, number, position))

    def key_rows(self, number: int) -> Iterator[KeyRows]:
        entities = self._context.entities
        for key, matches in groupby(sorted(self._claims[number]), key=lambda one: one[0]):
            first_of = [next(same) for _, same in groupby(matches, key=lambda one: one[1])]
            matched = [(entities[of], entities[of].claims[position]) for _, of, position in first_of]
            yield KeyRows(key, _matches(self._context, matched))


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
