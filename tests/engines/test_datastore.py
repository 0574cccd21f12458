"""One suite over every datastore engine: the append-only ledger, and the shelf of editions."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sankofa.edition.build import publish, switch
from sankofa.engines.datastore import open_datastore
from sankofa.ledger.book import SCHEMA
from sankofa.model.errors import EditionError, OperatorError, SettingsError, StoreUnavailable
from tests.engines.datastores import (
    BLOCKS,
    SAMPLE_SOURCES,
    Engine,
    fact_rows,
    ingest_sample,
    publish_sample,
    run,
    shelve,
)

ABSORB = "INSERT INTO fact SELECT * FROM staged_fact WHERE true ORDER BY subject, document ON CONFLICT DO NOTHING"


@pytest.fixture(params=["sqlite", "postgres"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """An empty store of each engine."""
    home = tmp_path / "a home #1? 100%"  # an awkward name, which a URL would have to escape
    home.mkdir()
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else "sqlite:"
    engine = Engine(request.param, url, home)
    yield engine
    engine.store.close()


class TestLedger:
    def test_what_is_absorbed_is_read_back_and_absorbed_once(self, engine: Engine) -> None:
        rows = fact_rows(3)
        for appended in (3, 0):
            with closing(engine.store.ledger()) as session:
                with session.transaction():
                    session.stage("fact", rows)
                    assert session.absorb(ABSORB) == appended
                assert sorted(session.query("SELECT * FROM fact")) == rows

    def test_the_staging_copy_is_empty_again_after_each_statement(self, engine: Engine) -> None:
        with closing(engine.store.ledger()) as session, session.transaction():
            for number in (1, 2):
                session.stage("fact", fact_rows(number))
                assert session.absorb(ABSORB) == 1

    def test_a_row_twice_in_one_batch_is_appended_once(self, engine: Engine) -> None:
        with closing(engine.store.ledger()) as session, session.transaction():
            session.stage("fact", fact_rows(5) + fact_rows(5))
            assert session.absorb(ABSORB) == 5

    def test_text_is_ordered_by_its_bytes(self, engine: Engine) -> None:
        subjects = ["lei:Z", "lei:a", "lei:É", "lei:-", "lei:B", "lei: ", "lei:\U0001f600", "lei:ﬀ", "lei:", "lei:a b"]
        with closing(engine.store.ledger()) as session:
            with session.transaction():
                session.stage("fact", [row for subject in subjects for row in fact_rows(1, subject)])
                session.absorb(ABSORB)
            found = [subject for (subject,) in session.query("SELECT subject FROM fact ORDER BY subject")]
        assert found == sorted(subjects, key=str.encode)

    def test_any_text_survives(self, engine: Engine) -> None:
        awkward = 'tab\there, \\N and \\., "quotes", line\nfeed\r\n, 100% of ?, \x1f, Ünïcödé \U0001f600'
        with closing(engine.store.ledger()) as session:
            with session.transaction():
                session.stage("fact", fact_rows(1, awkward))
                session.absorb(ABSORB)
            assert list(session.query("SELECT value FROM fact WHERE subject = ?", (awkward,))) == [("0",)]

    def test_an_error_inside_a_transaction_leaves_nothing(self, engine: Engine) -> None:
        with closing(engine.store.ledger()) as session:
            with pytest.raises(OSError, match="disk"), session.transaction():
                session.stage("fact", fact_rows(10))
                session.absorb(ABSORB)
                session.stage("fact", fact_rows(20))
                raise OSError("the disk of the input file")
            assert list(session.query("SELECT count(*) FROM fact")) == [(0,)]
            with session.transaction():
                session.stage("fact", fact_rows(2))
                assert session.absorb(ABSORB) == 2

    def test_a_faulty_statement_is_told_to_the_operator(self, engine: Engine) -> None:
        with closing(engine.store.ledger()) as session:
            with pytest.raises(OperatorError, match="nowhere"), session.transaction():
                session.absorb("INSERT INTO fact SELECT * FROM nowhere")
            with pytest.raises(OperatorError, match="nowhere"):
                session.query("SELECT * FROM nowhere")
            assert list(session.query("SELECT count(*) FROM fact")) == [(0,)]

    @pytest.mark.parametrize("inside", [False, True], ids=["outside", "inside a transaction"])
    def test_long_answers_are_read_in_turns(self, engine: Engine, inside: bool) -> None:
        rows = fact_rows(9_000)

        def read() -> None:
            first = session.query("SELECT * FROM fact ORDER BY subject, document")
            second = session.query("SELECT document FROM fact WHERE subject = ? ORDER BY document", ("lei:X",))
            abandoned = session.query("SELECT * FROM fact")
            next(abandoned)
            pairs = list(zip(first, second, strict=True))
            assert [a[6] for a, _ in pairs] == [b for _, (b,) in pairs] == sorted(row[6] for row in rows)

        with closing(engine.store.ledger()) as session:
            with session.transaction():
                session.stage("fact", rows)
                session.absorb(ABSORB)
                if inside:
                    read()
            read()
            assert list(session.query("SELECT count(*) FROM fact")) == [(9_000,)]

    def test_writers_take_turns(self, engine: Engine) -> None:
        events: list[str] = []

        def second_writer() -> None:
            with closing(engine.store.ledger()) as other:
                ready.set()
                with other.transaction():
                    events.append(f"second sees {next(iter(other.query('SELECT count(*) FROM fact')))[0]}")

        ready = threading.Event()
        with closing(engine.store.ledger()) as session:
            with session.transaction():
                thread = threading.Thread(target=second_writer)
                thread.start()
                assert ready.wait(10)
                time.sleep(0.2)
                session.stage("fact", fact_rows(4))
                session.absorb(ABSORB)
                events.append("first is done")
            thread.join(10)
        assert events == ["first is done", "second sees 4"]

    def test_the_store_itself_refuses_every_change(self, engine: Engine) -> None:
        publish_sample(engine)
        before = {table: engine.raw(f"SELECT * FROM {table}") for table in ("capture", "fact", "entity_record")}
        statements = [
            statement
            for table in before
            for statement in (
                f"DELETE FROM {table}",
                f"DELETE FROM {table} WHERE capture_id = 1",
                f"UPDATE {table} SET source_id = 'x'",
                f"INSERT INTO {table} SELECT * FROM {table} WHERE true ON CONFLICT DO UPDATE SET source_id = 'x'",
            )
        ]
        if engine.name == "postgres":
            replica = "SET session_replication_role = replica"
            statements = [s.replace("CONFLICT DO", "CONFLICT ON CONSTRAINT {}_pkey DO") for s in statements]
            statements = [s.format(s.split()[2]) for s in statements]
            statements += [f"TRUNCATE {table} CASCADE" for table in before] + [f"{replica}; DELETE FROM fact"]
        else:
            statements += ["REPLACE INTO fact SELECT * FROM fact", "REPLACE INTO capture SELECT * FROM capture"]
        refused = 0
        for statement in statements:
            try:
                engine.raw(statement)
            except Exception as failure:
                assert "append-only" in str(failure), statement
                refused += 1
        assert refused == len([s for s in statements if not s.startswith("REPLACE")])  # REPLACE adds nothing
        assert {table: engine.raw(f"SELECT * FROM {table}") for table in before} == before

    def test_a_killed_writer_leaves_nothing_and_blocks_nobody(self, engine: Engine) -> None:
        worker = engine.start_worker("ingest")
        worker.kill()
        worker.communicate()
        with closing(engine.store.ledger()) as session:
            assert list(session.query("SELECT count(*) FROM fact")) == [(0,)]
            with session.transaction():
                session.stage("fact", fact_rows(20_000))
                assert session.absorb(ABSORB) == 20_000

    def test_the_order_of_ingestion_does_not_matter(self, engine: Engine, tmp_path: Path) -> None:
        there = publish_sample(engine)
        other = Engine("sqlite", "sqlite:", tmp_path)
        lei, filings, companyfacts = SAMPLE_SOURCES
        assert publish_sample(other, (companyfacts, lei, filings, companyfacts)) == there


class TestEditions:
    def test_the_sample_gives_the_same_edition_and_the_same_blocks(self, engine: Engine, tmp_path: Path) -> None:
        reference = Engine("sqlite", "sqlite:", tmp_path)
        manifest = publish_sample(reference)
        assert publish_sample(engine) == manifest
        edition = manifest["edition"]
        assert engine.store.shelf() == ((edition,), edition)
        keys = [(kind, key) for kind, key in _directory(reference, edition)]
        assert len(keys) > 20

        async def compare() -> None:
            theirs, ours = reference.store.open(edition), engine.store.open(edition)
            for kind, key in keys:
                assert await ours.blocks(kind, key, 0, 99) == await theirs.blocks(kind, key, 0, 99)
            await engine.store.ping()
            ours.close()
            theirs.close()
            engine.store.close()

        run(compare)

    def test_blocks_under_a_key(self, engine: Engine) -> None:
        shelve(engine.store, "one")
        blocks = [(index, rows) for _, index, rows in BLOCKS]

        async def read() -> None:
            reader = engine.store.open("one")
            assert reader.manifest["rows"] == {"fundamentals": 1}
            for skip, most, expected in (
                (0, 2, blocks[0:2]),
                (2, 2, blocks[2:4]),
                (4, 8, blocks[4:5]),
                (5, 8, []),
                (0, 0, []),
                (0, 2**31 - 1, blocks[:5]),
                (2**31 - 1, 2**31 - 1, []),
            ):
                assert await reader.blocks("fundamentals", "A", skip, most) == expected
            assert await reader.blocks("fundamentals", "B", 0, 9) == []
            assert await reader.blocks("entity", "A", 0, 9) == blocks[5:7]
            for kind, key in (("fundamentals", "C"), ("entity", "B"), ("", ""), ("fundamentals", "A\0"), ("x", "%?'")):
                assert await reader.blocks(kind, key, 0, 9) is None
            reader.close()
            engine.store.close()

        run(read)

    def test_an_edition_is_invisible_until_finished_and_not_current_until_kept(self, engine: Engine) -> None:
        assert engine.store.shelf() == ((), None)
        writer = engine.store.build()
        writer.write(BLOCKS)
        assert engine.store.shelf() == ((), None)
        writer.finish("one", {"content_sha256": "x"})
        assert engine.store.shelf() == (("one",), None)
        engine.store.keep(["one"], "one")
        assert engine.store.shelf() == (("one",), "one")

    def test_an_abandoned_edition_leaves_nothing(self, engine: Engine) -> None:
        shelve(engine.store, "one")
        writer = engine.store.build()
        writer.write(BLOCKS)
        writer.abandon()
        assert engine.store.shelf().editions == ("one",)
        assert engine.leftovers() == []

    def test_what_a_killed_build_left_is_gone_with_the_next(self, engine: Engine) -> None:
        worker = engine.start_worker("build")
        alive = engine.store.build()  # must not take the other's away while it lives
        assert worker.poll() is None
        alive.abandon()
        worker.kill()
        worker.communicate()
        time.sleep(0.1)
        shelve(engine.store, "one")
        assert engine.leftovers() == []

    def test_keep_removes_what_is_not_listed_and_rollback_is_one_step(self, engine: Engine) -> None:
        for edition in ("1", "2", "3", "4"):
            shelve(engine.store, edition)
            switch(engine.store, edition, keep=2)
        assert engine.store.shelf() == (("4", "3", "2"), "4")
        switch(engine.store, "2", keep=2)
        assert engine.store.shelf() == (("4", "3", "2"), "2")
        assert engine.leftovers() == []

    def test_publishing_the_same_again_leaves_the_edition_in_service_alone(self, engine: Engine) -> None:
        with closing(ingest_sample(engine)) as ledger:
            first = publish(engine.store, ledger, keep=3)

            async def read_while_it_is_published_again() -> None:
                reader = engine.store.open(first["edition"])
                key = _directory(engine, first["edition"])[0]
                again = asyncio.create_task(asyncio.to_thread(publish, engine.store, ledger, 3))
                while not again.done():
                    assert await reader.blocks(*key, 0, 1)
                    await asyncio.sleep(0.001)
                assert await again == first
                reader.close()
                engine.store.close()

            if engine.name == "postgres":  # an SQLite ledger stays in its thread
                run(read_while_it_is_published_again)
            else:
                assert publish(engine.store, ledger, keep=3) == first
        assert engine.leftovers() == []

    def test_a_damaged_edition_is_replaced_by_the_same_published_again(self, engine: Engine) -> None:
        shelve(engine.store, "one")
        engine.damage("one", "DROP TABLE block" if engine.name == "postgres" else "remove edition.sqlite")
        shelve(engine.store, "one")
        engine.store.open("one").close()

    @pytest.mark.parametrize(
        ("damage", "message"),
        [
            ("remove manifest.json", "manifest.json is missing"),
            ("remove edition.sqlite", "edition.sqlite is missing"),
            ("shorten edition.sqlite", "incomplete: "),
            ("change edition.sqlite", "corrupt: "),
            ("shorten manifest.json", "corrupt: "),
            ("remove ", "is missing"),
            ("DROP TABLE manifest", "manifest"),
            ("DROP TABLE block", "block"),
            ("DROP TABLE directory", "directory"),
            ("ALTER TABLE block DROP COLUMN rows", "rows"),
            ("DELETE FROM manifest", "manifest is missing"),
            ("DELETE FROM block WHERE id = 4", "6 of 7 rows in block"),
            ("DELETE FROM directory WHERE key = 'B'", "2 of 3 rows in directory"),
            ("TRUNCATE block", "0 of 7 rows in block"),
            ("INSERT INTO block VALUES (99, '', '')", "8 of 7 rows in block"),
            ("UPDATE block SET rows = overlay(rows PLACING 'X'::bytea FROM 7) WHERE id = 2", "corrupt: block"),
            ("UPDATE directory SET first = first + 1 WHERE kind = 'entity'", "corrupt: directory"),
            ("UPDATE manifest SET json = '{'", "manifest is damaged"),
            ("UPDATE manifest SET json = '{}'", "manifest is damaged"),
            ("DROP SCHEMA \"sankofa_e_one\" CASCADE", "one"),
        ],
    )
    def test_a_damaged_edition_is_refused_by_name(self, engine: Engine, damage: str, message: str) -> None:
        if damage.split()[0].isupper() != (engine.name == "postgres"):
            pytest.skip("a damage of the other engine")
        shelve(engine.store, "one")
        shelve(engine.store, "two")
        engine.store.open("one").close()
        engine.damage("one", damage)
        with pytest.raises(EditionError, match=r"^edition one: ") as refused:
            engine.store.open("one")
        assert message in str(refused.value)
        engine.store.open("two").close()

    @pytest.mark.parametrize("name", ["nowhere", "", "..", "a/b", 'a"b', "a b", "x" * 200, "a\0"])
    def test_what_is_no_edition_is_refused(self, engine: Engine, name: str) -> None:
        with pytest.raises(EditionError):
            engine.store.open(name)

    def test_ping_tells_that_nothing_is_published(self, engine: Engine) -> None:
        async def ping() -> str:
            with pytest.raises(StoreUnavailable) as failure:
                await engine.store.ping()
            engine.store.close()
            return failure.value.cause

        assert run(ping) == "no edition is published"
        shelve(engine.store, "one")
        assert run(ping) == "no edition is published"

    def test_readers_go_on_while_editions_come_and_go(self, engine: Engine) -> None:
        shelve(engine.store, "e000")
        switch(engine.store, "e000", keep=1)

        def publish_many() -> None:
            for number in range(1, 8):
                shelve(engine.store, f"e{number:03}")
                switch(engine.store, f"e{number:03}", keep=1)

        async def read() -> int:
            publishing = asyncio.create_task(asyncio.to_thread(publish_many))
            reads = 0
            while not publishing.done():
                current = (await asyncio.to_thread(engine.store.shelf)).current
                assert current is not None
                reader = await asyncio.to_thread(engine.store.open, current)
                answers = await asyncio.gather(*(reader.blocks("fundamentals", "A", 0, 9) for _ in range(8)))
                assert all(answer is not None and len(answer) == 5 for answer in answers)
                reads += len(answers)
                reader.close()
            await publishing
            engine.store.close()
            return reads

        assert run(read) >= 8


def test_another_kind_of_url_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="SANKOFA_DATASTORE"):
        open_datastore("mysql://root:secret@host/x", tmp_path, SCHEMA)


def _directory(engine: Engine, edition: str) -> list[tuple[str, str]]:
    if engine.name == "postgres":
        return [(k, v) for k, v in engine.raw(f'SELECT kind, key FROM "sankofa_e_{edition}".directory')]
    import sqlite3

    with closing(sqlite3.connect(engine.home / "editions" / edition / "edition.sqlite")) as database:
        return database.execute("SELECT kind, key FROM directory").fetchall()
