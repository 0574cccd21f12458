"""Ending a command that is told to stop."""

import ctypes
import os
import select
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

STOP_SECONDS: Final = 4
"""How long a process that is told to stop may take to end by itself."""
_STOPS: Final = (signal.SIGTERM, signal.SIGINT)


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
    before = {number: signal.getsignal(number) for number in _STOPS}
    for number in before:
        signal.signal(number, lambda *_: stop.set())
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        stop.close()


@contextmanager
def end_soon_after_signals() -> Iterator[None]:
    """SIGTERM or SIGINT ends the process within STOP_SECONDS, whatever it waits for. See contract: CLI-11.

    Python runs a handler between two steps of the main thread, and one that waits for a peer inside a library
    takes none. So a thread reads the signals from a pipe, to which the interpreter writes them at once. What
    is cut off is nothing that a power cut would not: locks end with the process, files are replaced whole.
    """
    if os.getpid() == 1:  # of a container: the kernel keeps a signal from it that it does not handle
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_end_after_signal, args=(reader,), name="signals", daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(writer)  # the thread ends, unless a signal came


def _end_after_signal(reader: int) -> None:
    while came := os.read(reader, 1):
        if came[0] in _STOPS:
            time.sleep(STOP_SECONDS)
            ctypes.CDLL(None).signal(came[0], 0)  # the default; Python lets its main thread alone do so
            os.kill(os.getpid(), came[0])
            os._exit(128 + came[0])  # the first process of a container, which ignores its own signal
    os.close(reader)
