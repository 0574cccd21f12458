"""The files of the editions that a node follows, each once, under its SHA-256.

The folder of an edition holds hard links to them, so that editions share what they have in common, and a file
that no edition links to any more is known by its number of links.

The files come from one of two kinds of place, which have the same signed note. One that `sankofa push` wrote
to has each file under its SHA-256; the folder `editions/` of another HOME has one folder for each edition. No
folder is ever listed. A file that the publisher removes meanwhile is missing, and the next look finds the new
ones.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import msgspec

from sankofa.engines.checked_file import DIGEST, page_count
from sankofa.engines.edition_log import ROW_TREES, RowTreesFile
from sankofa.engines.edition_reader import CHECKSUMS, MANIFEST, listed_files
from sankofa.engines.object_store import CHUNK, ObjectError, ObjectMissing, ObjectSource
from sankofa.engines.private_files import make_private_folder, open_private, replace_file, replacing, sync
from sankofa.engines.publication import LIST, NOTE, NOTE_BYTES, Publication, open_manifest
from sankofa.replication.deltas import (
    INDEX_BYTES,
    DeltaEntry,
    Deltas,
    Digest,
    NotApplicable,
    apply_delta,
    decode,
    deltas_path,
    pool_path,
)

_PARTIAL: Final = ".partial"
_AT_ONCE: Final = 8
_REBUILT_AT_ONCE: Final = 4
_TRIES: Final = 3
_SPARE_BYTES: Final = 64 << 20

Progress = Callable[[int], None]


class PooledFile(NamedTuple):
    """A file of the pool, and where it comes from."""

    name: str
    """Its SHA-256."""
    source: str
    size: int


def pooled(digest: Digest) -> PooledFile:
    return PooledFile(digest.sha256, digest.path, digest.size)


class Pool:
    """A folder of files named by their digests. Each was compared with its digest when it arrived."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, file: PooledFile) -> Path:
        return self._folder / file.name

    def holds(self, file: PooledFile) -> bool:
        try:
            return self.path(file).stat().st_size == file.size
        except FileNotFoundError:
            return False

    def holds_any(self, name: str) -> bool:
        """Whether there is a file of this SHA-256, whatever its size."""
        return (self._folder / name).exists()

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

    def fetch(self, source: ObjectSource, wanted: Sequence[PooledFile], progress: Progress) -> None:
        """Pull what is not there. Raises ObjectError; what came is kept, and the rest goes on from there."""
        make_private_folder(self._folder)
        missing = [file for file in {f.name: f for f in wanted}.values() if not self.holds(file)]
        needed = sum(file.size - self._begun(file) for file in missing)
        free = shutil.disk_usage(self._folder).free
        if missing and free < needed + _SPARE_BYTES:
            raise ObjectError(f"{needed} bytes are needed, and the disk has {free} free")
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="pull") as threads:
            pulling = [threads.submit(self._fetch, source, file, progress) for file in missing]
            try:
                for task in pulling:
                    task.result()
            except BaseException:
                threads.shutdown(cancel_futures=True)
                raise
        if missing:
            sync(self._folder)

    def rebuild(self, deltas: Iterable[tuple[PooledFile, DeltaEntry]]) -> None:
        """Make files, each of one that is here and a delta that was pulled. One that does not come out as it
        was published is left out."""
        with ThreadPoolExecutor(_REBUILT_AT_ONCE, thread_name_prefix="rebuild") as threads:
            list(threads.map(lambda delta: self._rebuild(*delta), deltas))

    def _rebuild(self, file: PooledFile, delta: DeltaEntry) -> None:
        hashed = sha256()
        with suppress(NotApplicable, OSError), replacing(self.path(file)) as stream:
            content = (self._folder / delta.content.sha256).read_bytes()
            for chunk in apply_delta(self._folder / delta.base, content):
                if stream.tell() + len(chunk) > file.size:
                    raise NotApplicable(f"more than {file.size} bytes")
                hashed.update(chunk)
                stream.write(chunk)
            if hashed.hexdigest() != file.name:
                raise NotApplicable("not what was published")

    def drop_damaged(self, files: Collection[PooledFile]) -> int:
        """Compare files with their digests, and remove those that differ; how many."""
        damaged = 0
        for file in files:
            try:
                whole = file_digest(self.path(file)).sha256 == file.name
            except OSError:
                whole = False
            if not whole:
                self.path(file).unlink(missing_ok=True)
                damaged += 1
        return damaged

    def prune(self) -> None:
        """Remove what no edition links to."""
        if self._folder.is_dir():
            for path in self._folder.iterdir():
                if path.stat().st_nlink == 1:
                    path.unlink(missing_ok=True)

    def _begun(self, file: PooledFile) -> int:
        try:
            return min(self._partial(file).stat().st_size, file.size)
        except FileNotFoundError:
            return 0

    def _partial(self, file: PooledFile) -> Path:
        return self._folder / f"{file.name}{_PARTIAL}"

    def _fetch(self, source: ObjectSource, file: PooledFile, progress: Progress) -> None:
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

    def _fetch_once(self, source: ObjectSource, file: PooledFile, progress: Progress) -> None:
        partial = self._partial(file)
        with open(partial, "ab+", opener=open_private) as stream:
            stream.seek(0)
            try:
                _complete(stream, source, file, progress)
            except _Useless as failure:
                with suppress(OSError):
                    partial.unlink()
                raise ObjectError(str(failure)) from None
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(self.path(file))


class _Useless(Exception):
    """The bytes that arrived are not the published ones; none of them can be used."""


def _complete(stream: BinaryIO, source: ObjectSource, file: PooledFile, progress: Progress) -> None:
    hashed = sha256()
    size = 0
    while chunk := stream.read(CHUNK):
        hashed.update(chunk)
        size += len(chunk)
    if size < file.size:
        with source.stream(file.source, size, file.size) as chunks:
            for chunk in chunks:
                size += len(chunk)
                if size > file.size:
                    raise _Useless(f"{file.source}: more than its {file.size} bytes")
                stream.write(chunk)
                hashed.update(chunk)
                progress(len(chunk))
        if size < file.size:
            raise ObjectError(f"{file.source}: ended at byte {size} of {file.size}")
    if hashed.hexdigest() != file.name:
        raise _Useless(f"{file.source}: not what was published")


def file_digest(path: Path) -> Digest:
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return Digest(digest, stream.tell())


_NOTHING_READ: Final = Publication(0, "", "", {}, (), "", 0, ())


class RemoteEdition(NamedTuple):
    edition: str
    layout: object
    seal: str
    files: tuple[tuple[str, PooledFile], ...]
    """The path of each in the folder of the edition; empty if the layout is not ours."""


class Catalogue:
    """Every call raises ObjectError; `note` and `edition` ObjectMissing for what is not there."""

    def __init__(self, source: ObjectSource, pool: Pool, progress: Progress, layout: int) -> None:
        self._source = source
        self._pool = pool
        self._progress = progress
        self._layout = layout
        self._pushed = False
        self._publication = _NOTHING_READ

    def note(self) -> bytes:
        return self._source.read(NOTE, NOTE_BYTES)

    def published(self, publication: Publication) -> bytes:
        """The list that a note names, and perhaps more behind it, to be compared with its digest. What is
        asked for after that is of this note."""
        self._publication = publication
        try:
            content = self._source.read(pool_path(publication.published_sha256), INDEX_BYTES)
            self._pushed = True
        except ObjectMissing:
            content = self._source.read(LIST, INDEX_BYTES)
            self._pushed = False
        self._progress(len(content))
        return content

    def edition(self, name: str) -> RemoteEdition:
        seal = self._publication.editions.get(name)
        if seal is None:
            raise ObjectMissing(f"edition {name}: not signed")
        content = self._manifest(name, seal)
        try:
            layout = msgspec.json.decode(content, type=dict[str, Any]).get("format")
            if layout != self._layout:
                return RemoteEdition(name, layout, seal, ())
            manifest = open_manifest(content, seal, name)
            listed = listed_files(manifest)
            size = DIGEST * sum(page_count(file.size) for file in listed)
            checksums = self._file(name, CHECKSUMS, manifest["checksums_sha256"], size)
        except (msgspec.DecodeError, KeyError, TypeError, ValueError) as failure:
            raise ObjectError(f"{name}/{MANIFEST}: not what this version reads: {failure!r}") from None
        files = [(file.path, self._file(name, file.path, file.sha256, file.size)) for file in listed]
        own = self._file(name, MANIFEST, seal, len(content))
        return RemoteEdition(name, layout, seal, ((MANIFEST, own), (CHECKSUMS, checksums), *files))

    def deltas(self, name: str) -> tuple[DeltaEntry, ...]:
        """Deltas to files of an edition from files of an earlier one; none if none are listed."""
        if not self._pushed:
            return ()
        path = deltas_path(name)
        try:
            content = self._source.read(path, INDEX_BYTES)
            self._progress(len(content))
            return decode(content, Deltas, path).files
        except ObjectError:
            return ()

    def row_trees(self, name: str, file: RowTreesFile) -> PooledFile:
        """The hashes of the rows of an edition."""
        source = pool_path(file.sha256) if self._pushed else f"{ROW_TREES}{name}"
        return PooledFile(file.sha256, source, file.size)

    def _file(self, edition: str, path: str, digest: str, size: int) -> PooledFile:
        return PooledFile(digest, pool_path(digest) if self._pushed else f"{edition}/{path}", size)

    def _manifest(self, name: str, seal: str) -> bytes:
        """As it was signed, read once."""
        content = self._pool.read(seal)
        if content is None:
            path = self._file(name, MANIFEST, seal, 0).source
            content = self._source.read(path, INDEX_BYTES)
            if sha256(content).hexdigest() != seal:
                raise ObjectError(f"{path}: not the manifest that was signed")
            self._pool.put(seal, content)
            self._progress(len(content))
        return content
