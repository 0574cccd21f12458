"""Content-addressed files: each is stored under its SHA-256, compressed, and encrypted if it may name people.

An object is complete once it has its name: it is written beside, synced, and renamed. An encrypted one is a
sequence of chunks, each sealed with AES-GCM under its position, so that none can be left out or moved.
"""

import base64
import hashlib
import os
import secrets
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sankofa.engines.private_files import PARTIAL, open_private, replacing, sync, zstd
from sankofa.model.errors import OperatorError, SettingsError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_CHUNK: Final = 1 << 20
_LEVEL: Final = 1
_MAGIC: Final = b"SANKVLT1"
_PREFIX_BYTES: Final = 8
_LENGTH: Final = struct.Struct("<I")
_KEY_BYTES: Final = 32


class ObjectDamaged(OperatorError):
    """An object differs from the stored file."""


def cipher_of(text: str) -> "AESGCM":
    """The cipher of the operator's key: 32 bytes in base64url."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # imported only if there is a key

    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        raw = b""
    if len(raw) != _KEY_BYTES:
        raise SettingsError(f"SANKOFA_VAULT_KEY: expected {_KEY_BYTES} bytes in base64url")
    return AESGCM(raw)


class Objects:
    """The objects of a vault, in a folder that only its owner reads."""

    def __init__(self, folder: Path, cipher: "AESGCM | None") -> None:
        self._folder = folder
        self._cipher = cipher

    @property
    def has_key(self) -> bool:
        return self._cipher is not None

    def path(self, sha256: str, *, encrypted: bool) -> Path:
        return self._folder / sha256[:2] / f"{sha256}.{'enc' if encrypted else 'zst'}"

    def rows_path(self, sha256: str, source_id: str, number: int) -> Path:
        """The path of the cleaned copy of a file whose bytes are not stored.

        `number` is the file's number in the ledger: the same bytes under another name give other rows.
        """
        return self._folder / sha256[:2] / f"{sha256}.{source_id}.{number}.rows"

    def rows_draft(self) -> Path:
        """A new file to write rows to; pass it to `put_rows` or remove it."""
        folder = self._folder / "00"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder / f"{PARTIAL}{os.getpid()}-{secrets.token_hex(4)}"

    def put_rows(self, draft: Path, sha256: str, source_id: str, number: int) -> str:
        """Store a finished draft; returns the SHA-256 of the stored file."""
        target = self.rows_path(sha256, source_id, number)
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            sync(draft)
            draft.replace(target)
        except OSError as failure:
            raise OperatorError(f"the vault cannot be written: {failure.strerror}") from failure
        sync(target.parent)
        return self.stored_digest(target)

    def put(self, path: Path, sha256: str) -> int:
        """Store the bytes of a file with this SHA-256; returns the stored size."""
        target = self.path(sha256, encrypted=False)
        if not target.exists():
            self._write(target, _compressed(_chunks(path)))
        return target.stat().st_size

    def put_encrypted(self, path: Path, sha256: str, name: str) -> str:
        """Store the bytes and the name of a file, encrypted; returns the SHA-256 of the stored file."""
        if self._cipher is None:
            raise SettingsError("SANKOFA_VAULT_KEY is not set")
        target = self.path(sha256, encrypted=True)
        if not target.exists():
            header = name.encode()
            packed = _compressed([_LENGTH.pack(len(header)) + header, *_chunks(path)])
            self._write(target, _encrypted(self._cipher, packed))
        return self.stored_digest(target)

    @contextmanager
    def opened(self, sha256: str, *, encrypted: bool) -> Iterator[tuple[str, Iterator[bytes]]]:
        """The stored name (may be empty) and the bytes. Raises ObjectDamaged."""
        path = self.path(sha256, encrypted=encrypted)
        try:
            with path.open("rb") as stream:
                if not encrypted:
                    yield "", _compared(_decompressed(iter(lambda: stream.read(_CHUNK), b"")), sha256)
                    return
                if self._cipher is None:
                    raise SettingsError("SANKOFA_VAULT_KEY is not set: an encrypted object cannot be read")
                content = _decompressed(_decrypted(self._cipher, stream.read))
                first = next(content, b"")
                (length,) = _LENGTH.unpack_from(first)
                end = _LENGTH.size + length
                while len(first) < end and (more := next(content, b"")):
                    first += more
                name = first[_LENGTH.size : end].decode()
                yield name, _compared(chain([first[end:]], content), sha256)
        except FileNotFoundError:
            raise ObjectDamaged("is missing") from None
        except OSError as failure:
            raise ObjectDamaged(f"cannot be read: {failure.strerror}") from failure
        except (zstd.ZstdError, EOFError, ValueError, struct.error) as failure:
            raise ObjectDamaged(f"cannot be unpacked: {failure}") from failure

    def stored_digest(self, path: Path) -> str:
        """The SHA-256 of an object as it is stored. Raises ObjectDamaged."""
        try:
            with path.open("rb") as stream:
                return hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as failure:
            raise ObjectDamaged(
                "is missing" if isinstance(failure, FileNotFoundError) else str(failure)
            ) from None

    def remove_encrypted(self, sha256: str) -> None:
        self.path(sha256, encrypted=True).unlink(missing_ok=True)

    def _write(self, target: Path, chunks: Iterable[bytes]) -> None:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            with replacing(target) as stream:
                stream.writelines(chunks)
        except OSError as failure:
            raise OperatorError(f"the vault cannot be written: {failure.strerror}") from failure


class LineWriter:
    """Writes lines to a compressed file that only its owner reads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stream = open(path, "xb", opener=open_private)  # noqa: SIM115 - closed by close()
        self._compressor = zstd.ZstdCompressor(options=_options())
        self._waiting = bytearray()

    def write(self, line: bytes) -> None:
        self._waiting += line
        self._waiting += b"\n"
        if len(self._waiting) >= _CHUNK:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._stream.write(self._compressor.flush())
        self._stream.close()

    def _flush(self) -> None:
        self._stream.write(self._compressor.compress(bytes(self._waiting)))
        self._waiting.clear()


def read_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file that `LineWriter` wrote. Raises ObjectDamaged."""
    rest = b""
    try:
        with path.open("rb") as stream:
            for chunk in _decompressed(iter(lambda: stream.read(_CHUNK), b"")):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from lines
    except OSError as failure:
        raise ObjectDamaged(f"cannot be read: {failure.strerror}") from failure
    except zstd.ZstdError as failure:
        raise ObjectDamaged(f"cannot be unpacked: {failure}") from failure


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            yield chunk


def _options() -> dict[int, int]:
    return {zstd.CompressionParameter.compression_level: _LEVEL, zstd.CompressionParameter.checksum_flag: 1}


def _compressed(chunks: Iterable[bytes]) -> Iterator[bytes]:
    compressor = zstd.ZstdCompressor(options=_options())
    for chunk in chunks:
        if packed := compressor.compress(chunk):
            yield packed
    yield compressor.flush()


def _decompressed(chunks: Iterable[bytes]) -> Iterator[bytes]:
    decompressor = zstd.ZstdDecompressor()
    has_ended = False
    for chunk in chunks:
        if has_ended:
            raise ObjectDamaged("has bytes after its end")
        yield decompressor.decompress(chunk, _CHUNK)
        while not (decompressor.needs_input or decompressor.eof):
            yield decompressor.decompress(b"", _CHUNK)
        has_ended = decompressor.eof
    if not has_ended:
        raise ObjectDamaged("is cut short")
    if decompressor.unused_data:
        raise ObjectDamaged("has bytes after its end")


def _compared(chunks: Iterable[bytes], sha256: str) -> Iterator[bytes]:
    """The bytes of a file. Raises ObjectDamaged at the end if the digest differs."""
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
        yield chunk
    if digest.hexdigest() != sha256:
        raise ObjectDamaged("differs from what was stored")


def _encrypted(cipher: "AESGCM", chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Magic and a random prefix; then each block: its length, and its bytes sealed under its position."""
    prefix = secrets.token_bytes(_PREFIX_BYTES)
    yield _MAGIC + prefix
    number = 0
    for chunk in chunks:
        yield _sealed(cipher, prefix, number, chunk)
        number += 1
    yield _sealed(cipher, prefix, number, b"")  # the end: nothing can be cut off


def _sealed(cipher: "AESGCM", prefix: bytes, number: int, chunk: bytes) -> bytes:
    packed = cipher.encrypt(prefix + _LENGTH.pack(number), chunk, _MAGIC)
    return _LENGTH.pack(len(packed)) + packed


def _decrypted(cipher: "AESGCM", read: Callable[[int], bytes]) -> Iterator[bytes]:
    from cryptography.exceptions import InvalidTag

    start = read(len(_MAGIC) + _PREFIX_BYTES)
    prefix = start[len(_MAGIC) :]
    if not start.startswith(_MAGIC) or len(prefix) != _PREFIX_BYTES:
        raise ObjectDamaged("is not an encrypted object")
    number = 0
    while True:
        length = read(_LENGTH.size)
        if len(length) < _LENGTH.size:
            raise ObjectDamaged("is cut short")
        try:
            packed = read(min(_LENGTH.unpack(length)[0], 4 * _CHUNK))
            chunk = cipher.decrypt(prefix + _LENGTH.pack(number), packed, _MAGIC)
        except InvalidTag:
            raise ObjectDamaged("was altered, or encrypted with another key") from None
        if not chunk:
            return
        yield chunk
        number += 1
