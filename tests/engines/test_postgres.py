"""What the PostgreSQL engine alone must stand up to: a server that freezes, restarts, or is not there."""

import asyncio
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
import uvloop

from sankofa.engines.datastore import Datastore, EditionReader
from sankofa.engines.factory import open_datastore
from sankofa.ledger.store import SCHEMA
from sankofa.model.errors import OperatorError, SettingsError, StoreUnavailable
from tests.engines.datastores import fact_rows, run, shelve
from tests.patience import PATIENCE, Stopwatch
from tests.services import PostgresServer, free_port

READ_BOUND = 2.0
PING_BOUND = 1.0
THREAD_BOUND = 2.5
LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]

both_loops = pytest.mark.parametrize("loop_factory", LOOPS, ids=["asyncio", "uvloop"])


@pytest.fixture
def store(postgres_url: str, tmp_path: Path) -> Iterator[Datastore]:
    """A store with one edition in service."""
    store = open_datastore(postgres_url, tmp_path, SCHEMA)
    shelve(store, "one")
    store.set_current_and_prune(["one"], "one")
    yield store
    store.close()


async def read(reader: EditionReader) -> int:
    blocks = await reader.blocks("fundamentals", "A", 0, 9)
    assert blocks is not None
    return len(blocks)


async def unavailable(call: Awaitable[object], within: float) -> StoreUnavailable:
    """The failure of the call, which must come in time."""
    with Stopwatch() as watch, pytest.raises(StoreUnavailable) as failure:
        await call
    assert watch.seconds < within
    return failure.value


async def until_it_answers(call: Callable[[], Awaitable[object]], within: float = PATIENCE) -> None:
    deadline = time.monotonic() + within
    while True:
        try:
            await call()
        except StoreUnavailable:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.05)
        else:
            return


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - as the kernel lists it


@pytest.mark.deep
@both_loops
@pytest.mark.limit("read from PostgreSQL")
def test_a_frozen_server_is_told_in_time_and_used_again_when_it_thaws(
    store: Datastore,
    postgres_server: PostgresServer,
    loop_factory: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def scene() -> None:
        reader = store.open("one")
        assert await read(reader) == 5
        await store.ping()
        postgres_server.freeze()
        try:
            for _ in range(3):  # on connections that were open, then on none
                await asyncio.gather(
                    unavailable(read(reader), READ_BOUND),
                    unavailable(store.ping(), PING_BOUND),
                    unavailable(asyncio.to_thread(store.list_editions), THREAD_BOUND),
                )
            await unavailable(asyncio.to_thread(store.open, "one"), THREAD_BOUND)
        finally:
            postgres_server.thaw()
        await until_it_answers(lambda: read(reader))
        await until_it_answers(store.ping)
        await until_it_answers(lambda: asyncio.to_thread(store.list_editions))
        store.close()

    run(scene, loop_factory)


@both_loops
def test_a_hundred_failures_leave_nothing_behind(
    store: Datastore,
    postgres_server: PostgresServer,
    loop_factory: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def scene() -> None:
        reader = store.open("one")
        await asyncio.gather(*(read(reader) for _ in range(20)))
        store.close()
        files = open_files()
        threads = threading.active_count()
        await read(reader)
        postgres_server.freeze()
        try:
            for _ in range(2):
                failures = [unavailable(read(reader), READ_BOUND) for _ in range(50)]
                await asyncio.gather(*failures, *(unavailable(store.ping(), PING_BOUND) for _ in range(5)))
            assert len(asyncio.all_tasks()) <= 2  # this one, and at most one still dialling
        finally:
            postgres_server.thaw()
        await until_it_answers(lambda: read(reader))
        store.close()
        await asyncio.sleep(0)
        assert open_files() <= files
        assert threading.active_count() <= threads + 1

    run(scene, loop_factory)


@both_loops
def test_a_short_freeze_is_only_a_delay(
    store: Datastore,
    postgres_server: PostgresServer,
    loop_factory: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def scene() -> None:
        reader = store.open("one")
        await read(reader)
        postgres_server.freeze()
        reads = [asyncio.create_task(read(reader)) for _ in range(10)]
        await asyncio.sleep(0.25)
        postgres_server.thaw()
        assert await asyncio.gather(*reads) == [5] * 10
        store.close()

    run(scene, loop_factory)


@both_loops
def test_a_connection_that_fell_silent_is_replaced_within_the_call(
    store: Datastore, postgres_url: str, loop_factory: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    """As when a middlebox forgets a connection: no answer and no error, while the server is well."""

    async def scene() -> None:
        reader = store.open("one")
        await asyncio.gather(*(read(reader) for _ in range(8)))
        await asyncio.sleep(0.1)  # further connections are made in the background
        with psycopg.connect(postgres_url) as connection:
            found = connection.execute("SELECT pid FROM pg_stat_activity WHERE application_name = 'sankofa'")
            silenced = [pid for (pid,) in found]
        for pid in silenced:
            os.kill(pid, signal.SIGSTOP)
        try:
            with Stopwatch() as watch:
                assert await asyncio.gather(*(read(reader) for _ in range(20))) == [5] * 20
            assert watch.seconds < READ_BOUND
        finally:
            for pid in silenced:
                os.kill(pid, signal.SIGCONT)
        await store.ping()
        store.close()

    run(scene, loop_factory)


@pytest.mark.deep
@both_loops
def test_after_a_restart_the_first_call_is_answered(
    store: Datastore,
    postgres_server: PostgresServer,
    loop_factory: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def scene() -> None:
        reader = store.open("one")
        await asyncio.gather(*(read(reader) for _ in range(20)))
        await store.ping()
        for _ in range(2):
            postgres_server.kill()
            postgres_server.start()  # holds up the loop: nobody has seen the connections close
            assert await read(reader) == 5
            await store.ping()
            assert store.list_editions().current == "one"
        postgres_server.kill()
        await unavailable(read(reader), READ_BOUND)
        await unavailable(store.ping(), PING_BOUND)
        await unavailable(asyncio.to_thread(store.list_editions), THREAD_BOUND)
        postgres_server.start()
        await until_it_answers(lambda: read(reader))
        store.close()

    run(scene, loop_factory)


def test_a_server_that_accepts_and_says_nothing_is_given_up_in_time(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as hole:
        url = f"postgresql://someone:hunter2@127.0.0.1:{hole.getsockname()[1]}/x"
        store = open_datastore(url, tmp_path, SCHEMA)

        async def scene() -> None:
            pings = [unavailable(store.ping(), PING_BOUND) for _ in range(10)]
            failures = await asyncio.gather(
                *pings, unavailable(asyncio.to_thread(store.list_editions), THREAD_BOUND)
            )
            assert {failure.cause for failure in failures} == {"did not answer in time"}
            store.close()

        run(scene)


def test_a_cancelled_reader_disturbs_no_other(store: Datastore) -> None:
    async def scene() -> None:
        reader = store.open("one")
        for _ in range(20):
            reads = [asyncio.create_task(read(reader)) for _ in range(12)]
            await asyncio.sleep(0)
            for task in reads[::2]:
                task.cancel()
            answers = await asyncio.gather(*reads, return_exceptions=True)
            assert answers[1::2] == [5] * 6
        store.close()

    run(scene)


def test_one_store_serves_one_loop_after_another(store: Datastore) -> None:
    reader = store.open("one")

    async def scene() -> int:
        return await read(reader)

    assert [asyncio.run(scene()) for _ in range(3)] == [5, 5, 5]


@pytest.mark.deep
def test_more_editions_than_a_connection_remembers(store: Datastore) -> None:
    names = [f"e{number}" for number in range(70)]
    for name in names:
        writer = store.build()
        writer.write([(1, b"i", name.encode())])
        writer.register([("k", "key", 1, 1)])
        writer.finish(name, {"content_sha256": name})

    async def scene() -> None:
        readers = [store.open(name) for name in names]
        for _ in range(2):
            answers = await asyncio.gather(*(reader.blocks("k", "key", 0, 1) for reader in readers))
            assert answers == [[(b"i", name.encode())] for name in names]
        store.close()

    run(scene)


def test_an_edition_that_is_being_read_is_removed_without_waiting(
    store: Datastore, postgres_url: str
) -> None:
    shelve(store, "two")
    count = "SELECT count(*) FROM sankofa_editions.block"
    with psycopg.connect(postgres_url) as reading:
        reading.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        before = reading.execute(count).fetchone()
        with Stopwatch() as watch:
            store.set_current_and_prune(["two"], "two")
        assert watch.seconds < 2
        assert store.list_editions() == (("two",), "two")
        assert reading.execute(count).fetchone() == before == (14,)
    with psycopg.connect(postgres_url) as reading:
        assert reading.execute(count).fetchone() == (7,)


def test_a_reader_of_a_removed_edition_is_told(store: Datastore) -> None:
    async def scene() -> None:
        reader = store.open("one")
        await read(reader)
        shelve(store, "two")
        store.set_current_and_prune(["two"], "two")
        await unavailable(read(reader), READ_BOUND)
        assert await read(store.open("two")) == 5  # on the same connection
        store.close()

    run(scene)


def test_an_edition_refuses_every_change(store: Datastore, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("SET search_path = sankofa_editions")
        for statement in (
            b"DELETE FROM block",
            b"DELETE FROM block_1",
            b"UPDATE directory SET first = 1",
            b"TRUNCATE edition CASCADE",
            b"UPDATE edition SET manifest = ''",
            b"DELETE FROM edition_part",
            b"DELETE FROM part",
            b"INSERT INTO block VALUES (1, 99, 1, '', '', '')",
            b"SET session_replication_role = replica; DELETE FROM block",
        ):
            with pytest.raises(psycopg.Error, match="an edition never changes"):
                connection.execute(statement)


def test_blocks_are_stored_compressed(store: Datastore, postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        stored = connection.execute(
            "SELECT bool_and(pg_column_size(rows) < octet_length(rows) / 2) FROM sankofa_editions.block"
        )
        assert stored.fetchone() == (True,)


def test_the_order_of_the_database_is_not_ours(postgres_server: PostgresServer, tmp_path: Path) -> None:
    try:
        postgres_server.execute(
            "CREATE DATABASE collated TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en' LOCALE 'C'"
        )
    except psycopg.Error:
        pytest.skip("this PostgreSQL was built without ICU")
    try:
        with closing(
            open_datastore(postgres_server.url_of("collated"), tmp_path, SCHEMA).ledger()
        ) as session:
            with session.transaction():
                session.stage("fact", [row for s in ("b", "A", "a", "B", "_") for row in fact_rows(1, s)])
                session.absorb("INSERT INTO fact SELECT * FROM staged_fact")
            found = session.query("SELECT subject FROM fact ORDER BY subject")
            assert "".join(subject for (subject,) in found) == "AB_ab"
    finally:
        postgres_server.execute("DROP DATABASE collated")


def test_a_database_of_another_encoding_is_refused(postgres_server: PostgresServer, tmp_path: Path) -> None:
    postgres_server.execute("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    try:
        with pytest.raises(OperatorError, match="encoded in LATIN1, not UTF8"):
            open_datastore(postgres_server.url_of("latin"), tmp_path, SCHEMA).ledger()
    finally:
        postgres_server.execute("DROP DATABASE latin")


@pytest.mark.deep
def test_a_server_that_goes_away_during_ingest_is_told(
    store: Datastore, postgres_server: PostgresServer
) -> None:
    session = store.ledgers.open()
    with pytest.raises(OperatorError, match="PostgreSQL: "), session.transaction():  # noqa: PT012
        session.stage("fact", fact_rows(10))
        postgres_server.kill()
        session.absorb("INSERT INTO fact SELECT * FROM staged_fact")
    session.close()
    postgres_server.start()
    with closing(store.ledgers.open()) as session:
        assert list(session.query("SELECT count(*) FROM fact")) == [(0,)]


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://bob:hunter2@127.0.0.1:{port}/hunter2base",
        "postgresql://bob:hunter2@host.invalid/x",
        "postgresql://bob:hunter2@127.0.0.1:1,127.0.0.1:2/x",
        "postgresql:///x?host=/nowhere/hunter2&user=bob",
    ],
)
def test_no_message_gives_the_address_or_the_password_away(tmp_path: Path, url: str) -> None:
    store = open_datastore(url.format(port=free_port()), tmp_path, SCHEMA)

    async def ping() -> StoreUnavailable:
        return await unavailable(store.ping(), PING_BOUND)

    messages = [str(failure) + failure.cause for failure in (run(ping),)]
    for call in (
        store.ledger,
        store.build,
        lambda: store.set_current_and_prune([], "x"),
        store.list_editions,
        lambda: store.open("x"),
    ):
        with pytest.raises((OperatorError, StoreUnavailable)) as failure:
            call()
        messages.append(str(failure.value) + getattr(failure.value, "cause", ""))
    for message in messages:
        for secret in ("hunter2", "bob", "127.0.0.1", "host.invalid", "nowhere"):
            assert secret not in message


@pytest.mark.parametrize("url", ["postgresql://u:hunter2@[::1", "postgresql://u:hunter2@h/x?nonsense=1"])
def test_a_malformed_url_is_a_setting_at_fault(tmp_path: Path, url: str) -> None:
    with pytest.raises(SettingsError, match="SANKOFA_DATASTORE") as failure:
        open_datastore(url, tmp_path, SCHEMA)
    assert "hunter2" not in str(failure.value)


def test_without_the_driver_the_setting_is_at_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.startswith("sankofa.engines.postgres")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(SettingsError, match=r"install sankofa\[postgres\]"):
        open_datastore("postgresql://host/x", tmp_path, SCHEMA)
