"""The shared shape of facts: one form for the facts of every dataset, with their entity and provenance."""

from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Annotated, Final

from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.tables import TableRows, table
from sankofa.ledger.entities import Entity
from sankofa.model.countries import alpha3_of, country_name
from sankofa.model.provenance import FactEntity, SharedFact
from sankofa.model.rows import Row, doc

if TYPE_CHECKING:
    import pyarrow

DIGEST_BYTES: Final = 8
_STORED: Final = 6
"""Bytes stored of a digest; its first two select the bucket."""


class DigestSet:
    """A set of 64-bit digests in about 7 bytes each, where a Python set takes 100.

    There is one digest for nearly every figure of an edition, so it limits the figures of a build.
    """

    def __init__(self) -> None:
        self._stored: list[bytearray | None] = [None] * 65_536
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add_all(self, digests: bytes) -> list[bool]:
        """Add many digests of 8 bytes; returns for each whether it is new."""
        stored = self._stored
        new: list[bool] = []
        for at in range(0, len(digests), DIGEST_BYTES):
            rest = digests[at + DIGEST_BYTES - _STORED : at + DIGEST_BYTES]
            number = digests[at] << 8 | digests[at + 1]
            if (bucket := stored[number]) is None:
                stored[number] = bytearray(rest)
                new.append(True)
                continue
            position = bucket.find(rest)
            while position > 0 and position % _STORED:  # a match across two digests
                position = bucket.find(rest, position + 1)
            if position < 0:
                bucket += rest
            new.append(position < 0)
        self._count += sum(new)
        return new


_DIGITS: Final = 2 * DIGEST_BYTES
"""Digits of a provenance_id that identify it."""


def organisation_entity(entity: Entity) -> FactEntity:
    """An organisation as the entity of a fact."""
    return FactEntity(entity.service_id, entity.legal_name, alpha3_of().get(entity.country or ""))


@cache
def country_entity(alpha2: str) -> FactEntity:
    """A country as the entity of a fact."""
    code = alpha3_of()[alpha2]
    return FactEntity(code, country_name(alpha2), code)


class SharedProvenance(Row, frozen=True, kw_only=True):
    """Provenance of facts, each once."""

    provenance_id: Annotated[str, doc("Identifier of the provenance, as on the facts.")]
    extraction_confidence: Annotated[
        float | None, doc("Confidence of the extraction, 0 to 1; null for structured data.")
    ]
    method: Annotated[
        str, doc("How the value was obtained: extracted from a document, or published as data.")
    ]


class _Once(TableRows):
    """Each provenance once, however many facts have it."""

    def __init__(self, context: BuildContext) -> None:
        super().__init__(context)
        self._seen = DigestSet()

    def take(self, key: str, row: SharedFact) -> Iterable[object]:
        (new,) = self._seen.add_all(bytes.fromhex(row.provenance_id[:_DIGITS]))
        return (row,) if new else ()

    def take_columns(self, columns: "pyarrow.Table") -> "pyarrow.Table":
        import pyarrow

        new = self._seen.add_all(_digests(columns.column("provenance_id")))
        return columns.select(list(SharedProvenance.__struct_fields__)).filter(
            pyarrow.array(new, pyarrow.bool_())
        )


def _digests(provenance_ids: "pyarrow.ChunkedArray") -> bytes:
    """The first digits of many provenance ids, as consecutive bytes."""
    from pyarrow import compute

    digests = []
    for chunk in compute.utf8_slice_codeunits(provenance_ids, 0, _DIGITS).chunks:
        offsets, digits = chunk.buffers()[1:]
        first, end = (memoryview(offsets).cast("i")[chunk.offset + at] for at in (0, len(chunk)))
        digests.append(bytes.fromhex(memoryview(digits)[first:end].tobytes().decode()))
    return b"".join(digests)


def provenance_table(facts: str, sku: str) -> None:
    """Declare the table with the provenance of the facts of a table."""
    table(
        facts.removesuffix("fact") + "provenance",
        SharedProvenance,
        sku,
        f"Where the facts of {facts} are from, each place once.",
        takes_from=facts,
        rows=_Once,
    )
