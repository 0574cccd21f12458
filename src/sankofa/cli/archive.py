"""The file of a backup: a tar archive in zstd, whose last member lists the others with their digests.

It is written and read as a stream, so its size is bounded by the disk and not by memory. zstd's own checksum
tells a byte that was changed in between.
"""

import hashlib
import os
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from sankofa.engines.private_files import UNPACKED_TIMES, most_unpacked, open_private, zstd
from sankofa.model.errors import OperatorError
from sankofa.model.limits import limit
from sankofa.model.signed_notes import NotTrusted, Signer, Verifier, sign_note, verified_text

FORMAT: Final = 1
_LISTING: Final = "manifest.json"
_BUFFER: Final = 1 << 20
_LARGEST_MEMBER: Final = limit("member of a backup", 2 << 30, "bytes", "nothing is restored")
_OPTIONS: Final[dict[int, int]] = {
    zstd.CompressionParameter.checksum_flag: 1,
    zstd.CompressionParameter.compression_level: 3,
}


class Member(msgspec.Struct, frozen=True):
    """A part of the backup."""

    name: str
    size: int
    sha256: str
    rows: int = 0


class BackupListing(msgspec.Struct, frozen=True):
    """The listing of a backup."""

    format: int
    created_at: str
    version: str
    rows: int
    members: list[Member]
    signature: str = ""
    """A signed note about the digest of the members; empty if there was no key yet."""

    @property
    def signed_text(self) -> str:
        digest = hashlib.sha256(msgspec.json.encode(self.members)).hexdigest()
        return f"sankofa/backup/v1\n{self.created_at}\n{digest}\n"


_decode_listing = msgspec.json.Decoder(BackupListing).decode


class ArchiveWriter:
    """Adds members; `finish` writes the listing."""

    def __init__(self, stream: BinaryIO) -> None:
        self._file = zstd.ZstdFile(stream, "wb", options=_OPTIONS)
        self._members: list[Member] = []

    def add(self, name: str, content: bytes, rows: int = 0) -> None:
        self._members.append(Member(name, len(content), hashlib.sha256(content).hexdigest(), rows))
        self._write(name, content)

    def finish(self, created_at: str, version: str, signers: Sequence[Signer] = ()) -> BackupListing:
        rows = sum(member.rows for member in self._members)
        listing = BackupListing(FORMAT, created_at, version, rows, self._members)
        if signers:
            note = sign_note(listing.signed_text, signers).decode()
            listing = msgspec.structs.replace(listing, signature=note)
        self._write(_LISTING, msgspec.json.format(msgspec.json.encode(listing), indent=1))
        self._file.write(bytes(2 * tarfile.BLOCKSIZE))
        self._file.close()
        return listing

    def _write(self, name: str, content: bytes) -> None:
        """Written here: a stream of tarfile's, left open by a full disk, complains when it is collected."""
        info = tarfile.TarInfo(name)
        info.size, info.mode = len(content), 0o600
        self._file.write(info.tobuf(tarfile.PAX_FORMAT))
        self._file.write(content)
        self._file.write(bytes(-len(content) % tarfile.BLOCKSIZE))


@contextmanager
def new_archive(path: Path) -> Iterator[ArchiveWriter]:
    """A new file, its owner's alone, which is there when it is whole. Raises OperatorError."""
    if path.exists():
        raise OperatorError(f"{path}: is there already; name another file")
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with open(partial, "xb", opener=open_private) as stream:
            yield ArchiveWriter(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.link(partial, path)  # unlike a rename, never replaces a file that came meanwhile
    except FileExistsError:
        raise OperatorError(f"{path}: is there already; name another file") from None
    except OSError as failure:
        raise OperatorError(f"{path}: cannot be written: {failure.strerror}") from failure
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


class _Bounded:
    """A stream that ends with an error after so many bytes."""

    def __init__(self, file: zstd.ZstdFile, most: int) -> None:
        self._file = file
        self._left = most

    def read(self, size: int) -> bytes:
        content = self._file.read(size)
        self._left -= len(content)
        if self._left < 0:
            raise ValueError(f"it unpacks to more than {UNPACKED_TIMES} times its size")
        return content


class ArchiveReader:
    """A backup on disk. Call `verify` first: it reads and checks everything."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def verify(self, trusted: Sequence[Verifier] = ()) -> BackupListing:
        """Compare every member with its digest, and the signature with these keys, if there are any.

        Raises OperatorError.
        """
        read: list[tuple[str, int, str]] = []
        listing: bytes | None = None
        for name, content in self._content():
            if listing is not None:
                raise self._damaged("something follows its listing")
            if name == _LISTING:
                listing = content
            else:
                read.append((name, len(content), hashlib.sha256(content).hexdigest()))
        if listing is None:
            raise self._damaged("its listing is missing")
        try:
            known: dict[str, Any] = msgspec.json.decode(listing)
            if known.get("format") != FORMAT:
                raise OperatorError(f"{self._path}: a backup of format {known.get('format')}, not {FORMAT}")
            listed = _decode_listing(listing)
        except (msgspec.DecodeError, UnicodeDecodeError, AttributeError) as failure:
            raise self._damaged("its listing cannot be read") from failure
        if read != [(member.name, member.size, member.sha256) for member in listed.members]:
            raise self._damaged("a part is not the one that was written")
        if trusted:
            try:
                if verified_text(listed.signature.encode(), trusted) != listed.signed_text:
                    raise NotTrusted("its signature is of another backup")
            except NotTrusted as failure:
                raise OperatorError(f"{self._path}: refused by SANKOFA_TRUSTED_KEYS: {failure}") from None
        return listed

    def members(self) -> Iterator[tuple[str, bytes]]:
        """Every member but the listing: its name and its content."""
        return ((name, content) for name, content in self._content() if name != _LISTING)

    def _content(self) -> Iterator[tuple[str, bytes]]:
        try:
            with (
                self._path.open("rb") as stream,
                zstd.ZstdFile(stream) as unpacked,
            ):
                most = most_unpacked(self._path.stat().st_size)
                file: Any = _Bounded(unpacked, most)
                with tarfile.open(fileobj=file, mode="r|", bufsize=_BUFFER) as tar:
                    for info in tar:
                        fits = info.isreg() and info.size <= min(most, _LARGEST_MEMBER)
                        extracted = tar.extractfile(info) if fits else None
                        if extracted is None:
                            raise self._damaged("a part is no file")
                        yield info.name, extracted.read()
                while file.read(_BUFFER):  # to the end, where the checksum of the stream is
                    pass
        except (tarfile.TarError, zstd.ZstdError, EOFError, ValueError) as failure:
            raise self._damaged(str(failure) or type(failure).__name__) from failure
        except OSError as failure:
            raise OperatorError(f"{self._path}: cannot be read: {failure.strerror}") from failure

    def _damaged(self, reason: str) -> OperatorError:
        return OperatorError(f"{self._path}: not a whole backup of Sankofa: {reason}; nothing was restored")
