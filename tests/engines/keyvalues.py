"""Shared by tests of key-value engines."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
import uvloop

from sankofa.engines.keyvalue import KeyValue, Window, open_keyvalue
from sankofa.model.errors import StoreUnavailable
from tests.depth import deep_after
from tests.patience import PATIENCE

WINDOWS = (Window("m:29384923", 120), Window("M:2026-11", 3_000_000))
T = TypeVar("T")


@pytest.fixture(params=["embedded", "redis"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty store of each engine."""
    if request.param == "redis":
        redis: str = request.getfixturevalue("redis_url")
        return redis
    return f"embedded:{tmp_path / 'home' / 'store'}"


@pytest.fixture(
    params=deep_after(1, [asyncio.new_event_loop, uvloop.new_event_loop]), ids=["asyncio", "uvloop"]
)
def runner(request: pytest.FixtureRequest) -> Iterator[asyncio.Runner]:
    """Both event loops: they order timers and reads differently, and the service uses the second."""
    with asyncio.Runner(loop_factory=request.param) as runner:
        yield runner


def run(url: str, steps: Callable[[KeyValue], Awaitable[T]]) -> T:
    """Run the steps on an open store; fail if they leave anything behind."""

    async def scene() -> T:
        store = open_keyvalue(url)
        try:
            return await steps(store)
        finally:
            await store.close()
            assert asyncio.all_tasks() == {asyncio.current_task()}

    return asyncio.run(scene())


async def unavailable(call: Awaitable[object]) -> StoreUnavailable:
    """The failure of the call, which must not need the test's timeout."""
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(StoreUnavailable) as failure:
            await call
    return failure.value


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - as the kernel lists it
