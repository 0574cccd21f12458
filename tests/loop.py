"""Awaits what a test asks for, on one event loop that is kept.

`asyncio.run` makes a loop and a signal handler each time, which costs more than most of what is awaited here.
"""

import asyncio
import atexit
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_LOOP = asyncio.new_event_loop()
atexit.register(_LOOP.close)


def wait(steps: Coroutine[Any, Any, T]) -> T:
    """What the steps return."""
    return _LOOP.run_until_complete(steps)
