"""The documents beside the signed note of a store. A document of another type is refused."""

import hashlib
from typing import Annotated, Final, TypeVar

import msgspec

from sankofa.engines.object_store import ObjectError
from sankofa.engines.publication import EditionId, Sha256
from sankofa.model.limits import limit

INDEX_BYTES: Final = limit("manifest or list in a store", 64 << 20, "bytes", "it is not followed")
"""Most bytes of a manifest or a list."""
POOL: Final = "pool/"
OPEN: Final = "open/"
DELTAS: Final = "deltas/"

_Size = Annotated[int, msgspec.Meta(ge=0)]
_Document = TypeVar("_Document")


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No member that is not declared, and none of another type."""


class Digest(_Strict, frozen=True):
    """An object of the pool."""

    sha256: Sha256
    size: _Size

    @property
    def path(self) -> str:
        return pool_path(self.sha256)


class DeltaEntry(_Strict, frozen=True):
    """A delta from one file of the pool to another (`replication.delta_file`)."""

    target: Sha256
    base: Sha256
    content: Digest


class Deltas(_Strict, frozen=True):
    """The deltas to the files of an edition, for who has the one before. No digest names it: what comes of a
    delta is compared with the digest of the file, and a file without one is pulled whole."""

    edition: EditionId
    files: tuple[DeltaEntry, ...]


def pool_path(sha256: str) -> str:
    return f"{POOL}{sha256[:2]}/{sha256}"


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
