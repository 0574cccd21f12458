"""Fixtures that are slow to build and never change: one build for all test workers."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

SHARED = "shared-by-tests"
"""Lies beside a HOME that many tests read: nothing may be added to it."""


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """A folder made by the first worker that asks. A half-made one is made again."""
    own = factory.getbasetemp()
    root = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / f"once-{name}"
    root.mkdir(exist_ok=True)
    folder, half = root / "made", root / "making"
    with (root / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            shutil.rmtree(half, ignore_errors=True)
            half.mkdir()
            make(half)
            (half / SHARED).touch()
            half.rename(folder)
    return folder
