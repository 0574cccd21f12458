"""The documents that say what a destination holds. Whatever is not exactly of its type is refused."""

import hashlib
from typing import Annotated, Final, Literal, TypeVar

import msgspec

from sankofa.engines.object_store import ObjectError

POINTER: Final = "current.json"
POINTER_BYTES: Final = 4096
INDEX_BYTES: Final = 64 << 20
"""Most bytes of an index or a list of files: some 500,000 files."""
POOL: Final = "pool/"
OPEN: Final = "open/"
DELTAS: Final = "deltas/"

Sha256 = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
EditionId = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9-]{1,64}\Z")]
_Size = Annotated[int, msgspec.Meta(ge=0)]
_Path = Annotated[
    str, msgspec.Meta(pattern=r"\A([A-Za-z0-9][A-Za-z0-9_-]*/)?[A-Za-z0-9][A-Za-z0-9._-]{0,120}\Z")
]
_Document = TypeVar("_Document")


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No member that is not declared, and none of another type."""


class Digest(_Strict, frozen=True):
    """An object of the pool."""

    sha256: Sha256
    size: _Size

    @property
    def path(self) -> str:
        return f"{POOL}{self.sha256[:2]}/{self.sha256}"


class Pointer(_Strict, frozen=True):
    """The only object that is ever replaced. `written_at` never goes back."""

    format: Literal[1]
    written_at: str
    index: Digest


class EditionEntry(_Strict, frozen=True):
    edition: EditionId
    layout: int | None
    files: Digest
    """The digest of its `EditionFiles`."""


class Index(_Strict, frozen=True):
    """What is published, as on the machine that publishes."""

    current: EditionId
    editions: tuple[EditionEntry, ...]
    published: tuple[EditionId, ...]
    withdrawn: tuple[EditionId, ...]


class FileEntry(_Strict, frozen=True):
    """A file of an edition: its path in the folder of the edition, and what is in it."""

    path: _Path
    content: Digest


class EditionFiles(_Strict, frozen=True):
    edition: EditionId
    seal: Sha256
    files: tuple[FileEntry, ...]


class DeltaEntry(_Strict, frozen=True):
    """What leads from one file of the pool to another (`replication.delta_file`)."""

    target: Sha256
    base: Sha256
    content: Digest


class Deltas(_Strict, frozen=True):
    """The deltas to the files of an edition, for who has the one before. No digest names it: what comes of a
    delta is compared with the digest of the file, and a file without one is pulled whole."""

    edition: EditionId
    files: tuple[DeltaEntry, ...]


def deltas_path(edition: str) -> str:
    return f"{DELTAS}{edition}.json"


def encode(document: msgspec.Struct) -> tuple[bytes, Digest]:
    content = msgspec.json.encode(document, order="sorted")
    return content, digest_of(content)


def decode(content: bytes, kind: type[_Document], name: str) -> _Document:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as failure:
        raise ObjectError(f"{name}: not what this version reads: {failure}") from None


def digest_of(content: bytes) -> Digest:
    return Digest(hashlib.sha256(content).hexdigest(), len(content))
