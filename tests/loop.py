"""Awaits what a test asks for, on one event loop that is kept.

`asyncio.run` makes a loop and a signal handler each time, which costs more than most of what is awaited here.
"""

import asyncio
import atexit
from collections.abc import Coroutine
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


def wait(steps: Coroutine[Any, Any, T]) -> T:
    """What the steps return."""
    return _loop().run_until_complete(steps)


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """Made by the first test that awaits: processes that are forked later must not share it."""
    loop = asyncio.new_event_loop()
    atexit.register(loop.close)
    return loop
