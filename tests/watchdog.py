"""No test waits for ever: on a timeout it fails with the stacks of its threads and the processes of the run.

pytest ends a wait that no signal interrupts, with its process, at `faulthandler_timeout`.
"""

import faulthandler
import os
import signal
import sys
from collections.abc import Generator
from contextlib import suppress

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
    run = psutil.Process(os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else None)
    for process in run.children(recursive=True):
        with suppress(psutil.Error):  # it has ended
            what = process.as_dict(["pid", "ppid", "status", "cmdline"])
            print(what, file=sys.stderr)  # noqa: T201 - pytest shows it with the failure
    pytest.fail(f"not done after {_LONGEST:g} s")
