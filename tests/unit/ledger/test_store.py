"""The ledger keeps what it was given: the store itself refuses anything else."""

import sqlite3
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest

from sankofa.ledger.ingest import files_under
from sankofa.model.records import EntityRecord, Fact, IdentifierLink, Profile
from tests.world.desk import Desk

PERSON = "lei:999900SAMPLEZA000383"
FIGURE = Fact("ticker:JSE:TST", "revenue", "ZAR", "2019-01-01", "2019-12-31", "2020-03-01", "d", "1", "p. 1")
TABLES = ("capture", "fact", "entity_record", "link", "withheld")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """With one row in every table."""
    desk = Desk(tmp_path / "home")
    ledger = desk.ledger()
    with ledger.capture("filings", "synthetic", "file", "0") as capture:
        capture.fact(FIGURE)
        capture.entity(
            EntityRecord(FIGURE.subject, "", Profile(legal_name="A Ltd", identifiers=(FIGURE.subject,)))
        )
        capture.link(IdentifierLink("isin:ZAE000015228", FIGURE.subject, "row 2"))
        capture.withhold(PERSON)
    ledger.close()
    return desk


@pytest.fixture
def database(desk: Desk) -> Iterator[sqlite3.Connection]:
    """The ledger's file, opened by a stranger."""
    connection = sqlite3.connect(desk.home / "ledger.sqlite", isolation_level=None)
    yield connection
    connection.close()


def contents(database: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
    return {table: database.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES}


@pytest.mark.parametrize("table", TABLES)
def test_no_hidden_row_number_lets_a_row_be_replaced(database: sqlite3.Connection, table: str) -> None:
    with pytest.raises(sqlite3.OperationalError, match="rowid"):
        database.execute(f"SELECT rowid FROM {table}")


def test_whatever_fails_inside_a_capture_leaves_nothing_of_it(desk: Desk, database: sqlite3.Connection):
    before = contents(database)
    ledger = desk.ledger()

    def fail_late() -> None:
        with ledger.capture("filings", "synthetic", "other", "1") as capture:
            for n in range(25_000):  # beyond what is kept in memory
                capture.fact(FIGURE._replace(value=str(n)))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_late()
    ledger.close()
    assert contents(database) == before


@pytest.mark.rule("GATE-4")
def test_a_person_is_kept_as_a_hash_that_only_the_key_can_make(desk: Desk, database: sqlite3.Connection):
    ((hashed, *_),) = database.execute("SELECT * FROM withheld WHERE source_id <> ''").fetchall()
    assert len(hashed) == 64
    assert PERSON.partition(":")[2].encode() not in (desk.home / "ledger.sqlite").read_bytes()
    ledger = desk.ledger()
    assert PERSON in ledger.persons()
    assert FIGURE.subject not in ledger.persons()
    ledger.close()


def test_a_capture_that_brought_nothing_new_leaves_no_trace(desk: Desk, database: sqlite3.Connection) -> None:
    before = contents(database)
    desk.set_day(date(2025, 1, 1))
    ledger = desk.ledger()
    with ledger.capture("filings", "synthetic", "file", "0") as capture:
        capture.fact(FIGURE)
        capture.fact(FIGURE)
        capture.flush()
        assert (capture.counts.read, capture.counts.appended, capture.counts.unchanged) == (2, 0, 2)
    ledger.close()
    assert contents(database) == before


def test_a_folder_is_walked_in_a_stable_order_without_hidden_files(tmp_path: Path) -> None:
    for name in ("b.csv", "a/z.csv", "a/.hidden", ".DS_Store", "c/d/e.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = [str(path.relative_to(tmp_path)) for path in files_under([tmp_path])]
    assert found == ["a/z.csv", "b.csv", "c/d/e.csv"]
