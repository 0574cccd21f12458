"""A long-running command stops at whatever moment it gets the signal."""

import os
import signal
import threading
import time

from sankofa.cli.process import stop_on_signals
from tests.every import every
from tests.patience import PATIENCE


@every("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_never_lost(number: signal.Signals) -> None:
    """Signals come while the main thread enters or leaves a wait, where one was once lost."""
    before = signal.getsignal(number)
    for _ in range(20):
        with stop_on_signals() as stop:
            assert not stop.is_set()
            threading.Timer(0.005, os.kill, (os.getpid(), number)).start()
            deadline = time.monotonic() + PATIENCE
            while not stop.wait(0):
                assert time.monotonic() < deadline
    assert signal.getsignal(number) is before
