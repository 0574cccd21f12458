"""One suite for the stores that carry editions: a folder and tables of PostgreSQL."""

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from sankofa.engines.object_store import (
    CHUNK,
    ObjectDestination,
    ObjectError,
    ObjectMissing,
    open_destination,
    open_source,
)
from tests.patience import until
from tests.services import PostgresServer

LARGE = bytes(range(256)) * (3 * CHUNK // 256) + b"the end"


@pytest.fixture(params=["folder", "postgres"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ObjectDestination]:
    """An empty store of each kind."""
    postgres = request.param == "postgres"
    url = request.getfixturevalue("postgres_url") if postgres else str(tmp_path / "objects")
    with closing(open_destination(url)) as store:
        yield store


def upload(objects: ObjectDestination, path: str, content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "uploaded"
    file.write_bytes(content)
    objects.upload(path, file)


def streamed(objects: ObjectDestination, path: str, start: int, size: int) -> bytes:
    with objects.stream(path, start, size) as chunks:
        return b"".join(chunks)


def test_an_object_is_read_whole_and_from_any_byte(objects: ObjectDestination, tmp_path: Path) -> None:
    objects.write("small", b"some bytes", immutable=False)
    objects.write("empty", b"", immutable=True)
    upload(objects, "pool/ab/large", LARGE, tmp_path)
    assert objects.read("small", 10) == b"some bytes"
    assert objects.read("empty", 10) == b""
    for start in (0, 1, CHUNK - 1, CHUNK, 2 * CHUNK + 5, len(LARGE) - 1):
        assert streamed(objects, "pool/ab/large", start, len(LARGE)) == LARGE[start:]


def test_a_missing_object_is_distinguished_from_a_failure(objects: ObjectDestination) -> None:
    for _ in range(2):  # also once others exist
        with pytest.raises(ObjectMissing):
            objects.read("nothing", 10)
        with pytest.raises(ObjectMissing):
            streamed(objects, "nothing", 0, 10)
        objects.delete(["nothing"])
        assert list(objects.objects("pool/")) == []
        objects.write("another", b"x", immutable=True)


def test_an_object_is_replaced_and_listed_with_its_size_and_time(objects: ObjectDestination) -> None:
    before = time.time()
    for content in (b"the first", b"second"):
        objects.write("pool/a", content, immutable=False)
    objects.write("pool/b", b"x", immutable=True)
    objects.write("open/c", b"xy", immutable=True)
    listed = {stored.path: stored for stored in objects.objects("pool/")}
    assert {path: stored.size for path, stored in listed.items()} == {"pool/a": 6, "pool/b": 1}
    assert all(before - 5 < stored.modified.timestamp() < time.time() + 5 for stored in listed.values())
    objects.delete(["pool/a", "open/c"])
    assert [stored.path for stored in objects.objects("pool/")] == ["pool/b"]
    assert [stored.path for stored in objects.objects("open/")] == []


def test_several_threads_use_one_store(objects: ObjectDestination, tmp_path: Path) -> None:
    upload(objects, "pool/large", LARGE, tmp_path)
    answers: list[bool] = []

    def work(number: int) -> None:
        objects.write(f"pool/{number}", b"%d" % number * 1000, immutable=True)
        answers.append(streamed(objects, "pool/large", number, len(LARGE)) == LARGE[number:])
        answers.append(objects.read(f"pool/{number}", 10_000) == b"%d" % number * 1000)

    with objects.batch():
        threads = [
            threading.Thread(target=objects.write, args=(f"in/{n}", b"x"), kwargs={"immutable": True})
            for n in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    workers = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert answers == [True] * 12
    assert len(list(objects.objects("in/"))) == 4


@pytest.mark.parametrize("objects", ["postgres"], indirect=True)
def test_a_batch_appears_whole_or_not_at_all(objects: ObjectDestination, postgres_url: str) -> None:
    objects.write("editions.note", b"old", immutable=False)
    with closing(open_source(postgres_url)) as node:
        with objects.batch():
            objects.write("pool/new", LARGE, immutable=True)
            objects.write("editions.note", b"new", immutable=False)
            assert node.read("editions.note", 9) == b"old", (
                "a node reads while it is written, and does not wait"
            )
            with pytest.raises(ObjectMissing):
                node.read("pool/new", len(LARGE))
        assert node.read("editions.note", 9) == b"new"
        assert node.read("pool/new", len(LARGE)) == LARGE
        with pytest.raises(ZeroDivisionError), objects.batch():  # noqa: PT012 - the batch is what fails
            objects.delete(["pool/new"])
            objects.write("editions.note", b"wrong", immutable=False)
            raise ZeroDivisionError
        assert node.read("editions.note", 9) == b"new"
        assert node.read("pool/new", len(LARGE)) == LARGE


@pytest.mark.parametrize("objects", ["postgres"], indirect=True)
def test_a_killed_writer_leaves_nothing_and_a_removed_object_no_chunks(
    objects: ObjectDestination, postgres_url: str, postgres_server: PostgresServer
) -> None:
    objects.write("editions.note", b"old", immutable=False)
    writing = "SELECT pid FROM pg_stat_activity WHERE state = 'idle in transaction'"
    with (  # noqa: PT012 - the batch is what fails
        psycopg.connect(postgres_url, autocommit=True) as connection,
        pytest.raises(ObjectError),
        objects.batch(),
    ):
        objects.write("pool/new", LARGE, immutable=True)
        connection.execute(f"SELECT pg_terminate_backend(pid) FROM ({writing}) AS w".encode())
        until(lambda: not connection.execute(writing.encode()).fetchall())
        objects.write("editions.note", b"new", immutable=False)
    assert objects.read("editions.note", 9) == b"old"
    objects.write("pool/new", LARGE, immutable=True)
    objects.delete(["pool/new"])
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT count(*) FROM sankofa_objects.chunk").fetchone() == (1,)


@pytest.mark.parametrize("objects", ["postgres"], indirect=True)
def test_an_altered_row_returns_at_most_one_chunk(objects: ObjectDestination, postgres_url: str):
    objects.write("pool/new", b"new", immutable=True)
    with psycopg.connect(postgres_url) as connection:
        connection.execute("UPDATE sankofa_objects.chunk SET content = repeat('x', 3 << 20)::bytea")
    with objects.stream("pool/new", 0, 3) as chunks:
        assert [len(chunk) for chunk in chunks] == [CHUNK]
    with psycopg.connect(postgres_url) as connection:
        connection.execute("UPDATE sankofa_objects.object SET size = 1 << 40")
    with pytest.raises(ObjectError, match="more than 9 bytes"):
        objects.read("pool/new", 9)
