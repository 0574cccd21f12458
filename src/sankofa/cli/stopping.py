"""Ending a command that runs until it is told to."""

import os
import select
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class SignalSafeEvent(threading.Event):
    """An event that a signal handler may set.

    A handler runs inside whatever the main thread is doing. Where that is entering its wait for an ordinary
    event, setting it waits for a lock that nobody gives back. This one is a pipe with something in it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._reader, self._writer = os.pipe()
        for descriptor in (self._reader, self._writer):
            os.set_blocking(descriptor, False)

    def is_set(self) -> bool:
        return self.wait(0)

    def set(self) -> None:
        with suppress(BlockingIOError):  # it is full
            os.write(self._writer, b".")

    def clear(self) -> None:
        with suppress(BlockingIOError):
            while os.read(self._reader, 4096):
                pass

    def wait(self, timeout: float | None = None) -> bool:
        poll = select.poll()
        poll.register(self._reader, select.POLLIN)
        return bool(poll.poll(None if timeout is None else timeout * 1000))

    def close(self) -> None:
        os.close(self._writer)
        os.close(self._reader)


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """Set once SIGTERM or SIGINT came."""
    stop = SignalSafeEvent()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    for number in before:
        signal.signal(number, lambda *_: stop.set())
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        stop.close()
