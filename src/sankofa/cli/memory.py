"""What becomes of memory that is freed: with glibc, where it is said so; and at the end of a command."""

import atexit
import ctypes
import gc
from contextlib import suppress
from typing import Final

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of malloc.h
_KEPT_IN_ONE_PIECE: Final = 32 << 20
_KEPT: Final = 256 << 20


def keep_freed_memory() -> None:
    """What one large buffer leaves is kept for the next: if it were returned, every page of the next would be
    faulted in again, which costs more than filling it."""
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(_M_MMAP_THRESHOLD, _KEPT_IN_ONE_PIECE)
        library.mallopt(_M_TRIM_THRESHOLD, _KEPT)


def return_freed_memory() -> None:
    """Give back what was kept, where nothing large will be needed for a while."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def leave_cycles_to_the_end() -> None:
    """For a command that makes millions of records: what is left of them ends with the process. To look for
    cycles in it, then and at the end, is a thirtieth of what a small publication costs."""
    gc.disable()
    atexit.register(gc.freeze)
