"""The file of an edition: blocks one after another, and a hash table that leads from a key to its blocks.

It is written once, in order, and then mapped into memory: reading the blocks of a key makes no system call
and copies nothing. (A database would release the interpreter to another thread several times per read, which
on a busy server costs more than the read; see docs/decisions/edition-format.md.)

Rows are nine tenths of an edition and repetitive: a block of rows is stored compressed if that at least
halves it, and recently read blocks are cached decompressed (`ByteCache`). Numbers and columns are read in
place.

Layout, little-endian, every part padded to 8 bytes:

    magic
    blocks       the index of a block, then its rows
    keys         number of blocks, length of the key; the key; for each block its position, the length of its
                 index, and of its rows as stored and decompressed
    table        per slot the hash of a key and its position; an empty slot is zero
    rows         for each block, in order, the position of its rows and their two lengths
    order        the positions of the keys in the order of their bytes, then the digest of the blocks of each
    trailer      position and length of the table, and of the rows; magic
"""

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from hashlib import blake2b
from itertools import count as numbered
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

import msgspec

from sankofa.engines.checked_file import PAGE_BITS, CheckedFile, Damaged
from sankofa.engines.private_files import zstd

Block = tuple[bytes | memoryview, bytes | memoryview]
"""The index of a block and its rows, as the edition has them (`edition.format.row_blocks`)."""
NeedsRows = Callable[[bytes | memoryview], bool]
"""Decides from a block's index whether its rows are needed."""
ByteRange = tuple[int, int, int]
"""A byte range in a block's rows: the address of the block, start and end."""
BLOCK_CACHE_BYTES: Final = 128 << 20
"""Per worker; enough for the rows of about 250,000 figures."""


K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class BoundedCache(Generic[K, V]):
    """A dictionary of bounded size: the oldest entry is dropped first."""

    __slots__ = ("_entries", "_most", "get")

    def __init__(self, most: int) -> None:
        # A plain dict looks past the slots of all dropped entries to find the oldest.
        self._entries: OrderedDict[K, V] = OrderedDict()
        self._most = most
        self.get = self._entries.get  # bound once: some callers ask for every row of an answer

    def put(self, key: K, value: V) -> None:
        self._entries[key] = value
        if len(self._entries) > self._most:
            self._entries.popitem(last=False)


class ByteCache(Generic[K]):
    """Holds the values read last, up to a number of bytes."""

    def __init__(self, most_bytes: int = BLOCK_CACHE_BYTES, entry_bytes: int = 0) -> None:
        """`entry_bytes` is the size of an entry without its value."""
        self._most = most_bytes
        self._entry_bytes = entry_bytes
        self._values: OrderedDict[K, bytes] = OrderedDict()
        self.size = 0

    def get(self, key: K) -> bytes | None:
        try:
            self._values.move_to_end(key)
        except KeyError:
            return None
        return self._values.get(key)

    def get_all(self, keys: Sequence[K]) -> list[bytes | None]:
        """The values of many keys; reading them does not change their age."""
        return list(map(self._values.get, keys))

    def put(self, key: K, value: bytes) -> None:
        if len(value) > self._most or key in self._values:
            return
        self._values[key] = value
        self.size += len(value) + self._entry_bytes
        while self.size > self._most:
            self.size -= len(self._values.popitem(last=False)[1]) + self._entry_bytes


_MAGIC = b"SANKOFA3"
_KEY = struct.Struct("<II")
_EXTENT = struct.Struct("<QIII4x")
_ROWS = struct.Struct("<QII")
_LEAST_COMPRESSED = 4096
"""Rows smaller than this are not compressed: it would cost more time than it saves space."""
_TRAILER = struct.Struct("<QQQQ8s")
_BUFFER = 1 << 20
_DIGEST = 16
_IN_ORDER = 8 + _DIGEST
_AT_ONCE = 512 * 1024
"""Maximum number of bytes that a read verifies itself: half a millisecond."""


Extent = tuple[int, int, int, int]
"""Start of a block; sizes of its index, of its stored rows, and of its decompressed rows."""
_serials = numbered(1)


class NotChecked(Exception):
    """The bytes [start, end) of a file must first be compared with their digests, which takes a while."""

    def __init__(self, file: CheckedFile, start: int, end: int) -> None:
        super().__init__(f"bytes {start} to {end} are not checked")
        self.file = file
        self.start = start
        self.end = end


class StoredBlock(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A block as a file stores it. It can be made in a different process than the writer's."""

    index: bytes
    rows: bytes
    """Compressed if they are JSON, large, and that at least halves them."""
    size: int
    """Bytes of the rows before."""
    digest: bytes

    @property
    def plain(self) -> tuple[bytes, bytes]:
        """The index and the decompressed rows."""
        return self.index, self.rows if len(self.rows) == self.size else zstd.decompress(self.rows)


def stored_block(index: bytes, rows: bytes) -> StoredBlock:
    stored = rows
    if len(rows) >= _LEAST_COMPRESSED and rows[:1] in (b"{", b","):
        packed = zstd.compress(rows, 1)  # a higher level gains a few hundredths and takes five times as long
        stored = packed if 2 * len(packed) < len(rows) else rows
    digest = blake2b(len(index).to_bytes(8, "little"), digest_size=_DIGEST)
    digest.update(index)
    digest.update(rows)
    return StoredBlock(index, stored, len(rows), digest.digest())


class BlockFileWriter:
    """Appends; nothing can be read before `finish`. Every method may raise OSError."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb", buffering=_BUFFER)
        self._at = 0
        self._extents = bytearray()
        """As a key has them."""
        self._rows = bytearray()
        self._block_digests = bytearray()
        self._directory: list[tuple[str, str, int, int]] = []
        self._append(_MAGIC)

    def write(self, blocks: Iterable[StoredBlock]) -> None:
        """Append blocks; they are numbered from 1."""
        for block in blocks:
            at, index, stored = self._at, len(block.index), len(block.rows)
            self._extents += _EXTENT.pack(at, index, stored, block.size)
            self._rows += _ROWS.pack(at + index, stored, block.size)
            self._block_digests += block.digest
            self._append(block.index + block.rows)

    def register(self, directory: Iterable[tuple[str, str, int, int]]) -> None:
        self._directory += directory

    def finish(self) -> None:
        """Writes the keys in order, and a hash table at most half full, so that a lookup is short."""
        hashes, keys, key_digests = array("Q"), array("Q"), bytearray()
        for kind, key, first, count in sorted(self._directory):  # text and bytes sort the same
            name, begin, end = _name(kind, key), first - 1, first - 1 + count
            digests = self._block_digests[_DIGEST * begin : _DIGEST * end]
            key_digests += blake2b(digests, digest_size=_DIGEST).digest()
            hashes.append(_hash(name))
            keys.append(self._at)
            extents = self._extents[_EXTENT.size * begin : _EXTENT.size * end]
            self._append(_KEY.pack(count, len(name)) + name + bytes(-len(name) % 8) + extents)
        slots = max(8, 1 << (2 * len(hashes) - 1).bit_length())
        table = array("Q", bytes(16 * slots))
        for hashed, position in zip(hashes, keys, strict=True):
            slot = hashed & (slots - 1)
            while table[2 * slot]:
                slot = (slot + 1) & (slots - 1)
            table[2 * slot], table[2 * slot + 1] = hashed, position
        blocks = len(self._rows) // _ROWS.size
        trailer = _TRAILER.pack(self._at, slots, self._at + 16 * slots, blocks, _MAGIC)
        self._append(table.tobytes())
        self._append(self._rows)
        self._append(keys.tobytes() + key_digests)
        self._append(trailer)
        self._file.close()

    def close(self) -> None:
        self._file.close()

    def _append(self, part: bytes | bytearray) -> None:
        padding = bytes(-len(part) % 8)
        self._file.write(part + padding if padding else part)
        self._at += len(part) + len(padding)


class BlockFileReader:
    """The file, mapped. All bytes read are verified first; raises Damaged."""

    def __init__(self, file: CheckedFile, cache: ByteCache[Hashable] | None = None) -> None:
        self._cache = cache or ByteCache()
        self._serial = next(_serials) << 48  # offsets of different files are different keys of the cache
        size = file.size
        if size < len(_MAGIC) + _TRAILER.size:
            raise Damaged(f"incomplete: {file.name} is too short")
        self.file, self._state = file, file.state
        # Not through the map: some systems count the whole file as our memory for one byte.
        table, slots, rows, blocks, magic = _TRAILER.unpack(file.read(size - _TRAILER.size, size))
        if magic != _MAGIC:  # the magic before the blocks is not read: it would be one more page to compare
            raise Damaged(f"corrupt: {file.name} is not a file of blocks")
        self._bytes = memoryview(file.map())
        self._table_at, self._rows_at = table, rows
        self._table = self._bytes[table : table + 16 * slots].cast("Q")
        self._mask = slots - 1
        self._blocks = blocks
        self._order_at, end = rows + _ROWS.size * blocks, size - _TRAILER.size
        keys = (end - self._order_at) // _IN_ORDER
        self._digests_at = self._order_at + 8 * keys
        self._order = self._bytes[self._order_at : self._digests_at].cast("Q")
        self._digests = self._bytes[self._digests_at : end]

    def blocks(
        self, kind: str, key: str, skip: int, most: int, needs_rows: NeedsRows | None = None
    ) -> Sequence[Block] | None:
        """See `EditionReader`; uncompressed rows are views of the file. Raises
        NotChecked if many pages must be compared first."""
        name = f"{kind}\0{key}".encode()  # `_name` and `_hash` inlined, to save two calls per read
        hashed = int.from_bytes(blake2b(name, digest_size=8).digest(), "little") or 1
        whole, table, mask = self._bytes, self._table, self._mask
        complete, verified, table_at = self._state.complete, self._state.verified, self._table_at
        slot = hashed & mask
        while True:
            if not complete and not verified[(table_at + 16 * slot) >> PAGE_BITS]:
                self.file.check(table_at + 16 * slot, table_at + 16 * slot + 16)
            if not (occupant := table[2 * slot]):
                return None
            if occupant == hashed:
                at = table[2 * slot + 1]
                if not complete:
                    self._check_key(at)
                count, length = _KEY.unpack_from(whole, at)
                at += _KEY.size
                if whole[at : at + length] == name:
                    at += length + -length % 8
                    if count == 1 and not skip and most:  # most often
                        extent: Extent = _EXTENT.unpack_from(whole, at)
                        if not complete:
                            self._check_extents([extent])
                        return [self.block(extent, needs_rows)]
                    first, last = (
                        at + _EXTENT.size * min(skip, count),
                        at + _EXTENT.size * min(skip + most, count),
                    )
                    extents: list[Extent] = list(_EXTENT.iter_unpack(whole[first:last]))
                    if not complete:
                        self._check_extents(extents)
                    return LazyBlocks(partial(self.block, needs_rows=needs_rows), extents)
            slot = (slot + 1) & mask

    def block(self, extent: Extent, needs_rows: NeedsRows | None = None) -> Block:
        """The index of a block and its rows; rows that are not needed are not decompressed."""
        at, index_size, stored, raw = extent
        rows_at = at + index_size
        whole = self._bytes
        index = whole[at:rows_at]
        if stored == raw:
            return index, whole[rows_at : rows_at + stored]
        rows = self._cache.get(self._serial + rows_at)
        if rows is None:
            if needs_rows is not None and not needs_rows(index):
                return index, b""
            rows = self._decompressed(rows_at, stored)
        return index, rows

    def byte_range(self, block: int, start: int, end: int) -> bytes:
        """Some bytes of a block's rows."""
        at, stored, raw = self._rows_of(block)
        if stored == raw:
            self.file.check(at + start, at + end)
            return bytes(self._bytes[at + start : at + end])
        rows = self._cache.get(self._serial + at)
        if rows is None:
            self.file.check(at, at + stored)
            rows = self._decompressed(at, stored)
        return rows[start:end]

    def _rows_of(self, block: int) -> tuple[int, int, int]:
        """The offset of a block's rows, their stored length and their real length."""
        at = self._rows_at + _ROWS.size * (block - 1)  # numbered from 1
        self.file.check(at, at + _ROWS.size)
        return _ROWS.unpack_from(self._bytes, at)

    def _decompressed(self, at: int, stored: int) -> bytes:
        rows = zstd.decompress(self._bytes[at : at + stored])
        self._cache.put(self._serial + at, rows)
        return rows

    def _check_key(self, at: int) -> None:
        self.file.check(at, at + _KEY.size)
        count, length = _KEY.unpack_from(self._bytes, at)
        self.file.check(at, at + _KEY.size + length + 8 + _EXTENT.size * count)

    def _check_extents(self, extents: list[Extent]) -> None:
        """Checks that the blocks of a key follow each other."""
        if extents:
            at, index, stored, _ = extents[-1]
            self._check(extents[0][0], at + index + stored)

    def _check(self, start: int, end: int) -> None:
        if end - start <= _AT_ONCE:
            self.file.check(start, end)
        elif self.file.needs_check(start, end):
            raise NotChecked(self.file, start, end)

    def digests(self, kind: str, after: str, most: int, *, with_it: bool = False) -> list[tuple[str, bytes]]:
        """See `EditionReader`; `with_it` includes the key itself."""
        self._check(self._order_at, self.file.size)
        prefix = _name(kind, "")
        bisect = bisect_left if with_it else bisect_right
        first = bisect(self._order, _name(kind, after), key=self._name_at)
        numbers = self._order[first : first + most]
        if not self._state.complete:
            for at in numbers:
                self._check_key(at)
        whole, unpack, start, begin = self._bytes, _KEY.unpack_from, _KEY.size, len(prefix)
        listed = bytes(self._digests[_DIGEST * first : _DIGEST * (first + most)])
        digests = []
        digest_at = 0
        for at in numbers:
            name = bytes(whole[at + start : at + start + unpack(whole, at)[1]])
            if not name.startswith(prefix):
                break
            digests.append((str(name[begin:], "utf-8"), listed[digest_at : digest_at + _DIGEST]))
            digest_at += _DIGEST
        return digests

    def _name_at(self, at: int) -> bytes:
        if not self._state.complete:
            self._check_key(at)
        _, length = _KEY.unpack_from(self._bytes, at)
        return bytes(self._bytes[at + _KEY.size : at + _KEY.size + length])


class LazyBlocks(Sequence[Block]):
    """Blocks that are each read when they are reached, so that the reader can yield between them."""

    __slots__ = ("_positions", "_read")

    def __init__(self, read: Callable[[Any], Block], positions: Sequence[Any]) -> None:
        self._read, self._positions = read, positions

    def __len__(self) -> int:
        return len(self._positions)

    def __getitem__(self, number: Any) -> Any:
        return self._read(self._positions[number])


def _name(kind: str, key: str) -> bytes:
    return f"{kind}\0{key}".encode()


def _hash(name: bytes) -> int:
    return int.from_bytes(blake2b(name, digest_size=8).digest(), "little") or 1
