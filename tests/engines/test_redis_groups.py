"""Keys and quotas on several Redis servers: under sentinels, and in a cluster."""

import asyncio
import shutil
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from sankofa.engines.keyvalue import KeyValue, Window, open_keyvalue
from sankofa.model.errors import SettingsError, StoreUnavailable
from tests.live import create_key
from tests.live import run as run_command
from tests.server_groups import Cluster
from tests.services import free_port, required_redis, started

WINDOWS = (Window("m:29384923", 120), Window("M:2026-11", 3_000_000))
T = TypeVar("T")
PATH = "/v1/screen?metric=net_margin"


@pytest.fixture(scope="module")
def cluster_process() -> Iterator[Cluster]:
    with started(Cluster(required_redis())) as group:
        yield group


@pytest.fixture
def cluster(cluster_process: Cluster) -> Cluster:
    cluster_process.flush()
    return cluster_process


def run(url: str, steps: Callable[[KeyValue], Awaitable[T]]) -> T:
    async def scene() -> T:
        store = open_keyvalue(url, "key store")
        try:
            return await steps(store)
        finally:
            await store.close()

    return asyncio.run(scene())


def test_a_cluster_stores_values_and_counts_every_request_once(cluster: Cluster) -> None:
    async def steps(store: KeyValue) -> None:
        names = [f"key:{number}" for number in range(40)]
        for name in names:
            await store.put(name, name.encode())
        assert [await store.get(name) for name in names] == [name.encode() for name in names]
        assert await store.get("key:absent") is None
        assert await store.names("key:") == sorted(names)
        assert await store.replace("key:7", b"key:7", b"other")
        assert not await store.replace("key:7", b"key:7", b"lost")
        assert await store.get("key:7") == b"other"
        counts: list[tuple[int, ...]] = []
        for _ in range(10):
            counts += await asyncio.gather(*(store.count(f"use:{n % 7}", WINDOWS) for n in range(14)))
        assert sorted(counts) == sorted([(n, n) for n in range(1, 21)] * 7)
        await store.ping()
        await store.probe_counting()

    run(cluster.url, steps)
    sizes = [node.execute("DBSIZE") for node in cluster.nodes]
    assert ":0" not in sizes, "every node has a part of it"


def test_unreachable_sentinels_and_nodes_are_reported_in_time() -> None:
    address = f"127.0.0.1:{free_port()}"
    for url in (f"redis+sentinel://{address}/primary/0", f"redis+cluster://user:hidden@{address}"):

        async def steps(store: KeyValue) -> str:
            began = time.monotonic()
            with pytest.raises(StoreUnavailable) as failure:
                await store.get("key:1")
            assert time.monotonic() - began < 2.0
            return failure.value.logged

        logged = run(url, steps)
        assert "key store" in logged
        assert address not in logged
        assert "hidden" not in logged


@pytest.mark.parametrize(
    "wrong",
    [
        "redis+sentinel://127.0.0.1:26379",
        "redis+sentinel://127.0.0.1:26379/name/database",
        "redis+sentinel://:secret@/name",
        "redis+cluster://127.0.0.1:port",
        "redis+cluster://127.0.0.1:6379/0",
        "redis+sentinel://127.0.0.1:1/name/0?color=red",
    ],
)
def test_a_malformed_url_is_an_operator_error_that_does_not_show_it(wrong: str) -> None:
    with pytest.raises(SettingsError) as failure:
        open_keyvalue(wrong)
    assert "redis+sentinel://[user:password@]host:port" in str(failure.value)
    assert "secret" not in str(failure.value)


def test_keys_are_copied_from_files_to_a_cluster_and_back(
    cluster: Cluster, sample_home: Path, tmp_path: Path
) -> None:
    home = Path(shutil.copytree(sample_home, tmp_path / "home"))
    key = create_key(home, "professional", "--label", "a customer")
    create_key(home, "sample")
    listed = run_command(home, "keys", "list").stdout
    done = run_command(home, "keys", "copy", "--to", cluster.url)
    assert (done.returncode, done.stdout) == (0, "copied 2 records; 0 of them were there already\n")
    again = run_command(home, "keys", "copy", "--to", cluster.url)
    assert again.stdout == "copied 2 records; 2 of them were there already\n"
    assert run_command(home, "keys", "list", keystore=cluster.url).stdout == listed
    for node in cluster.nodes:  # a dump shows hashes, never a key
        assert key not in node.execute("KEYS *")
    other = tmp_path / "other"
    back = run_command(other, "keys", "copy", "--to", "embedded:", keystore=cluster.url)
    assert back.returncode == 0, back.stderr
    assert run_command(other, "keys", "list").stdout == listed
    same = run_command(home, "keys", "copy", "--to", "embedded:")
    assert same.returncode == 1
    assert "the keys are already in this store" in same.stderr
