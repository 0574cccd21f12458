"""The append-only ledger, in one suite for every datastore engine. test_editions.py tests editions."""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from sankofa.engines.datastore import open_datastore
from sankofa.ledger.store import SCHEMA
from sankofa.model.errors import SettingsError
from tests.engines.datastores import SMALL_SOURCES, Engine, fact_rows, ingest_sample
from tests.patience import PATIENCE

TABLES = ("capture", "fact", "entity_record", "withheld")
ABSORB = "INSERT INTO fact SELECT * FROM staged_fact WHERE true ORDER BY subject, part ON CONFLICT DO NOTHING"


def test_text_is_ordered_by_its_bytes(engine: Engine) -> None:
    subjects = [
        "lei:Z",
        "lei:a",
        "lei:É",
        "lei:-",
        "lei:B",
        "lei: ",
        "lei:\U0001f600",
        "lei:ﬀ",
        "lei:",
        "lei:a b",
    ]
    with closing(engine.store.ledgers.open()) as session:
        with session.transaction():
            session.stage("fact", [row for subject in subjects for row in fact_rows(1, subject)])
            session.absorb(ABSORB)
        ordered = [subject for (subject,) in session.query("SELECT subject FROM fact ORDER BY subject")]
    assert ordered == sorted(subjects, key=str.encode)


def test_any_text_survives(engine: Engine) -> None:
    awkward = 'tab\there, \\N and \\., "quotes", line\nfeed\r\n, 100% of ?, \x1f, Ünïcödé \U0001f600'
    with closing(engine.store.ledgers.open()) as session:
        with session.transaction():
            session.stage("fact", fact_rows(1, awkward))
            session.absorb(ABSORB)
        assert list(session.query("SELECT told FROM fact WHERE subject = ?", (awkward,))) == [("told 0",)]


def test_an_error_inside_a_transaction_leaves_nothing(engine: Engine) -> None:
    with closing(engine.store.ledgers.open()) as session:
        with pytest.raises(OSError, match="disk"), session.transaction():  # noqa: PT012 - what is undone
            session.stage("fact", fact_rows(10))
            session.absorb(ABSORB)
            session.stage("fact", fact_rows(20))
            raise OSError("the disk of the input file")
        assert list(session.query("SELECT count(*) FROM fact")) == [(0,)]
        with session.transaction():
            session.stage("fact", fact_rows(2))
            assert session.absorb(ABSORB) == 2


@pytest.mark.parametrize("inside", [False, True], ids=["outside", "inside a transaction"])
def test_long_answers_are_read_in_batches(engine: Engine, inside: bool) -> None:
    rows = fact_rows(9_000)

    def read() -> None:
        first = session.query("SELECT * FROM fact ORDER BY subject, part")
        second = session.query("SELECT part FROM fact WHERE subject = ? ORDER BY part", ("lei:X",))
        abandoned = session.query("SELECT * FROM fact")
        next(abandoned)
        pairs = list(zip(first, second, strict=True))
        assert [a[2] for a, _ in pairs] == [b for _, (b,) in pairs] == [row[2] for row in rows]

    with closing(engine.store.ledgers.open()) as session:
        with session.transaction():
            session.stage("fact", rows)
            session.absorb(ABSORB)
            if inside:
                read()
        read()
        assert list(session.query("SELECT count(*) FROM fact")) == [(9_000,)]


def test_writers_take_turns(engine: Engine) -> None:
    events: list[str] = []

    def second_writer() -> None:
        with closing(engine.store.ledgers.open()) as other:
            ready.set()
            with other.transaction():
                events.append(f"second sees {next(iter(other.query('SELECT count(*) FROM fact')))[0]}")

    ready = threading.Event()
    with closing(engine.store.ledgers.open()) as session:
        with session.transaction():
            thread = threading.Thread(target=second_writer)
            thread.start()
            assert ready.wait(PATIENCE)
            time.sleep(0.2)
            session.stage("fact", fact_rows(4))
            session.absorb(ABSORB)
            events.append("first is done")
        thread.join(PATIENCE)
    assert events == ["first is done", "second sees 4"]


@pytest.mark.rule("VINT-8")
def test_the_store_itself_refuses_updates_and_deletes(engine: Engine) -> None:
    ingest_sample(engine).close()
    before = {table: engine.raw(f"SELECT * FROM {table}") for table in TABLES}
    assert all(before.values())
    for table in TABLES:
        for statement in _changes(table, engine.name):
            with pytest.raises((sqlite3.Error, psycopg.Error), match=f"append-only: .* on {table} refused"):
                engine.raw(statement)
        for statement in _replacements(table) if engine.name == "sqlite" else ():
            engine.raw(statement)  # the existing row stays, and no error is raised
    assert {table: engine.raw(f"SELECT * FROM {table}") for table in TABLES} == before


def test_an_sqlite_row_cannot_be_replaced_by_its_rowid(engine: Engine) -> None:
    ingest_sample(engine, SMALL_SOURCES).close()
    before = engine.raw("SELECT * FROM capture")
    columns = "rowid, capture_id, source_id, file_name, content_sha256, observed_at, license_class, counts"
    with pytest.raises((sqlite3.Error, psycopg.Error), match=r"rowid|REPLACE"):
        engine.raw(f"REPLACE INTO capture ({columns}) VALUES (1, 99, '', '', '', '', '', '')")
    assert engine.raw("SELECT * FROM capture") == before


def _changes(table: str, engine: str) -> Iterator[str]:
    yield f"DELETE FROM {table}"
    yield f"UPDATE {table} SET source_id = 'x'"
    yield f"UPDATE {table} SET source_id = source_id WHERE capture_id > 0"
    if engine == "postgres":
        upsert = f"ON CONFLICT ON CONSTRAINT {table}_pkey DO UPDATE SET source_id = 'x'"
        yield f"INSERT INTO {table} SELECT * FROM {table} {upsert}"
        yield f"TRUNCATE {table}"
        yield f"TRUNCATE {table} CASCADE"
        yield f"SET session_replication_role = replica; DELETE FROM {table}"


def _replacements(table: str) -> Iterator[str]:
    yield f"REPLACE INTO {table} SELECT * FROM {table}"
    yield f"INSERT INTO {table} SELECT * FROM {table} WHERE true ON CONFLICT DO UPDATE SET source_id = 'x'"


def test_an_unknown_kind_of_url_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="SANKOFA_DATASTORE"):
        open_datastore("mysql://root:secret@host/x", tmp_path, SCHEMA)
