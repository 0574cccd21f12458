"""What was made of each issuer when the last edition was built, to be taken again where nothing changed.

A record is taken only under the same key: a digest of everything that it is made of, and of the code that
makes it (`edition.issuers`). It is therefore what making it afresh would give, byte for byte. A file that is
not there, is cut short or altered, or cannot be put in its place, costs time and nothing else.

Layout: magic; the records, each of several parts that are packed by themselves; the index: of each name its
key, the places of its parts and their checksum; where the index begins, its digest, magic.
"""

import mmap
import os
import struct
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import IO
from zlib import crc32

import msgspec

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_MAGIC = b"SANKEPT2"
_DIGEST = 16
_TRAILER = struct.Struct(f"<Q{_DIGEST}s8s")
_LEVEL = 1


class _Record(msgspec.Struct, frozen=True, array_like=True):
    """Where a record is: its parts one after another, from `start`."""

    key: bytes
    start: int
    ends: dict[str, int]
    checksum: int

    @property
    def end(self) -> int:
        return max(self.ends.values(), default=self.start)


_Index = dict[str, _Record]
_read_index = msgspec.msgpack.Decoder(_Index).decode


class Kept:
    """Records by name. Those carried over and put make a new file, which is read once it is finished."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._bytes, self._index = _open(path)
        self._next: _Index = {}
        self._file, self._name = _create(path)
        self._file.write(_MAGIC)
        self._end = len(_MAGIC)
        self.carried = 0

    def carry(self, name: str, key: bytes) -> bool:
        """Keep the record of this name as it was; whether there is one, whole, and under this very key."""
        found = self._index.get(name)
        if found is None or found.key != key:
            return False
        packed = self._bytes[found.start : found.end]
        if crc32(packed) != found.checksum:
            return False
        moved = self._end - found.start
        ends = {part: end + moved for part, end in found.ends.items()}
        self._write(name, _Record(key, self._end, ends, found.checksum), packed)
        self.carried += 1
        return True

    def put(self, name: str, key: bytes, parts: Mapping[str, bytes]) -> None:
        """Keep a record that was made anew."""
        packed, ends = [], {}
        end = self._end
        for part, content in parts.items():
            packed.append(zstd.compress(content, level=_LEVEL))
            end += len(packed[-1])
            ends[part] = end
        whole = b"".join(packed)
        self._write(name, _Record(key, self._end, ends, crc32(whole)), whole)

    def finish(self) -> None:
        """Put what was carried and put in the place of what was there, and read that from now on."""
        index = msgspec.msgpack.encode(self._next)
        self._file.write(index + _TRAILER.pack(self._end, _digest(index), _MAGIC))
        self._file.flush()
        self._bytes = _mapped(self._file)
        self._index, self._next = self._next, {}
        if self._path is not None and self._name is not None:
            with suppress(OSError):
                self._name.replace(self._path)
                self._name = None
        self.close()

    def read(self, name: str, part: str) -> bytes:
        """A part of a record; empty where there is no such record or part."""
        found = self._index.get(name)
        if found is None or part not in found.ends:
            return b""
        end = found.ends[part]
        start = max((other for other in found.ends.values() if other < end), default=found.start)
        return zstd.decompress(self._bytes[start:end])

    def close(self) -> None:
        """Leave the file as it was, unless it is finished."""
        with suppress(OSError):
            self._file.close()
        if self._name is not None:
            self._name.unlink(missing_ok=True)
            self._name = None

    def _write(self, name: str, record: _Record, packed: bytes | memoryview) -> None:
        self._file.write(packed)
        self._end += len(packed)
        self._next[name] = record


def _create(path: Path | None) -> tuple[IO[bytes], Path | None]:
    """A file to be put in the place of this one; or, where that cannot be, one without a name."""
    if path is not None:
        with suppress(OSError):
            for left in path.parent.glob(f".{path.name}-*"):  # of a build that was killed
                left.unlink(missing_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
            return os.fdopen(descriptor, "w+b", buffering=1 << 20), Path(name)
    return tempfile.TemporaryFile(buffering=1 << 20), None


def _open(path: Path | None) -> tuple[memoryview, _Index]:
    """The file mapped, and its index; nothing where it is not whole."""
    nothing: tuple[memoryview, _Index] = memoryview(b""), {}
    if path is None:
        return nothing
    try:
        with path.open("rb") as file:
            whole = _mapped(file)
        at, digest, magic = _TRAILER.unpack_from(whole, len(whole) - _TRAILER.size)
        index = whole[at : len(whole) - _TRAILER.size]
        if magic != _MAGIC or _digest(index) != digest:
            return nothing
        return whole, _read_index(index)
    except (OSError, ValueError, struct.error, msgspec.MsgspecError):
        return nothing


def _mapped(file: IO[bytes]) -> memoryview:
    return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _digest(index: bytes | memoryview) -> bytes:
    return blake2b(index, digest_size=_DIGEST).digest()
