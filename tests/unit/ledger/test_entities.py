"""Records that belong to one organisation (contract: ENT-2, ENT-7)."""

from datetime import date
from itertools import count
from pathlib import Path

import pytest

from sankofa.edition.write.context import BuildContext
from sankofa.ledger.entities import Conflict, Entity
from sankofa.model.identifiers import service_id
from sankofa.model.records import EntityRecord, Fact, Profile
from tests.world.desk import Desk

LEI = "lei:999900SAMPLEZA000189"
OTHER_LEI = "lei:999900SAMPLENG000126"
NUMBER = "registry:ZA-CIPC:1994/001"
TICKER = "ticker:JSE:TST"

_DIGESTS = count()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "home")


def org(
    subject: str, *also: str, name: str = "Some Company Ltd", effective: str = "2020-01-01T00:00:00Z"
) -> EntityRecord:
    return EntityRecord(subject, effective, Profile(legal_name=name, identifiers=(subject, *also)))


def figure(subject: str) -> Fact:
    return Fact(subject, "revenue", "ZAR", "2019-01-01", "2019-12-31", "2020-03-01", "d", "1", "p. 1")


def take(desk: Desk, *records: EntityRecord | Fact, source: str = "s") -> None:
    ledger = desk.ledger()
    with ledger.capture(source, "synthetic", "file", str(next(_DIGESTS))) as capture:
        for record in records:
            if isinstance(record, Fact):
                capture.fact(record)
            else:
                capture.entity(record)
    ledger.close()


def resolved(desk: Desk) -> tuple[list[Entity], list[Conflict]]:
    ledger = desk.ledger()
    try:
        resolution = BuildContext(ledger).resolution
        return resolution.entities, resolution.conflicts
    finally:
        ledger.close()


@pytest.mark.rule("ENT-2")
@pytest.mark.parametrize(
    ("records", "joined"),
    [
        ((org(LEI, NUMBER), figure(NUMBER)), [{LEI, NUMBER}]),
        ((org(LEI, TICKER), figure(TICKER)), [{LEI, TICKER}]),
        ((org(LEI, "isin:ZAE000015228"), org(TICKER, "isin:ZAE000015228")), [{LEI, TICKER}]),
        ((org(LEI), org(NUMBER), org(TICKER)), [{LEI}, {NUMBER}, {TICKER}]),  # by their name
        ((org(LEI, "figi:BBG000BLNNH6"), org(NUMBER, "figi:BBG000BLNNH6")), [{LEI}, {NUMBER}]),
        ((org(LEI, "aggregator:OC:ZA/1"), org(NUMBER, "aggregator:OC:ZA/1")), [{LEI}, {NUMBER}]),
        ((org(LEI, "registry:RA000001:9"), org(OTHER_LEI, "registry:RA000002:9")), [{LEI}, {OTHER_LEI}]),
    ],
)
def test_records_that_share_a_strong_identifier_are_one_organisation_and_no_others(
    desk: Desk, records: list[EntityRecord | Fact], joined: list[set[str]]
) -> None:
    for number, record in enumerate(records):
        take(desk, record, source=f"s{number}")
    entities, conflicts = resolved(desk)
    assert sorted(sorted(entity.subjects) for entity in entities) == sorted(map(sorted, joined))
    assert conflicts == []


def test_two_leis_are_not_joined_over_a_chain_of_others(desk: Desk) -> None:
    take(desk, org(LEI, NUMBER), org(OTHER_LEI, TICKER), org(NUMBER, TICKER))
    entities, conflicts = resolved(desk)
    assert not any({LEI, OTHER_LEI} <= set(entity.subjects) for entity in entities)
    assert len(conflicts) == 1


def test_the_surviving_id_of_one_file_comes_from_its_strongest_identifier(desk: Desk) -> None:
    take(desk, figure(TICKER), org(NUMBER, TICKER), org(LEI, NUMBER))
    (entity,) = resolved(desk)[0]
    assert (entity.service_id, set(entity.aliases)) == (
        service_id(LEI),
        {service_id(NUMBER), service_id(TICKER)},
    )


def test_a_record_without_a_date_counts_from_its_first_capture(desk: Desk):
    for day, name in enumerate(("A Ltd", "A Ltd", "B Ltd", "B Ltd", "A Ltd"), 1):
        desk.set_day(date(2024, 1, day))
        take(desk, org(LEI, name=name, effective=""))
    ledger = desk.ledger()
    names = [profile.legal_name for _, _, _, profile, _ in ledger.entity_records()]
    ledger.close()
    assert names == ["A Ltd", "B Ltd", "A Ltd"]
