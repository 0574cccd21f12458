"""The embedded key-value engine with killed processes, full disks and files replaced under it."""

import asyncio
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from sankofa.engines.embedded_kv import EmbeddedKeyValue
from sankofa.engines.keyvalue import KeyValue, Window, open_keyvalue
from tests.engines.keyvalues import WINDOWS, run, unavailable
from tests.engines.keyvalues import url as url
from tests.patience import PATIENCE, Stopwatch


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store"


def test_a_damaged_table_name_makes_the_store_unavailable(path: Path) -> None:
    run(f"embedded:{path}", lambda store: store.put("a", b"kept"))
    content = path.read_bytes()
    assert b"tablestoredstored" in content
    path.write_bytes(content.replace(b"tablestoredstored", b"table\xd5toredstored"))
    run(f"embedded:{path}", lambda store: unavailable(store.get("a")))


def test_expired_windows_are_removed_so_that_the_file_stops_growing(path: Path) -> None:
    now = 1_000_000_000.0
    store = EmbeddedKeyValue(str(path), "usagestore", clock=lambda: now)

    async def steps() -> None:
        nonlocal now
        for minute in range(1000):  # 128 slots to a page, all with one name
            now += 60
            assert await store.count("a", (Window(f"m:{minute}", 120), Window("M", 10**6))) == (1, minute + 1)
        await store.close()

    asyncio.run(steps())
    assert sum(file.stat().st_blocks for file in path.parent.iterdir()) * 512 < 32_768


def test_a_page_full_of_live_windows_refuses_new_ones(path: Path) -> None:
    async def steps(store: KeyValue) -> None:
        for number in range(128):
            await store.count("a", (Window(f"m:{number}", 600),))
        await unavailable(store.count("a", (Window("m:128", 600),)))
        assert await store.count("a", (Window("m:5", 600),)) == (2,)

    run(f"embedded:{path}", steps)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small disk needs root: a full one is not tried")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_makes_the_store_unavailable_and_the_process_lives(small_disk: Path) -> None:
    async def steps(store: KeyValue) -> None:
        await store.put("a", b"1")
        assert await store.count("a", WINDOWS) == (1, 1)
        filler = small_disk / "filler"
        with suppress(OSError), filler.open("wb", buffering=0) as stream:
            while True:
                stream.write(bytes(4096))
        await unavailable(store.count("new", WINDOWS))
        assert await store.get("a") == b"1"
        filler.unlink()
        assert await store.count("new", WINDOWS) == (1, 1)

    run(f"embedded:{small_disk / 'store'}", steps)


@pytest.mark.parametrize("suffix", ["", "-counters"])
def test_a_file_of_another_kind_is_refused_and_left_alone(path: Path, suffix: str) -> None:
    alien = path.with_name(path.name + suffix)
    alien.write_bytes(b"not ours" * 1000)

    async def steps(store: KeyValue) -> None:
        await unavailable(store.ping())
        alien.rename(alien.with_name("aside"))
        await store.ping()

    run(f"embedded:{path}", steps)
    assert alien.with_name("aside").read_bytes() == b"not ours" * 1000


def test_a_frozen_process_with_the_lock_does_not_block_others(path: Path) -> None:
    async def steps(store: KeyValue) -> None:
        await store.count("a", WINDOWS)
        holding = "import fcntl, os, sys, time; f = open(sys.argv[1], 'r+b'); fcntl.lockf(f, fcntl.LOCK_EX)"
        command = [sys.executable, "-c", holding + "; print(flush=True); time.sleep(600)", f"{path}-counters"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:  # noqa: ASYNC220 - at rest so far
            assert process.stdout is not None
            process.stdout.readline()
            with Stopwatch() as watch:
                ticks = asyncio.create_task(longest_pause(0.5))
                await unavailable(store.count("a", WINDOWS))
                pause = await ticks
            assert pause < 0.2 + watch.elapsed - watch.seconds  # waiting must not block the loop
            process.kill()
        assert await store.count("a", WINDOWS) == (2, 2)

    run(f"embedded:{path}", steps)


async def longest_pause(seconds: float) -> float:
    end, last, longest = time.monotonic() + seconds, time.monotonic(), 0.0
    while last < end:
        await asyncio.sleep(0.005)
        longest, last = max(longest, time.monotonic() - last), time.monotonic()
    return longest


def test_counts_stay_exact_after_a_fork(path: Path) -> None:
    code = (
        "import asyncio, os, sys\nfrom sankofa.engines.keyvalue import open_keyvalue\n"
        "from sankofa.engines.keyvalue import Window\n"
        "store = open_keyvalue(sys.argv[1])\n"
        "async def use():\n    for _ in range(500):\n        await store.count('a', (Window('M', 600),))\n"
        "        await store.get('a')\n    await store.put(f'from {os.getpid()}', b'x')\n"
        "asyncio.run(use())\nchild = os.fork()\nasyncio.run(use())\n"
        "if child:\n    assert os.waitpid(child, 0)[1] == 0"
    )
    subprocess.run([sys.executable, "-c", code, f"embedded:{path}"], check=True, timeout=PATIENCE)

    async def steps(store: KeyValue) -> None:
        assert await store.count("a", (Window("M", 600),)) == (1501,)
        assert len(await store.names("from ")) == 2

    run(f"embedded:{path}", steps)


DYING_WRITER = """
import asyncio, os, sys
from sankofa.engines import counter_file, embedded_kv
step = sys.argv[2]
if step == "before storing":
    embedded_kv.EmbeddedKeyValue._rows = lambda *_: os._exit(9)
else:
    counter_file.CounterFile.end_change = lambda *_: os._exit(9)
asyncio.run(embedded_kv.EmbeddedKeyValue(sys.argv[1], "key store").put("key:1", b"revoked"))
"""


@pytest.mark.parametrize(("step", "stored"), [("before storing", b"valid"), ("after storing", b"revoked")])
def test_readers_see_the_new_value_after_a_writer_dies_midway(path: Path, step: str, stored: bytes) -> None:
    async def steps() -> None:
        readers = [open_keyvalue(f"embedded:{path}") for _ in range(2)]
        await readers[0].put("key:1", b"valid")
        for _ in range(3):
            assert [await reader.get("key:1") for reader in readers] == [b"valid"] * 2
        command = [sys.executable, "-c", DYING_WRITER, str(path), step]
        assert subprocess.run(command, check=False).returncode == 9  # noqa: ASYNC221 - nothing else runs
        for _ in range(3):
            assert [await reader.get("key:1") for reader in readers] == [stored] * 2
        await readers[1].put("key:1", b"anew")  # nobody waits for the lock of the dead process
        assert [await reader.get("key:1") for reader in readers] == [b"anew"] * 2
        for reader in readers:
            await reader.close()

    asyncio.run(steps())


@pytest.mark.parametrize("replaced", [("store",), ("store", "store-counters"), ("store-counters",)])
def test_values_put_after_the_files_were_replaced_are_read(path: Path, replaced: tuple[str, ...]) -> None:
    """An operator may restore a backup of the store under a running server."""

    async def steps() -> None:
        reader, other = (open_keyvalue(f"embedded:{path}") for _ in range(2))
        await reader.put("key:1", b"valid")
        await reader.put("key:2", b"valid")
        assert await reader.get("key:1") == b"valid"
        for name in replaced:
            copy = path.with_name(f"{name}.new")
            if name == "store":
                with sqlite3.connect(path) as source, sqlite3.connect(copy) as target:
                    source.backup(target)
                source.close()
                target.close()
            else:
                copy.write_bytes(path.with_name(name).read_bytes())
            copy.rename(path.with_name(name))
        for number in (1, 2, 3):
            await other.put(f"key:{number}", b"revoked")
            await other.close()
            with Stopwatch() as watch:
                while await reader.get(f"key:{number}") != b"revoked":  # noqa: ASYNC110 - of another process
                    await asyncio.sleep(0.01)
            assert watch.seconds < 0.5
        await reader.put("key:4", b"by the reader")
        assert await other.get("key:4") == b"by the reader"
        await reader.close()
        await other.close()

    asyncio.run(steps())
    assert run(f"embedded:{path}", lambda store: store.get("key:3")) == b"revoked"


@pytest.mark.limit("call of an embedded store")
def test_writers_wait_for_each_other_but_not_for_a_frozen_one(path: Path) -> None:
    async def steps(store: KeyValue) -> None:
        await store.put("a", b"1")
        holding = "import fcntl, sys, time; f = open(sys.argv[1], 'r+b'); fcntl.flock(f, fcntl.LOCK_EX)"
        command = [sys.executable, "-c", holding + "; print(flush=True); time.sleep(600)", f"{path}-lock"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:  # noqa: ASYNC220 - at rest so far
            assert process.stdout is not None
            process.stdout.readline()
            await unavailable(store.put("a", b"2"))
            assert await store.get("a") == b"1"
            process.kill()
        await asyncio.gather(*(store.put("a", b"%d" % n) for n in range(20)))
        assert await store.get("a") == b"19"

    run(f"embedded:{path}", steps)
