"""The files of the editions that a node follows, each once, under its SHA-256.

The folder of an edition holds hard links to them, so that editions share what they have in common, and a file
that no edition links to any more is known by its number of links.
"""

import os
import shutil
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import blake2b, sha256
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from sankofa.engines.checked_file import DIGEST, PAGE
from sankofa.engines.edition_folder import make_private_folder, open_private, sync
from sankofa.engines.object_store import CHUNK, ObjectError, ObjectMissing, ObjectSource
from sankofa.replication.documents import Digest

_PARTIAL: Final = ".partial"
_AT_ONCE: Final = 8
_TRIES: Final = 3
_SEALED_FILE: Final = 0o400
_SPARE_BYTES: Final = 64 << 20
_WINDOW_SECONDS: Final = 20.0
_WINDOW_BYTES: Final = 64 << 10
"""A transfer that brings less than this in a window is given up; it goes on from there the next time."""

Progress = Callable[[int], None]


class PooledFile(NamedTuple):
    """A file of the pool, and where it comes from."""

    name: str
    """Its SHA-256; or, where `pages` has the digests of its pages, the SHA-256 of those."""
    source: str
    size: int
    pages: bytes = b""


def pooled(digest: Digest) -> PooledFile:
    return PooledFile(digest.sha256, digest.path, digest.size)


class Pool:
    """Whatever is in it under a digest was compared with it when it came."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, file: PooledFile) -> Path:
        return self._folder / file.name

    def holds(self, file: PooledFile) -> bool:
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

    def fetch_content(self, source: ObjectSource, file: PooledFile, progress: Progress) -> bytes:
        """A small file by its SHA-256, pulled where it is not here, or not whole. Raises ObjectError."""
        if (content := self.read(file.name)) is None:
            self.path(file).unlink(missing_ok=True)
            self.fetch(source, [file], progress)
            content = self.path(file).read_bytes()
        return content

    def put(self, name: str, content: bytes) -> None:
        """A small file that was compared already."""
        make_private_folder(self._folder)
        partial = self._folder / f"{name}{_PARTIAL}"
        with open(partial, "wb", opener=open_private) as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        partial.chmod(_SEALED_FILE)
        partial.replace(self._folder / name)

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

    def drop_damaged(self, files: Collection[PooledFile]) -> int:
        """Compare files with their digests, and remove those that differ; how many."""
        damaged = 0
        for file in files:
            comparison = _Comparison(file)
            with suppress(OSError), self.path(file).open("rb") as stream:
                while chunk := stream.read(CHUNK):
                    comparison.update(chunk)
            if not comparison.is_same():
                self.path(file).unlink(missing_ok=True)
                damaged += 1
        return damaged

    def prune(self, wanted: Collection[PooledFile] = ()) -> None:
        """Remove what no edition links to, but for what is wanted still."""
        kept = {file.name for file in wanted}
        if not self._folder.is_dir():
            return
        for path in self._folder.iterdir():
            if path.name.removesuffix(_PARTIAL) not in kept and path.stat().st_nlink == 1:
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
        partial.chmod(_SEALED_FILE)
        partial.replace(self.path(file))


class _Useless(Exception):
    """What came is not what was published, and nothing of it can be kept."""


class _Comparison:
    """Of the bytes of a file, as they come, with what the file should be."""

    def __init__(self, wanted: PooledFile) -> None:
        self._wanted = wanted
        self._whole = sha256()
        self._pages = bytearray()
        self._page = blake2b(digest_size=DIGEST)
        self._room = PAGE

    def update(self, chunk: bytes) -> None:
        if not self._wanted.pages:
            self._whole.update(chunk)
            return
        view = memoryview(chunk)
        while view:
            part, view = view[: self._room], view[self._room :]
            self._page.update(part)
            self._room -= len(part)
            if not self._room:
                self._end_page()

    def is_same(self) -> bool:
        if not self._wanted.pages:
            return self._whole.hexdigest() == self._wanted.name
        if self._room < PAGE:
            self._end_page()
        return bytes(self._pages) == self._wanted.pages

    def _end_page(self) -> None:
        self._pages += self._page.digest()
        self._page = blake2b(digest_size=DIGEST)
        self._room = PAGE


def _complete(stream: BinaryIO, source: ObjectSource, file: PooledFile, progress: Progress) -> None:
    comparison = _Comparison(file)
    size = 0
    while chunk := stream.read(CHUNK):
        comparison.update(chunk)
        size += len(chunk)
    if size < file.size:
        pace = _Pace()
        with source.stream(file.source, size, file.size) as chunks:
            for chunk in chunks:
                size += len(chunk)
                if size > file.size:
                    raise _Useless(f"{file.source}: more than its {file.size} bytes")
                stream.write(chunk)
                comparison.update(chunk)
                progress(len(chunk))
                pace.add(len(chunk), file.source)
        if size < file.size:
            raise ObjectError(f"{file.source}: ended at byte {size} of {file.size}")
    if not comparison.is_same():
        raise _Useless(f"{file.source}: not what was published")


class _Pace:
    """Gives up what comes so slowly that it would never end."""

    def __init__(self) -> None:
        self._until = time.monotonic() + _WINDOW_SECONDS
        self._bytes = 0

    def add(self, count: int, path: str) -> None:
        self._bytes += count
        if time.monotonic() >= self._until:
            if self._bytes < _WINDOW_BYTES:
                raise ObjectError(f"{path}: {self._bytes} bytes in {_WINDOW_SECONDS:.0f} s")
            self._until = time.monotonic() + _WINDOW_SECONDS
            self._bytes = 0


def file_digest(path: Path) -> Digest:
    hashed = sha256()
    size = 0
    with path.open("rb") as stream:
        while chunk := stream.read(CHUNK):
            hashed.update(chunk)
            size += len(chunk)
    return Digest(hashed.hexdigest(), size)
