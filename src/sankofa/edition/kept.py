"""What was derived of each issuer when the last edition was built, to be taken again where nothing changed.

A record is taken only under the same key: a digest of everything that deriving reads, and of the code that
derives (`edition.derivation`). It is therefore what deriving afresh would give, byte for byte. A file that is
not there, is cut short or altered, or cannot be written, costs time and nothing else.

Layout: magic; the records, each packed by itself with a checksum; the index: of each name its key and the
place of its record; where the index begins, its digest, magic.
"""

import mmap
import os
import struct
import sys
import tempfile
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

import msgspec

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_MAGIC = b"SANKEPT1"
_DIGEST = 16
_TRAILER = struct.Struct(f"<Q{_DIGEST}s8s")
_PACKED: dict[int, int] = {
    zstd.CompressionParameter.compression_level: 1,
    zstd.CompressionParameter.checksum_flag: 1,
}
_Index = dict[str, tuple[bytes, int, int]]
_read_index = msgspec.msgpack.Decoder(_Index).decode


class Kept:
    """Records by name and key. Written anew as they are taken and put; the old ones go with `finish`."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._bytes, self._index = _open(path)
        self._partial: BinaryIO | None = None
        self._next: _Index = {}
        self.taken = 0
        if path is not None:
            with suppress(OSError):
                for left in path.parent.glob(f".{path.name}-*"):  # of a build that was killed
                    left.unlink(missing_ok=True)
                path.parent.mkdir(parents=True, exist_ok=True)
                descriptor, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
                self._partial, self._name = os.fdopen(descriptor, "wb", buffering=1 << 20), Path(name)
                self._partial.write(_MAGIC)

    def take(self, name: str, key: bytes) -> bytes | None:
        """The record of this name, kept under this very key; None where there is none."""
        found = self._index.get(name)
        if found is None or found[0] != key:
            return None
        _, start, end = found
        packed = bytes(self._bytes[start:end])
        try:
            record = zstd.decompress(packed)
        except zstd.ZstdError:
            return None
        self._write(name, key, packed)
        self.taken += 1
        return record

    def put(self, name: str, key: bytes, record: bytes) -> None:
        """Keep a record for the next time."""
        if self._partial is not None:
            self._write(name, key, zstd.compress(record, options=_PACKED))

    def finish(self) -> None:
        """Put what was taken and put in the place of what was there."""
        self._bytes = memoryview(b"")
        partial, self._partial = self._partial, None
        if partial is None or self._path is None:
            return
        index = msgspec.msgpack.encode(self._next)
        try:
            with partial:
                trailer = _TRAILER.pack(partial.tell(), _digest(index), _MAGIC)
                partial.write(index + trailer)
            self._name.replace(self._path)
        except OSError:
            self._name.unlink(missing_ok=True)

    def close(self) -> None:
        """Leave the file as it was, unless it is finished."""
        partial, self._partial = self._partial, None
        if partial is not None:
            with suppress(OSError):
                partial.close()
            self._name.unlink(missing_ok=True)

    def _write(self, name: str, key: bytes, packed: bytes) -> None:
        if self._partial is None:
            return
        try:
            start = self._partial.tell()
            self._partial.write(packed)
            self._next[name] = (key, start, start + len(packed))
        except OSError:
            self.close()


def _open(path: Path | None) -> tuple[memoryview, _Index]:
    """The file mapped, and its index; nothing where it is not whole."""
    nothing: tuple[memoryview, _Index] = memoryview(b""), {}
    if path is None:
        return nothing
    try:
        with path.open("rb") as file:
            whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        at, digest, magic = _TRAILER.unpack_from(whole, len(whole) - _TRAILER.size)
        index = whole[at : len(whole) - _TRAILER.size]
        if magic != _MAGIC or _digest(index) != digest:
            return nothing
        return whole, _read_index(index)
    except (OSError, ValueError, struct.error, msgspec.MsgspecError):
        return nothing


def _digest(index: bytes | memoryview) -> bytes:
    return blake2b(index, digest_size=_DIGEST).digest()
