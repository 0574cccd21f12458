"""The editions under HOME: one folder each, with its file of blocks and its Parquet files.

editions/<edition>.seal                the SHA-256 of the manifest
editions/<edition>/manifest.json       what the edition is; the digest of the checksums
editions/<edition>/checksums           the digests of the pages of every file, one after another
editions/<edition>/edition.blocks      see `engines.block_file`
editions/<edition>/files/*.parquet
"""

import asyncio
import fcntl
import hashlib
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from sankofa.engines.block_cache import BlockCache
from sankofa.engines.block_file import BlockFileReader, BlockFileWriter, NotChecked
from sankofa.engines.checked_file import DIGEST, CheckedFile, Damaged, FileStates, page_count, page_digests
from sankofa.engines.datastore import Block, ByteRange, Manifest
from sankofa.engines.manifest import open_manifest, seal_manifest
from sankofa.model.errors import EditionError, OperatorError, StoreUnavailable

BUILDING = ".building-"
FILE = "edition.blocks"
FILES = "files"
MANIFEST = "manifest.json"
CHECKSUMS = "checksums"
_CHECKED_AT_OPENING_SECONDS = 0.5
_PIECES_A_TURN = 128
_PRIVATE_FOLDER, _PRIVATE_FILE, _SEALED_FILE = 0o700, 0o600, 0o400


class EditionFolderWriter:
    """See `engines.datastore.EditionWriter`."""

    def __init__(self, editions: Path) -> None:
        self._editions = editions
        for seal in editions.glob("*.seal"):  # of a build that was killed at its last step
            if not seal.with_suffix("").exists():
                seal.unlink(missing_ok=True)
        self._folder, self._lock = building_folder(editions)
        self._file = self._folder / FILE
        self.files = self._folder / FILES
        try:
            with operator_errors(self._file):
                self.files.mkdir(_PRIVATE_FOLDER)
                self._blocks = BlockFileWriter(self._file)
        except BaseException:
            self._remove()
            raise

    def write(self, blocks: Iterable[tuple[int, bytes, bytes]]) -> None:
        with operator_errors(self._file):
            self._blocks.write(blocks)

    def register(self, directory: Iterable[tuple[str, str, int, int]]) -> None:
        with operator_errors(self._file):
            self._blocks.register(directory)

    def finish(self, edition: str, manifest: Manifest) -> None:
        """Where it is there already, whole, with the same content, that one stays: it may be in service."""
        destination = self._editions / edition
        if _is_whole(destination, manifest):
            self.abandon()
            return
        with operator_errors(self._file):
            self._blocks.finish()
            paths = [self._file, *(self.files / file["name"] for file in manifest.get("files", ()))]
            digests = [page_digests(path) for path in paths]
            checksums = b"".join(pages for pages, _ in digests)
            content, seal = seal_manifest(
                {
                    **manifest,
                    "edition": edition,
                    "file_bytes": digests[0][1],
                    "checksums_sha256": hashlib.sha256(checksums).hexdigest(),
                }
            )
            (self._folder / CHECKSUMS).write_bytes(checksums)
            (self._folder / MANIFEST).write_bytes(content)
            for path in (*paths, self._folder / CHECKSUMS, self._folder / MANIFEST):
                path.chmod(_SEALED_FILE)
                sync(path)
            sync(self.files)
            sync(self._folder)
            if destination.exists():
                shutil.rmtree(destination)
            replace_file(seal_path(destination), f"{seal}\n")
            self._folder.rename(destination)
            sync(self._editions)
        self._unlock()

    def abandon(self) -> None:
        """On a full disk the last bytes of a file cannot be written; it is closed and removed anyway."""
        with suppress(OSError):
            self._blocks.close()
        self._remove()

    def _remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)
        self._unlock()

    def _unlock(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)


class EditionFolderReader:
    """See `engines.datastore.EditionReader`. Reads take microseconds, so they run where they are asked."""

    def __init__(
        self, folder: Path, states: FileStates, cache: BlockCache | None = None, *, check_all: bool = False
    ) -> None:
        self._edition = folder.name
        self.damage: str | None = None
        try:
            self.manifest: Manifest = read_manifest(folder)
            block_file, *files = _open_files(folder, self.manifest, states)
            _check_files([block_file, *files], float("inf") if check_all else _CHECKED_AT_OPENING_SECONDS)
            self._block_file = block_file
            self._files = {file.name: file for file in files}
            self._scrubbed = [block_file, *files]
            self._blocks = BlockFileReader(block_file, cache)
        except FileNotFoundError as failure:
            missing = Path(failure.filename).name
            raise EditionError(f"edition {folder.name}: incomplete: {missing} is missing") from None
        except Damaged as damage:
            raise EditionError(f"edition {folder.name}: {damage}") from None
        except (ValueError, KeyError, TypeError, OSError) as failure:
            raise EditionError(f"edition {folder.name}: corrupt: {failure}") from failure

    async def blocks(self, kind: str, key: str, skip: int, most: int) -> Sequence[Block] | None:
        try:
            return self._blocks.blocks(kind, key, skip, most)
        except (NotChecked, Damaged) as reason:
            await self._check(reason)
        return await self.blocks(kind, key, skip, most)

    async def pieces(self, ranges: Sequence[ByteRange]) -> Sequence[bytes | memoryview]:
        """Each may be of a block that has to be decompressed first: others have a turn between them."""
        pieces: list[bytes | memoryview] = []
        try:
            for first in range(0, len(ranges), _PIECES_A_TURN):
                if first:
                    await asyncio.sleep(0)
                pieces += self._blocks.pieces(ranges[first : first + _PIECES_A_TURN])
        except Damaged as damage:
            raise self._unavailable(damage) from None
        return pieces

    async def file_bytes(self, name: str, start: int, end: int) -> bytes:
        """In a thread: a disk that is slow must not hold up the others."""
        try:
            return await asyncio.to_thread(self._files[name].read, start, end)
        except Damaged as damage:
            raise self._unavailable(damage) from None

    async def digests(self, kind: str, after: str, most: int) -> Sequence[tuple[str, bytes]]:
        try:
            return self._blocks.digests(kind, after, most)
        except (NotChecked, Damaged) as reason:
            await self._check(reason)
        return await self.digests(kind, after, most)

    def scrub(self, most: int) -> None:
        try:
            self._block_file.check_lease()
            if most and not self._scrubbed[0].scrub(most):
                self._scrubbed = [*self._scrubbed[1:], self._scrubbed[0]]
        except Damaged as damage:
            self.damage = str(damage)

    def close(self) -> None:
        self._blocks.close()
        for file in (self._block_file, *self._files.values()):
            file.close()

    async def _check(self, reason: NotChecked | Damaged) -> None:
        """Compare what is to be compared first, in a thread: it is much."""
        try:
            if isinstance(reason, Damaged):
                raise reason
            await asyncio.to_thread(self._block_file.check, reason.start, reason.end)
        except Damaged as damage:
            raise self._unavailable(damage) from None

    def _unavailable(self, damage: Damaged) -> StoreUnavailable:
        self.damage = str(damage)
        return StoreUnavailable("datastore", f"edition {self._edition}: {damage}")


def seal_path(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.seal")


def read_manifest(folder: Path) -> Manifest:
    """Raises ValueError where it is not the one that was sealed, OSError where it cannot be read."""
    content = (folder / MANIFEST).read_bytes()
    try:
        seal, line_end, rest = seal_path(folder).read_text("ascii").partition("\n")
    except FileNotFoundError:
        raise ValueError(f"its seal {seal_path(folder).name} is missing: publish again") from None
    if not line_end or rest:
        raise ValueError(f"its seal {seal_path(folder).name} is damaged")
    return open_manifest(content, seal, folder.name)


def _open_files(folder: Path, manifest: Manifest, states: FileStates) -> list[CheckedFile]:
    """The file of blocks and every Parquet file, each with the digests of its pages."""
    checksums = (folder / CHECKSUMS).read_bytes()
    if hashlib.sha256(checksums).hexdigest() != manifest["checksums_sha256"]:
        raise Damaged(f"corrupt: {CHECKSUMS} is not what was published")
    paths = [(folder / FILE, manifest["file_bytes"])]
    paths += [(folder / FILES / file["name"], file["size_bytes"]) for file in manifest.get("files", ())]
    files = []
    start = 0
    for path, size in paths:
        end = start + DIGEST * page_count(size)
        files.append(CheckedFile(path, size, checksums[start:end], states))
        start = end
    return files


def _check_files(files: Iterable[CheckedFile], seconds: float) -> None:
    """For so long; what is left is compared when it is read, and by `scrub`."""
    deadline = time.monotonic() + seconds
    for file in files:
        if not file.check_all(deadline - time.monotonic()):
            return


def _is_whole(folder: Path, manifest: Manifest) -> bool:
    try:
        reader = EditionFolderReader(folder, FileStates(), check_all=True)
    except EditionError:
        return False
    reader.close()
    return bool(reader.manifest.get("content_sha256") == manifest.get("content_sha256"))


def remove_edition(folder: Path) -> None:
    """The seal last: an edition without its seal is damaged, a seal without its edition is nothing."""
    shutil.rmtree(folder)
    seal_path(folder).unlink(missing_ok=True)


def replace_file(path: Path, text: str) -> None:
    """In one step: whoever reads it finds the old content or the new."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(partial, "w", opener=open_private) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise
    sync(path.parent)


def open_private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC, _PRIVATE_FILE)


def make_private_folder(path: Path) -> None:
    """A new folder is its owner's alone, whatever the umask; one that is there is left as it is."""
    if not path.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(_PRIVATE_FOLDER, exist_ok=True)


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


def sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def operator_errors(path: Path) -> Iterator[None]:
    """A full disk or a damaged file is reported to the operator by name, without a traceback."""
    try:
        yield
    except (sqlite3.Error, OSError) as failure:
        raise OperatorError(f"{path.name}: {failure}") from failure
