"""A file of cached records: the derived parts of each issuer, or the summary of each partition.

A record is only reused under the same key, a digest of all its inputs and of the code (`write.issuer_parts`).
So it is what making it again would give, byte for byte. A missing, truncated or altered file costs time and
nothing else.

Layout: magic; the records, each after a head, with parts that are compressed one by one; the index with the
key, the positions of the parts and the checksum of each name; the start of the index, its digest, magic.
After a build that was killed, the heads lead to the records it had made, and the next build reuses them.
"""

import os
import struct
import tempfile
import weakref
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple
from zlib import crc32

import msgspec

if TYPE_CHECKING:
    import pyarrow

_MAGIC = b"SANKEPT3"
_DIGEST = 16
_TRAILER = struct.Struct(f"<Q{_DIGEST}s8s")
_HEAD = struct.Struct("<III")
"""Before each record: size of its head, checksum of the head, size of the record."""


class _Part(msgspec.Struct, frozen=True, array_like=True):
    """Position of a part within its record, and its size uncompressed."""

    start: int
    end: int
    size: int


class _Record(msgspec.Struct, frozen=True, array_like=True):
    """Position of a record and of its parts."""

    key: bytes
    start: int
    end: int
    parts: dict[str, _Part]
    checksum: int


class PackedRecord(NamedTuple):
    """The compressed parts of a record."""

    parts: dict[str, _Part]
    content: bytes


_Index = dict[str, _Record]
_read_index = msgspec.msgpack.Decoder(_Index).decode
_read_head = msgspec.msgpack.Decoder(tuple[str, bytes, dict[str, _Part], int]).decode


class _FileBytes:
    """The bytes of a file, read on demand: a memory map would grow to the size of the file."""

    def __init__(self, file: IO[bytes] | None = None) -> None:
        self._size = 0
        if file is not None:
            self._descriptor = os.dup(file.fileno())
            weakref.finalize(self, os.close, self._descriptor)
            self._size = os.fstat(self._descriptor).st_size

    def __len__(self) -> int:
        return self._size

    def read(self, start: int, end: int) -> bytes:
        """Fewer bytes if the file ends before: a damaged index may say anything. Raises OSError."""
        start, end = max(start, 0), min(end, self._size)
        return os.pread(self._descriptor, end - start, start) if start < end else b""


class IssuerCache:
    """Records by name. `carry` and `put` write a new file, which is read once it is finished."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._bytes, self._index = _open(path)
        self._begun_bytes, self._begun = _recover(path)
        self._next: _Index = {}
        self._file, self._name = _create(path)
        self._file.write(_MAGIC)
        self._end = len(_MAGIC)
        self.carried = 0

    def carry(self, name: str, key: bytes) -> bool:
        """Copy the record of this name to the new file, if it is whole and has this key; whether it was."""
        for whole, index in ((self._bytes, self._index), (self._begun_bytes, self._begun)):
            record = index.get(name)
            if record is not None and record.key == key:
                packed = _read(whole, record.start, record.end)
                if crc32(packed) == record.checksum:
                    self._write(name, key, record.parts, packed)
                    self.carried += 1
                    return True
        return False

    def put(self, name: str, key: bytes, record: PackedRecord) -> None:
        """Add a new record."""
        self._write(name, key, record.parts, record.content)

    def finish(self) -> None:
        """Replace the old file by the new one, and read from it."""
        index = msgspec.msgpack.encode(self._next)
        self._file.write(index + _TRAILER.pack(self._end, _digest(index), _MAGIC))
        self._file.flush()
        self._bytes = _FileBytes(self._file)
        self._index, self._next = self._next, {}
        self._begun_bytes, self._begun = _FileBytes(), {}
        if self._path is not None and self._name is not None:
            with suppress(OSError):
                self._name.replace(self._path)
                self._name = None
        self.close()

    def read(self, name: str, part: str) -> bytes:
        """A part of a record; empty if there is none."""
        record = self._index.get(name)
        position = None if record is None else record.parts.get(part)
        if record is None or position is None:
            return b""
        packed = self._bytes.read(record.start + position.start, record.start + position.end)
        return bytes(_codec().decompress(packed, position.size, asbytes=True))

    def key(self, name: str) -> bytes:
        """The key of a record; empty if there is none."""
        record = self._index.get(name)
        return b"" if record is None else record.key

    def size(self, name: str) -> int:
        """Size of the parts of a record, uncompressed."""
        record = self._index.get(name)
        return 0 if record is None else sum(part.size for part in record.parts.values())

    def close(self) -> None:
        """Drop the new file, unless it is finished."""
        with suppress(OSError):
            self._file.close()
        if self._name is not None:
            self._name.unlink(missing_ok=True)
            self._name = None

    def interrupt(self) -> None:
        """Leave the unfinished file for the next build, as a killed build does."""
        self._name = None
        self.close()

    def _write(self, name: str, key: bytes, parts: dict[str, _Part], packed: bytes) -> None:
        checksum = crc32(packed)
        head = msgspec.msgpack.encode((name, key, parts, checksum))
        self._file.write(_HEAD.pack(len(head), crc32(head), len(packed)) + head)
        self._file.write(packed)
        start = self._end + _HEAD.size + len(head)
        self._end = start + len(packed)
        self._next[name] = _Record(key, start, self._end, parts, checksum)


def pack_record(parts: Mapping[str, bytes]) -> PackedRecord:
    packed: list[bytes] = []
    positions: dict[str, _Part] = {}
    end = 0
    for part, content in parts.items():
        packed.append(_codec().compress(content, asbytes=True))
        start, end = end, end + len(packed[-1])
        positions[part] = _Part(start, end, len(content))
    return PackedRecord(positions, b"".join(packed))


def _create(path: Path | None) -> tuple[IO[bytes], Path | None]:
    """A new file beside this one; or an unnamed one if that is not possible."""
    if path is not None:
        with suppress(OSError):
            for left in path.parent.glob(f".{path.name}-*"):  # left by a build that was killed
                left.unlink(missing_ok=True)
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
            return os.fdopen(descriptor, "w+b", buffering=1 << 20), Path(name)
    return tempfile.TemporaryFile(buffering=1 << 20), None


def _open(path: Path | None) -> tuple[_FileBytes, _Index]:
    """The file and its index; nothing if it is not whole."""
    nothing: tuple[_FileBytes, _Index] = _FileBytes(), {}
    if path is None:
        return nothing
    try:
        with path.open("rb") as file:
            whole = _FileBytes(file)
        end = len(whole) - _TRAILER.size
        at, digest, magic = _TRAILER.unpack(whole.read(max(end, 0), len(whole)))
        index = whole.read(at, end)
        if magic != _MAGIC or _digest(index) != digest:
            return nothing
        return whole, _read_index(index)
    except (OSError, ValueError, struct.error, msgspec.MsgspecError):
        return nothing


def _recover(path: Path | None) -> tuple[_FileBytes, _Index]:
    """The records of a killed build, as far as they reached the disk."""
    index: _Index = {}
    for left in [] if path is None else sorted(path.parent.glob(f".{path.name}-*")):
        try:
            with left.open("rb") as file:
                whole = _FileBytes(file)
            at = len(_MAGIC)
            if whole.read(0, at) != _MAGIC:
                continue
            while at + _HEAD.size <= len(whole):
                size, checksum, packed = _HEAD.unpack(whole.read(at, at + _HEAD.size))
                head = whole.read(at + _HEAD.size, at + _HEAD.size + size)
                start = at + _HEAD.size + size
                at = start + packed
                if crc32(head) != checksum or at > len(whole):
                    break
                name, key, parts, of_record = _read_head(head)
                index[name] = _Record(key, start, at, parts, of_record)
        except (OSError, ValueError, msgspec.MsgspecError):
            continue
        return whole, index
    return _FileBytes(), {}


@cache
def _codec() -> "pyarrow.Codec":
    """Decompresses four times as fast as zstd, and stores half as much again."""
    import pyarrow

    return pyarrow.Codec("lz4_raw")


def _read(whole: _FileBytes, start: int, end: int) -> bytes:
    """Empty if it cannot be read; no checksum matches that."""
    try:
        return whole.read(start, end)
    except OSError:
        return b""


def _digest(index: bytes) -> bytes:
    return blake2b(index, digest_size=_DIGEST).digest()
