"""Limits that are too large or too slow to reach through the service: these tests call the code that
enforces them, with a smaller bound if necessary.
"""

import ast
import asyncio
import gzip
import socket
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from sankofa.access.keys import _LONGEST, Keys
from sankofa.access.records import DamagedRecord, SealedRecords
from sankofa.cli import backup, guard, metrics
from sankofa.cli.guard import KnownClients
from sankofa.collect import fetch, network
from sankofa.collect.network import CollectFailed
from sankofa.engines import object_http, private_files
from sankofa.engines.keyvalue import open_keyvalue
from sankofa.engines.object_store import ObjectError, open_source
from sankofa.engines.publication import NOTE_BYTES
from sankofa.model.errors import FormatError, OperatorError, Unauthorized
from sankofa.model.limits import limit
from sankofa.model.signed_notes import NotTrusted, new_signer, sign_note, verified_text
from sankofa.replication.pool import INDEX_BYTES
from sankofa.settings import PREFIX, Settings
from sankofa.sources import base
from sankofa.sources.ixbrl import MOST_LEVELS, UnsafeDocument, check_xml
from sankofa.sources.registry import Collect
from sankofa.web.visit import Visit
from tests.every import every
from tools.reference_pages.limits_page import BEYOND_SETTINGS, NO_BOUNDS, all_limits


@pytest.mark.limit("API key")
def test_a_key_has_a_maximum_length(tmp_path: Path) -> None:
    async def authenticate(key: str) -> None:
        records = SealedRecords(open_keyvalue(f"embedded:{tmp_path}/keys-{len(key)}"), (b"secret",))
        await Keys(records, Settings(sandbox_key=key), lambda: datetime.now(UTC)).authenticate(key)

    asyncio.run(authenticate("k" * _LONGEST))
    with pytest.raises(Unauthorized):
        asyncio.run(authenticate("k" * (_LONGEST + 1)))


@pytest.mark.limit("rows of a page")
@every(("requested", "expected"), [("100", "100"), ("101", "100")])
def test_a_page_has_a_maximum_number_of_rows(requested: str, expected: str) -> None:
    paid: Any = SimpleNamespace(
        given=lambda name: requested, call=SimpleNamespace(grant=SimpleNamespace(sample=False))
    )
    assert Visit.limit(paid) == expected


@pytest.mark.limit("large answers without a key")
@every(("under_way", "status"), [(guard.MOST_LARGE - 1, 200), (guard.MOST_LARGE, 429)])
def test_concurrent_large_answers_without_a_key_are_limited(under_way: int, status: int) -> None:
    size = guard.LARGE_BYTES + 1

    async def large(scope: Any, receive: Any, send: Any) -> None:
        length = (b"content-length", str(size).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        await send({"type": "http.response.body", "body": b"x" * size})

    async def ask() -> list[Any]:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        front = guard.PriorityQueue(large, "http://localhost", KnownClients())
        front.large = under_way
        scope = {"type": "http", "path": "/openapi.json", "headers": [], "client": ("192.0.2.1", 1)}
        never: Any = asyncio.Event().wait
        await front(scope, never, send)
        return sent

    assert asyncio.run(ask())[0]["status"] == status


@pytest.mark.limit("time for a request on the metrics port")
def test_a_silent_client_of_the_metrics_port_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "_REQUEST_SECONDS", 0.5)
    listener = socket.create_server(("127.0.0.1", 0))
    served: Any = SimpleNamespace(text=lambda: b"sankofa_up 1\n")
    with metrics.metrics_server(served, listener) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with socket.create_connection(listener.getsockname(), 20) as silent:
            silent.sendall(b"GET /metr")
            for path, answer in ((b"/metrics", b"sankofa_up 1\n"), (b"/", b"Metrics are at /metrics.\n")):
                with socket.create_connection(listener.getsockname(), 20) as link:
                    link.sendall(b"GET %b HTTP/1.0\r\n\r\n" % path)
                    assert link.makefile("rb").read().endswith(answer)
            assert silent.recv(100) == b""
        server.shutdown()


@pytest.mark.limit("members of an archive")
def test_an_archive_has_a_maximum_number_of_members(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_MOST_MEMBERS", 3)
    for members in (3, 4):
        path = tmp_path / f"{members}.zip"
        with zipfile.ZipFile(path, "w") as packed:
            for number in range(members):
                packed.writestr(f"{number}.csv", "a")
    assert len([*base.InputFile(tmp_path / "3.zip").documents()]) == 3
    with pytest.raises(FormatError, match="more than 3 members"):
        next(base.InputFile(tmp_path / "4.zip").documents())
    with (
        pytest.raises(FormatError, match="more than 3 members"),
        base.InputFile(tmp_path / "4.zip").member("0.csv"),
    ):
        pass


@pytest.mark.limit("unpacked size of an archive or backup over 256 MiB")
def test_a_packed_file_has_a_maximum_ratio(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(private_files, "_ANY_UNPACKED", 1)
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(bytes(1_000_000)))
    most = private_files.UNPACKED_TIMES * path.stat().st_size

    def unpack() -> int:
        return sum(len(stream.read()) for _, stream in base.InputFile(path).documents())

    for size in (most, most + 1):
        packed = gzip.compress(bytes(size))
        path.write_bytes(packed + b"\0" * (most // private_files.UNPACKED_TIMES - len(packed)))
        if size == most:
            assert unpack() == most
    with pytest.raises(FormatError, match="unpacks to more than 200 times its size"):
        unpack()


@pytest.mark.limit("levels of an inline XBRL report")
def test_a_report_has_a_maximum_depth() -> None:
    check_xml(b"<a>" * MOST_LEVELS + b"</a>" * MOST_LEVELS)
    with pytest.raises(UnsafeDocument, match="nested more than"):
        check_xml(b"<a>" * (MOST_LEVELS + 1) + b"</a>" * (MOST_LEVELS + 1))


@pytest.mark.limit("signatures of a note")
def test_a_note_has_a_maximum_number_of_signatures() -> None:
    signer = new_signer("test")
    assert verified_text(sign_note("text\n", [signer] * 100), [signer.verifier]) == "text\n"
    with pytest.raises(NotTrusted):
        verified_text(sign_note("text\n", [signer] * 101), [signer.verifier])


@pytest.mark.limit("signed note of a store", "manifest or list in a store")
@pytest.mark.parametrize("most", [NOTE_BYTES, INDEX_BYTES])
def test_an_object_that_is_read_whole_has_a_maximum_size(most: int, tmp_path: Path) -> None:
    for more in (0, 1):
        with (tmp_path / f"{more}").open("wb") as stream:
            stream.truncate(most + more)
    source = open_source(f"file://{tmp_path}")
    assert len(source.read("0", most)) == most
    with pytest.raises(ObjectError):
        source.read("1", most)


@pytest.mark.limit("member of a backup")
def test_a_member_of_a_backup_has_a_maximum_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backup, "_LARGEST_MEMBER", 1_000)
    for more in (0, 1):
        with backup.new_archive(tmp_path / f"{more}") as written:
            written.add("keys.jsonl", b"x" * (1_000 + more))
            written.finish("2026-01-01T00:00:00Z", "1")
    assert len(backup.ArchiveReader(tmp_path / "0").verify().members) == 1
    with pytest.raises(OperatorError, match="nothing was restored"):
        backup.ArchiveReader(tmp_path / "1").verify()


@pytest.fixture
def full() -> Iterator[str]:
    """The address of a server that accepts no connection."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = listener.getsockname()[1]
        waiting = []
        for _ in range(4):  # until its queue is full
            link = socket.socket()
            link.setblocking(False)
            link.connect_ex(("127.0.0.1", port))
            waiting.append(link)
        yield f"http://127.0.0.1:{port}"
        for link in waiting:
            link.close()


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that accepts connections but never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.limit("connecting to a publisher", "silence of a publisher")
def test_connecting_to_a_publisher_times_out(full: str, silent: str, monkeypatch: pytest.MonkeyPatch):
    assert network._TIMEOUT.connect == network._CONNECT_SECONDS
    assert network._TIMEOUT.read == network._SILENT_SECONDS
    monkeypatch.setattr(network, "_TIMEOUT", httpx.Timeout(0.3, connect=0.2))
    collect = Collect(urls=[silent], allow_private=True)
    patience = network.Patience(collect, lambda: False)
    patience.begin_document()
    with network.open_client(collect, patience) as client:
        with pytest.raises(httpx.ReadTimeout):
            client.get(silent)
        with pytest.raises(httpx.ConnectTimeout):
            client.get(full)


@pytest.mark.limit("connecting to an object store", "silence of an object store")
def test_connecting_to_an_object_store_times_out(full: str, silent: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(object_http, "CONNECT_SECONDS", 0.2)
    monkeypatch.setattr(object_http, "READ_SECONDS", 0.3)
    for url in (full, silent):
        with closing(open_source(url)) as source, pytest.raises(ObjectError):
            source.read("editions.note", 10)


@contextmanager
def dripping(head: bytes, drip: bytes, seconds: float) -> Iterator[str]:
    """The address of a server whose answers never end, a few bytes at a time."""

    def answer(client: socket.socket) -> None:
        with client, suppress(OSError):
            client.recv(4096)
            client.sendall(head)
            while True:
                client.sendall(drip)
                time.sleep(seconds)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


BODY = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"


@pytest.mark.limit("time for a small object of a store", "time for a file of a store")
@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nA: ", BODY], ids=["head", "body"])
def test_an_object_sent_byte_by_byte_times_out(head: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_http, "SMALL_SECONDS", 0.5)
    monkeypatch.setattr(object_http, "FILE_SECONDS", 0.5)
    with dripping(head, b"a", 0.01) as url, closing(open_source(url)) as source:
        with pytest.raises(ObjectError, match="incomplete after"):
            source.read("editions.note", 1_000_000)
        with pytest.raises(ObjectError, match="incomplete after"), source.stream("a", 0, 1_000_000) as chunks:
            for _ in chunks:
                pass


@pytest.mark.limit("least rate of a store")
@pytest.mark.parametrize(("rate", "reason"), [(1_000_000, "bytes in 1 s"), (1, "more than 2000 bytes")])
def test_an_object_sent_too_slowly_times_out(rate: int, reason: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(object_http, "RATE_SECONDS", 1)
    monkeypatch.setattr(object_http, "LEAST_RATE", rate)
    with (
        dripping(BODY, b"a" * 10, 0.01) as url,
        closing(open_source(url)) as source,
        pytest.raises(ObjectError, match=reason),
    ):
        source.read("editions.note", 2_000)


@pytest.mark.limit("wait that a publisher asks for")
@pytest.mark.parametrize(("retry_after", "waited"), [(900, [900.0]), (901, [])])
def test_the_retry_after_of_a_publisher_has_a_maximum(
    retry_after: int, waited: list[float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    rates: Any = SimpleNamespace(hold=lambda host, seconds: None, sleep=slept.append)
    collect = Collect(urls=["https://x.example/"])
    patience = network.Patience(collect, lambda: False)
    fetcher = fetch.Fetcher(httpx.Client(), rates, collect, tmp_path, patience, "", 2)
    call: Any = SimpleNamespace(key="k", url="https://x.example/", public_url="https://x.example/", hidden=())

    def busy(*_: object) -> None:
        raise fetch._Cut("status 503", fetch._retry_after({"retry-after": str(retry_after)}))

    monkeypatch.setattr(fetcher, "_attempt", busy)
    with pytest.raises(CollectFailed):
        fetcher.fetch(call, None)
    assert slept == waited


@pytest.mark.limit("record of the key store")
def test_a_record_of_the_key_store_has_a_maximum_size(tmp_path: Path) -> None:
    async def stored(letters: int) -> int:
        records = SealedRecords(open_keyvalue(f"embedded:{tmp_path}/keys"), (b"secret",))
        await records.prepare()
        await records.put("key:a", b'{"a":"%b"}' % (b"x" * letters))
        sealed = await records.get("key:a") or b""
        records.read("key:a", sealed)
        return len(sealed)

    room = (64 << 10) - asyncio.run(stored(0))
    assert asyncio.run(stored(room)) == 64 << 10
    with pytest.raises(DamagedRecord):
        asyncio.run(stored(room + 1))


TESTS = Path(__file__).parent.parent


def marked() -> set[str]:
    """The names of the limits that a test exceeds."""
    names: set[str] = set()
    for path in TESTS.rglob("*.py"):
        if "mark.limit(" in (text := path.read_text(encoding="utf-8")):
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.limit":
                    names |= {ast.literal_eval(argument) for argument in node.args}
    return names


@pytest.mark.rule("LIM-1")
def test_every_limit_has_a_test_that_exceeds_it() -> None:
    limits = {*all_limits(), *(PREFIX + name.upper() for name in BEYOND_SETTINGS)}
    assert limits - marked() == set()
    assert marked() - limits == set(), "a test names a limit that is not there"


@pytest.mark.rule("LIM-1")
def test_a_numeric_setting_is_a_limit_or_declared_not_to_be_one() -> None:
    numbers = {f.name for f in fields(Settings) if isinstance(f.default, int)}
    assert numbers == BEYOND_SETTINGS.keys() | NO_BOUNDS


def test_two_limits_cannot_have_one_name() -> None:
    name = next(iter(all_limits()))
    with pytest.raises(ValueError, match="two limits"):
        limit(name, 1, "bytes", "400")
