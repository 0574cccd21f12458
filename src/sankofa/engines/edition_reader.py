"""Reads an edition from its folder (`engines.edition_folder` describes the files).

Each file is known by its SHA-256 and never changes. An edition that has the same file as the one before it
links to the same inode, so the file is stored once and checked once.
"""

import asyncio
import errno
import os
import shutil
import sys
from bisect import bisect_right
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple, cast
from weakref import WeakValueDictionary

from sankofa.engines.block_file import Block, BlockFileReader, ByteCache, ByteRange, NeedsRows, NotChecked
from sankofa.engines.checked_file import (
    DIGEST,
    PAGE,
    CheckedFile,
    Damaged,
    FileStates,
    page_count,
    page_digests,
)
from sankofa.engines.edition_log import row_trees_path
from sankofa.engines.publication import Manifest, open_manifest
from sankofa.model.errors import EditionError, StoreUnavailable

_READ: Final = 16 * PAGE
BLOCK_BITS: Final = 18
"""The lower bits of an address are the block's number in its part, the others the part's number within its
kind. So the content of one part moves no address in another."""
ALIASES: Final = "alias"
"""The kind whose keys are an organisation's other ids; each leads to the key of its rows."""


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
    """Hard-links a file under another name; copies it if the file system does not allow the link."""
    destination.unlink(missing_ok=True)
    try:
        os.link(source, destination)
    except OSError:
        shutil.copyfile(source, destination)


class OpenParts:
    """The block files that this process has open; editions that share a file share its map and cache."""

    def __init__(self, states: FileStates, cache: ByteCache[Hashable] | None = None) -> None:
        self.states = states
        self.cache = cache or ByteCache()
        self._open: WeakValueDictionary[tuple[int, int, bytes], BlockFileReader] = WeakValueDictionary()

    def open(self, path: Path, file: StoredFile) -> BlockFileReader:
        """Raises Damaged, or OSError if it is missing."""
        status = path.stat()
        key = status.st_dev, status.st_ino, file.pages
        part = self._open.get(key)
        if part is None or part.file.state.damage or part.file.state.suspicion:
            checked = CheckedFile(path, file.size, file.pages, self.states)
            part = self._open[key] = BlockFileReader(checked, self.cache)
        return part


_BLOCK_MASK: Final = (1 << BLOCK_BITS) - 1


class PartsByKind:
    """The parts that have keys of each kind, in the order of their keys."""

    __slots__ = ("_firsts", "_parts")

    def __init__(self, manifest: Manifest, parts: Sequence[BlockFileReader]) -> None:
        """`parts` are the manifest's parts, in its order."""
        self._firsts: dict[str, list[str]] = {}
        self._parts: dict[str, list[BlockFileReader]] = {}
        for entry, part in zip(manifest["parts"], parts, strict=True):
            for kind in entry["kinds"]:
                self._firsts.setdefault(kind, []).append(entry["first"])
                self._parts.setdefault(kind, []).append(part)

    def of_key(self, kind: str, key: str) -> BlockFileReader | None:
        """The part that has the key, if any has."""
        if (parts := self._parts.get(kind)) is None:
            return None
        if len(parts) == 1:
            return parts[0]
        return parts[max(bisect_right(self._firsts[kind], key) - 1, 0)]

    def count(self, kind: str) -> int:
        return len(self._parts[kind])

    def of_block(self, kind: str, block: int) -> tuple[BlockFileReader, int]:
        """The part of a block, and its number there."""
        return self._parts[kind][block >> BLOCK_BITS], block & _BLOCK_MASK

    def spans(self, kind: str, after: str) -> Iterator[tuple[BlockFileReader, str, str | None]]:
        """The parts with keys after a given key, in order, each with its first key and the next part's."""
        firsts, parts = self._firsts.get(kind, []), self._parts.get(kind, [])
        begin = max(bisect_right(firsts, after) - 1, 0)
        yield from zip(parts[begin:], firsts[begin:], [*firsts[begin + 1 :], None], strict=False)

    def clear(self) -> None:
        self._firsts.clear()
        self._parts.clear()


PARTS = "parts"
FILES = "files"
MANIFEST = "manifest.json"
CHECKSUMS = "checksums"
_CHECKED_AT_OPENING = 16 << 20
"""Bytes to verify when an edition opens: all of a small edition, some hundredths of a second for a large
one."""
_RANGES_AT_ONCE = 128


@contextmanager
def edition_errors(folder: Path) -> Iterator[None]:
    """Turn any fault of an edition's files into an EditionError that names it."""
    try:
        yield
    except FileNotFoundError as failure:
        missing = Path(failure.filename).name
        raise EditionError(f"edition {folder.name}: incomplete: {missing} is missing") from None
    except Damaged as damage:
        raise EditionError(f"edition {folder.name}: {damage}") from None
    except (ValueError, KeyError, TypeError, OSError) as failure:
        if isinstance(failure, OSError) and failure.errno in (errno.EMFILE, errno.ENFILE):
            raise EditionError(f"edition {folder.name}: cannot be opened: {failure.strerror}") from failure
        raise EditionError(f"edition {folder.name}: corrupt: {failure}") from failure


class EditionReader:
    """A published edition, immutable. Reads take microseconds, so they run in the event loop.

    A read raises StoreUnavailable if the content is damaged. Then `damage` is set, and the edition should no
    longer be served.
    """

    def __init__(
        self, folder: Path, opened: OpenParts, seal: str | None = None, *, check_all: bool = False
    ) -> None:
        """`seal` is the signed digest of its manifest; None if nothing is signed yet."""
        self.scope: Hashable = folder.name
        """Its id, the prefix of cache names."""
        self.cache = opened.cache
        """Blocks, decompressed or in another form, of all editions of this process."""
        self._row_trees = row_trees_path(folder)
        self.damage: str | None = None
        with edition_errors(folder):
            self.manifest: Manifest = read_manifest(folder, seal)
            stored = stored_files(folder, self.manifest)
            parts = [opened.open(path, file) for path, file in stored[: len(self.manifest["parts"])]]
            self._files = {
                path.name: CheckedFile(path, file.size, file.pages, opened.states)
                for path, file in stored[len(parts) :]
            }
            self._scrubbed = [*(part.file for part in parts), *self._files.values()]
            most = sys.maxsize if check_all else _CHECKED_AT_OPENING
            for file in self._scrubbed:  # the rest is compared when it is read, and by `scrub`
                most -= file.check_all(most) if most > 0 else 0
            self._mapped = [part.file for part in parts]
            self._parts = PartsByKind(self.manifest, parts)
        self._ranges: dict[str, ByteCache[ByteRange]] = {}
        """Rows of a kind by byte range. A metric's top rows change little from day to day, so rows of
        thousands of screens fit."""

    async def blocks(
        self, kind: str, key: str, skip: int, most: int, needs_rows: NeedsRows | None = None
    ) -> Sequence[Block] | None:
        """Up to `most` blocks (index, rows) under a key, after the first `skip`; None if there is no such
        key. If `needs_rows` refuses the index of a block, its rows may be left out."""
        if (part := self._parts.of_key(kind, key)) is None:
            return None
        try:
            blocks = part.blocks(kind, key, skip, most, needs_rows)
            if blocks is None and (target := self._target(kind, key)) is not None:
                blocks = target.blocks(kind, key, skip, most, needs_rows)
        except (NotChecked, Damaged) as reason:
            await self._check(reason)
            return await self.blocks(kind, key, skip, most, needs_rows)
        return blocks

    def _target(self, kind: str, key: str) -> BlockFileReader | None:
        """The part that has the rows under a key that leads to another."""
        parts = self._parts
        if parts.count(kind) == 1 or (aliases := parts.of_key(ALIASES, key)) is None:
            return None
        rows = aliases.blocks(ALIASES, key, 0, 1)
        return parts.of_key(kind, str(rows[0][1], "utf-8")) if rows else None

    async def byte_ranges(self, kind: str, ranges: Sequence[ByteRange]) -> Sequence[bytes | memoryview]:
        """Bytes out of the rows of blocks of a kind, whatever their keys: one value for each range.

        Yields to other requests between ranges, because each may need to decompress a block.
        """
        if (cached := self._ranges.get(kind)) is None:
            cached = self._ranges[kind] = ByteCache(32 << 20, entry_bytes=256)
        contents = cached.get_all(ranges)
        read = 0
        try:
            for number, content in enumerate(contents):
                if content is None:
                    block, start, end = ranges[number]
                    part, own_number = self._parts.of_block(kind, block)
                    contents[number] = content = part.byte_range(own_number, start, end)
                    cached.put(ranges[number], content)
                    read += 1
                    if read % _RANGES_AT_ONCE == 0:
                        await asyncio.sleep(0)
        except Damaged as damage:
            raise self._unavailable(damage) from None
        return cast("list[bytes]", contents)

    async def file_bytes(self, name: str, start: int, end: int) -> bytes:
        """The bytes [start, end) of one of its files, read in a thread: a slow disk blocks no request."""
        try:
            return await asyncio.to_thread(self._files[name].read, start, end)
        except Damaged as damage:
            raise self._unavailable(damage) from None

    def row_trees(self) -> bytes:
        """The hashes of its rows. Raises OSError if this machine has none."""
        return self._row_trees.read_bytes()

    async def digests(self, kind: str, after: str, most: int) -> Sequence[tuple[str, bytes]]:
        """Up to `most` keys of a kind after a key, in byte order, each with a digest of its blocks for
        comparison with another edition of the same store."""
        digests: list[tuple[str, bytes]] = []
        try:
            for part, first, end in self._parts.spans(kind, after):
                some = part.digests(kind, max(after, first), most - len(digests), with_it=after < first)
                # An alias key is in its target's part, out of order.
                digests += [one for one in some if end is None or one[0] < end]
                if len(digests) == most:
                    break
        except (NotChecked, Damaged) as reason:
            await self._check(reason)
            return await self.digests(kind, after, most)
        return digests

    def scrub(self, most: int) -> None:
        """Verifies about `most` more bytes, and starts over at the end. With 0 it only checks whether another
        process is about to change the file. Call it in a thread."""
        try:
            for file in self._mapped:
                file.check_lease()
            if most and not self._scrubbed[0].scrub(most):
                self._scrubbed = [*self._scrubbed[1:], self._scrubbed[0]]
        except Damaged as damage:
            self.damage = str(damage)

    def close(self) -> None:
        """A part closes with the last edition that uses it, its map with its last view, because an answer may
        still be in transit."""
        self._parts.clear()
        self._ranges.clear()
        self._mapped, self._scrubbed = [], []
        for file in self._files.values():
            file.close()

    async def _check(self, reason: NotChecked | Damaged) -> None:
        """Compares the pages of a large read in a thread."""
        try:
            if isinstance(reason, Damaged):
                raise reason
            await asyncio.to_thread(reason.file.check, reason.start, reason.end)
        except Damaged as damage:
            raise self._unavailable(damage) from None

    def _unavailable(self, damage: Damaged) -> StoreUnavailable:
        self.damage = str(damage)
        return StoreUnavailable("datastore", f"edition {self.scope}: {damage}")


def read_manifest(folder: Path, seal: str | None = None) -> Manifest:
    """Raises ValueError if it is not the signed one, OSError if it cannot be read."""
    content = (folder / MANIFEST).read_bytes()
    return open_manifest(content, seal or sha256(content).hexdigest(), folder.name)


class ListedFile(NamedTuple):
    path: str
    size: int
    sha256: str


def listed_files(manifest: Manifest) -> list[ListedFile]:
    """The files that a manifest lists, in the order of their page digests in the file `checksums`."""
    parts = manifest["parts"]
    named = [ListedFile(f"{PARTS}/{part['sha256']}", part["size_bytes"], part["sha256"]) for part in parts]
    files = manifest.get("files", ())
    return [*named, *(ListedFile(f"{FILES}/{f['name']}", f["size_bytes"], f["sha256"]) for f in files)]


def stored_files(folder: Path, manifest: Manifest) -> list[tuple[Path, StoredFile]]:
    """Every part and every Parquet file, with the digests of its pages. Raises Damaged, OSError, KeyError."""
    checksums = (folder / CHECKSUMS).read_bytes()
    if sha256(checksums).hexdigest() != manifest["checksums_sha256"]:
        raise Damaged(f"corrupt: {CHECKSUMS} is not what was published")
    files = []
    start = 0
    for path, size, digest in listed_files(manifest):
        end = start + DIGEST * page_count(size)
        files.append((folder / path, StoredFile(digest, size, checksums[start:end])))
        start = end
    return files
