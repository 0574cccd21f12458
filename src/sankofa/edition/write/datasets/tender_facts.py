"""The values of tenders and the awards that organisations won, as facts.

- `fact`: a country's alpha-3 code leads to its tender values, a service_id to the awards of an organisation,
  newest release first, with the same number in every block;
- `fact_day`: a country leads to pairs of a day and the number of its first fact, newest first.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final

import msgspec

from sankofa.derive.tender_values import ReportedAward, TenderValues, amount_of, awards_won
from sankofa.edition.format.keys import FACT_DAYS, FACTS, FACTS_PER_BLOCK, TENDERS
from sankofa.edition.format.row_blocks import Entry, pack
from sankofa.edition.format.visibility import DayRowsWriter
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import Building, Built, KeyRows, Outcome, dataset
from sankofa.edition.write.tables import (
    TableRows,
    country_entity,
    organisation_entity,
    provenance_table,
    table,
)
from sankofa.ledger.reader import ReleaseRow
from sankofa.model.countries import alpha3_of
from sankofa.model.days import ordinal
from sankofa.model.provenance import (
    AWARD_VALUE,
    TENDER,
    TENDER_VALUE,
    FactEntity,
    FactSource,
    fact,
    record_ref,
)
from sankofa.model.rows import FactRow, wire
from sankofa.model.vintages import Mode, Vintage, visibilities

_LATEST: Final = int(Mode.LATEST)


@dataset(FACTS, FactRow, partial(pack, rows_per_block=FACTS_PER_BLOCK), needs=(TENDERS,), reads=())
def facts(context: BuildContext, releases: Built[None]) -> Building:
    """Returns the days of the facts of each country."""
    days: list[KeyRows] = []
    for alpha2 in context.tenders.countries:
        yield KeyRows(alpha3_of()[alpha2], _tender_values(context, alpha2, days))
    entities = {entity.service_id: entity for entity in context.entities}
    for service_id, won in awards_won(context.tenders).items():
        entity = entities[service_id]
        yield KeyRows(service_id, _awards(context, organisation_entity(entity), won), entity.aliases)
    return Outcome(days)


@dataset(FACT_DAYS, None, needs=(FACTS,), reads=())
def fact_days(context: BuildContext, facts: Built[list[KeyRows]]) -> Iterator[KeyRows]:
    yield from facts.result


def _tender_values(context: BuildContext, alpha2: str, days: list[KeyRows]) -> Iterator[Entry]:
    values = TenderValues(context.tenders.of(alpha2))
    entity = country_entity(alpha2)
    day_rows = DayRowsWriter()
    for number, tender in enumerate(context.tenders.of(alpha2)):
        vintage = values.numbers[number]
        row, summary = tender.row, tender.summary
        day = row.release_date[:10]
        first = ordinal(day)
        if not vintage or first >= values.untils[number]:
            continue
        currency, value = summary.value_currency, amount_of(summary.value_amount) or ""
        ref = record_ref(alpha2, row.ocid, currency or "", row.release_date, row.release_id, value)
        tender_fact = fact(
            entity, TENDER, ref, TENDER_VALUE, msgspec.Raw(value.encode()), currency, (day, "tender"), day,
            vintage, _source(context, row),
        )  # fmt: skip
        day_rows.add(first)
        yield Entry(wire.encode(tender_fact), first, values.untils[number])
    if day_rows.rows:
        days.append(KeyRows(entity.entity_id, [Entry(day_rows.pairs(ended=False).tobytes())]))


def _awards(
    context: BuildContext, entity: FactEntity, awards: list[Vintage[ReportedAward]]
) -> Iterator[Entry]:
    for vintage in awards:
        award = vintage.report
        row = award.row
        if award.value is None:
            continue
        currency = award.currency
        ref = record_ref(
            row.ocid, award.award_id, award.supplier, currency or "", row.release_date, row.release_id,
            award.value,
        )  # fmt: skip
        award_fact = fact(
            entity, TENDER, ref, AWARD_VALUE, msgspec.Raw(award.value.encode()), currency,
            (award.day, "award"), row.release_date[:10], vintage.number, _source(context, row),
        )  # fmt: skip
        for first, until, modes, _ in visibilities(vintage):
            if modes & _LATEST:
                yield Entry(wire.encode(award_fact), first, until)


def _source(context: BuildContext, row: ReleaseRow) -> FactSource:
    capture = context.captures[row.capture_id]
    return FactSource(capture.ref(row.location), capture.license_class, capture.observed_at)


class _Facts(TableRows):
    def take(self, key: str, row: FactRow) -> Iterable[object]:
        """Takes the facts of a merged organisation once, although its older ids lead to them, too."""
        return (row,) if key == row.entity_id else ()


table(
    "af-tender-fact",
    FactRow,
    TENDER,
    "Values of tenders by country, and the awards organisations won, every vintage that was the latest.",
    takes_from=FACTS,
    rows=_Facts,
)
provenance_table("af-tender-fact", TENDER)
