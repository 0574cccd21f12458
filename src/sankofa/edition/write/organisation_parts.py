"""Cuts the organisations of an edition into partitions: what is kept under their service ids is one part.

Whether a partition begins with an organisation follows from that organisation alone, its id and how much
there is of it. So a change moves no boundary but its own, and every partition without one is the part that
it was. Where none would begin for long, one begins after so many bytes: these boundaries may move with a
change, as far as the next that follows from its organisation alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Final

import msgspec

from sankofa.edition.write.issuer_parts import Issuers
from sankofa.edition.write.part_boundaries import begins_part
from sankofa.ledger.entities import Entity
from sankofa.ledger.reader import CaptureInfo

_BYTES_IN_A_PARTITION: Final = 4 << 20
"""On average, before compression: some 0.6 MB of a file."""
_PARTITIONS: Final = 512
"""About as many at most: each costs a process that serves it two descriptors."""
_LARGEST: Final = 2
"""Times the average: behind so many bytes a partition ends in any case."""
_BYTES_OF_AN_ENTITY: Final = 2048
"""Its record and identifiers, about."""
_write = msgspec.msgpack.Encoder().encode


class Partition(msgspec.Struct, frozen=True):
    """Organisations that follow each other by service_id."""

    entities: Sequence[Entity]
    inputs: str
    """A digest of all that is known of them."""

    @property
    def first(self) -> str:
        return self.entities[0].service_id


def partitions(
    entities: Sequence[Entity], issuers: Issuers, captures: Mapping[int, CaptureInfo], base: str
) -> Iterator[Partition]:
    """All organisations. `base` is a digest of what the rows of each are made of besides."""
    sizes = [issuers.size(entity.service_id) + _BYTES_OF_AN_ENTITY for entity in entities]
    average = _average(sum(sizes))
    first = size = 0
    for number, entity in enumerate(entities):
        begins = size >= _LARGEST * average or begins_part(entity.service_id, sizes[number], average)
        if number and begins:
            own = entities[first:number]
            yield Partition(own, _inputs(own, issuers, captures, base))
            first, size = number, 0
        size += sizes[number]
    if entities:
        own = entities[first:]
        yield Partition(own, _inputs(own, issuers, captures, base))


def part_scale(entities: Sequence[Entity], issuers: Issuers) -> int:
    """How many times larger parts are than in an edition of few organisations; a power of two."""
    total = sum(issuers.size(entity.service_id) for entity in entities) + _BYTES_OF_AN_ENTITY * len(entities)
    return _average(total) // _BYTES_IN_A_PARTITION


def _average(total: int) -> int:
    """How large partitions are: a power of two, so that it is another only where everything has doubled."""
    return max(_BYTES_IN_A_PARTITION, 1 << (total // _PARTITIONS).bit_length())


def _inputs(
    entities: Sequence[Entity], issuers: Issuers, captures: Mapping[int, CaptureInfo], base: str
) -> str:
    named = {entity.first_capture for entity in entities}
    for entity in entities:
        named.update(statement.capture_id for statement in entity.statements)
        named.update(claim.capture_id for claim in entity.claims)
    keys = [issuers.key(entity.service_id) for entity in entities]
    said = [(number, captures.get(number)) for number in sorted(named)]
    return sha256(_write((base, entities, keys, said))).hexdigest()
