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
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO, Final

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


class Pool:
    """Whatever is in it under a digest was compared with it when it came."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, digest: Digest) -> Path:
        return self._folder / digest.sha256

    def holds(self, digest: Digest) -> bool:
        try:
            return self.path(digest).stat().st_size == digest.size
        except FileNotFoundError:
            return False

    def fetch(self, source: ObjectSource, wanted: Sequence[Digest], progress: Progress) -> None:
        """Pull what is not there. Raises ObjectError; what came is kept, and the rest goes on from there."""
        make_private_folder(self._folder)
        missing = [digest for digest in dict.fromkeys(wanted) if not self.holds(digest)]
        needed = sum(digest.size - self._begun(digest) for digest in missing)
        free = shutil.disk_usage(self._folder).free
        if missing and free < needed + _SPARE_BYTES:
            raise ObjectError(f"{needed} bytes are needed, and the disk has {free} free")
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="pull") as threads:
            pulling = [threads.submit(self._fetch, source, digest, progress) for digest in missing]
            try:
                for task in pulling:
                    task.result()
            except BaseException:
                threads.shutdown(cancel_futures=True)
                raise
        if missing:
            sync(self._folder)

    def drop_damaged(self, digests: Collection[Digest]) -> int:
        """Compare files with their digests, and remove those that differ; how many."""
        damaged = 0
        for digest in digests:
            path = self.path(digest)
            try:
                with path.open("rb") as file:
                    found, _ = _read_through(file)
            except OSError:
                found = ""
            if found != digest.sha256:
                path.unlink(missing_ok=True)
                damaged += 1
        return damaged

    def prune(self, wanted: Collection[Digest] = ()) -> None:
        """Remove what no edition links to, but for what is wanted still."""
        kept = {digest.sha256 for digest in wanted}
        if not self._folder.is_dir():
            return
        for path in self._folder.iterdir():
            if path.name.removesuffix(_PARTIAL) not in kept and path.stat().st_nlink == 1:
                path.unlink(missing_ok=True)

    def _begun(self, digest: Digest) -> int:
        try:
            return min(self._partial(digest).stat().st_size, digest.size)
        except FileNotFoundError:
            return 0

    def _partial(self, digest: Digest) -> Path:
        return self._folder / f"{digest.sha256}{_PARTIAL}"

    def _fetch(self, source: ObjectSource, digest: Digest, progress: Progress) -> None:
        for attempt in range(_TRIES):
            try:
                self._fetch_once(source, digest, progress)
            except ObjectMissing:
                raise
            except ObjectError:
                if attempt == _TRIES - 1:
                    raise
            except OSError as failure:
                raise ObjectError(f"{self._folder.name}: {failure.strerror or failure}") from failure
            else:
                return

    def _fetch_once(self, source: ObjectSource, digest: Digest, progress: Progress) -> None:
        partial = self._partial(digest)
        with open(partial, "ab+", opener=open_private) as file:
            file.seek(0)
            try:
                _complete(file, source, digest, progress)
            except _Useless as failure:
                with suppress(OSError):
                    partial.unlink()
                raise ObjectError(str(failure)) from None
            file.flush()
            os.fsync(file.fileno())
        partial.chmod(_SEALED_FILE)
        partial.replace(self.path(digest))


class _Useless(Exception):
    """What came is not what was published, and nothing of it can be kept."""


def _complete(file: BinaryIO, source: ObjectSource, digest: Digest, progress: Progress) -> None:
    hashed = sha256()
    size = 0
    while chunk := file.read(CHUNK):
        hashed.update(chunk)
        size += len(chunk)
    if size < digest.size:
        pace = _Pace()
        with source.stream(digest.path, size, digest.size) as chunks:
            for chunk in chunks:
                size += len(chunk)
                if size > digest.size:
                    raise _Useless(f"{digest.path}: more than its {digest.size} bytes")
                file.write(chunk)
                hashed.update(chunk)
                progress(len(chunk))
                pace.add(len(chunk), digest.path)
        if size < digest.size:
            raise ObjectError(f"{digest.path}: ended at byte {size} of {digest.size}")
    if hashed.hexdigest() != digest.sha256:
        raise _Useless(f"{digest.path}: not what was published")


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


def _read_through(file: BinaryIO) -> tuple[str, int]:
    hashed = sha256()
    size = 0
    while chunk := file.read(CHUNK):
        hashed.update(chunk)
        size += len(chunk)
    return hashed.hexdigest(), size


def file_digest(path: Path) -> Digest:
    with path.open("rb") as file:
        return Digest(*_read_through(file))
