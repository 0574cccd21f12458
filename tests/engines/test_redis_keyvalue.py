"""The key-value engine on a Redis that is frozen, restarted or missing."""

import asyncio
import subprocess
import sys

import pytest

from sankofa.engines import redis_kv
from sankofa.engines.keyvalue import Window, open_keyvalue
from sankofa.model.errors import StoreUnavailable
from tests.engines.keyvalues import WINDOWS, open_files, run, unavailable
from tests.engines.keyvalues import runner as runner
from tests.engines.keyvalues import url as url
from tests.services import RedisServer


@pytest.mark.limit("call of Redis")
def test_a_frozen_server_fails_every_call_in_time_until_it_is_thawed(
    redis_server: RedisServer, runner: asyncio.Runner
) -> None:
    async def steps() -> None:
        store = open_keyvalue(redis_server.url)
        await store.put("a", b"1")
        assert await store.count("a", WINDOWS) == (1, 1)
        before = open_files()
        redis_server.freeze()
        fresh = open_keyvalue(redis_server.url)
        for _ in range(2):  # over the open link, then over a new one to a frozen server
            calls = (
                store.get("a"),
                store.count("a", WINDOWS),
                store.put("b", b""),
                store.names(""),
                fresh.ping(),
            )
            await asyncio.gather(*map(unavailable, calls), *(unavailable(store.get("a")) for _ in range(50)))
        await unavailable(store.count("a", WINDOWS))
        pending = asyncio.create_task(fresh.get("a"))
        await asyncio.sleep(0.05)
        await fresh.close()  # during a call
        await unavailable(pending)
        redis_server.thaw()
        assert await store.get("a") == b"1"
        assert len(await store.count("a", WINDOWS)) == 2
        assert open_files() <= before
        await store.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    runner.run(steps())


def test_a_restarted_server_is_used_again_at_the_next_call(redis_server: RedisServer, runner: asyncio.Runner):
    async def steps() -> None:
        store = open_keyvalue(redis_server.url)
        assert await store.count("a", WINDOWS) == (1, 1)
        redis_server.kill()
        await unavailable(store.count("a", WINDOWS))
        await unavailable(store.ping())
        redis_server.start()
        assert await store.count("a", WINDOWS) == (1, 1)  # the script is sent again
        await store.close()

    runner.run(steps())


def test_credentials_and_database_of_the_url_are_used_and_never_shown(redis_server: RedisServer) -> None:
    redis_server.execute("ACL SETUSER ama on >s%cret ~* +@all")
    address = f"127.0.0.1:{redis_server.port}"
    try:
        run(f"redis://ama:s%25cret@{address}/3", lambda store: store.put("a", b"three"))
        assert run(f"redis://{address}/3", lambda store: store.get("a")) == b"three"
        assert run(f"redis://{address}/0", lambda store: store.get("a")) is None
        for wrong in (f"redis://ama:hush@{address}", f"redis://:hush@{address}/0"):
            failure = run(wrong, lambda store: unavailable(store.get("a")))
            assert failure.cause in ("refused: WRONGPASS", "refused: ERR")
            assert "hush" not in repr(vars(failure))
    finally:
        redis_server.execute("ACL DELUSER ama")


@pytest.mark.parametrize(
    "reply", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b":1\r\n:2\r\n", b"$5\r\nab", b"*0\r\n", b""]
)
def test_another_kind_of_server_fails_the_call_in_time(reply: bytes) -> None:
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


def test_a_missing_driver_is_explained() -> None:
    code = (
        "import sys; sys.modules['hiredis'] = None\n"
        "from sankofa.engines.keyvalue import open_keyvalue\n"
        "try: open_keyvalue('redis://:hush@host')\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (
        done.stdout
        == "SettingsError redis:// needs a driver: make setup EXTRAS=1, or install sankofa[redis]\n"
    )


@pytest.mark.limit("answer of Redis")
def test_altered_counters_and_huge_answers_make_the_store_unavailable(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    windows = (Window("m1", 60),)
    name = "sankofa:count:{use:a}:m1"

    async def steps() -> None:
        store = open_keyvalue(redis_server.url)
        for altered in ("many", "-7", "1.5"):
            redis_server.execute(f"SET {name} {altered}")
            with pytest.raises(StoreUnavailable):
                await store.counts("use:a", windows)
            with pytest.raises(StoreUnavailable):
                await store.count("use:a", windows)
        redis_server.execute(f"SET {name} {(1 << 63) - 1}")  # one above the largest number of Redis
        with pytest.raises(StoreUnavailable):
            await store.count("use:a", windows)
        monkeypatch.setattr(redis_kv, "_LARGEST_ANSWER", 1 << 20)
        await store.put("large", b"x" * (1 << 19))
        assert len(await store.get("large") or b"") == 1 << 19
        await store.put("huge", b"x" * (8 << 20))
        with pytest.raises(StoreUnavailable):
            await store.get("huge")
        assert await store.get("large")
        await store.close()

    asyncio.run(steps())
