"""Counters in one file, exact across the processes of one machine.

The file is a table of 4 KiB pages, 128 slots each; a name belongs to one page by its hash, so all its windows
change under one lock. It is mapped into memory, and locked without releasing the interpreter: `fcntl.lockf`
releases it because the call may wait. Our call never waits and is made twice per request; queueing for the
interpreter each time costs ten times the call. A page is allocated on disk before its first use, so that a
full disk raises an error instead of killing the process. A process killed at any instruction leaves the old
count or the new one: a count is one aligned number, stored by one instruction (`struct` would write zeros
first), and a new slot gets its mark last. A slot is reused once its window is past, so the file never
outgrows 32 MiB; it is sparse.
"""

import ctypes
import fcntl
import hashlib
import mmap
import os
import struct
import threading
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from sankofa.engines.keyvalue import Window

_FLOCK: Final = struct.Struct("@hhqqi4x")
"""`struct flock` of Linux on machines of 64 bits: kind, whence, start, length, process."""
# PyDLL, unlike CDLL, keeps the interpreter during the call.
_library_fcntl = ctypes.PyDLL(None, use_errno=True).fcntl
_library_fcntl.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_char_p)
_library_fcntl.restype = ctypes.c_int


def set_record_lock(descriptor: int, lock: bytes) -> None:
    """Lock or unlock a byte, as `_Page` says.

    Raises BlockingIOError if another process has it, OSError for anything else.
    """
    if _library_fcntl(descriptor, fcntl.F_SETLK, lock) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


_PAGE = 4096
_PAGES = 8192
_SIZE = (_PAGES + 1) * _PAGE
_MARK = 16
_SLOT = 32
_WORD = 8  # a slot is four words: two of the mark of name and window,
_COUNT = 2  # its count,
_UNTIL = 3  # and until when it counts, a unix second
_HEADER = b"sankofa counters 1\n"
_GENERATION = 16  # random bytes after the header; with a number, two processes could write the same one
_CHANGING = bytes(_GENERATION)

# A record lock belongs to the process, so threads of one process need a lock of their own.
_THREADS = threading.Lock()


class _Page(NamedTuple):
    start: int
    lock: bytes
    """The argument of `fcntl` that locks the first byte of the page; `unlock` is the one that unlocks it."""
    unlock: bytes


@lru_cache(maxsize=8192)
def _page_of(name: str) -> _Page:
    """The page of this name; page 0 holds the header."""
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    start = (1 + int.from_bytes(digest, "little") % _PAGES) * _PAGE
    lock, unlock = (_FLOCK.pack(kind, os.SEEK_SET, start, 1, 0) for kind in (fcntl.F_WRLCK, fcntl.F_UNLCK))
    return _Page(start, lock, unlock)


@lru_cache(maxsize=8192)
def _mark_of(name: str, window: str) -> bytes:
    """Identifies the pair in its slot; long enough that two pairs never collide."""
    return hashlib.blake2b(f"{name}\0{window}".encode(), digest_size=16).digest()


class CounterFile:
    """An open table. Every method may raise OSError."""

    def __init__(self, path: Path, reserve: int = 0) -> None:
        """`reserve`: bytes of the table to allocate on disk at once."""
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        self._placed: set[int] = set()
        try:
            if not os.fstat(self._descriptor).st_size:
                _write(self._descriptor, (_HEADER + os.urandom(_GENERATION)).ljust(_PAGE, b"\0"), 0)
            self.check()
            if os.fstat(self._descriptor).st_size < _SIZE:
                os.ftruncate(self._descriptor, _SIZE)
            self._reserved = self._reserve(min(reserve + _PAGE, _SIZE) if reserve else 0)
            self._map = mmap.mmap(self._descriptor, _SIZE)
            self._words = memoryview(self._map).cast("Q")  # an item is stored by one instruction
        except OSError:
            os.close(self._descriptor)
            raise

    def check(self) -> None:
        """Read the header: the file is there and is a table of counters."""
        if os.pread(self._descriptor, len(_HEADER), 0) != _HEADER:
            raise OSError(0, "not a file of counters")

    def _reserve(self, size: int) -> int:
        """How many bytes at the start of the table are allocated; 0 on a full disk."""
        if size and os.fstat(self._descriptor).st_blocks * 512 < _SIZE:
            try:
                os.posix_fallocate(self._descriptor, 0, size)
            except OSError:
                return 0
        return size

    def check_room(self, names: Iterable[str] = ()) -> None:
        """Whether the disk has room for the counters of these names, and for one more page.

        The extra page is allocated after the table and freed again.
        """
        if self._reserved == _SIZE:
            return
        for name in names:
            self._make_room(_page_of(name).start)
        os.posix_fallocate(self._descriptor, _SIZE, _PAGE)
        os.ftruncate(self._descriptor, _SIZE)

    def _make_room(self, start: int) -> None:
        if start >= self._reserved and start not in self._placed:
            os.posix_fallocate(self._descriptor, start, _PAGE)
            self._placed.add(start)

    def try_count(self, name: str, windows: Sequence[Window], now: int) -> tuple[int, ...] | None:
        """Counts once; None if another process holds this page: try again."""
        start, lock, unlock = _page_of(name)
        with _THREADS:
            if start >= self._reserved and start not in self._placed:
                self._make_room(start)
            try:
                set_record_lock(self._descriptor, lock)
            except BlockingIOError:
                return None
            try:
                counts = []
                words = self._words
                for window, seconds in windows:
                    mark = _mark_of(name, window)
                    at = self._map.find(mark, start, start + _PAGE)
                    if at % _SLOT:  # it has none, or the same bytes are across two slots by chance
                        at = self._slot_of(start, mark)
                    slot = self._take_slot(start, mark, now + seconds, now) if at < 0 else at // _WORD
                    if words[slot + _UNTIL] < now:
                        words[slot + _COUNT] = 0
                        words[slot + _UNTIL] = now + seconds
                    words[slot + _COUNT] = count = words[slot + _COUNT] + 1
                    counts.append(count)
                return tuple(counts)
            finally:
                set_record_lock(self._descriptor, unlock)

    def counts(self, name: str, windows: Sequence[Window], now: int) -> tuple[int, ...]:
        """The present counts. No lock: a count is one aligned number."""
        start = _page_of(name).start
        counts = []
        for window in windows:
            slot = self._slot_of(start, _mark_of(name, window.name)) // _WORD
            valid = slot >= 0 and self._words[slot + _UNTIL] >= now
            counts.append(self._words[slot + _COUNT] if valid else 0)
        return tuple(counts)

    def _slot_of(self, start: int, mark: bytes) -> int:
        """The offset of a mark's slot in its page; -1 if it has none."""
        at = self._map.find(mark, start, start + _PAGE)
        while at >= 0 and at % _SLOT:  # the same bytes across two slots, by chance
            at = self._map.find(mark, at + 1, start + _PAGE)
        return at

    def _take_slot(self, start: int, mark: bytes, until: int, now: int) -> int:
        """The number of a vacant slot of the page, now the mark's, with a count of zero."""
        for at in range(start, start + _PAGE, _SLOT):
            slot = at // _WORD
            if self._words[slot + _UNTIL] < now:
                self._map[at : at + _MARK] = bytes(_MARK)  # no owner until it is completely written
                self._words[slot + _COUNT] = 0
                self._words[slot + _UNTIL] = until
                self._map[at : at + _MARK] = mark
                return slot
        raise OSError(0, "no room for another counter")

    def generation(self) -> bytes | None:
        """A marker that changes with every write; None during a write and after an interrupted one."""
        generation = self._map[len(_HEADER) : len(_HEADER) + _GENERATION]
        return None if generation == _CHANGING else generation

    def begin_change(self) -> None:
        """Until `end_change`, values read earlier are not valid."""
        _write(self._descriptor, _CHANGING, len(_HEADER))

    def end_change(self) -> None:
        _write(self._descriptor, os.urandom(_GENERATION), len(_HEADER))

    @property
    def identity(self) -> tuple[int, int]:
        status = os.fstat(self._descriptor)
        return status.st_dev, status.st_ino

    def close(self) -> None:
        with _THREADS:  # closing would drop every record lock of this process on the file
            self._words.release()
            self._map.close()
            os.close(self._descriptor)
            self._descriptor = -1  # the number may be another file's from now on


def _write(descriptor: int, content: bytes | bytearray, start: int) -> None:
    if os.pwrite(descriptor, content, start) != len(content):
        raise OSError(0, "short write")
