"""The PostgreSQL engine with a server that freezes, restarts or is missing."""

import asyncio
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
import uvloop

from sankofa.engines.datastore import Datastore, open_datastore
from sankofa.engines.edition_reader import EditionReader
from sankofa.engines.object_store import ObjectError, open_source
from sankofa.ledger.store import SCHEMA
from sankofa.model.errors import OperatorError, SettingsError, StoreUnavailable
from tests.depth import deep_after
from tests.engines.datastores import Engine, fact_rows, run, shelve
from tests.patience import PATIENCE, Stopwatch
from tests.services import PostgresServer, free_port

PING_BOUND = 1.0
THREAD_BOUND = 2.5
CONNECTING_BOUND = 3.5
LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]

both_loops = pytest.mark.parametrize("loop_factory", deep_after(1, LOOPS), ids=["asyncio", "uvloop"])


@pytest.fixture
def store(postgres_url: str, tmp_path: Path) -> Iterator[Datastore]:
    """A store with a current edition."""
    store = Engine("postgres", postgres_url, tmp_path).store
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


@pytest.mark.ci
@both_loops
@pytest.mark.limit("answer of PostgreSQL to a status check")
def test_a_frozen_server_is_noticed_in_time_and_blocks_no_read(
    store: Datastore, postgres_server: PostgresServer, loop_factory: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    async def scene() -> None:
        await store.ping()
        postgres_server.freeze()
        try:
            await asyncio.gather(  # on the open connection
                unavailable(store.ping(), PING_BOUND),
                unavailable(asyncio.to_thread(store.ledgers.captured), THREAD_BOUND),
            )
            for _ in range(2):  # on a new connection
                await unavailable(store.ping(), CONNECTING_BOUND)
            reader = store.open("one")
            assert await read(reader) == 5
            assert store.list_editions().current == "one"
            reader.close()
        finally:
            postgres_server.thaw()
        await until_it_answers(store.ping)
        store.close()

    run(scene, loop_factory)


def test_a_server_that_accepts_but_never_answers_times_out(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as hole:
        url = f"postgresql://someone:hunter2@127.0.0.1:{hole.getsockname()[1]}/x"
        store = open_datastore(url, tmp_path, SCHEMA)

        async def scene() -> None:
            failures = await asyncio.gather(*(unavailable(store.ping(), CONNECTING_BOUND) for _ in range(10)))
            assert {failure.cause for failure in failures} == {"did not answer in time"}
            store.close()

        run(scene)


def test_rows_do_not_depend_on_the_collation_of_the_database(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    try:
        postgres_server.execute(
            "CREATE DATABASE collated TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en' LOCALE 'C'"
        )
    except psycopg.Error:
        pytest.skip("this PostgreSQL was built without ICU")
    try:
        with closing(
            open_datastore(postgres_server.url_of("collated"), tmp_path, SCHEMA).ledgers.open()
        ) as session:
            with session.transaction():
                session.stage("fact", [row for s in ("b", "A", "a", "B", "_") for row in fact_rows(1, s)])
                session.absorb("INSERT INTO fact SELECT * FROM staged_fact")
            ordered = session.query("SELECT subject FROM fact ORDER BY subject")
            assert "".join(subject for (subject,) in ordered) == "AB_ab"
    finally:
        postgres_server.execute("DROP DATABASE collated")


def test_a_database_with_another_encoding_is_refused(postgres_server: PostgresServer, tmp_path: Path) -> None:
    postgres_server.execute("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    try:
        with pytest.raises(OperatorError, match="encoded in LATIN1, not UTF8"):
            open_datastore(postgres_server.url_of("latin"), tmp_path, SCHEMA).ledgers.open()
    finally:
        postgres_server.execute("DROP DATABASE latin")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://bob:hunter2@127.0.0.1:{port}/hunter2base",
        "postgresql://bob:hunter2@host.invalid/x",
        "postgresql://bob:hunter2@127.0.0.1:1,127.0.0.1:2/x",
        "postgresql:///x?host=/nowhere/hunter2&user=bob",
    ],
)
def test_no_message_shows_the_address_or_the_password(tmp_path: Path, url: str) -> None:
    engine = Engine("postgres", url.format(port=free_port()), tmp_path)
    store = engine.store
    shelve(store, "one")

    async def ping() -> StoreUnavailable:
        return await unavailable(store.ping(), CONNECTING_BOUND)

    messages = [str(failure) + failure.cause for failure in (run(ping),)]
    for call in (
        store.ledgers.open,
        store.ledgers.captured,
        lambda: store.set_current_and_prune(["one"], "one"),
        store.exclusive("switch").__enter__,
        lambda: open_source(engine.url).read("editions.note", 1),
    ):
        with pytest.raises((OperatorError, StoreUnavailable, ObjectError)) as failure:
            call()
        messages.append(str(failure.value) + getattr(failure.value, "cause", ""))
    for message in messages:
        for secret in ("hunter2", "bob", "127.0.0.1", "host.invalid", "nowhere"):
            assert secret not in message


@pytest.mark.parametrize("url", ["postgresql://u:hunter2@[::1", "postgresql://u:hunter2@h/x?nonsense=1"])
def test_a_malformed_url_is_a_bad_setting(tmp_path: Path, url: str) -> None:
    with pytest.raises(SettingsError, match="SANKOFA_DATASTORE") as failure:
        open_datastore(url, tmp_path, SCHEMA)
    assert "hunter2" not in str(failure.value)


def test_a_missing_driver_is_a_bad_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.startswith("sankofa.engines.postgres")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(SettingsError, match=r"install sankofa\[postgres\]"):
        open_datastore("postgresql://host/x", tmp_path, SCHEMA)
