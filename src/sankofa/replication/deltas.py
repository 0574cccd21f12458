"""Delta files: the difference between a file of an edition and its predecessor, and the list of them.

A delta is zstd with the old file as prefix (`zstd --patch-from`). A file is cut into stretches, each packed
against the bytes around the same offset of the old file, so memory is bounded. Content that moved is found
unless it moved by much more than the file grew or shrank.

Layout: magic; for each stretch where its prefix begins and ends, its own size, the size of its frame, and the
frame.
"""

import hashlib
import struct
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import IO, Annotated, Any, Final, TypeVar

import msgspec

from sankofa.engines.edition_folder import EditionContents, EditionFile
from sankofa.engines.edition_reader import PARTS
from sankofa.engines.object_store import ObjectDestination, ObjectError
from sankofa.engines.private_files import zstd
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


_MAGIC: Final = b"SANKDLT1"
_HEAD: Final = struct.Struct("<QQII")
_STRETCH: Final = 8 << 20
_AROUND: Final = 2 << 20
_AROUND_AT_MOST: Final = 16 << 20
_RANGE_AT_MOST: Final = 64 << 20
_WINDOW_LOG: Final = 27
"""A window of 128 MiB: a stretch and its surroundings."""
_OPTIONS: Final[dict[int, int]] = {
    zstd.CompressionParameter.compression_level: 1,
    zstd.CompressionParameter.window_log: _WINDOW_LOG,
    zstd.CompressionParameter.enable_long_distance_matching: 1,
    zstd.CompressionParameter.ldm_min_match: 32,
}


class NotApplicable(Exception):
    """A delta that does not lead from this file to the one it is for."""


def make_delta(base: Path, target: Path) -> bytes:
    """The delta from one file to another. Raises OSError."""
    delta = [_MAGIC]
    with base.open("rb") as old, target.open("rb") as new:
        size = base.stat().st_size
        around = min(_AROUND + abs(target.stat().st_size - size), _AROUND_AT_MOST)
        start = 0
        while own := new.read(_STRETCH):
            first, last = (min(max(0, at), size) for at in (start - around, start + _STRETCH + around))
            frame = zstd.compress(own, options=_OPTIONS, zstd_dict=_prefix(_range(old, first, last)))
            delta += [_HEAD.pack(first, last, len(own), len(frame)), frame]
            start += len(own)
    return b"".join(delta)


def apply_delta(base: Path, delta: bytes) -> Iterator[bytes]:
    """The stretches of the file that a delta leads to: as it says, compared with nothing yet.

    Raises NotApplicable, or OSError.
    """
    if delta[: len(_MAGIC)] != _MAGIC:
        raise NotApplicable("not a delta")
    at = len(_MAGIC)
    with base.open("rb") as old:
        while at < len(delta):
            try:
                first, last, size, packed = _HEAD.unpack_from(delta, at)
                at += _HEAD.size
                if size > _RANGE_AT_MOST or not 0 <= last - first <= _RANGE_AT_MOST:
                    raise NotApplicable("of another file")
                options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
                reader = zstd.ZstdDecompressor(zstd_dict=_prefix(_range(old, first, last)), options=options)
                own = reader.decompress(delta[at : at + packed], max_length=size)
            except (struct.error, zstd.ZstdError, EOFError, OverflowError) as failure:
                raise NotApplicable(str(failure)) from None
            if len(own) != size:
                raise NotApplicable("cut short")
            at += packed
            yield own


def _prefix(content: bytes) -> tuple[zstd.ZstdDict, int] | None:
    """None if it is too short to be one."""
    return zstd.ZstdDict(content, is_raw=True).as_prefix if len(content) >= 8 else None


def _range(file: IO[bytes], first: int, last: int) -> bytes:
    """Read and not mapped: a file that is cut short meanwhile would end the process. Raises NotApplicable."""
    file.seek(first)
    content = file.read(last - first)
    if len(content) != last - first:
        raise NotApplicable("of another file")
    return content


_AT_ONCE: Final = 4
_WORTH_IT: Final = 0.8
"""A delta is sent where it has less than this of the bytes of the file."""


def push_deltas(
    destination: ObjectDestination,
    editions: Mapping[str, EditionContents],
    current: str,
    before: str,
    sizes: Mapping[str, int],
    unused_since: datetime,
) -> set[str]:
    """Send and list what leads to the current edition from the one that was current before, where both are
    kept. Returns the objects that deltas to kept editions are in.

    Lists of editions that are no longer kept are removed, unless they are newer than `unused_since`. `sizes`
    are those of the objects there. Raises ObjectError.
    """
    there = {stored.path: stored for stored in destination.objects(DELTAS)}
    kept = {deltas_path(edition) for edition in editions}
    listed: list[DeltaEntry] = []
    if before != current and before in editions and deltas_path(current) not in there:
        listed = _sent(destination, editions[before], editions[current], sizes)
        document = Deltas(current, tuple(listed))
        destination.write(deltas_path(current), encode(document)[0], immutable=True)
    for path in kept.intersection(there):
        with suppress(ObjectError):
            listed += decode(destination.read(path, INDEX_BYTES), Deltas, path).files
    unused = (stored for path, stored in there.items() if path not in kept)
    destination.delete([stored.path for stored in unused if stored.modified <= unused_since])
    return {entry.content.path for entry in listed}


def _sent(
    destination: ObjectDestination, before: EditionContents, after: EditionContents, sizes: Mapping[str, int]
) -> list[DeltaEntry]:
    """The deltas between two editions, the largest files first."""

    def send(pair: tuple[EditionFile, EditionFile]) -> DeltaEntry | None:
        old, new = pair
        try:
            content = make_delta(old.file, new.file)
            if len(content) > _WORTH_IT * new.size:
                return None
        except OSError:  # removed meanwhile: it is pulled whole
            return None
        digest = digest_of(content)
        if sizes.get(digest.path) != digest.size:
            destination.write(digest.path, content, immutable=True)
        return DeltaEntry(new.sha256, old.sha256, digest)

    changed = sorted(_changed(before, after), key=lambda pair: -pair[1].size)
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="delta") as threads:
        return list(filter(None, threads.map(send, changed)))


def _changed(before: EditionContents, after: EditionContents) -> Iterator[tuple[EditionFile, EditionFile]]:
    """The files that are new, each with the one that it follows."""
    known = {file.sha256 for file in before.files}
    old = {file.path: file for file in before.files}
    parts = {f"{PARTS}/{part['sha256']}": part for part in after.manifest["parts"]}
    for file in after.files:
        if file.sha256 in known:
            continue
        path = file.path
        if (part := parts.get(path)) is not None:
            path = _part_before(before.manifest["parts"], part)
        if path in old:
            yield old[path], file


def _part_before(parts: list[dict[str, Any]], part: Mapping[str, Any]) -> str:
    """The part of the same kinds that had the first key of this one; empty if there is none."""
    alike = [p for p in parts if p["kinds"] == part["kinds"] and p["first"] <= part["first"]]
    return f"{PARTS}/{max(alike, key=lambda p: p['first'])['sha256']}" if alike else ""
