"""Private files and folders: opens, atomically replaces, syncs and locks them.

Also imports zstd, in the standard library from Python 3.14 on, and limits the size of unpacked files.
"""

import fcntl
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from sankofa.model.errors import OperatorError
from sankofa.model.limits import limit

if sys.version_info >= (3, 14):
    from compression import zstd as zstd
else:
    from backports import zstd as zstd

PRIVATE_FOLDER: Final = 0o700
PARTIAL: Final = ".partial-"
"""Prefix of unfinished files, before the writing process and the final name."""
SQLITE_FAILURES: Final = (sqlite3.Error, UnicodeDecodeError)
"""Errors of a file that is damaged, full or in use. SQLite's message about damage may not be valid text."""


def open_private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def make_private_folder(path: Path) -> None:
    """Creates a private folder, with private parents; existing folders stay as they are."""
    if not path.is_dir():
        if not path.parent.exists():
            make_private_folder(path.parent)
        path.mkdir(PRIVATE_FOLDER, exist_ok=True)


def replace_file(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Replaces a file in one step: readers see the old content or the new; with `durable`, even after a power
    cut."""
    with replacing(path, durable=durable) as stream:
        stream.write(content)


@contextmanager
def replacing(path: Path, *, durable: bool = True, private: bool = True) -> Iterator[BinaryIO]:
    """The same for content that is written inside; a failure leaves the old content. The file has the
    permissions of the umask unless it is `private`."""
    partial = path.with_name(f"{PARTIAL}{os.getpid()}-{path.name}")
    try:
        with open(partial, "wb", opener=open_private if private else None) as stream:
            yield stream
            stream.flush()
            if durable:
                os.fsync(stream.fileno())
        partial.replace(path)
    except BaseException:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise
    if durable:
        sync(path.parent)


def remove_partial(folder: Path) -> None:
    """Removes unfinished files that killed processes left below a folder."""
    for partial in folder.rglob(f"{PARTIAL}*"):
        if not is_alive(partial.name.removeprefix(PARTIAL).partition("-")[0]):
            partial.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Syncs a file, or the names in a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def is_alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        pass
    return True


@contextmanager
def operator_errors(path: Path) -> Iterator[None]:
    """A full disk or a damaged file is reported to the operator by name, without a traceback."""
    try:
        yield
    except (*SQLITE_FAILURES, OSError) as failure:
        raise OperatorError(f"{path.name}: {failure}") from failure


def try_lock(descriptor: int) -> bool:
    """Lock an open file or folder until it is closed; False if another process holds it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def locked(path: Path, *, waiting: Callable[[], None] = lambda: None, refusal: str = "") -> Iterator[None]:
    """One process at a time, by a lock that ends with the process; creates the file if missing.

    If another process holds the lock, calls `waiting` and waits; with a `refusal`, raises OperatorError
    instead.
    """
    flags = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
    descriptor = open_private(str(path), flags)
    try:
        if not try_lock(descriptor):
            if refusal:
                raise OperatorError(refusal)
            waiting()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


UNPACKED_TIMES: Final = limit(
    "unpacked size of an archive or backup over 256 MiB", 200, "times its size", "the file is refused"
)
"""Real files are packed to a tenth, zip bombs to a thousandth."""
_ANY_UNPACKED: Final = 256 << 20


def most_unpacked(size: int) -> int:
    """The bytes that a packed file of this size may unpack to; at least 256 MiB."""
    return max(_ANY_UNPACKED, UNPACKED_TIMES * size)
