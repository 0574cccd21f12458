"""GET /v1/entities/{service_id}: one organisation, whatever its sources call it."""

import asyncio
import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from stdnum.iso7064 import mod_97_10

from sankofa.model.identifiers import service_id
from tests.live import LiveServer, create_key
from tests.world.desk import Desk

FIELDS = set(
    "service_id legal_name other_names jurisdiction country status category legal_form lei listings "
    "direct_parent ultimate_parent source_ref license_class observed_at".split()
)
LEI = "999900SAMPLEZA000189"
RETAILER = service_id(f"lei:{LEI}")
LEI_COLUMNS = """
    LEI Entity.LegalName Entity.EntityCategory Entity.LegalAddress.Country Entity.LegalJurisdiction
    Entity.RegistrationAuthority.RegistrationAuthorityID
    Entity.RegistrationAuthority.RegistrationAuthorityEntityID Registration.LastUpdateDate
""".split()


def lei(number: int) -> str:
    """A well-formed LEI without an owner."""
    stem = f"999900TESTED{number:06}"
    return stem + mod_97_10.calc_check_digits(stem)


def id_of(number: int) -> str:
    return service_id(f"lei:{lei(number)}")


def lei_file(path: Path, *records: tuple[int, str, str, str]) -> Path:
    """LEI records: (which, name, number in the register, last update)."""
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(LEI_COLUMNS)
        for which, name, number, updated in records:
            category = "SOLE_PROPRIETOR" if name == "A Person" else "GENERAL"
            register = "RA000123" if number else ""
            writer.writerow((lei(which), name, category, "ZA", "ZA", register, number, updated))
    return path


def filed_under(*entities: str) -> list[list[str]]:
    figure = ["revenue", "1", "ZAR", "2022-01-01", "2022-12-31", "2023-03-01", "afs", "p. 1", ""]
    return [[entity, *figure] for entity in entities]


Ask = Callable[[str], tuple[int, dict[str, Any]]]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """The status and the row in a world where each number below has its own history."""
    desk = Desk(tmp_path_factory.mktemp("entities") / "home")
    # 2 was known by its registry number before its LEI; 5 was not known to be a person.
    desk.filings("early.csv", filed_under("registry:RA000123:B2", f"lei:{lei(5)}"))
    desk.take(
        "gleif-lei",
        lei_file(
            desk.inbox / "lei.csv",
            (1, "First Company Ltd", "B1", "2024-01-01T00:00:00Z"),
            (2, "Second Company Ltd", "B2", "2024-01-01T00:00:00Z"),
            (3, "Third Company Ltd", "B3", "2024-01-01T00:00:00Z"),
            (4, "Fourth Company Ltd", "B3", "2024-01-01T00:00:00Z"),
            (5, "A Person", "", "2024-01-01T00:00:00Z"),
        ),
    )
    desk.filings("late.csv", filed_under("registry:RA000123:B1", "registry:RA000123:B3", f"lei:{lei(1)}"))
    for n, (name, year) in enumerate((("Old Ltd", 2020), ("New Ltd", 2022), ("Between Ltd", 2021))):
        record = (6, name, "", f"{year}-01-01T00:00:00Z")
        assert desk.take("gleif-lei", lei_file(desk.inbox / f"{n}.csv", record)).counts.appended == 1
    desk.publish().close()
    with LiveServer(desk.home) as server:
        key = create_key(desk.home, "starter")

        def get(path: str) -> tuple[int, dict[str, Any]]:
            answer = server.get(path, key)
            rows = answer.json().get("data", [])
            return answer.status_code, rows[0] if rows else {}

        yield get


@pytest.mark.rule("ENV-1", "ENTY-1", "ENTY-2")
def test_the_record_is_an_array_of_one_with_every_field(server: LiveServer, sample_key: str) -> None:
    body = server.get(f"/v1/entities/{RETAILER}", sample_key).json()
    assert (body["count"], body["truncated"]) == (1, False)
    (row,) = body["data"]
    assert set(row) == FIELDS
    assert row["service_id"] == RETAILER
    assert row["legal_name"] == "Kgalagadi Sample Retail Holdings Limited"
    assert row["other_names"] == ["Kgalagadi Sample Stores"]
    assert (row["lei"], row["country"], row["jurisdiction"], row["category"]) == (LEI, "ZA", "ZA", "GENERAL")
    assert row["license_class"] == "synthetic"
    assert LEI in row["source_ref"]


@pytest.mark.rule("FIG-2")
def test_an_issuer_known_only_by_its_filings_has_every_field_and_null_where_unknown(
    server: LiveServer, sample_key: str
) -> None:
    filer = service_id("registry:US-SEC-CIK:9999900001")
    (row,) = server.get(f"/v1/entities/{filer}", sample_key).json()["data"]
    assert set(row) == FIELDS
    assert row["legal_name"]
    assert (row["lei"], row["legal_form"], row["listings"]) == (None, None, row["listings"])


def test_names_in_every_script_are_served_unchanged(server: LiveServer, sample_key: str) -> None:
    row = server.get(f"/v1/entities/{service_id('lei:999900SAMPLEEG000176')}", sample_key).json()["data"][0]
    assert "دلتا النيل النموذجية للأدوية ش.م.م" in row["other_names"]


@pytest.mark.rule("ENT-2")
def test_records_of_two_sources_join_over_a_registry_number(ask: Ask) -> None:
    numbered = service_id("registry:RA000123:B1")
    status, row = ask(f"/v1/entities/{numbered}")
    assert (status, row["service_id"], row["legal_name"]) == (200, id_of(1), "First Company Ltd")
    status, fact = ask(f"/v1/fundamentals/{numbered}")
    assert (status, fact["service_id"]) == (200, id_of(1))


@pytest.mark.rule("ENTY-1")
def test_an_old_id_still_answers_after_a_merger_with_the_surviving_one(ask: Ask) -> None:
    issued = service_id("registry:RA000123:B2")
    for old in (issued, id_of(2)):
        status, row = ask(f"/v1/entities/{old}")
        assert (status, row["service_id"], row["lei"]) == (200, issued, lei(2))
        assert ask(f"/v1/fundamentals/{old}")[1]["service_id"] == issued


@pytest.mark.rule("ENT-7")
def test_two_leis_that_claim_one_registry_number_stay_separate(ask: Ask) -> None:
    for which, name in ((3, "Third Company Ltd"), (4, "Fourth Company Ltd")):
        status, row = ask(f"/v1/entities/{id_of(which)}")
        assert (status, row["lei"], row["legal_name"]) == (200, lei(which), name)
    assert ask(f"/v1/entities/{service_id('registry:RA000123:B3')}")[1]["lei"] is None


def test_a_filer_later_known_as_a_person_is_not_served(ask: Ask) -> None:
    for kind in ("entities", "fundamentals"):
        assert ask(f"/v1/{kind}/{id_of(5)}")[0] == 404


def test_the_record_with_the_newest_date_wins_even_if_an_older_one_arrives_later(ask: Ask) -> None:
    assert ask(f"/v1/entities/{id_of(6)}")[1]["legal_name"] == "New Ltd"


@pytest.mark.rule("ENT-1")
def test_the_same_files_give_the_same_ids_on_another_machine(tmp_path: Path) -> None:
    """The other machine ingests them twice, one by one and in reverse order."""
    records = lei_file(
        tmp_path / "lei.csv",
        (1, "A Ltd", "", "2024-01-01T00:00:00Z"),
        (2, "B Ltd", "", "2024-01-01T00:00:00Z"),
    )
    one, other = Desk(tmp_path / "one"), Desk(tmp_path / "other")
    one.take("gleif-lei", records)
    one.filings("a.csv", filed_under(f"lei:{lei(1)}", "ticker:JSE:TST"))
    for _ in range(2):
        other.filings("c.csv", filed_under("ticker:JSE:TST"))
        other.filings("b.csv", filed_under(f"lei:{lei(1)}"))
        other.take("gleif-lei", records)
    for desk in (one, other):
        edition = desk.publish()
        for issued in (id_of(1), id_of(2), service_id("ticker:JSE:TST")):
            entity = asyncio.run(edition.select("entity", issued, day=desk.now.toordinal()))
            assert entity is not None
            assert json.loads(entity.rows)["service_id"] == issued
