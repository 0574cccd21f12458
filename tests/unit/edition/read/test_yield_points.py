"""No request blocks the loop (contract: PAR-10): long work yields after a bounded number of steps.

Nothing is timed here: each step of the work records its iteration of the loop, or its thread.
"""

import asyncio

import pytest

from sankofa.edition.read.yield_points import YieldPoints


@pytest.mark.rule("PAR-10")
def test_work_yields_after_a_fixed_number_of_steps_and_not_before() -> None:
    async def count(steps: int) -> int:
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        waiting = asyncio.create_task(others())
        yield_points = YieldPoints(10)
        for _ in range(steps):
            await yield_points.step()
        waiting.cancel()
        return turns

    assert asyncio.run(count(9)) == 0, "a small answer never waits"
    assert asyncio.run(count(35)) == 3
