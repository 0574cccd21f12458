"""One suite over every key-value engine, then what each engine alone must stand up to."""

import asyncio
import os
import resource
import signal
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pytest
import uvloop

from sankofa.engines.embedded_kv import EmbeddedKeyValue
from sankofa.engines.factory import open_keyvalue
from sankofa.engines.keyvalue import KeyValue, Window
from sankofa.model.errors import SettingsError, StoreUnavailable
from tests.patience import PATIENCE, Stopwatch
from tests.services import RedisServer, free_port

WINDOWS = (Window("m:29384923", 120), Window("M:2026-11", 3_000_000))
BOUND = 1.0
T = TypeVar("T")

COUNTING_PROCESS = """
import asyncio, sys
from sankofa.engines.factory import open_keyvalue
from sankofa.engines.keyvalue import Window

async def main(url, times):
    store = open_keyvalue(url)
    print("ready", flush=True)
    for _ in range(int(times)):
        minute, month = await store.count("shared", (Window("m:1", 600), Window("M:1", 600)))
        print(minute, month, flush=int(times) > 100_000)
    await store.close()

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture(params=["embedded", "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty store of each engine."""
    if request.param == "redis":
        redis: str = request.getfixturevalue("redis_url")
        return redis
    return f"embedded:{tmp_path / 'home' / 'store'}"


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def runner(request: pytest.FixtureRequest) -> Iterator[asyncio.Runner]:
    """Both event loops: they order timers and reads differently, and the service runs on the second."""
    with asyncio.Runner(loop_factory=request.param) as runner:
        yield runner


def run(url: str, steps: Callable[[KeyValue], Awaitable[T]]) -> T:
    """The steps on a store opened for them; whatever they leave behind is a failure."""

    async def scene() -> T:
        store = open_keyvalue(url)
        try:
            return await steps(store)
        finally:
            await store.close()
            assert asyncio.all_tasks() == {asyncio.current_task()}

    return asyncio.run(scene())


async def unavailable(call: Awaitable[object], within: float = BOUND) -> StoreUnavailable:
    """The failure of the call, which must come in time."""
    with Stopwatch() as watch, pytest.raises(StoreUnavailable) as failure:
        await call
    assert watch.seconds < within
    return failure.value


def counting_process(url: str, times: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", COUNTING_PROCESS, url, str(times)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - as the kernel lists it


# Every engine


def test_a_value_is_read_back_as_it_was_put(url: str) -> None:
    async def steps(store: KeyValue) -> None:
        assert await store.get("key:1") is None
        for value in (b"first", b"second", b"", bytes(range(256)), b"\r\n" * 100_000):
            await store.put("key:1", value)
            assert await store.get("key:1") == value

    run(url, steps)


def test_names_are_those_with_the_prefix_sorted(url: str) -> None:
    async def steps(store: KeyValue) -> None:
        for name in ("key:b", "key:a", "kex", "kez", "key:é*", "KEY:c"):
            await store.put(name, b"x")
        await store.count("key:counted", WINDOWS)
        assert await store.names("key:") == ["key:a", "key:b", "key:é*"]
        assert await store.names("key:é*") == ["key:é*"]
        assert await store.names("*") == []
        assert len(await store.names("")) == 6

    run(url, steps)


def test_a_value_is_replaced_only_in_the_place_of_the_expected_one(url: str) -> None:
    async def steps(store: KeyValue) -> None:
        other = open_keyvalue(url)
        assert not await store.replace("key", b"", b"first")
        await store.put("key", b"first\0\r\n")
        assert await other.get("key") == b"first\0\r\n"
        assert not await other.replace("key", b"first", b"second")
        assert await other.replace("key", b"first\0\r\n", b"second")
        assert not await store.replace("key", b"first\0\r\n", b"third")
        assert await store.get("key") == b"second"
        for _ in range(20):  # of two who see the same, one replaces it
            seen = await store.get("key")
            assert seen is not None
            both = await asyncio.gather(
                store.replace("key", seen, seen + b"s"), other.replace("key", seen, seen + b"o")
            )
            assert sorted(both) == [False, True]
        await other.close()

    run(url, steps)


@pytest.mark.rule("KEY-3")
def test_another_store_sees_a_put_at_its_next_read(url: str) -> None:
    async def steps(store: KeyValue) -> None:
        other = open_keyvalue(url)
        for value in (b"active", b"revoked"):
            assert await other.get("key") != value
            await store.put("key", value)
            assert await other.get("key") == value
        await other.close()

    run(url, steps)


def test_each_window_and_each_name_counts_for_itself(url: str) -> None:
    async def steps(store: KeyValue) -> None:
        minute, month = WINDOWS
        assert await store.count("a", WINDOWS) == (1, 1)
        assert await store.count("a", (month,)) == (2,)
        assert await store.count("a", (month, minute)) == (3, 2)
        assert await store.count("b", WINDOWS) == (1, 1)
        assert await store.count("a", (Window("m:29384924", 120), month)) == (1, 4)
        assert await store.count("a", ()) == ()

    run(url, steps)


def test_counts_are_read_without_counting(url: str) -> None:
    async def steps(store: KeyValue) -> None:
        assert await store.counts("a key", WINDOWS) == (0, 0)
        await store.count("a key", WINDOWS)
        await store.count("a key", WINDOWS[1:])
        assert await store.counts("a key", WINDOWS) == (1, 2)
        assert await store.counts("a key", WINDOWS) == (1, 2)
        assert await store.counts("another", WINDOWS) == (0, 0)

    run(url, steps)


def test_a_window_is_forgotten_after_its_seconds(url: str) -> None:
    async def steps(store: KeyValue) -> None:
        windows = (Window("short", 2), Window("long", 600))
        await store.count("a", windows)
        assert await store.count("a", windows) == (2, 2)
        await asyncio.sleep(3.1)
        assert await store.count("a", windows) == (1, 3)

    run(url, steps)


def test_calls_made_at_once_each_get_their_own_answer(url: str) -> None:
    async def steps(store: KeyValue) -> None:
        names = [f"key:{number}" for number in range(200)]
        await asyncio.gather(*(store.put(name, name.encode()) for name in names))
        assert await asyncio.gather(*map(store.get, names)) == [name.encode() for name in names]
        counts = await asyncio.gather(*(store.count("a", WINDOWS) for _ in range(200)))
        assert sorted(counts) == [(number, number) for number in range(1, 201)]

    run(url, steps)


def test_a_cancelled_call_does_not_shift_the_answers_of_others(url: str) -> None:
    async def steps(store: KeyValue) -> None:
        await store.put("a", b"a")
        await store.put("b", b"b")
        for _ in range(20):
            doomed = asyncio.create_task(store.get("a"))
            await asyncio.sleep(0)
            doomed.cancel()
            assert await store.get("b") == b"b"

    run(url, steps)


def test_processes_counting_together_hand_out_every_number_once(url: str) -> None:
    times = 2000
    processes = [counting_process(url, times) for _ in range(4)]
    outputs = [process.communicate(timeout=PATIENCE)[0].splitlines()[1:] for process in processes]
    counts = sorted(tuple(map(int, line.split())) for lines in outputs for line in lines)
    assert counts == [(number, number) for number in range(1, 4 * times + 1)]


def test_ping_reads_and_close_can_be_followed_by_more_calls(url: str) -> None:
    async def steps(store: KeyValue) -> None:
        await store.ping()
        await store.put("a", b"1")
        before = open_files()
        for _ in range(5):
            await store.close()
            await store.ping()
            assert await store.get("a") == b"1"
        assert open_files() <= before
        await store.close()
        await store.close()

    run(url, steps)


@pytest.mark.parametrize(
    "wrong", ["memcached://h", "embedded:", "redis", "redis://h:port", "redis://h/x", "redis://h/?a=1"]
)
def test_a_url_of_no_known_form_is_an_operator_error(wrong: str) -> None:
    with pytest.raises(SettingsError):
        open_keyvalue(wrong)


def test_an_unreachable_store_is_named_and_reported_quickly(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    for place in (f"embedded:{tmp_path}/file/store", f"redis://:hush@127.0.0.1:{free_port()}/0"):

        async def steps() -> None:
            store = open_keyvalue(place, "keystore")  # noqa: B023 - run at once
            calls = (
                store.get("a"),
                store.put("a", b""),
                store.names(""),
                store.count("a", WINDOWS),
                store.ping(),
            )
            for call in calls:
                failure = await unavailable(call)
                assert failure.component == "keystore"
                assert "hush" not in f"{failure} {failure.cause} {failure.__cause__!r}"
            await store.close()

        asyncio.run(steps())


# Embedded


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store"


def test_values_and_counters_survive_a_restart(path: Path) -> None:
    async def steps(store: KeyValue) -> tuple[int, ...]:
        await store.put("a", b"kept")
        return await store.count("a", WINDOWS)

    assert [run(f"embedded:{path}", steps) for _ in range(3)] == [(1, 1), (2, 2), (3, 3)]


def test_a_process_killed_while_counting_leaves_every_answered_count_and_one_more_at_most(path: Path) -> None:
    url = f"embedded:{path}"
    before: tuple[int, ...] = (0, 0)
    for round_number in range(5):
        process = counting_process(url, 10_000_000)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.05 + 0.013 * round_number)
        process.send_signal(signal.SIGKILL)
        lines = process.communicate()[0].splitlines(keepends=True)
        answered = sum(line.endswith("\n") for line in lines)
        after = run(url, lambda store: store.count("shared", (Window("m:1", 600), Window("M:1", 600))))
        unanswered = tuple(now - 1 - answered - then for now, then in zip(after, before, strict=True))
        assert unanswered in {(0, 0), (1, 0), (1, 1)}  # the windows of a count are written in their order
        before = after


def test_a_process_killed_while_putting_leaves_the_file_whole(path: Path) -> None:
    code = (
        "import asyncio, sys\nfrom sankofa.engines.factory import open_keyvalue\n"
        "async def main():\n    store = open_keyvalue(sys.argv[1])\n    number = 0\n"
        "    while True:\n        number += 1\n        await store.put(f'{number}', b'x' * 3000)\n"
        "        print(number, flush=True)\nasyncio.run(main())"
    )
    for _ in range(3):
        command = [sys.executable, "-c", code, f"embedded:{path}"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(0.05)
            process.kill()
            told = [line for line in process.stdout.read().splitlines(keepends=True) if line.endswith("\n")]

        async def steps(store: KeyValue) -> None:
            for line in told:  # noqa: B023 - run at once
                assert await store.get(line.strip()) == b"x" * 3000

        run(f"embedded:{path}", steps)


def test_old_windows_make_room_so_that_the_file_stops_growing(path: Path) -> None:
    now = 1_000_000_000.0
    store = EmbeddedKeyValue(str(path), "usagestore", clock=lambda: now)

    async def steps() -> None:
        nonlocal now
        for minute in range(1000):  # 128 slots to a page, all of one name
            now += 60
            assert await store.count("a", (Window(f"m:{minute}", 120), Window("M", 10**6))) == (1, minute + 1)
        await store.close()

    asyncio.run(steps())
    assert sum(file.stat().st_blocks for file in path.parent.iterdir()) * 512 < 32_768


def test_a_page_full_of_live_windows_refuses_instead_of_forgetting(path: Path) -> None:
    async def steps(store: KeyValue) -> None:
        for number in range(128):
            await store.count("a", (Window(f"m:{number}", 600),))
        await unavailable(store.count("a", (Window("m:128", 600),)))
        assert await store.count("a", (Window("m:5", 600),)) == (2,)

    run(f"embedded:{path}", steps)


def test_files_are_readable_by_their_owner_only(path: Path) -> None:
    async def steps(store: KeyValue) -> None:
        await store.put("a", b"1")
        await store.count("a", WINDOWS)
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
        assert modes.keys() >= {"store", "store-wal", "store-counters"}
        assert set(modes.values()) == {0o600}

    run(f"embedded:{path}", steps)


def test_a_file_that_may_not_grow_is_an_unavailable_store_until_it_may(path: Path) -> None:
    """What has its place on the disk already goes on being read and counted."""

    async def steps(store: KeyValue) -> None:
        await store.put("a", b"1")
        assert await store.count("a", WINDOWS) == (1, 1)
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
        try:
            await unavailable(store.put("b", b"x" * 100_000))
            assert await store.count("a", WINDOWS) == (2, 2)
            assert await store.get("a") == b"1"
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        await store.put("b", b"2")
        assert await store.count("a", WINDOWS) == (3, 3)

    run(f"embedded:{path}", steps)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 400 kB of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small disk needs root: a full one is not tried")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_is_an_unavailable_store_and_not_the_end_of_the_process(small_disk: Path) -> None:
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


def test_a_frozen_process_holding_the_counters_does_not_hold_up_another(path: Path) -> None:
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


def test_a_store_in_use_before_a_fork_stays_exact_in_parent_and_child(path: Path) -> None:
    code = (
        "import asyncio, os, sys\nfrom sankofa.engines.factory import open_keyvalue\n"
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
def test_a_writer_that_dies_between_its_steps_leaves_nobody_with_an_old_value(
    path: Path, step: str, stored: bytes
) -> None:
    async def steps() -> None:
        readers = [open_keyvalue(f"embedded:{path}") for _ in range(2)]
        await readers[0].put("key:1", b"valid")
        for _ in range(3):
            assert [await reader.get("key:1") for reader in readers] == [b"valid"] * 2
        command = [sys.executable, "-c", DYING_WRITER, str(path), step]
        assert subprocess.run(command, check=False).returncode == 9  # noqa: ASYNC221 - nothing else runs
        for _ in range(3):
            assert [await reader.get("key:1") for reader in readers] == [stored] * 2
        await readers[1].put("key:1", b"anew")  # the turn of the dead is not waited for
        assert [await reader.get("key:1") for reader in readers] == [b"anew"] * 2
        for reader in readers:
            await reader.close()

    asyncio.run(steps())


@pytest.mark.parametrize("replaced", [("store",), ("store", "store-counters"), ("store-counters",)])
def test_what_is_put_after_the_files_were_replaced_is_seen(path: Path, replaced: tuple[str, ...]) -> None:
    """As when an operator moves a backup into the place of the store under a running server."""

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


def test_a_store_that_was_replaced_by_an_older_one_is_what_counts(path: Path) -> None:
    async def steps() -> None:
        reader = open_keyvalue(f"embedded:{path}")
        await reader.put("key:1", b"as it was")
        with sqlite3.connect(path) as source, sqlite3.connect(path.with_name("backup")) as target:
            source.backup(target)
        source.close()
        target.close()
        await reader.put("key:1", b"later")
        assert await reader.get("key:1") == b"later"
        for companion in ("store-wal", "store-shm"):  # as docs/operating.md says
            path.with_name(companion).unlink(missing_ok=True)
        path.with_name("backup").rename(path)
        await asyncio.sleep(0.3)
        assert await reader.get("key:1") == b"as it was"
        await reader.close()

    asyncio.run(steps())


def test_writers_take_turns_and_a_frozen_one_is_not_waited_for(path: Path) -> None:
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


# Redis


def test_a_frozen_server_fails_every_call_in_time_and_is_back_once_thawed(
    redis_server: RedisServer, runner: asyncio.Runner
) -> None:
    async def steps() -> None:
        store = open_keyvalue(redis_server.url)
        await store.put("a", b"1")
        assert await store.count("a", WINDOWS) == (1, 1)
        before = open_files()
        redis_server.freeze()
        fresh = open_keyvalue(redis_server.url)
        for _ in range(2):  # over the link that was in use, then over one dialled to a frozen server
            calls = (
                store.get("a"),
                store.count("a", WINDOWS),
                store.put("b", b""),
                store.names(""),
                fresh.ping(),
            )
            await asyncio.gather(*map(unavailable, calls), *(unavailable(store.get("a")) for _ in range(50)))
        await unavailable(store.count("a", WINDOWS))
        left = asyncio.create_task(fresh.get("a"))
        await asyncio.sleep(0.05)
        await fresh.close()  # with a call under way
        await unavailable(left)
        redis_server.thaw()
        assert await store.get("a") == b"1"
        assert len(await store.count("a", WINDOWS)) == 2
        assert open_files() <= before
        await store.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    runner.run(steps())


def test_a_restarted_server_is_used_again_at_the_next_call(
    redis_server: RedisServer, runner: asyncio.Runner
) -> None:
    async def steps() -> None:
        store = open_keyvalue(redis_server.url)
        assert await store.count("a", WINDOWS) == (1, 1)
        redis_server.kill()
        await unavailable(store.count("a", WINDOWS))
        await unavailable(store.ping())
        redis_server.start()
        assert await store.count("a", WINDOWS) == (1, 1)  # its script is sent again
        await store.close()

    runner.run(steps())


def test_a_loop_that_was_held_up_does_not_take_the_server_for_frozen(
    redis_server: RedisServer, runner: asyncio.Runner
) -> None:
    async def steps() -> None:
        store = open_keyvalue(redis_server.url)
        await store.ping()
        answer = asyncio.create_task(store.count("a", WINDOWS))
        asyncio.get_running_loop().call_soon(time.sleep, 1.1)  # before the command has left
        assert await answer == (1, 1)
        await store.close()

    runner.run(steps())


def test_a_counter_in_redis_expires_by_itself(redis_url: str, redis_server: RedisServer) -> None:
    run(redis_url, lambda store: store.count("a", WINDOWS))
    for window in WINDOWS:
        left = int(redis_server.execute(f"TTL sankofa:count:{{a}}:{window.name}").removeprefix(":"))
        assert window.seconds - 5 <= left <= window.seconds


def test_credentials_and_database_of_the_url_are_used_and_never_shown(redis_server: RedisServer) -> None:
    redis_server.execute("ACL SETUSER ama on >s%cret ~* +@all")
    place = f"127.0.0.1:{redis_server.port}"
    try:
        run(f"redis://ama:s%25cret@{place}/3", lambda store: store.put("a", b"three"))
        assert run(f"redis://{place}/3", lambda store: store.get("a")) == b"three"
        assert run(f"redis://{place}/0", lambda store: store.get("a")) is None
        for wrong in (f"redis://ama:hush@{place}", f"redis://:hush@{place}/0"):
            failure = run(wrong, lambda store: unavailable(store.get("a")))
            assert failure.cause in ("refused: WRONGPASS", "refused: ERR")
            assert "hush" not in repr(vars(failure))
    finally:
        redis_server.execute("ACL DELUSER ama")


def test_a_value_of_another_type_is_an_unavailable_store(redis_server: RedisServer) -> None:
    redis_server.execute("SET sankofa:values text")
    redis_server.execute("RPUSH sankofa:count:{a}:M list")

    async def steps(store: KeyValue) -> None:
        for call in (store.get("a"), store.put("a", b""), store.names(""), store.ping()):
            assert (await unavailable(call)).cause == "WRONGTYPE"
        assert (await unavailable(store.count("a", (Window("M", 9),)))).cause == "WRONGTYPE"

    run(redis_server.url, steps)


@pytest.mark.parametrize(
    "reply", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b":1\r\n:2\r\n", b"$5\r\nab", b"*0\r\n", b""]
)
def test_a_server_that_is_not_redis_fails_the_call_in_time(reply: bytes) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(reply)
        if not reply:
            writer.close()
        await reader.read()
        writer.close()

    async def steps() -> None:
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            store = open_keyvalue(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
            await unavailable(store.get("a"))
            await unavailable(store.count("a", WINDOWS))
            await store.close()
            await asyncio.sleep(0.05)

    asyncio.run(steps())


def test_a_missing_driver_is_said_in_words() -> None:
    code = (
        "import sys; sys.modules['hiredis'] = None\n"
        "from sankofa.engines.factory import open_keyvalue\n"
        "try: open_keyvalue('redis://:hush@host')\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "SettingsError redis:// needs a driver: install sankofa[redis]\n"
