"""AF-TENDER: releases, the awards in them, and parties."""

from collections.abc import Iterable, Iterator
from datetime import date
from decimal import Decimal
from typing import Annotated, Any

from msgspec import Meta

from sankofa.derive.awards import Award, awards
from sankofa.derive.tenders import Resolved, Tender
from sankofa.edition.build.context import BuildContext
from sankofa.edition.build.tables import Table, table
from sankofa.edition.format.keys import party_key
from sankofa.edition.format.row_blocks import Entry
from sankofa.model.days import parse_day
from sankofa.model.facts import TENDER
from sankofa.model.rows import PartyIdentifier, Row, TenderPartyRow, TenderRow


class AwardRow(Row, frozen=True, kw_only=True):
    """One winner of one award as one release has it; an award of which none is named is one row without."""

    country: Annotated[str, Meta(description="ISO 3166-1 alpha-2.")]
    ocid: Annotated[str, Meta(description="Open Contracting process identifier.")]
    release_id: Annotated[str, Meta(description="Of the release within its process.")]
    release_date: Annotated[
        str, Meta(description="An instant in UTC.", extra_json_schema={"format": "date-time"})
    ]
    award_id: Annotated[str, Meta(description="As published; its place in the release where it has none.")]
    award_date: Annotated[date | None, Meta(description="The day of the award, where published.")]
    status: Annotated[str | None, Meta(description="As published.")]
    value_amount: Annotated[
        Decimal | None, Meta(description="Of the whole award, every digit; null where not published.")
    ]
    value_currency: Annotated[str | None, Meta(description="ISO 4217.")]
    supplier_service_id: Annotated[str | None, Meta(description="The winner, where resolved.")]
    supplier_name: Annotated[str | None, Meta(description="Null where no winner may be named.")]
    supplier_country: Annotated[str | None, Meta(description="ISO 3166-1 alpha-2.")]
    supplier_identifier: Annotated[PartyIdentifier | None, Meta(description="Its first, as published.")]
    supplier_count: Annotated[int, Meta(description="Winners that are named: as many rows.", ge=0)]
    withheld_suppliers: Annotated[
        int, Meta(description="Winners not established to be organisations: never served.", ge=0)
    ]


def _awards(context: BuildContext) -> Iterator[AwardRow]:
    for country in context.tenders.countries:
        for tender in context.tenders.of(country, bodies=True):
            for award in awards(tender):
                suppliers: list[Resolved | None] = [*award.suppliers]
                for supplier in suppliers or [None]:
                    yield _award(context, tender, award, supplier)


def _award(context: BuildContext, tender: Tender, award: Award, supplier: Resolved | None) -> AwardRow:
    row = tender.row
    capture = context.captures[row.capture_id]
    own = supplier.identifiers[0] if supplier and supplier.identifiers else None
    return AwardRow(
        country=row.country,
        ocid=row.ocid,
        release_id=row.release_id,
        release_date=row.release_date,
        award_id=award.award_id,
        award_date=_day(award.day),
        status=award.status,
        value_amount=award.amount,
        value_currency=award.currency,
        supplier_service_id=supplier.match.service_id if supplier else None,
        supplier_name=supplier.name if supplier else None,
        supplier_country=(supplier.country or None) if supplier else None,
        supplier_identifier=None if own is None else PartyIdentifier(*own),
        supplier_count=len(award.suppliers),
        withheld_suppliers=award.withheld,
        source_ref=capture.ref(row.location),
        license_class=capture.license_class,
        observed_at=capture.observed_at,
    )


def _day(text: str | None) -> date | None:
    try:
        return parse_day(text) if text else None
    except ValueError:
        return None


def _once(context: BuildContext, key: str, entry: Entry, row: Any) -> Iterable[object]:
    """A party is shelved under every question it answers: here it is taken from the one about all."""
    return (row,) if key == party_key() else ()


table(
    Table(
        "af-tender-releases",
        TenderRow,
        TENDER,
        "OCDS releases with their parties resolved, as `/v1/tenders` serves them.",
        takes_from="tender",
        sorted_by=("country", "-release_date"),
    )
)
table(
    Table(
        "af-tender-awards",
        AwardRow,
        TENDER,
        "Awards in releases, a row for each winner. Bulk only.",
        make=_awards,
        sorted_by=("country", "-release_date"),
    )
)
table(
    Table(
        "af-tender-parties",
        TenderPartyRow,
        TENDER,
        "Buyers and suppliers named in releases, as `/v1/tender-parties` serves them.",
        takes_from="tender_party",
        take=_once,
        sorted_by=("-release_count",),
    )
)
