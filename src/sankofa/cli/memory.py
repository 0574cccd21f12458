"""What becomes of memory that is freed, with glibc; elsewhere the system decides."""

import ctypes
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
