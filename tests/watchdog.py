"""No test waits for ever: it fails, with the stack of every thread and what else runs, and the run goes on.

A run that hung told nothing but that it did not end. A wait that no signal interrupts is ended with its
process by pytest, at `faulthandler_timeout`.
"""

import faulthandler
import os
import signal
import sys
from collections.abc import Generator

import psutil
import pytest

from tests.torture import FULL

_LONGEST = float(os.environ.get("TEST_LONGEST") or (0 if FULL else 600))
"""Seconds for one test and what is set up for it; 0 sets no end."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    before = signal.signal(signal.SIGALRM, _give_up)
    signal.setitimer(signal.ITIMER_REAL, _LONGEST)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _give_up(*_: object) -> None:
    faulthandler.dump_traceback(2)
    others = (one.info for one in psutil.process_iter(["pid", "ppid", "status", "cmdline"]))
    print(*others, sep="\n", file=sys.stderr)  # noqa: T201 - pytest shows it with the failure
    pytest.fail(f"not done after {_LONGEST:g} s")
