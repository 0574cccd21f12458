"""Limits processes to a share of a core, with control groups of the kernel.

Two workers and the load that fills them do not fit on two cores: the rate of two workers would be what the
load leaves of the machine. If each worker has a fixed share, the load has the rest, and two workers either
answer twice as much as one or get in each other's way.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

_ROOT = Path("/sys/fs/cgroup")
_PERIOD = 10_000
"""Microseconds. Short, so that a worker that used up its share waits only milliseconds."""


@contextmanager
def limited_to(share: float, processes: Iterable[psutil.Process]) -> Iterator[bool]:
    """Give each process its own group with this share of a core. False if this is not allowed here."""
    groups: list[Path] = []
    limited = list(processes)
    try:
        try:
            for process in limited:
                groups.append(_group(f"sankofa-bench-{os.getpid()}-{process.pid}", share))
                (groups[-1] / "cgroup.procs").write_text(str(process.pid))
        except OSError:
            yield False
        else:
            yield True
    finally:
        for process in limited:
            with suppress(OSError):
                (_parent() / "cgroup.procs").write_text(str(process.pid))
        for group in groups:
            with suppress(OSError):
                group.rmdir()


def _parent() -> Path:
    """Version 1 has a tree for each resource, version 2 one for all."""
    of_processor = _ROOT / "cpu"
    return of_processor if of_processor.is_dir() else _ROOT


def _group(name: str, share: float) -> Path:
    group = _parent() / name
    group.mkdir()
    quota = round(share * _PERIOD)
    if (group / "cpu.max").exists():
        (group / "cpu.max").write_text(f"{quota} {_PERIOD}")
    else:
        (group / "cpu.cfs_period_us").write_text(str(_PERIOD))
        (group / "cpu.cfs_quota_us").write_text(str(quota))
    return group
