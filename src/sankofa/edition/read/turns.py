"""Long work in short turns: no request keeps the others of its worker waiting.

Work in Python gives way after so many steps (`Turns`). Work inside one call of a library, which cannot give
way, is cut into pieces of bounded size or done in a thread (`in_thread_if_large`).
"""

import asyncio
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

LARGE: Final = 64 * 1024
"""Bytes from which on work that grows with them is not done in the loop."""
PIECE: Final = 256 * 1024
"""Bytes that one call of a library is given at a time, where it holds the interpreter."""

P = ParamSpec("P")
T = TypeVar("T")


class Turns:
    """Counts the steps of a request, and lets every other have a turn after so many."""

    __slots__ = ("_left", "_steps")

    def __init__(self, steps: int) -> None:
        self._steps = self._left = steps

    async def step(self, number: int = 1) -> None:
        self._left -= number
        if self._left <= 0:
            self._left = self._steps
            await asyncio.sleep(0)


async def in_thread_if_large(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of work on so many bytes: at once where they are few, as a thread costs more than that."""
    if size <= LARGE:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)
