"""No request holds the loop (contract: PAR-10). What is long gives way after a bounded number of steps.

Nothing here is timed: each step of the work notes which turn of the loop it ran in, or which thread.
"""

import asyncio
import gzip
import threading
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from sankofa.edition.format.row_blocks import Entry, pack
from sankofa.edition.read import edition as reading
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.yield_points import LARGE, YieldPoints
from sankofa.operations import answers
from tests.memory import MemoryReader

MAIN = threading.main_thread()


def steps_in_a_turn(
    monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, work: Callable[[], Coroutine[Any, Any, Any]]
) -> tuple[int, int]:
    """How often a function is called by some work, at most in one turn of the loop and in all."""
    turn = 0
    calls: Counter[int] = Counter()
    function = getattr(owner, name)

    def noted(*arguments: Any, **named: Any) -> Any:
        calls[turn] += 1
        return function(*arguments, **named)

    async def others() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    async def both() -> None:
        waiting = asyncio.create_task(others())
        await asyncio.sleep(0)
        await work()
        waiting.cancel()

    monkeypatch.setattr(owner, name, noted)
    asyncio.run(both())
    return max(calls.values()), calls.total()


def _row(number: int) -> bytes:
    return b'{"line_item":"item_%d","vintage":1,"n":%d}' % (number % 300, number)


def _crowded(rows: int, in_a_block: int = 16) -> Edition:
    reader = MemoryReader()
    entries = [Entry(_row(n), modes=7) for n in range(rows)]
    reader.shelve("kind", "A", list(pack(entries, in_a_block)))
    return Edition("e", reader)


@pytest.mark.rule("PAR-10")
@pytest.mark.parametrize("limit", [None, 100_000])
def test_rows_of_many_blocks_are_selected_in_turns(monkeypatch: pytest.MonkeyPatch, limit: int | None):
    edition = _crowded(4_096)
    most, total = steps_in_a_turn(
        monkeypatch, reading, "select", lambda: edition.select("kind", "A", day=1, modes=7, limit=limit)
    )
    assert total == 256
    assert most <= reading._BLOCKS_PER_YIELD


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd"])
def test_large_bodies_are_compressed_in_a_thread_and_small_ones_at_once(
    monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    seen: list[threading.Thread] = []
    compress = answers.compress

    def noted(body: bytes, encoding: str) -> bytes:
        seen.append(threading.current_thread())
        return compress(body, encoding)

    monkeypatch.setattr(answers, "compress", noted)
    large = b"x" * (LARGE + 1)
    assert asyncio.run(answers.compressed(large, encoding)) == compress(large, encoding)
    assert asyncio.run(answers.compressed(large[:-1], encoding)) == compress(large[:-1], encoding)
    assert seen[0] is not MAIN
    assert seen[1] is MAIN
    assert gzip.decompress(compress(large, "gzip")) == large


@pytest.mark.rule("PAR-10")
def test_turns_are_given_after_so_many_steps_and_not_before() -> None:
    async def count(steps: int) -> int:
        given = 0

        async def others() -> None:
            nonlocal given
            while True:
                given += 1
                await asyncio.sleep(0)

        waiting = asyncio.create_task(others())
        yield_points = YieldPoints(10)
        for _ in range(steps):
            await yield_points.step()
        waiting.cancel()
        return given

    assert asyncio.run(count(9)) == 0, "a small answer never waits"
    assert asyncio.run(count(35)) == 3
