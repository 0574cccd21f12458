"""The files of editions, each stored once under its SHA-256, in a store and on its followers; and deltas.

On a node the folder of an edition has hard links to them: editions share common files, and a file without
other links belongs to no edition.

A delta is zstd with the old file as prefix (`zstd --patch-from`). Its path names both files, so a node that
has the old file asks for the delta, and pulls the whole file if there is none. A delta has no digest: its
result is compared with the digest of the new file. A file is cut into stretches, each compressed against the
bytes around the same offset of the old file, so memory is bounded. Moved content is found unless it moved
much further than the file grew or shrank.

Layout: magic; for each stretch the start and the end of its prefix, its own size, the size of its frame, and
the frame.
"""

import hashlib
import os
import shutil
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from threading import Semaphore
from types import MappingProxyType
from typing import IO, Any, BinaryIO, Final

from sankofa.engines.edition_folder import EditionContents
from sankofa.engines.edition_reader import PARTS, ListedFile
from sankofa.engines.object_store import CHUNK, ObjectError, ObjectMissing, ObjectSource
from sankofa.engines.private_files import (
    make_private_folder,
    open_private,
    replace_file,
    replacing,
    sync,
    zstd,
)
from sankofa.model.limits import limit

INDEX_BYTES: Final = limit("manifest or list in a store", 64 << 20, "bytes", "it is not followed")
"""Most bytes of a manifest or a list."""
POOL: Final = "pool/"
OPEN: Final = "open/"
DELTAS: Final = "deltas/"


def pool_path(sha256: str) -> str:
    return f"{POOL}{sha256[:2]}/{sha256}"


def delta_path(base: str, target: str) -> str:
    """The path of the delta from one file to another, both by their SHA-256."""
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
    """A delta that does not turn this file into its target."""


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
    """The stretches of the file that a delta produces, not verified yet.

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
    """None if it is too short for a delta."""
    return zstd.ZstdDict(content, is_raw=True).as_prefix if len(content) >= 8 else None


def _range(file: IO[bytes], first: int, last: int) -> bytes:
    """Read and not mapped: a file that is cut short meanwhile would end the process. Raises NotApplicable."""
    file.seek(first)
    content = file.read(last - first)
    if len(content) != last - first:
        raise NotApplicable("of another file")
    return content


def changed_files(before: EditionContents, after: EditionContents) -> Iterator[tuple[ListedFile, ListedFile]]:
    """The files that are new in an edition, each with its predecessor."""
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
    """The earlier part of the same kinds that had this part's first key; empty if there is none."""
    alike = [p for p in parts if p["kinds"] == part["kinds"] and p["first"] <= part["first"]]
    return f"{PARTS}/{max(alike, key=lambda p: p['first'])['sha256']}" if alike else ""


_PARTIAL: Final = ".partial"
_AT_ONCE: Final = 8
_REBUILT_AT_ONCE: Final = 4
_TRIES: Final = 3
_SPARE_BYTES: Final = 64 << 20

Progress = Callable[[int], None]


class Pool:
    """A folder of files named by their digests. Each was compared with its digest when it arrived."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, file: ListedFile) -> Path:
        return self._folder / file.sha256

    def holds(self, file: ListedFile) -> bool:
        try:
            return self.path(file).stat().st_size == file.size
        except FileNotFoundError:
            return False

    def read(self, name: str) -> bytes | None:
        """A small file by its SHA-256, if it is here and whole."""
        try:
            content = (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None
        return content if sha256(content).hexdigest() == name else None

    def put(self, name: str, content: bytes) -> None:
        """A small file that was compared already."""
        make_private_folder(self._folder)
        replace_file(self._folder / name, content)

    def fetch(
        self,
        source: ObjectSource,
        files: Sequence[ListedFile],
        progress: Progress,
        bases: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Pulls the missing files; `path` is the path of the object.

        A file with a predecessor here (`bases`, by SHA-256) is made from a delta, if the store has one and
        its result is the published file. Raises ObjectError. Received bytes stay, and the next call continues
        from there.
        """
        make_private_folder(self._folder)
        missing = [file for file in {f.sha256: f for f in files}.values() if not self.holds(file)]
        needed = sum(file.size - self._received(file) for file in missing)
        free = shutil.disk_usage(self._folder).free
        if missing and free < needed + _SPARE_BYTES:
            raise ObjectError(f"{needed} bytes are needed, and the disk has {free} free")
        rebuilding = Semaphore(_REBUILT_AT_ONCE)

        def bring(file: ListedFile) -> None:
            if base := bases.get(file.sha256):
                with rebuilding, suppress(NotApplicable, ObjectError, OSError):
                    self._rebuild(source, file, self._folder / base, progress)
                    return
            self._fetch(source, file, progress)

        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="pull") as threads:
            pulling = [threads.submit(bring, file) for file in sorted(missing, key=lambda f: -f.size)]
            try:
                for task in pulling:
                    task.result()
            except BaseException:
                threads.shutdown(cancel_futures=True)
                raise
        if missing:
            sync(self._folder)

    def _rebuild(self, source: ObjectSource, file: ListedFile, base: Path, progress: Progress) -> None:
        delta = source.read(delta_path(base.name, file.sha256), file.size)
        progress(len(delta))
        with replacing(self.path(file)) as stream:
            hashed = sha256()
            for chunk in apply_delta(base, delta):
                if stream.tell() + len(chunk) > file.size:
                    raise NotApplicable(f"more than {file.size} bytes")
                hashed.update(chunk)
                stream.write(chunk)
            if hashed.hexdigest() != file.sha256:
                raise NotApplicable("not what was published")

    def drop_damaged(self, files: Iterable[ListedFile]) -> int:
        """Compare files with their digests and remove those that differ; returns how many."""
        damaged = 0
        for file in set(files):
            try:
                whole = file_digest(self.path(file))[0] == file.sha256
            except OSError:
                whole = False
            if not whole:
                self.path(file).unlink(missing_ok=True)
                damaged += 1
        return damaged

    def prune(self) -> None:
        """Remove files that no edition links to."""
        if self._folder.is_dir():
            for path in self._folder.iterdir():
                if path.stat().st_nlink == 1:
                    path.unlink(missing_ok=True)

    def _received(self, file: ListedFile) -> int:
        try:
            return min(self._partial(file).stat().st_size, file.size)
        except FileNotFoundError:
            return 0

    def _partial(self, file: ListedFile) -> Path:
        return self._folder / f"{file.sha256}{_PARTIAL}"

    def _fetch(self, source: ObjectSource, file: ListedFile, progress: Progress) -> None:
        for attempt in range(_TRIES):
            try:
                self._fetch_once(source, file, progress)
            except ObjectMissing:
                raise
            except ObjectError:
                if attempt == _TRIES - 1:
                    raise
            except OSError as failure:
                raise ObjectError(f"{self._folder.name}: {failure.strerror or failure}") from failure
            else:
                return

    def _fetch_once(self, source: ObjectSource, file: ListedFile, progress: Progress) -> None:
        partial = self._partial(file)
        with open(partial, "ab+", opener=open_private) as stream:
            stream.seek(0)
            try:
                _complete(stream, source, file, progress)
            except _Useless:
                with suppress(OSError):
                    partial.unlink()
                raise
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(self.path(file))


class _Useless(ObjectError):
    """The bytes that arrived are not the published ones; none of them can be used."""


def _complete(stream: BinaryIO, source: ObjectSource, file: ListedFile, progress: Progress) -> None:
    hashed = sha256()
    size = 0
    while chunk := stream.read(CHUNK):
        hashed.update(chunk)
        size += len(chunk)
    if size < file.size:
        with source.stream(file.path, size, file.size) as chunks:
            for chunk in chunks:
                size += len(chunk)
                if size > file.size:
                    raise _Useless(f"{file.path}: more than its {file.size} bytes")
                stream.write(chunk)
                hashed.update(chunk)
                progress(len(chunk))
        if size < file.size:
            raise ObjectError(f"{file.path}: ended at byte {size} of {file.size}")
    if hashed.hexdigest() != file.sha256:
        raise _Useless(f"{file.path}: not what was published")


def file_digest(path: Path) -> tuple[str, int]:
    """The SHA-256 of a file, and its size."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest(), stream.tell()
