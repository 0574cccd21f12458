"""The manifest of an edition: everything a server trusts about it, under one digest.

The file `.seal` beside the folder has the SHA-256 of the manifest's bytes, and the manifest the digests of
everything else. So one changed byte anywhere in an edition is noticed.
"""

import hashlib
import json
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from sankofa.engines.datastore import Manifest

_Sha256 = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
_Count = Annotated[int, msgspec.Meta(ge=0)]
_FileName = Annotated[str, msgspec.Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,120}\Z")]


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No member that is not declared, and none of another type."""


class _File(_Strict, frozen=True):
    """A Parquet file. A member that is UNSET was not written."""

    name: _FileName
    size_bytes: _Count
    sha256: _Sha256
    sku: str | UnsetType | None = UNSET
    signal_key: str | UnsetType | None = UNSET
    access: Literal["open", "licensed"] | UnsetType = UNSET
    license: str | UnsetType = UNSET
    row_count: _Count | UnsetType = UNSET
    columns: list[str] | UnsetType = UNSET
    min_tier: str | UnsetType | None = UNSET
    license_class: str | UnsetType = UNSET
    source_ref: str | UnsetType | None = UNSET
    rows_left_out: _Count | UnsetType = UNSET


class _Part(_Strict, frozen=True):
    """Some keys of some kinds, and their blocks: from `first` on, up to the first key of the next part."""

    kinds: list[str]
    first: str
    content: str
    """A digest of what is in it."""
    sha256: _Sha256 | UnsetType = UNSET
    size_bytes: _Count | UnsetType = UNSET
    """Size of the file."""


class _LeftOut(_Strict, frozen=True):
    source: str
    why: str
    captures: _Count
    rows: _Count


class _Withdrawal(_Strict, frozen=True):
    """A withdrawal that the edition leaves out. Its reason is for the operator, and empty here."""

    source: str
    capture: int | None
    file: str | None
    files: _Count
    reason: str
    at: str
    everywhere: bool
    number: int
    first_capture: int


class _ImpossibleDates(_Strict, frozen=True):
    """How many figures of a capture are left out because their dates are out of range."""

    capture: int
    source: str
    file: str
    rows: _Count


class _Manifest(_Strict, frozen=True):
    edition: str
    content_sha256: str
    format: int | UnsetType = UNSET
    built_from: str | UnsetType = UNSET
    rows: dict[str, _Count] | UnsetType = UNSET
    indexes: dict[str, _Count] | UnsetType = UNSET
    crosswalk_loaded: bool | UnsetType = UNSET
    proven: int | UnsetType = UNSET
    sources: list[str] | UnsetType = UNSET
    notices: dict[str, str] | UnsetType = UNSET
    owed: dict[str, str] | UnsetType = UNSET
    files: list[_File] | UnsetType = UNSET
    left_out: list[_LeftOut] | UnsetType = UNSET
    withdrawals: list[_Withdrawal] | UnsetType = UNSET
    impossible_dates: list[_ImpossibleDates] | UnsetType = UNSET
    despite_floors: list[str] | UnsetType = UNSET
    screen_years: list[int] | UnsetType = UNSET
    restatement_years: list[int] | UnsetType = UNSET
    organisations: dict[str, _Count] | UnsetType = UNSET
    """Number of organisations by country."""
    name_buckets: _Count | UnsetType = UNSET
    macro_name_buckets: _Count | UnsetType = UNSET
    quality: list[str] | UnsetType = UNSET
    parts: list[_Part] | UnsetType = UNSET
    checksums_sha256: _Sha256 | UnsetType = UNSET
    """Added by the writer: the digest of the digests of all pages."""


_decode = msgspec.json.Decoder(_Manifest).decode


def seal_manifest(manifest: Manifest) -> tuple[bytes, str]:
    """The bytes of a manifest and their seal. Raises ValueError for members that a reader would refuse."""
    content = (json.dumps(manifest, indent=1, sort_keys=True) + "\n").encode()
    _decode(content)
    return content, hashlib.sha256(content).hexdigest()


def open_manifest(content: bytes, seal: str, edition: str) -> dict[str, Any]:
    """The manifest, if it is the one that was sealed under this edition. Raises ValueError."""
    if hashlib.sha256(content).hexdigest() != seal:
        raise ValueError("its manifest is damaged: it is not the one that was sealed")
    if _decode(content).edition != edition:
        raise ValueError("its manifest is damaged: it is the manifest of another edition")
    manifest: dict[str, Any] = json.loads(content)
    return manifest
