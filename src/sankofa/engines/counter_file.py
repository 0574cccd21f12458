"""Counters in one file, exact across the processes of one machine.

The file is a table of 4 KiB pages, 128 slots each; a name belongs to one page by its hash, so all
its windows change under one lock and one write. A process killed at any instruction leaves the
page as it was or as it should be: the kernel copies a write of one page whole. Reads and writes are
system calls rather than a memory map, because on a full disk they fail with an error where touching
a map would kill the process. A slot is taken over once its window is past, so the file never
outgrows its 32 MiB (it is sparse, and starts at one page).
"""

import fcntl
import hashlib
import mmap
import os
import struct
import threading
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from sankofa.engines.keyvalue import Window

_PAGE = 4096
_PAGES = 8192
_SLOT = struct.Struct("<16sQQ")  # mark of name and window, count, expiry as a unix second
_HEADER = b"sankofa counters 1\n"
_GENERATION = 16  # random bytes after the header; with a number, two processes could write the same one

# A record lock belongs to the process, so threads of one process need a lock of their own.
_THREADS = threading.Lock()


@lru_cache(maxsize=8192)
def _page_of(name: str) -> int:
    """Where the page of this name begins; page 0 holds the header."""
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return (1 + int.from_bytes(digest, "little") % _PAGES) * _PAGE


@lru_cache(maxsize=8192)
def _mark_of(name: str, window: str) -> bytes:
    """Stands for the pair in its slot; long enough that two pairs never meet."""
    return hashlib.blake2b(f"{name}\0{window}".encode(), digest_size=16).digest()


class CounterFile:
    """An open table. Every method may raise OSError."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            size = os.fstat(self._descriptor).st_size
            if size == 0:
                _write(self._descriptor, _HEADER.ljust(_PAGE, b"\0"), 0)
            elif size < _PAGE:
                _write(self._descriptor, bytes(_PAGE - size), size)
            self.check()
            self._head = mmap.mmap(self._descriptor, _PAGE, access=mmap.ACCESS_READ)
        except OSError:
            os.close(self._descriptor)
            raise

    def check(self) -> None:
        """Read the header: the file is there and is a table of counters."""
        if os.pread(self._descriptor, len(_HEADER), 0) != _HEADER:
            raise OSError(0, "not a file of counters")

    def try_count(self, name: str, windows: Sequence[Window], now: int) -> tuple[int, ...] | None:
        """Count once, or return None when another process is at this page: try again."""
        start = _page_of(name)
        with _THREADS:
            try:
                fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, start)
            except BlockingIOError:
                return None
            try:
                page = bytearray(os.pread(self._descriptor, _PAGE, start))
                if len(page) < _PAGE:  # beyond the end of the file so far
                    page.extend(bytes(_PAGE - len(page)))
                counts = tuple([_add_one(page, _mark_of(name, w.name), w.seconds, now) for w in windows])
                _write(self._descriptor, page, start)
                return counts
            finally:
                fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, start)

    def generation(self) -> bytes:
        """What changes with every `bump`, whichever process did it.

        Read from a map of the header, which was written when the file was made and so is safe to touch: a
        system call here would hand the interpreter to another thread on every request.
        """
        return self._head[len(_HEADER) : len(_HEADER) + _GENERATION]

    def bump(self) -> None:
        _write(self._descriptor, os.urandom(_GENERATION), len(_HEADER))

    def close(self) -> None:
        with _THREADS:  # closing drops every record lock this process has on the file
            self._head.close()
            os.close(self._descriptor)
            self._descriptor = -1  # the number may be another file's from now on


def _add_one(page: bytearray, mark: bytes, seconds: int, now: int) -> int:
    at = page.find(mark)
    while at > 0 and at % _SLOT.size:  # the same bytes across two slots, by chance
        at = page.find(mark, at + 1)
    count, expiry = 0, now + seconds
    if at < 0:
        at = _vacant_slot(page, now)
    else:
        _, found, until = _SLOT.unpack_from(page, at)
        if until >= now:
            count, expiry = found, until
    _SLOT.pack_into(page, at, mark, count + 1, expiry)
    return count + 1


def _vacant_slot(page: bytearray, now: int) -> int:
    for at in range(0, _PAGE, _SLOT.size):
        if _SLOT.unpack_from(page, at)[2] < now:
            return at
    raise OSError(0, "no room for another counter")


def _write(descriptor: int, content: bytes | bytearray, start: int) -> None:
    if os.pwrite(descriptor, content, start) != len(content):
        raise OSError(0, "short write")
