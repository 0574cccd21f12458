"""A small register of fictional organisations, for the tests of identifiers and of search."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from stdnum import isin as isin_numbers
from stdnum import lei as lei_numbers
from stdnum.iso7064 import mod_97_10

from sankofa.model.identifiers import service_id
from tests.live import LiveServer, publish_files

COLUMNS = (
    "LEI,Entity.LegalName,Entity.OtherEntityNames.OtherEntityName.1,Entity.LegalAddress.Country,"
    "Entity.RegistrationAuthority.RegistrationAuthorityID,"
    "Entity.RegistrationAuthority.RegistrationAuthorityEntityID,Entity.EntityCategory,Entity.EntityStatus,"
    "Entity.SuccessorEntity.1.SuccessorLEI,Registration.LastUpdateDate,Registration.RegistrationStatus"
)


def lei(stem: str) -> str:
    """A well-formed LEI without an owner."""
    body = f"9998{stem:0>14}"
    number = body + mod_97_10.calc_check_digits(body)
    return str(lei_numbers.validate(number))


def isin(country: str, stem: str) -> str:
    body = f"{country}{stem:0>9}"
    return str(isin_numbers.validate(body + isin_numbers.calc_check_digit(body)))


def sid(identifier: str) -> str:
    return service_id(identifier)


MINER, BANK, BREWER, LAPSED, PERSON = (lei(s) for s in ("MINER", "BANK", "BREWER", "LAPSED", "PERSON"))
SCHOLARS = lei("SCHOLARS")
DISPUTED = isin("ZA", "DISPUTED")
HELD = isin("NG", "HELD")


def record(number: str, name: str, country: str, registry: str = "", **other: str) -> str:
    register, _, registered = registry.partition(":")
    fields = (
        number, name, other.get("also", ""), country, register, registered, other.get("category", "GENERAL"),
        other.get("entity", "ACTIVE"), other.get("successor", ""), "2026-01-05T00:00:00Z",
        other.get("status", "ISSUED"),
    )  # fmt: skip
    return ",".join(f'"{field}"' for field in fields)


def write_register(folder: Path) -> None:
    """The files of the register: `lei.csv` and `identifiers.csv`."""
    shared = [record(lei(f"SHARED{n}"), f"Shared Number {n} Plc", "KE", f"RA99{n:04}:777") for n in range(25)]
    people = record(PERSON, "Quentin Zebulon Marchbanks", "ZA", "RA991111:42", category="SOLE_PROPRIETOR")
    rows = [
        record(
            MINER, "Société Minière du Fouta-Djallon S.A.", "SN", "RA990100:SN 2001-B-9", also="Fouta Gold"
        ),
        record(BANK, "First Marula Bank Plc", "NG", "RA990200:RC 4411"),
        record(BREWER, "Thornveld Breweries (Pty) Ltd", "ZA", "RA990300:2001/000777/07"),
        record(
            LAPSED, "Old Baobab Trading Limited", "ZA", status="MERGED", entity="INACTIVE", successor=BREWER
        ),
        record(SCHOLARS, "The Oxbow and Camfield Society of Kenya Scholarship Fund Trustees", "KE"),
        people,
        *shared,
    ]
    (folder / "lei.csv").write_text("\n".join([COLUMNS, *rows]) + "\n")
    (folder / "identifiers.csv").write_text(
        "entity,id_type,id_value,registry\n"
        f"lei:{BREWER},ticker,JSE:THV,\n"
        f"lei:{BANK},ticker,NGX:MARULA,\n"
        f"lei:{BANK},isin,{HELD},\n"
        f"lei:{MINER},aggregator,sn/12345,EXAMPLE-AGG\n"
        f"lei:{BREWER},isin,{DISPUTED},\n"
        f"lei:{BANK},isin,{DISPUTED},\n"
        f"lei:{PERSON},ticker,JSE:QZM,\n"
        "ticker:JSE:ALONE,aggregator,za/999,EXAMPLE-AGG\n"
        f"lei:{BANK},isin,ZAE000000000,\n"
        f"lei:{BREWER},registry,2001/000777/07,ZA-CIPC\n"
        f"lei:{MINER},lei,{LAPSED},\n"
    )


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """The register, ingested, published and served."""
    folder = tmp_path_factory.mktemp("register")
    write_register(folder)
    home = folder / "home"
    publish_files(home, ("gleif-lei", folder / "lei.csv"), ("identifiers", folder / "identifiers.csv"))
    with LiveServer(home, per_minute_sample="100000", per_month_sample="1000000") as server:
        yield server


@pytest.fixture(scope="module")
def sample(live: LiveServer) -> str:
    return live.key("sample")


@pytest.fixture(scope="module")
def paid(live: LiveServer) -> str:
    return live.key("starter", "--per-minute", "100000")
