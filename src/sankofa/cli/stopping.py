"""Ending a command that runs until it is told to."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """Set once SIGTERM or SIGINT came.

    Their handler only tells a thread, which sets it. A handler runs inside whatever the main thread is doing:
    where that is entering its wait for this event, setting it would wait for a lock that nobody gives back.
    """
    stop = threading.Event()
    told, tell = os.pipe()
    os.set_blocking(tell, False)

    def set_once_told() -> None:
        os.read(told, 1)
        stop.set()

    thread = threading.Thread(target=set_once_told, name="stop-on-signals", daemon=True)
    thread.start()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    for number in before:
        signal.signal(number, lambda *_: os.write(tell, b"."))
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(tell)  # the thread reads the end of it
        thread.join()
        os.close(told)
