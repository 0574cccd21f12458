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
from sankofa.edition.build.context import World
from sankofa.edition.build.dataset import Shelved, dataset
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
def facts(world: World) -> Iterator[Shelved]:
    for country in world.tenders.countries:
        yield Shelved(alpha3_of()[country], _tender_values(world, country))
    entities = {entity.service_id: entity for entity in world.entities}
    for service_id, told in won(world.tenders).items():
        entity = entities[service_id]
        yield Shelved(service_id, _awards(world, who(entity), told), entity.aliases)


@dataset(FACT_DAYS, None)
def fact_days(world: World) -> Iterator[Shelved]:
    for key, starts in world.columns[FACT_DAYS]:
        yield Shelved(key, [Entry(starts.tobytes())])


def who(entity: Entity) -> Who:
    """An organisation as the entity of a fact."""
    return Who(entity.service_id, entity.legal_name, alpha3_of().get(entity.country or ""))


def country_of_facts(alpha2: str) -> Who:
    """A country as the entity of a fact."""
    code = alpha3_of()[alpha2]
    return Who(code, country_name(alpha2), code)


def _tender_values(world: World, country: str) -> Iterator[Entry]:
    values = TenderValues(world.tenders.of(country))
    entity = country_of_facts(country)
    starts = array("i")
    rows = 0
    for number, tender in enumerate(world.tenders.of(country)):
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
            _source(world, row),
        )
        if not starts or starts[-2] != first:
            starts.extend((first, rows))
        rows += 1
        yield Entry(wire.encode(told), first, values.untils[number])
    if rows:
        world.columns[FACT_DAYS].append((entity.entity_id, starts))


def _awards(world: World, entity: Who, told: list[Vintage[Won]]) -> Iterator[Entry]:
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
            _source(world, row),
        )
        for first, until, modes, _ in visibilities(vintage):
            if modes & _LATEST:
                yield Entry(wire.encode(made), first, until)


def _source(world: World, row: ReleaseRow) -> Source:
    capture = world.captures[row.capture_id]
    return Source(capture.ref(row.location), capture.license_class, capture.observed_at)
