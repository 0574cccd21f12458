"""Wait and measure on a machine that may be ten times slower than the one the test was written on.

A test waits for a condition longer than it takes anywhere: the wait ends as soon as the condition holds.
Where the service promises a time limit, a `Stopwatch` measures it and subtracts the time in which the machine
ran no process.
"""

import asyncio
import atexit
import functools
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

PATIENCE = 120.0
_ENOUGH = 8.0
"""Seconds of a minute that most tests of counts need."""
_TICK = 0.01


def until(holds: Callable[[], T], every: float = 0.05, seconds: float = PATIENCE) -> T:
    """Call it again and again; returns the first true result. Raises AssertionError."""
    deadline = time.monotonic() + seconds
    while not (answer := holds()):
        assert time.monotonic() < deadline, f"after {seconds} s still {answer!r}"
        time.sleep(every)
    return answer


def in_one_minute(test: Callable[P, None]) -> Callable[P, None]:
    """For tests of counts per UTC minute: repeat the steps in another minute if one ended in between."""

    @functools.wraps(test)
    def tried(*arguments: P.args, **keywords: P.kwargs) -> None:
        for _ in range(3):
            if (left := 60 - time.time() % 60) < _ENOUGH:
                time.sleep(left)
            minute = time.time() // 60
            try:
                return test(*arguments, **keywords)
            except AssertionError:
                if time.time() // 60 == minute:
                    raise
            time.sleep(60 - time.time() % 60)
        return test(*arguments, **keywords)

    return tried


class _Ticker:
    """Sleeps in short steps during a measurement, and adds up how much too late it woke."""

    def __init__(self) -> None:
        self.late = 0.0
        self._lock = threading.Lock()
        self._users = 0
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> float:
        with self._lock:
            self._users += 1
            if self._thread is None:
                self._over = threading.Event()
                self._thread = threading.Thread(target=self._run, args=(self._over,), name="ticker")
                self._thread.start()
            return self.late

    def end(self) -> float:
        with self._lock:
            self._users -= 1
            if self._users == 0 and self._thread is not None:
                self._over.set()
                self._thread.join()
                self._thread = None
            return self.late

    def _run(self, over: threading.Event) -> None:
        last = time.monotonic()
        while not over.wait(_TICK):
            now = time.monotonic()
            self.late += max(now - last - 2 * _TICK, 0.0)
            last = now


_TICKER = _Ticker()


class Stopwatch:
    """`with Stopwatch() as watch: ...`, then `watch.seconds`."""

    def __enter__(self) -> "Stopwatch":
        self._late = _TICKER.begin()
        self._began = time.monotonic()
        return self

    def __exit__(self, *_: object) -> None:
        self.elapsed = time.monotonic() - self._began
        """Elapsed real time."""
        self.seconds = self.elapsed - (_TICKER.end() - self._late)
        """Without the time for which this process was not let to run."""


_LOOP = asyncio.new_event_loop()
atexit.register(_LOOP.close)


def wait(steps: Coroutine[Any, Any, T]) -> T:
    return _LOOP.run_until_complete(steps)
