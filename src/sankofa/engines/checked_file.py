"""Files of an edition whose pages are compared with their digests before they are used.

The digests are part of the edition and sealed with it (`engines.manifest`). A page is compared when it is
first read, and again by a scrub in the background; so an edition opens at once, whatever its size.
"""

import fcntl
import mmap
import os
import signal
import stat
import sys
import weakref
from hashlib import blake2b
from pathlib import Path
from typing import Final

PAGE_BITS: Final = 16
PAGE: Final = 1 << PAGE_BITS
DIGEST: Final = 16
_READ: Final = 1 << 20  # a multiple of a page
_FIRST_SCRUB: Final = 4
_F_SETSIG: Final = 10  # Linux; the module fcntl lacks the name


class Damaged(Exception):
    """A file differs from what was published."""


class FileState:
    """This process's knowledge of a file. It outlives the readers of the file."""

    def __init__(self, identity: tuple[int, int, int, int], path: Path) -> None:
        self.identity = identity
        """Device, inode, size and time of writing. Writing or replacing the file changes it, another link
        does not."""
        self.path = path
        """The path it was last opened under: editions that share it have several paths."""
        self.verified = bytearray(page_count(identity[2]))
        self.complete = not self.verified
        self.damage: str | None = None
        """The fault that was found. A damaged file is not read again."""
        self.suspicion: str | None = None
        """The report that another process was about to write to it; None again after it is reopened."""


class FileStates:
    """The states of the files this process has opened: reopening a file compares no page again."""

    def __init__(self) -> None:
        self._states: dict[tuple[int, int], FileState] = {}

    def state(self, path: Path, status: os.stat_result) -> FileState:
        inode = status.st_dev, status.st_ino
        identity = *inode, status.st_size, status.st_mtime_ns
        known = self._states.get(inode)
        if known is None or known.identity != identity:
            known = self._states[inode] = FileState(identity, path)
        known.path = path
        return known

    def damage_of(self, status: os.stat_result) -> str | None:
        """The fault of a file, found when it was last opened or since."""
        state = self._states.get((status.st_dev, status.st_ino))
        return None if state is None else state.damage or state.suspicion

    def forget_missing(self) -> None:
        for key, state in list(self._states.items()):
            if not state.path.exists():
                self._states.pop(key, None)


def page_count(size: int) -> int:
    return -(-size >> PAGE_BITS)


def page_digests(chunk: bytes) -> bytes:
    """The concatenated digests of a chunk's pages, from its first page on."""
    view = memoryview(chunk)
    pages = (view[start : start + PAGE] for start in range(0, len(chunk), PAGE))
    return b"".join(blake2b(page, digest_size=DIGEST).digest() for page in pages)


class CheckedFile:
    """A file of an edition. Reads raise Damaged if it differs from what was published.

    It stays readable after its edition is removed, and closes with its last reference.
    """

    def __init__(self, path: Path, size: int, digests: bytes, states: FileStates) -> None:
        self.name = path.name
        self.size = size
        self._digests = digests
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        self.close = weakref.finalize(self, os.close, self._descriptor)
        self.close.atexit = False
        status = os.fstat(self._descriptor)
        self.state = states.state(path, status)
        self._scrub_page = 0
        self.is_leased = False
        if self.state.damage is not None:
            raise Damaged(self.state.damage)
        if not stat.S_ISREG(status.st_mode):
            raise Damaged(f"{self.name} is not a file")
        if status.st_size != size:
            raise self._damaged(f"incomplete: {self.name} has {status.st_size} of {size} bytes")
        if len(digests) != DIGEST * page_count(size):
            raise Damaged(f"{self.name} has no digests")

    def check(self, start: int, end: int) -> None:
        """Compares the pages of [start, end) that were not compared before."""
        if self.state.complete:
            return
        verified = self.state.verified
        last = min(page_count(end), len(verified))
        page = verified.find(0, start >> PAGE_BITS, last)
        while page >= 0:
            following = verified.find(1, page, last)
            self._compare(page, last if following < 0 else following)
            page = verified.find(0, page, last)

    def needs_check(self, start: int, end: int) -> bool:
        return (
            not self.state.complete and self.state.verified.find(0, start >> PAGE_BITS, page_count(end)) >= 0
        )

    def check_all(self, most: int = sys.maxsize) -> int:
        """Compares pages that were not compared yet, up to a number of bytes; returns how many."""
        step = _READ >> PAGE_BITS
        verified = self.state.verified
        compared = 0
        while not self.state.complete and (page := verified.find(0)) >= 0:
            if compared >= most:
                return compared
            last = min(page + step, len(verified))
            self._compare(page, last)
            compared += (last - page) << PAGE_BITS
        self.state.complete = True
        return compared

    def scrub(self, most: int) -> int:
        """Compares the next bytes again; returns how many, 0 at the end. The first pass goes faster,
        because reads are slower until it is done."""
        self.check_size()
        if not self.state.complete:
            most *= _FIRST_SCRUB
        first = self._scrub_page
        last = min(first + max(most >> PAGE_BITS, 1), len(self.state.verified))
        self._scrub_page = 0 if last == len(self.state.verified) else last
        if first < last:
            self._compare(first, last)
        if not self._scrub_page and self.state.verified.find(0) < 0:
            self.state.complete = True
        return (last - first) << PAGE_BITS if self._scrub_page else 0

    def read(self, start: int, end: int) -> bytes:
        """The bytes [start, end), from pages that were compared."""
        self.check_size()
        self.check(start, end)
        content = os.pread(self._descriptor, end - start, start)
        if len(content) != end - start:
            raise self._damaged(f"incomplete: {self.name} ends at byte {start + len(content)}")
        return content

    def check_size(self) -> None:
        if (size := os.fstat(self._descriptor).st_size) != self.size:
            raise self._damaged(f"incomplete: {self.name} has {size} of {self.size} bytes")
        if self.state.damage is not None:
            raise Damaged(self.state.damage)

    def map(self) -> mmap.mmap:
        """The file mapped into memory. Reading the map of a truncated file would kill the process, hence
        the lease: others must wait to truncate or write until this map is closed.

        Raises Damaged if it is open for writing.
        """
        try:
            fcntl.fcntl(self._descriptor, _F_SETSIG, signal.SIGURG)  # ignored by default: `check_lease` asks
            fcntl.fcntl(self._descriptor, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            self.is_leased = True
        except BlockingIOError:
            raise self._suspected() from None
        except OSError:  # another owner, or a file system without leases
            self.is_leased = False
        self.state.suspicion = None
        return mmap.mmap(self._descriptor, 0, access=mmap.ACCESS_READ)

    def check_lease(self) -> None:
        """Raises Damaged once another process waits to write to the file, or it was cut short."""
        self.check_size()
        if self.is_leased and fcntl.fcntl(self._descriptor, fcntl.F_GETLEASE) != fcntl.F_RDLCK:
            raise self._suspected()

    def _compare(self, first: int, last: int) -> None:
        step = _READ >> PAGE_BITS
        for page in range(first, last, step):
            stop = min(page + step, last)
            start, size = page << PAGE_BITS, min(stop << PAGE_BITS, self.size) - (page << PAGE_BITS)
            try:
                content = os.pread(self._descriptor, size, start)
            except OSError as failure:
                raise self._damaged(f"corrupt: {self.name} cannot be read: {failure.strerror}") from None
            if len(content) != size:
                raise self._damaged(f"incomplete: {self.name} ends at byte {start + len(content)}")
            digests, expected = page_digests(content), self._digests[DIGEST * page : DIGEST * stop]
            if digests != expected:
                pairs = enumerate(zip(digests, expected, strict=True))
                at = (page + next(n for n, (one, other) in pairs if one != other) // DIGEST) << PAGE_BITS
                raise self._damaged(f"corrupt: {self.name} is not what was published at byte {at}")
            self.state.verified[page:stop] = b"\1" * (stop - page)

    def _suspected(self) -> Damaged:
        self.state.suspicion = f"{self.name} is being written to"
        return Damaged(self.state.suspicion)

    def _damaged(self, message: str) -> Damaged:
        self.state.damage = message
        return Damaged(message)
