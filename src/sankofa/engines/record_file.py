"""Results of a build, kept for the next one: a file of records, each under its name and its key.

A record is only reused under the same key, a digest of all its inputs and of the code. So recomputing it
would give the same bytes. A missing, truncated or altered file only costs time.

Layout: magic; then the records, each after a head with its name, its key, the positions of its parts, which
are compressed one by one, and a checksum. A file is read head by head up to the first damage. So the next
build reuses the records that a killed build finished.
"""

import os
import struct
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple
from zlib import crc32

import msgspec

if TYPE_CHECKING:
    import pyarrow

_MAGIC = b"SANKEPT4"
_HEAD = struct.Struct("<III")
"""Before each record: size of its head, checksum of the head, size of the record."""


class _Part(msgspec.Struct, frozen=True, array_like=True):
    """Position of a part within its record, and its size uncompressed."""

    start: int
    end: int
    size: int


class PackedRecord(NamedTuple):
    parts: dict[str, _Part]
    content: bytes

    def part(self, name: str) -> bytes:
        """A part of the record; it must exist."""
        return _unpacked(self.content[self.parts[name].start : self.parts[name].end], self.parts[name])


class _Record(NamedTuple):
    key: bytes
    parts: dict[str, _Part]
    checksum: int
    start: int
    end: int


_read_head = msgspec.msgpack.Decoder(tuple[str, bytes, dict[str, _Part], int]).decode


class _Records:
    """The records of a file, read on demand: a memory map would grow to the size of the file."""

    def __init__(self, file: IO[bytes]) -> None:
        self._descriptor = os.dup(file.fileno())
        weakref.finalize(self, os.close, self._descriptor)
        self.records: dict[str, _Record] = {}
        """By name."""

    def read(self, start: int, end: int) -> bytes:
        """Raises OSError."""
        return os.pread(self._descriptor, end - start, start)

    def whole(self, record: _Record) -> PackedRecord | None:
        """A record; None if it is damaged."""
        with suppress(OSError):
            content = self.read(record.start, record.end)
            if crc32(content) == record.checksum:
                return PackedRecord(record.parts, content)
        return None

    def scan(self) -> None:
        """Find the records, as far as the file is whole."""
        at, size = len(_MAGIC), os.fstat(self._descriptor).st_size
        if self.read(0, at) != _MAGIC:
            return
        while at + _HEAD.size <= size:
            length, checksum, content = _HEAD.unpack(self.read(at, at + _HEAD.size))
            start = at + _HEAD.size + length
            head = self.read(at + _HEAD.size, start) if start <= size else b""
            at = start + content
            if at > size or crc32(head) != checksum:
                return
            name, key, parts, digest = _read_head(head)
            self.records[name] = _Record(key, parts, digest, start, at)


class RecordFile:
    """Records by name. `carry` and `put` write a new file, which is read once it is finished."""

    def __init__(self, path: Path | None) -> None:
        """Without a path nothing is kept for the next build."""
        self._path = path
        self._before = _files_of(path)
        self._file, self._name = _create(path)
        weakref.finalize(self, self._file.close)
        self._records = _Records(self._file)
        self._file.write(_MAGIC)
        self._end = len(_MAGIC)

    def carry(self, name: str, key: bytes) -> PackedRecord | None:
        """Copy the record of this name to the new file, if it is whole and has this key."""
        for before in self._before:
            known = before.records.get(name)
            if known is not None and known.key == key and (record := before.whole(known)):
                self.put(name, key, record)
                return record
        return None

    def put(self, name: str, key: bytes, record: PackedRecord) -> None:
        checksum = crc32(record.content)
        head = msgspec.msgpack.encode((name, key, record.parts, checksum))
        self._file.write(_HEAD.pack(len(head), crc32(head), len(record.content)) + head)
        self._file.write(record.content)
        start = self._end + _HEAD.size + len(head)
        self._end = start + len(record.content)
        self._records.records[name] = _Record(key, record.parts, checksum, start, self._end)

    def fill(self, records: Iterable[tuple[str, bytes, PackedRecord]]) -> None:
        """Add records, and finish the file."""
        with self.writing():
            for name, key, record in records:
                self.put(name, key, record)

    @contextmanager
    def writing(self) -> Iterator["RecordFile"]:
        """Replace the old file by the new one at the end, and read from that."""
        try:
            yield self
            self._file.flush()
            if self._path is not None and self._name is not None:
                with suppress(OSError):
                    self._name.replace(self._path)
                    self._name = None
        except OSError:  # disk full: leave no unfinished file
            self.close()
            raise
        except BaseException:  # keep it for the next build, like a killed build
            self._name = None
            self.close()
            raise
        self._before = []
        self.close()

    def read(self, name: str, part: str) -> bytes:
        """A part of a record; empty if there is none."""
        record = self._records.records.get(name)
        position = None if record is None else record.parts.get(part)
        if record is None or position is None:
            return b""
        packed = self._records.read(record.start + position.start, record.start + position.end)
        return _unpacked(packed, position)

    def key(self, name: str) -> bytes:
        """The key of a record; empty if there is none."""
        record = self._records.records.get(name)
        return b"" if record is None else record.key

    def close(self) -> None:
        """Drop the new file, unless it is finished."""
        with suppress(OSError):
            self._file.close()
        if self._name is not None:
            self._name.unlink(missing_ok=True)
            self._name = None


def pack_record(parts: Mapping[str, bytes]) -> PackedRecord:
    packed: list[bytes] = []
    positions: dict[str, _Part] = {}
    end = 0
    for part, content in parts.items():
        packed.append(_codec().compress(content, asbytes=True))
        start, end = end, end + len(packed[-1])
        positions[part] = _Part(start, end, len(content))
    return PackedRecord(positions, b"".join(packed))


def _unpacked(packed: bytes, part: _Part) -> bytes:
    return bytes(_codec().decompress(packed, part.size, asbytes=True))


def _files_of(path: Path | None) -> list[_Records]:
    """The file of the last build, and an unfinished file of a killed build."""
    files: list[_Records] = []
    for one in [] if path is None else [path, *sorted(path.parent.glob(f".{path.name}-*"))]:
        with suppress(OSError, ValueError, msgspec.MsgspecError), one.open("rb") as file:
            files.append(_Records(file))
            files[-1].scan()
    return files


def _create(path: Path | None) -> tuple[IO[bytes], Path | None]:
    """A new file beside this one; or an unnamed one if that is not possible."""
    if path is not None:
        with suppress(OSError):
            for leftover in path.parent.glob(f".{path.name}-*"):  # left by a build that was killed
                leftover.unlink(missing_ok=True)
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
            return os.fdopen(descriptor, "w+b", buffering=1 << 20), Path(name)
    return tempfile.TemporaryFile(buffering=1 << 20), None


@cache
def _codec() -> "pyarrow.Codec":
    """Decompresses four times as fast as zstd, and stores half as much again."""
    import pyarrow

    return pyarrow.Codec("lz4_raw")
