"""No request holds the loop (contract: PAR-10). What is long gives way after a bounded number of steps.

Nothing here is timed: each step of the work notes which turn of the loop it ran in, or which thread.
"""

import asyncio

import pytest

from sankofa.edition.read.yield_points import YieldPoints


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
