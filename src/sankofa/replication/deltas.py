"""Paths and digests of a store that was pushed to, and deltas: how a file differs from the one before it.

A delta is zstd with the old file as prefix (`zstd --patch-from`). Its path names both files, so a node that
has the old one asks for it, and pulls the whole file where there is none. No digest names a delta: its result
is compared with the digest of the new file. A file is cut into stretches, each compressed against the bytes
around the same offset of the old file, so memory is bounded. Content that moved is found unless it moved by
much more than the file grew or shrank.

Layout: magic; for each stretch the start and the end of its prefix, its own size, the size of its frame, and
the frame.
"""

import struct
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Final

from sankofa.engines.datastore import Datastore
from sankofa.engines.edition_folder import EditionContents
from sankofa.engines.edition_reader import PARTS, ListedFile
from sankofa.engines.object_store import ObjectDestination
from sankofa.engines.private_files import zstd
from sankofa.model.limits import limit

INDEX_BYTES: Final = limit("manifest or list in a store", 64 << 20, "bytes", "it is not followed")
"""Most bytes of a manifest or a list."""
POOL: Final = "pool/"
OPEN: Final = "open/"
DELTAS: Final = "deltas/"


def pool_path(sha256: str) -> str:
    return f"{POOL}{sha256[:2]}/{sha256}"


def delta_path(base: str, target: str) -> str:
    """The delta from one file to another, both by their SHA-256."""
    return f"{DELTAS}{target}/{base}"


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
"""A delta is sent if it has less than this share of the bytes of the file."""


def push_deltas(
    store: Datastore,
    destination: ObjectDestination,
    editions: Mapping[str, EditionContents],
    current: str,
    before: str,
    unused_since: datetime,
) -> None:
    """Sends the deltas to the current edition from the one that was current before, if both are kept.

    Removes deltas to files that no kept edition has, unless they are newer than `unused_since`. Raises
    ObjectError.
    """
    there = {stored.path: stored for stored in destination.objects(DELTAS)}

    def send(pair: tuple[ListedFile, ListedFile]) -> None:
        old, new = pair
        path = delta_path(old.sha256, new.sha256)
        if path not in there:
            with suppress(OSError):  # removed meanwhile: it is pulled whole
                folders = store.edition_folder(before), store.edition_folder(current)
                content = make_delta(folders[0] / old.path, folders[1] / new.path)
                if len(content) <= _WORTH_IT * new.size:
                    destination.write(path, content, immutable=True)

    if before != current and before in editions:
        changed = sorted(changed_files(editions[before], editions[current]), key=lambda pair: -pair[1].size)
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="delta") as threads:
            list(threads.map(send, changed))
    kept = {file.sha256 for edition in editions.values() for file in edition.files}
    unused = (stored for path, stored in there.items() if path.split("/")[1] not in kept)
    destination.delete([stored.path for stored in unused if stored.modified <= unused_since])


def changed_files(before: EditionContents, after: EditionContents) -> Iterator[tuple[ListedFile, ListedFile]]:
    """The files that an edition has and the one before has not, each after the file that it follows."""
    old = {file.path: file for file in before.files}
    known = {file.sha256 for file in before.files}
    parts = {f"{PARTS}/{part['sha256']}": part for part in after.manifest["parts"]}
    for file in after.files:
        path = file.path.replace(after.edition, before.edition)
        if (part := parts.get(path)) is not None:
            path = _part_before(before.manifest["parts"], part)
        if file.sha256 not in known and path in old:
            yield old[path], file


def _part_before(parts: list[dict[str, Any]], part: Mapping[str, Any]) -> str:
    """The part of the same kinds that had the first key of this one; empty if there is none."""
    alike = [p for p in parts if p["kinds"] == part["kinds"] and p["first"] <= part["first"]]
    return f"{PARTS}/{max(alike, key=lambda p: p['first'])['sha256']}" if alike else ""
