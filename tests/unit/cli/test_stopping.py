"""A command that runs until it is told to stops at every moment at which it may be told."""

import os
import signal
import threading
from typing import Any

import pytest

from sankofa.cli.stopping import stop_on_signals
from tests.patience import PATIENCE


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_that_comes_while_the_event_itself_is_locked_sets_it(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stop_on_signals() as stop:
        assert not stop.is_set()
        event: Any = stop
        with event._cond:  # as at the beginning of every wait for it
            signal.raise_signal(number)
        assert stop.wait(PATIENCE)
    assert signal.getsignal(number) is before


def test_a_wait_ends_with_the_signal() -> None:
    with stop_on_signals() as stop:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGTERM)).start()
        assert stop.wait(PATIENCE)
