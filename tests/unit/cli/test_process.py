"""A command that runs until it is told to stops at whatever moment it is told."""

import os
import signal
import threading
import time

from sankofa.cli.guard import ConnectionLimits
from sankofa.cli.process import SignalSafeEvent, stop_on_signals
from sankofa.cli.serving import Supervisor
from tests.every import every
from tests.patience import PATIENCE


@every("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_heard_whenever_it_comes(number: signal.Signals) -> None:
    """They come while the main thread enters or leaves a wait, which is where one was once never heard."""
    before = signal.getsignal(number)
    for _ in range(20):
        with stop_on_signals() as stop:
            assert not stop.is_set()
            threading.Timer(0.005, os.kill, (os.getpid(), number)).start()
            deadline = time.monotonic() + PATIENCE
            while not stop.wait(0):
                assert time.monotonic() < deadline
    assert signal.getsignal(number) is before


def test_a_wait_ends_with_the_signal_and_not_before() -> None:
    with stop_on_signals() as stop:
        assert not stop.wait(0.01)
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGTERM)).start()
        assert stop.wait(PATIENCE)
        assert stop.wait()


def test_what_was_cleared_is_waited_for_again() -> None:
    event = SignalSafeEvent()
    for _ in range(100_000):  # more than a pipe holds
        event.set()
    assert event.is_set()
    event.clear()
    assert not event.is_set()
    threading.Timer(0.01, event.set).start()
    assert event.wait(PATIENCE)
    event.close()


def test_the_supervisor_waits_for_signals_in_the_same_way() -> None:
    supervisor = Supervisor("none:app", limits=ConnectionLimits(1, 1, 1))
    assert isinstance(supervisor.main_loop_interrupt, SignalSafeEvent)
