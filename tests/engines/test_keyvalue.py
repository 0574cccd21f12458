"""One suite over every key-value engine."""

import asyncio
from pathlib import Path

import pytest

from sankofa.engines.keyvalue import KeyValue, Window, open_keyvalue
from sankofa.model.errors import SettingsError
from tests.engines.keyvalues import WINDOWS, open_files, run, unavailable
from tests.engines.keyvalues import url as url
from tests.services import free_port
from tools.reference_pages.limits_page import all_limits


def test_every_call_takes_less_than_a_second() -> None:
    calls = [one for name, one in all_limits().items() if name.startswith("call of ")]
    assert len(calls) == 2
    assert all(one.value < 1 and one.unit == "seconds" for one in calls)


def test_names_with_a_prefix_are_sorted(url: str) -> None:
    async def steps(store: KeyValue) -> None:
        for name in ("key:b", "key:a", "kex", "kez", "key:é*", "KEY:c"):
            await store.put(name, b"x")
        await store.count("key:counted", WINDOWS)
        assert await store.names("key:") == ["key:a", "key:b", "key:é*"]
        assert await store.names("key:é*") == ["key:é*"]
        assert await store.names("*") == []
        assert len(await store.names("")) == 6

    run(url, steps)


def test_a_value_is_replaced_only_if_the_old_one_is_as_expected(url: str) -> None:
    async def steps(store: KeyValue) -> None:
        other = open_keyvalue(url)
        assert not await store.replace("key", b"", b"first")
        await store.put("key", b"first\0\r\n")
        assert await other.get("key") == b"first\0\r\n"
        assert not await other.replace("key", b"first", b"second")
        assert await other.replace("key", b"first\0\r\n", b"second")
        assert not await store.replace("key", b"first\0\r\n", b"third")
        assert await store.get("key") == b"second"
        for _ in range(20):  # if two writers see the same value, one of them replaces it
            current = await store.get("key")
            assert current is not None
            both = await asyncio.gather(
                store.replace("key", current, current + b"s"), other.replace("key", current, current + b"o")
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


def test_windows_and_names_are_counted_separately(url: str) -> None:
    async def steps(store: KeyValue) -> None:
        minute, month = WINDOWS
        assert await store.count("a", WINDOWS) == (1, 1)
        assert await store.count("a", (month,)) == (2,)
        assert await store.count("a", (month, minute)) == (3, 2)
        assert await store.count("b", WINDOWS) == (1, 1)
        assert await store.count("a", (Window("m:29384924", 120), month)) == (1, 4)
        assert await store.count("a", ()) == ()

    run(url, steps)


def test_reading_a_count_does_not_change_it(url: str) -> None:
    async def steps(store: KeyValue) -> None:
        assert await store.counts("a key", WINDOWS) == (0, 0)
        await store.count("a key", WINDOWS)
        await store.count("a key", WINDOWS[1:])
        assert await store.counts("a key", WINDOWS) == (1, 2)
        assert await store.counts("a key", WINDOWS) == (1, 2)
        assert await store.counts("another", WINDOWS) == (0, 0)

    run(url, steps)


@pytest.mark.deep
def test_a_window_expires_after_its_seconds(url: str) -> None:
    async def steps(store: KeyValue) -> None:
        windows = (Window("short", 2), Window("long", 600))
        await store.count("a", windows)
        assert await store.count("a", windows) == (2, 2)
        await asyncio.sleep(3.1)
        assert await store.count("a", windows) == (1, 3)

    run(url, steps)


def test_concurrent_calls_get_their_own_answers(url: str) -> None:
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
def test_an_unknown_url_is_an_operator_error(wrong: str) -> None:
    with pytest.raises(SettingsError):
        open_keyvalue(wrong)


def test_an_unreachable_store_is_named_and_reported_quickly(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    for address in (f"embedded:{tmp_path}/file/store", f"redis://:hush@127.0.0.1:{free_port()}/0"):

        async def steps() -> None:
            store = open_keyvalue(address, "keystore")  # noqa: B023 - run at once
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
