"""A record lock keeps other processes out, whichever way it is taken."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sankofa.engines import counter_file

WAYS = [counter_file._with_module, counter_file.set_record_lock]


def can_lock(path: Path, start: int) -> bool:
    """Whether a process of its own can."""
    child = os.fork()
    if not child:
        try:
            counter_file.set_record_lock(os.open(path, os.O_RDWR), fcntl.F_WRLCK, start)
        except BlockingIOError:
            os._exit(1)
        except BaseException:
            os._exit(2)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status < 2
    return status == 0


@pytest.mark.parametrize("lock", WAYS)
def test_one_byte_is_locked_until_it_is_given_back(
    tmp_path: Path, lock: Callable[[int, int, int], None]
) -> None:
    path = tmp_path / "locked"
    path.write_bytes(bytes(8192))
    descriptor = os.open(path, os.O_RDWR)
    try:
        lock(descriptor, fcntl.F_WRLCK, 4096)
        assert [can_lock(path, start) for start in (4095, 4096, 4097)] == [True, False, True]
        lock(descriptor, fcntl.F_UNLCK, 4096)
        assert can_lock(path, 4096)
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("lock", WAYS)
def test_what_cannot_be_locked_is_an_error_with_its_reason(lock: Callable[[int, int, int], None]) -> None:
    with pytest.raises(OSError, match="Bad file descriptor"):
        lock(-1 if lock is counter_file.set_record_lock else 999_999, fcntl.F_WRLCK, 0)
