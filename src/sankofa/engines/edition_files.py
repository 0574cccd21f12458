"""The files that editions are made of. Each is known by its SHA-256 and never changes; an edition that has
the same file as one before it has it by a link to the same inode, so it is stored once and compared once.
"""

import os
import shutil
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

from sankofa.engines.block_cache import BlockCache
from sankofa.engines.block_file import BlockFileReader
from sankofa.engines.checked_file import PAGE, CheckedFile, FileStates, page_digests

_READ: Final = 16 * PAGE


class StoredFile(NamedTuple):
    """A finished file: its digest, its size and the digests of its pages."""

    sha256: str
    size: int
    pages: bytes


def describe_file(path: Path) -> StoredFile:
    """Read a finished file once for all its digests."""
    whole = sha256()
    pages = bytearray()
    size = 0
    with path.open("rb", buffering=0) as file:
        while chunk := file.read(_READ):
            whole.update(chunk)
            size += len(chunk)
            pages += page_digests(chunk)
    return StoredFile(whole.hexdigest(), size, bytes(pages))


def link_or_copy(source: Path, destination: Path) -> None:
    """The same file under another name; a copy where the file system has no links, or not of this owner's."""
    destination.unlink(missing_ok=True)
    try:
        os.link(source, destination)
    except OSError:
        shutil.copyfile(source, destination)


class OpenPart:
    """A file of blocks that is open."""

    def __init__(self, path: Path, file: StoredFile, states: FileStates, cache: BlockCache) -> None:
        self.file = CheckedFile(path, file.size, file.pages, states)
        self.blocks = BlockFileReader(self.file, cache)


class OpenParts:
    """The files of blocks that this process has open: editions that share one share its map and its cache."""

    def __init__(self, states: FileStates, cache: BlockCache | None = None) -> None:
        self.states = states
        self._cache = cache or BlockCache()
        self._open: WeakValueDictionary[tuple[int, int, bytes], OpenPart] = WeakValueDictionary()

    def open(self, path: Path, file: StoredFile) -> OpenPart:
        """Raises Damaged, or OSError where it is not there."""
        status = path.stat()
        key = status.st_dev, status.st_ino, file.pages
        part = self._open.get(key)
        if part is None or part.file.state.damage or part.file.state.suspicion:
            part = self._open[key] = OpenPart(path, file, self.states, self._cache)
        return part
