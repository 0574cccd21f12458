"""A worker's sign of life, for the supervisor that watches it."""

import asyncio
import os
import time
from collections.abc import MutableSequence
from typing import Any, Final

BEAT_SECONDS: Final = 0.5


async def beat(beats: MutableSequence[Any], index: int, supervisor: int, _known: object) -> None:
    """Write down now and again that the event loop turns; end the process when the supervisor is gone."""
    while True:
        beats[index] = time.monotonic()
        if os.getppid() != supervisor:
            os._exit(1)
        await asyncio.sleep(BEAT_SECONDS)
