"""The editions under HOME: one folder each, with its file of blocks and a manifest that seals it."""

import asyncio
import fcntl
import hashlib
import json
import os
import shutil
import sqlite3
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sankofa.engines.block_file import BlockFileReader, BlockFileWriter
from sankofa.engines.datastore import Block, ByteRange, Manifest
from sankofa.model.errors import EditionError, OperatorError

BUILDING = ".building-"
FILE = "edition.blocks"
FILES = "files"


class EditionFolderWriter:
    """See `engines.datastore.EditionWriter`."""

    def __init__(self, editions: Path) -> None:
        self._editions = editions
        self._folder, self._lock = building_folder(editions)
        self._file = self._folder / FILE
        self.files = self._folder / FILES
        with operator_errors(self._file):
            self.files.mkdir()
            self._blocks = BlockFileWriter(self._file)

    def write(self, blocks: Iterable[tuple[int, bytes, bytes]]) -> None:
        with operator_errors(self._file):
            self._blocks.write(blocks)

    def register(self, places: Iterable[tuple[str, str, int, int]]) -> None:
        with operator_errors(self._file):
            self._blocks.register(places)

    def finish(self, edition: str, manifest: Manifest) -> None:
        """Where it is there already, whole, with the same content, that one stays: it may be in service."""
        destination = self._editions / edition
        if _is_whole(destination, manifest):
            self.abandon()
            return
        with operator_errors(self._file):
            self._blocks.finish()
            digest, size = _file_digest(self._file)
            sealed = {**manifest, "edition": edition, "file_sha256": digest, "file_bytes": size}
            (self._folder / "manifest.json").write_text(json.dumps(sealed, indent=1, sort_keys=True) + "\n")
            shared = [self.files / one["name"] for one in manifest.get("files", ())]
            for path in (self._file, self._folder / "manifest.json", *shared):
                path.chmod(0o444)
                sync(path)
            sync(self.files)
            self._folder.chmod(0o755)
            sync(self._folder)
            if destination.exists():
                shutil.rmtree(destination)
            self._folder.rename(destination)
            sync(self._editions)
        self._unlock()

    def abandon(self) -> None:
        self._blocks.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._unlock()

    def _unlock(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)


class EditionFolderReader:
    """See `engines.datastore.EditionReader`. Reads take microseconds, so they run where they are asked."""

    def __init__(self, folder: Path, *, verified: bool = False) -> None:
        path = folder / FILE
        try:
            self.manifest: Manifest = json.loads((folder / "manifest.json").read_bytes())
            sealed = self.manifest["file_sha256"]
            digest, size = (sealed, path.stat().st_size) if verified else _file_digest(path)
            if size != self.manifest["file_bytes"]:
                raise EditionError(
                    f"edition {folder.name}: incomplete: {size} of {self.manifest['file_bytes']} bytes"
                )
            if digest != sealed:
                raise EditionError(
                    f"edition {folder.name}: corrupt: its bytes are not the ones that were published"
                )
            self._files = _open_files(folder, self.manifest)
            self._blocks = BlockFileReader(path)
        except FileNotFoundError as failure:
            missing = Path(failure.filename).name
            raise EditionError(f"edition {folder.name}: incomplete: {missing} is missing") from None
        except (ValueError, KeyError, TypeError, OSError) as failure:
            raise EditionError(f"edition {folder.name}: corrupt: {failure}") from failure

    async def blocks(self, kind: str, key: str, skip: int, most: int) -> Sequence[Block] | None:
        return self._blocks.blocks(kind, key, skip, most)

    async def pieces(self, places: Sequence[ByteRange]) -> Sequence[memoryview]:
        return self._blocks.pieces(places)

    async def file_bytes(self, name: str, start: int, end: int) -> bytes:
        """In a thread: a disk that is slow must not hold up the others."""
        return await asyncio.to_thread(os.pread, self._files[name].descriptor, end - start, start)

    async def digests(self, kind: str, after: str, most: int) -> Sequence[tuple[str, bytes]]:
        return self._blocks.digests(kind, after, most)

    def close(self) -> None:
        self._blocks.close()
        for file in self._files.values():
            file.close()


class _OpenFile:
    """Stays readable after its edition is removed; let go of with the last who refers to it."""

    def __init__(self, path: Path) -> None:
        self.descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self.close = weakref.finalize(self, os.close, self.descriptor)


def _open_files(folder: Path, manifest: Manifest) -> dict[str, _OpenFile]:
    """Every file of an edition, once it is seen to be the one that was published."""
    found: dict[str, _OpenFile] = {}
    for one in manifest.get("files", ()):
        path = folder / FILES / one["name"]
        if _file_digest(path) != (one["sha256"], one["size_bytes"]):
            raise EditionError(f"edition {folder.name}: corrupt: {path.name} is not what was published")
        found[one["name"]] = _OpenFile(path)
    return found


def _is_whole(folder: Path, manifest: Manifest) -> bool:
    try:
        reader = EditionFolderReader(folder)
    except EditionError:
        return False
    reader.close()
    return bool(reader.manifest.get("content_sha256") == manifest.get("content_sha256"))


def building_folder(parent: Path) -> tuple[Path, int | None]:
    """A new folder to build in, and the lock on it; those whose builder is no more are removed."""
    for folder in parent.glob(f"{BUILDING}*"):
        if (lock := lock_folder(folder)) is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)
    folder = Path(tempfile.mkdtemp(prefix=BUILDING, dir=parent))
    return folder, lock_folder(folder)


def lock_folder(folder: Path) -> int | None:
    """A lock on a folder that ends with the process, or None where another holds it."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _file_digest(path: Path) -> tuple[str, int]:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest(), stream.tell()


def sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def operator_errors(path: Path) -> Iterator[None]:
    """A full disk or a damaged file is told to the operator by name, without a traceback."""
    try:
        yield
    except (sqlite3.Error, OSError) as failure:
        raise OperatorError(f"{path.name}: {failure}") from failure
