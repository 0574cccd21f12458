"""Keeps one long request from blocking the other requests of its worker.

Work in Python yields to the event loop after a number of steps (`YieldPoints`). A library call cannot yield,
so it gets a bounded number of bytes, or runs in a thread (`in_thread_if_large`).
"""

import asyncio
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

LARGE: Final = 64 * 1024
"""Bytes above which work that grows with them leaves the event loop."""
CALL_BYTES: Final = 256 * 1024
"""Bytes per call of a library that holds the interpreter."""

P = ParamSpec("P")
T = TypeVar("T")


class YieldPoints:
    """Counts the steps of a request, and yields to the other requests after a number of them."""

    __slots__ = ("_steps", "_steps_left")

    def __init__(self, steps: int) -> None:
        self._steps = self._steps_left = steps

    async def step(self, number: int = 1) -> None:
        self._steps_left -= number
        if self._steps_left <= 0:
            self._steps_left = self._steps
            await asyncio.sleep(0)


async def in_thread_if_large(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of work on this many bytes. Little work runs at once, because a thread costs more."""
    if size <= LARGE:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)
