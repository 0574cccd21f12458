"""The process of a command: its clock, open files, memory, signals and log lines."""

import atexit
import ctypes
import gc
import json
import logging
import os
import resource
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Final

from sankofa.settings import Settings


def now() -> datetime:
    return datetime.now(UTC)


MOST_DESCRIPTORS: Final = 65_536


def raise_descriptor_limit() -> int:
    """Raises the limit as far as the system allows and returns it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < enough:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (enough, hard))
    return descriptor_limit()


def descriptor_limit() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of malloc.h
_KEPT_IN_ONE_PIECE: Final = 32 << 20
_KEPT: Final = 256 << 20


def keep_freed_memory() -> None:
    """Keep the memory of a large answer for the next (glibc only).

    Faulting in every page again would cost more than filling it.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_THRESHOLD, _KEPT_IN_ONE_PIECE)
        library.mallopt(_M_TRIM_THRESHOLD, _KEPT)


def return_freed_memory() -> None:
    """Return freed memory to the system when nothing large is needed for a while."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def leave_cycles_to_the_end() -> None:
    """Turns off the cycle collector for commands that create millions of records; the process frees them
    when it ends. Collecting cost 3% of a small publication."""
    gc.disable()
    atexit.register(gc.freeze)


STOP_SECONDS: Final = 4
"""Time a process may take to end by itself after a stop signal."""
_STOPS: Final = (signal.SIGTERM, signal.SIGINT)


class SignalSafeEvent(threading.Event):
    """An event that a signal handler may set.

    A handler interrupts the main thread anywhere. If the main thread is just entering `wait` of an
    ordinary event, `set` would deadlock. This event is a pipe that has bytes in it once set.
    """

    def __init__(self) -> None:
        super().__init__()
        self._reader, self._writer = os.pipe()
        for descriptor in (self._reader, self._writer):
            os.set_blocking(descriptor, False)

    def is_set(self) -> bool:
        return self.wait(0)

    def set(self) -> None:
        with suppress(BlockingIOError):  # already set
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
    """Set when SIGTERM or SIGINT arrives."""
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

    Python runs a handler between two steps of the main thread, and a thread waiting inside a library takes
    no step. So another thread reads the signals from a pipe, to which the interpreter writes them at once.
    This is as safe as a power cut: locks end with the process, files are replaced whole.
    """
    if os.getpid() == 1:  # in a container: the kernel drops signals that process 1 does not handle
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_end_after_signal, args=(reader,), name="signals", daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(writer)  # ends the thread, unless a signal arrived


def _end_after_signal(reader: int) -> None:
    while number := os.read(reader, 1):
        if number[0] in _STOPS:
            time.sleep(STOP_SECONDS)
            ctypes.CDLL(None).signal(number[0], 0)  # the default; Python allows it only in the main thread
            os.kill(os.getpid(), number[0])
            os._exit(128 + number[0])  # process 1 of a container ignores its own signal
    os.close(reader)


def configure(settings: Settings) -> None:
    """Log to stderr with the configured level and format."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter(settings.log_format))
    logger = logging.getLogger("sankofa")
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(settings.log_level.upper())


class _Formatter(logging.Formatter):
    def __init__(self, form: str) -> None:
        super().__init__()
        self._form = form

    def format(self, record: logging.LogRecord) -> str:
        when, level, message = timestamp(record.created), record.levelname.lower(), record.getMessage()
        trace = self.formatException(record.exc_info) if record.exc_info else ""
        if self._form == "text":
            return f"{when} {level} {record.name}: {message}" + (f"\n{trace}" if trace else "")
        line = {"time": when, "level": level, "logger": record.name, "message": message}
        return json.dumps(line | ({"exception": trace} if trace else {}), ensure_ascii=False)


def timestamp(seconds: float) -> str:
    """A Unix time as log lines have it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
