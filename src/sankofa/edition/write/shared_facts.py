"""The shared shape, in which facts of every dataset are alike: who they are of, and where they are from."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Final

from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.digest_set import DIGEST_BYTES, DigestSet
from sankofa.edition.write.tables import Table, TableRows, table
from sankofa.ledger.entities import Entity
from sankofa.model.countries import alpha3_of, country_name
from sankofa.model.facts import FactEntity, SharedFact
from sankofa.model.rows import Row, doc

if TYPE_CHECKING:
    import pyarrow

_DIGITS: Final = 2 * DIGEST_BYTES
"""Of a provenance_id, which tell one from all others."""


def organisation(entity: Entity) -> FactEntity:
    """An organisation as the entity of a fact."""
    return FactEntity(entity.service_id, entity.legal_name, alpha3_of().get(entity.country or ""))


def country(alpha2: str) -> FactEntity:
    """A country as the entity of a fact."""
    code = alpha3_of()[alpha2]
    return FactEntity(code, country_name(alpha2), code)


class SharedProvenance(Row, frozen=True, kw_only=True):
    """Where facts are from, each place once."""

    provenance_id: Annotated[str, doc("Identifier of the provenance, as on the facts.")]
    extraction_confidence: Annotated[
        float | None, doc("Confidence of the extraction, 0 to 1; null for structured data.")
    ]
    method: Annotated[
        str, doc("How the value was obtained: extracted from a document, or published as data.")
    ]


class _Once(TableRows):
    """Each provenance once, however many facts are from it."""

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
    """The first digits of many, as bytes one behind another."""
    from pyarrow import compute

    digests = []
    for chunk in compute.utf8_slice_codeunits(provenance_ids, 0, _DIGITS).chunks:
        offsets, digits = chunk.buffers()[1:]
        first, end = (memoryview(offsets).cast("i")[chunk.offset + at] for at in (0, len(chunk)))
        digests.append(bytes.fromhex(memoryview(digits)[first:end].tobytes().decode()))
    return b"".join(digests)


def provenance_table(facts: str, sku: str) -> None:
    """Declare the table of where the facts of a table are from."""
    table(
        Table(
            facts.removesuffix("fact") + "provenance",
            SharedProvenance,
            sku,
            f"Where the facts of {facts} are from, each place once.",
            takes_from=facts,
            rows=_Once,
        )
    )
