"""Releases by country, newest first, and the indexes a page is found by; in bulk, the awards in them.

- `tender`: a country leads to its releases, as many in every block, so that a row is found by its number;
- `tender_day`: a country leads to pairs of a day and the number of its first row, newest first;
- `tender_word`: a word of title or description (`CC|word`) leads to the numbers of the rows that have it;
- `tender_process`: the hash of an ocid leads to pairs of that hash and the number of a row that has it.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from functools import partial
from typing import Annotated, Final

import msgspec

from sankofa.derive.tenders import Award, Resolved, Tender, awards
from sankofa.edition.format.day_index import DayRowsWriter
from sankofa.edition.format.keys import (
    PROCESSES,
    TENDERS,
    TENDERS_PER_BLOCK,
    process_list,
    searched_words,
)
from sankofa.edition.format.row_blocks import Entry, pack
from sankofa.edition.write import inputs
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import Built, KeyRows, dataset
from sankofa.edition.write.tables import Table, TableRows, table
from sankofa.model.days import ordinal, parse_day
from sankofa.model.facts import TENDER
from sankofa.model.rows import Figure, PartyIdentifier, Row, TenderRow, doc, instant, wire

_NUMBERS_PER_BLOCK: Final = 16_384
_READS: Final = (inputs.TENDERS, inputs.NAMES)


@dataset(TENDERS, TenderRow, partial(pack, rows_per_block=TENDERS_PER_BLOCK), reads=_READS)
def releases(context: BuildContext) -> Iterator[KeyRows]:
    """The one reading of the ledger: all else made of tenders needs it (`derive.tenders`)."""
    for country in context.tenders.countries:
        rows = (Entry(wire.encode(_row(context, t))) for t in context.tenders.of(country, bodies=True))
        yield KeyRows(country, rows)


@dataset("tender_day", None, needs=(TENDERS,), reads=())
def days(context: BuildContext, releases: Built[None]) -> Iterator[KeyRows]:
    for country in context.tenders.countries:
        day_rows = DayRowsWriter()
        for tender in context.tenders.of(country):
            day_rows.add(ordinal(tender.row.release_date[:10]))
        yield KeyRows(country, _numbers(day_rows.pairs(ended=True)))


@dataset("tender_word", None, needs=(TENDERS,), reads=(), partitioned=True)
def words(context: BuildContext, releases: Built[None]) -> Iterator[KeyRows]:
    for country in context.tenders.countries:
        postings: defaultdict[str, array[int]] = defaultdict(lambda: array("i"))
        for number, tender in enumerate(context.tenders.of(country)):
            for word in searched_words(f"{tender.summary.title or ''} {tender.summary.description or ''}"):
                postings[word].append(number)
        for word in sorted(postings):
            yield KeyRows(f"{country}|{word}", _numbers(postings.pop(word)))


@dataset(PROCESSES, None, needs=(TENDERS,), reads=())
def processes(context: BuildContext, releases: Built[None]) -> Iterator[KeyRows]:
    for country in context.tenders.countries:
        lists: defaultdict[str, array[int]] = defaultdict(lambda: array("i"))
        for number, tender in enumerate(context.tenders.of(country)):
            name, hashed = process_list(country, tender.row.ocid)
            lists[name].extend((hashed, number))
        for name in sorted(lists):
            yield KeyRows(name, _numbers(lists.pop(name)))


def _numbers(numbers: "array[int]") -> Iterator[Entry]:
    for start in range(0, len(numbers), _NUMBERS_PER_BLOCK):
        yield Entry(numbers[start : start + _NUMBERS_PER_BLOCK].tobytes())


def _row(context: BuildContext, tender: Tender) -> TenderRow:
    row, summary = tender.row, tender.summary
    capture = context.captures[row.capture_id]
    return TenderRow(
        buyer_service_id=_buyer(tender),
        country=row.country,
        ocid=row.ocid,
        release_id=row.release_id,
        release_date=row.release_date,
        tag=summary.tag,
        title=summary.title,
        category=summary.category,
        procurement_method=summary.procurement_method,
        status=summary.status,
        value_amount=summary.value_amount,
        value_currency=summary.value_currency,
        buyer_name=summary.buyer_name,
        award_count=summary.award_count,
        withheld_parties=summary.withheld_parties,
        release=msgspec.Raw(row.body.encode()),
        source_ref=capture.ref(row.location),
        license_class=capture.license_class,
        observed_at=capture.observed_at,
    )


def _buyer(tender: Tender) -> str | None:
    buyers = (party.match.service_id for party, roles in tender.parties if "buyer" in roles)
    return next((service_id for service_id in buyers if service_id), None)


class AwardRow(Row, frozen=True, kw_only=True):
    """One winner of one award as one release has it; an award of which none is named is one row without."""

    country: Annotated[str, doc("Country code, ISO 3166-1 alpha-2.")]
    ocid: Annotated[str, doc("Open Contracting process identifier.")]
    release_id: Annotated[str, doc("Identifier of the release within its process.")]
    release_date: Annotated[str, instant("An instant in UTC.")]
    award_id: Annotated[
        str, doc("Identifier of the award as published; its position in the release where it has none.")
    ]
    award_date: Annotated[date | None, doc("Day of the award, where published.")]
    status: Annotated[str | None, doc("Status of the award as published.")]
    value_amount: Annotated[
        Figure | None, doc("Value of the whole award, with every digit; null where not published.")
    ]
    value_currency: Annotated[str | None, doc("Currency code, ISO 4217.")]
    supplier_service_id: Annotated[str | None, doc("Organisation identifier of the winner, where resolved.")]
    supplier_name: Annotated[str | None, doc("Name of the winner; null where none may be named.")]
    supplier_country: Annotated[str | None, doc("Country code, ISO 3166-1 alpha-2.")]
    supplier_identifier: Annotated[
        PartyIdentifier | None, doc("First identifier of the winner, as published.")
    ]
    supplier_count: Annotated[int, doc("Number of named winners; the award has as many rows.", ge=0)]
    withheld_suppliers: Annotated[
        int, doc("Number of winners that are not known to be organisations; they are never served.", ge=0)
    ]


class _Awards(TableRows):
    def make(self) -> Iterator[AwardRow]:
        for country in self.context.tenders.countries:
            for tender in self.context.tenders.of(country):
                for award in awards(tender):
                    suppliers: list[Resolved | None] = [*award.suppliers]
                    for supplier in suppliers or [None]:
                        yield _award(self.context, tender, award, supplier)


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
        rows=_Awards,
        reads=_READS,
        sorted_by=("country", "-release_date"),
    )
)
