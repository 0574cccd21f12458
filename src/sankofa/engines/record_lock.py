"""A lock on one byte of a file, taken or given back without handing the interpreter to another thread.

`fcntl.lockf` lets go of the interpreter around the system call, in case it waits. Ours never waits, takes a
microsecond, and is made twice in every request: each time the thread of the HTTP server would take the
interpreter and the request would queue to have it back, which costs ten times the call.
"""

import ctypes
import fcntl
import os
import struct
import sys
from typing import Final

_FLOCK: Final = struct.Struct("@hhqqi4x")
"""`struct flock` of Linux on machines of 64 bits: kind, whence, start, length, process."""
_IS_KNOWN: Final = sys.platform == "linux" and struct.calcsize("P") == 8


def _with_library(descriptor: int, kind: int, start: int) -> None:
    if _library_fcntl(descriptor, fcntl.F_SETLK, _FLOCK.pack(kind, os.SEEK_SET, start, 1, 0)) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def _with_module(descriptor: int, kind: int, start: int) -> None:
    operation = fcntl.LOCK_UN if kind == fcntl.F_UNLCK else fcntl.LOCK_EX | fcntl.LOCK_NB
    fcntl.lockf(descriptor, operation, 1, start)


if _IS_KNOWN:
    # PyDLL, unlike CDLL, keeps the interpreter during the call.
    _library_fcntl = ctypes.PyDLL(None, use_errno=True).fcntl
    _library_fcntl.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_char_p)
    _library_fcntl.restype = ctypes.c_int

set_record_lock = _with_library if _IS_KNOWN else _with_module
"""Lock (F_WRLCK) or unlock (F_UNLCK) the byte at `start`.

Raises BlockingIOError where another process has it, OSError for anything else."""
