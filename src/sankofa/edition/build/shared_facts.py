"""The shared shape, in which facts of every dataset are alike: who they are of, and where they are from."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from sankofa.edition.build.context import BuildContext
from sankofa.edition.build.number_set import NumberSet
from sankofa.edition.build.tables import Table, TableRows, table
from sankofa.ledger.entities import Entity
from sankofa.model.countries import alpha3_of, country_name
from sankofa.model.facts import FactEntity, SharedFact
from sankofa.model.rows import Row

if TYPE_CHECKING:
    import pyarrow


def organisation(entity: Entity) -> FactEntity:
    """An organisation as the entity of a fact."""
    return FactEntity(entity.service_id, entity.legal_name, alpha3_of().get(entity.country or ""))


def country(alpha2: str) -> FactEntity:
    """A country as the entity of a fact."""
    code = alpha3_of()[alpha2]
    return FactEntity(code, country_name(alpha2), code)


class SharedProvenance(Row, frozen=True, kw_only=True):
    """Where facts are from, each place once."""

    provenance_id: Annotated[str, Meta(description="As facts have it.")]
    extraction_confidence: Annotated[float | None, Meta(description="Null where structured.")]
    method: Annotated[str, Meta(description="Extracted from a document, or published as data.")]


class _Once(TableRows):
    """Each provenance once, however many facts are from it."""

    def __init__(self, context: BuildContext) -> None:
        super().__init__(context)
        self._seen = NumberSet()

    def take(self, key: str, row: SharedFact) -> Iterable[object]:
        return (row,) if self._new([row.provenance_id])[0] else ()

    def take_columns(self, columns: "pyarrow.Table") -> "pyarrow.Table":
        import pyarrow

        new = self._new(columns.column("provenance_id").to_pylist())
        return columns.select(list(SharedProvenance.__struct_fields__)).filter(
            pyarrow.array(new, pyarrow.bool_())
        )

    def _new(self, ids: list[str]) -> list[bool]:
        return self._seen.add_all([int(one[:16], 16) for one in ids])


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
