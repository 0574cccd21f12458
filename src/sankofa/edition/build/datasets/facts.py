"""Facts that no other dataset holds: values of tenders by country, awards by the organisation that won them.

- `fact`: a country's alpha-3 code leads to its tender values, a service_id to the awards of an organisation,
  the newest release first, as many rows in every block;
- `fact_day`: a country leads to pairs of a day and the number of its first row, newest first.
"""

from array import array
from collections.abc import Iterator
from functools import partial
from typing import Final

import msgspec

from sankofa.derive.tender_values import TenderValues, Won, amount_of, won
from sankofa.edition.build.context import BuildContext
from sankofa.edition.build.dataset import KeyRows, dataset
from sankofa.edition.format.keys import FACT_DAYS, FACTS, FACTS_PER_BLOCK
from sankofa.edition.format.row_blocks import Entry, pack
from sankofa.ledger.entities import Entity
from sankofa.ledger.store import ReleaseRow
from sankofa.model.countries import alpha3_of, country_name
from sankofa.model.days import ordinal
from sankofa.model.facts import AWARD_VALUE, TENDER, TENDER_VALUE, Source, Who, fact, record_ref
from sankofa.model.rows import FactRow, wire
from sankofa.model.vintages import Mode, Vintage, visibilities

_LATEST: Final = int(Mode.LATEST)


@dataset(FACTS, FactRow, partial(pack, rows_per_block=FACTS_PER_BLOCK))
def facts(context: BuildContext) -> Iterator[KeyRows]:
    for country in context.tenders.countries:
        yield KeyRows(alpha3_of()[country], _tender_values(context, country))
    entities = {entity.service_id: entity for entity in context.entities}
    for service_id, told in won(context.tenders).items():
        entity = entities[service_id]
        yield KeyRows(service_id, _awards(context, who(entity), told), entity.aliases)


@dataset(FACT_DAYS, None)
def fact_days(context: BuildContext) -> Iterator[KeyRows]:
    for key, starts in context.columns[FACT_DAYS]:
        yield KeyRows(key, [Entry(starts.tobytes())])


def who(entity: Entity) -> Who:
    """An organisation as the entity of a fact."""
    return Who(entity.service_id, entity.legal_name, alpha3_of().get(entity.country or ""))


def country_of_facts(alpha2: str) -> Who:
    """A country as the entity of a fact."""
    code = alpha3_of()[alpha2]
    return Who(code, country_name(alpha2), code)


def _tender_values(context: BuildContext, country: str) -> Iterator[Entry]:
    values = TenderValues(context.tenders.of(country))
    entity = country_of_facts(country)
    starts = array("i")
    rows = 0
    for number, tender in enumerate(context.tenders.of(country)):
        vintage = values.numbers[number]
        row, summary = tender.row, tender.summary
        day = row.release_date[:10]
        first = ordinal(day)
        if not vintage or first >= values.untils[number]:
            continue
        currency, value = summary.value_currency, amount_of(summary.value_amount) or ""
        told = fact(
            entity,
            TENDER,
            record_ref(country, row.ocid, currency or "", row.release_date, row.release_id, value),
            TENDER_VALUE,
            msgspec.Raw(value.encode()),
            currency,
            (day, "tender"),
            day,
            vintage,
            _source(context, row),
        )
        if not starts or starts[-2] != first:
            starts.extend((first, rows))
        rows += 1
        yield Entry(wire.encode(told), first, values.untils[number])
    if rows:
        context.columns[FACT_DAYS].append((entity.entity_id, starts))


def _awards(context: BuildContext, entity: Who, told: list[Vintage[Won]]) -> Iterator[Entry]:
    for vintage in told:
        award = vintage.report
        row = award.row
        if award.value is None:
            continue
        currency = award.currency
        ref = record_ref(
            row.ocid, award.award_id, award.supplier, currency or "", row.release_date, row.release_id,
            award.value,
        )  # fmt: skip
        made = fact(
            entity,
            TENDER,
            ref,
            AWARD_VALUE,
            msgspec.Raw(award.value.encode()),
            currency,
            (award.day, "award"),
            row.release_date[:10],
            vintage.number,
            _source(context, row),
        )
        for first, until, modes, _ in visibilities(vintage):
            if modes & _LATEST:
                yield Entry(wire.encode(made), first, until)


def _source(context: BuildContext, row: ReleaseRow) -> Source:
    capture = context.captures[row.capture_id]
    return Source(capture.ref(row.location), capture.license_class, capture.observed_at)
