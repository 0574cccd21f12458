"""Who is who (contract: ENT-2, ENT-7)."""

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


def says(
    subject: str, *also: str, name: str = "Some Company Ltd", effective: str = "2020-01-01T00:00:00Z"
) -> EntityRecord:
    return EntityRecord(subject, effective, Profile(legal_name=name, identifiers=(subject, *also)))


def figure(subject: str) -> Fact:
    return Fact(subject, "revenue", "ZAR", "2019-01-01", "2019-12-31", "2020-03-01", "d", "1", "p. 1")


def take(desk: Desk, *records: EntityRecord | Fact, source: str = "s") -> None:
    """Each time another file."""
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
        found = BuildContext(ledger).resolution
        return found.entities, found.conflicts
    finally:
        ledger.close()


def groups(desk: Desk) -> list[tuple[str, ...]]:
    return sorted(entity.subjects for entity in resolved(desk)[0])


@pytest.mark.rule("ENT-2")
@pytest.mark.parametrize("shared", [NUMBER, TICKER])
def test_records_that_share_a_strong_identifier_are_one_organisation(desk: Desk, shared: str) -> None:
    take(desk, says(LEI, shared), figure(shared))
    assert groups(desk) == [tuple(sorted((LEI, shared)))]


def test_records_are_joined_over_an_identifier_neither_stands_on(desk: Desk) -> None:
    take(desk, says(LEI, "isin:ZAE000015228"), source="a")
    take(desk, says(TICKER, "isin:ZAE000015228"), source="b")
    assert groups(desk) == [(LEI, TICKER)]


@pytest.mark.rule("ENT-2")
def test_a_shared_name_joins_nothing(desk: Desk) -> None:
    take(desk, says(LEI), says(NUMBER), says(TICKER))
    assert len(groups(desk)) == 3


@pytest.mark.parametrize("weak", ["figi:BBG000BLNNH6", "aggregator:OC:ZA/1"])
def test_a_weak_identifier_joins_nothing(desk: Desk, weak: str) -> None:
    take(desk, says(LEI, weak), says(NUMBER, weak))
    assert len(groups(desk)) == 2


def test_the_same_number_in_two_registers_joins_nothing(desk: Desk) -> None:
    take(desk, says(LEI, "registry:RA000001:99"), says(OTHER_LEI, "registry:RA000002:99"))
    assert (len(groups(desk)), resolved(desk)[1]) == (2, [])


def test_two_leis_are_not_joined_over_a_chain_of_others(desk: Desk) -> None:
    take(desk, says(LEI, NUMBER), says(OTHER_LEI, TICKER), says(NUMBER, TICKER))
    entities, conflicts = resolved(desk)
    assert not any({LEI, OTHER_LEI} <= set(entity.subjects) for entity in entities)
    assert len(conflicts) == 1


def test_of_ids_issued_by_one_file_the_strongest_identifier_gives_the_one_that_survives(desk: Desk) -> None:
    take(desk, figure(TICKER), says(NUMBER, TICKER), says(LEI, NUMBER))
    (entity,) = resolved(desk)[0]
    assert (entity.service_id, set(entity.aliases)) == (
        service_id(LEI),
        {service_id(NUMBER), service_id(TICKER)},
    )


def test_a_record_without_a_date_is_in_force_from_its_capture_and_taking_it_again_changes_nothing(desk: Desk):
    for day, name in enumerate(("A Ltd", "A Ltd", "B Ltd", "B Ltd", "A Ltd"), 1):
        desk.set_day(date(2024, 1, day))
        take(desk, says(LEI, name=name, effective=""))
    ledger = desk.ledger()
    names = [profile.legal_name for _, _, _, profile, _ in ledger.entity_records()]
    ledger.close()
    assert names == ["A Ltd", "B Ltd", "A Ltd"]
