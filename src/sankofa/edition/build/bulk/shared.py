"""The shared shape: entities, facts and provenances of every dataset, the facts with every vintage.

A fact has the same `fact_id` and `provenance_id` here as on `/v1/shared/facts`.
"""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any
from weakref import WeakKeyDictionary

from msgspec import Meta

from sankofa.edition.build.bulk import macro
from sankofa.edition.build.bulk.macro import AnnualVintage, SeriesVintage
from sankofa.edition.build.context import BuildContext
from sankofa.edition.build.datasets.facts import country_of_facts, who
from sankofa.edition.build.datasets.macro_facts import annual_fact, series_fact
from sankofa.edition.build.tables import Table, table
from sankofa.edition.format.arrow_columns import extra_column
from sankofa.edition.format.keys import FACTS
from sankofa.edition.format.row_blocks import Entry
from sankofa.model.countries import alpha3_of, country_name
from sankofa.model.facts import (
    FUND,
    IN_AN_ID,
    MACRO,
    STRUCTURED,
    STRUCTURED_ROUNDED,
    TENDER,
    SharedFact,
    Who,
)
from sankofa.model.provenance import SERVICE, source_ref
from sankofa.model.rows import FactRow, Row, wire

if TYPE_CHECKING:
    import pyarrow


class SharedEntity(Row, frozen=True, kw_only=True):
    """Who facts are of: an organisation, or a country by its alpha-3 code."""

    entity_id: Annotated[str, Meta(description="A service_id, or an ISO 3166-1 alpha-3 code.")]
    entity_type: Annotated[str, Meta(description="`organisation` or `country`.")]
    entity_name: Annotated[str | None, Meta(description="Of the organisation or country.")]
    country_iso3: Annotated[str | None, Meta(description="ISO 3166-1 alpha-3 code of its country.")]


class SharedProvenance(Row, frozen=True, kw_only=True):
    """Where facts are from, each place once."""

    provenance_id: Annotated[str, Meta(description="As facts have it.")]
    extraction_confidence: Annotated[float | None, Meta(description="Null where structured.")]
    method: Annotated[str, Meta(description="Extracted from a document, or published as data.")]


def _organisation(context: BuildContext, key: str, entry: Entry, row: Any) -> Iterable[object]:
    yield SharedEntity(
        entity_id=row.service_id,
        entity_type="organisation",
        entity_name=row.legal_name,
        country_iso3=alpha3_of().get(row.country or ""),
        source_ref=row.source_ref,
        license_class=row.license_class,
        observed_at=row.observed_at,
    )


def _countries(context: BuildContext) -> Iterator[SharedEntity]:
    for alpha2, alpha3 in sorted(alpha3_of().items(), key=lambda pair: pair[1]):
        yield SharedEntity(
            entity_id=alpha3,
            entity_type="country",
            entity_name=country_name(alpha2),
            country_iso3=alpha3,
            source_ref=source_ref(SERVICE, "ISO 3166-1", alpha3),
            license_class="public-domain",
            observed_at=context.clock,
        )


def _reported(context: BuildContext, told: "pyarrow.Table") -> "pyarrow.Table":
    """Reported figures, by column, as `model.facts.fact` tells them one by one."""
    import pyarrow
    from pyarrow import compute

    of, text = told.column, pyarrow.utf8()
    entity_id = of("service_id")
    method = of("method").combine_chunks()
    rounded = compute.equal(method, STRUCTURED_ROUNDED)
    ids = entity_id.unique()
    number = compute.index_in(entity_id, ids)
    issuers = [_issuer(context, service_id) for service_id in ids.to_pylist()]
    columns = {
        "fact_id": compute.binary_join_element_wise(FUND, of("record_ref"), of("line_item"), IN_AN_ID),
        "entity_id": entity_id,
        "entity_name": pyarrow.array([issuer.entity_name for issuer in issuers], text).take(number),
        "country_iso3": pyarrow.array([issuer.country_iso3 for issuer in issuers], text).take(number),
        "dataset": pyarrow.repeat(FUND, told.num_rows),
        "measure": of("line_item"),
        "value": of("value_reported"),
        "vintage": of("vintage").cast(text),
        "provenance_id": of(extra_column("provenance_id")),
        "method": compute.replace_with_mask(method, rounded, STRUCTURED),
    }
    same = (name for name in FactRow.__struct_fields__ if name not in columns)
    return pyarrow.table(columns | {name: of(name) for name in same})


_issuers: WeakKeyDictionary[BuildContext, dict[str, Who]] = WeakKeyDictionary()


def _issuer(context: BuildContext, service_id: str) -> Who:
    if context not in _issuers:
        _issuers[context] = {entity.service_id: who(entity) for entity in context.entities}
    return _issuers[context][service_id]


def _of_year(context: BuildContext, key: str, entry: Entry, row: AnnualVintage) -> Iterable[object]:
    return (annual_fact(country_of_facts(row.country), wire.encode(row)),)


def _of_day(context: BuildContext, key: str, entry: Entry, row: SeriesVintage) -> Iterable[object]:
    return (series_fact(country_of_facts(row.country), wire.encode(row)),) if row.country else ()


class _Once:
    """Each provenance once, however many facts are from it."""

    def __init__(self) -> None:
        self._seen: WeakKeyDictionary[BuildContext, set[int]] = WeakKeyDictionary()

    def row(self, context: BuildContext, key: str, entry: Entry, row: SharedFact) -> Iterable[object]:
        return (row,) if any(self._new(context, [row.provenance_id])) else ()

    def columns(self, context: BuildContext, facts: "pyarrow.Table") -> "pyarrow.Table":
        import pyarrow

        new = list(self._new(context, facts.column("provenance_id").to_pylist()))
        return facts.select(list(SharedProvenance.__struct_fields__)).filter(pyarrow.array(new))

    def _new(self, context: BuildContext, ids: list[str]) -> Iterator[bool]:
        seen = self._seen.setdefault(context, set())
        for one in ids:
            known = len(seen)
            seen.add(int(one[:16], 16))
            yield len(seen) > known


table(
    Table(
        "shared-entity",
        SharedEntity,
        None,
        "Who facts are of: organisations and countries.",
        takes_from="entity",
        take=_organisation,
        make=_countries,
    )
)
table(
    Table(
        "af-fund-fact",
        FactRow,
        FUND,
        "Reported figures as facts, every vintage.",
        takes_from="fundamentals",
        take_columns=_reported,
        sorted_by=("entity_id",),
    )
)
table(
    Table(
        "af-tender-fact",
        FactRow,
        TENDER,
        "Values of tenders by country, and the awards organisations won, every vintage that was the latest.",
        takes_from=FACTS,
        take=lambda context, key, entry, row: (row,) if key == row.entity_id else (),
    )
)
table(
    Table(
        "af-macro-annual-fact",
        FactRow,
        MACRO,
        "Annual indicators as facts of their country, every vintage. Bulk only.",
        takes_from=macro.ANNUAL,
        take=_of_year,
    )
)
table(
    Table(
        "af-macro-series-fact",
        FactRow,
        MACRO,
        "Values of series as facts of their country, every vintage. Bulk only.",
        takes_from=macro.SERIES,
        take=_of_day,
    )
)
for _facts, _sku in (
    ("af-fund-fact", FUND),
    ("af-tender-fact", TENDER),
    ("af-macro-annual-fact", MACRO),
    ("af-macro-series-fact", MACRO),
):
    _once = _Once()
    table(
        Table(
            _facts.removesuffix("fact") + "provenance",
            SharedProvenance,
            _sku,
            f"Where the facts of {_facts} are from, each place once.",
            takes_from=_facts,
            take=_once.row,
            take_columns=_once.columns,
        )
    )
