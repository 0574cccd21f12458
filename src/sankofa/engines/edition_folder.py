"""The editions under HOME: one folder each, with its parts and its Parquet files.

editions/editions.note                 what is published, signed (`engines.publication`)
editions/<edition>/manifest.json       what the edition is; the digest of the checksums
editions/<edition>/checksums           the digests of the pages of every file, one after another
editions/<edition>/parts/<sha256>      see `engines.block_file`
editions/<edition>/files/*.parquet

A part or file shared by two editions is one file under two names (`engines.edition_reader`).
"""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from sankofa.engines.block_file import BlockFileWriter, StoredBlock
from sankofa.engines.checked_file import DIGEST, CheckedFile, Damaged, FileStates, page_count
from sankofa.engines.edition_reader import (
    CHECKSUMS,
    FILES,
    MANIFEST,
    PARTS,
    EditionReader,
    ListedFile,
    OpenParts,
    StoredFile,
    describe_file,
    link_or_copy,
    listed_files,
    read_manifest,
    stored_files,
)
from sankofa.engines.private_files import PRIVATE_FOLDER, operator_errors, sync, try_lock
from sankofa.engines.publication import Manifest, open_manifest, seal_manifest
from sankofa.model.errors import EditionError

BUILDING = ".building-"
_PRIVATE_FILE = 0o600


class EditionWriter:
    """An edition being built: invisible to every reader until it is finished.

    It consists of parts; everything written up to `end_part` is one part. `files` is a folder for files;
    those that the manifest lists become part of the edition.
    """

    def __init__(
        self,
        editions: Path,
        opened: OpenParts,
        signed: Mapping[str, str] | None = None,
        finished: Callable[[str, str], object] = lambda edition, seal: None,
    ) -> None:
        """Reuses files of the stored editions that are `signed` (edition and seal), or of all if nothing
        is signed yet. `finished` is called with the edition that was built, and its seal."""
        self._editions = editions
        self._opened = opened
        self._signed = signed
        self._finished = finished
        self._building = ExitStack()
        self._folder = self._building.enter_context(building_folder(editions))
        self._unfinished = self._folder / "part"
        self._parts = self._folder / PARTS
        self.files = self._folder / FILES
        self._blocks: BlockFileWriter | None = None
        self._kinds: set[str] = set()
        self._held: dict[str, StoredFile] = {}
        """Files of this edition: parts by their content, reused files by their SHA-256."""
        self._stored_files: dict[str, tuple[Path, StoredFile]] | None = None
        """The same for the stored editions."""

    def write(self, blocks: Iterable[StoredBlock]) -> None:
        """Append blocks, which are numbered from 1 in each part."""
        with operator_errors(self._unfinished):
            self._part().write(blocks)

    def register(self, directory: Iterable[tuple[str, str, int, int]]) -> None:
        """Append directory rows: (kind, key, first block id, number of blocks)."""
        with operator_errors(self._unfinished):
            rows = list(directory)
            self._kinds.update(row[0] for row in rows)
            self._part().register(rows)

    def end_part(self, content: str) -> None:
        """Ends a part; `content`, the digest of what was written, identifies it."""
        with operator_errors(self._unfinished):
            self._part().finish()
            self._blocks = None
            if content and self.reuse(content):  # unchanged
                self._unfinished.unlink()
                return
            stored = describe_file(self._unfinished)
            self._unfinished.rename(self._parts / stored.sha256)
            self._held[content] = stored

    def reuse(self, content: str) -> bool:
        """Adds a part with this content from a stored edition; False if no edition has it."""
        return content in self._held or self._link(content, self._parts, "")

    def reuse_file(self, name: str, sha256: str) -> bool:
        """The same for a file of `files`."""
        return self._link(sha256, self.files, name)

    def finish(self, edition: str, manifest: Manifest) -> None:
        """Make it durable and complete under its name. Not yet current.

        `manifest["files"]` has the `name`, `size_bytes` and `sha256` of each file. `manifest["parts"]` has
        for each part its `content`, the `kinds` of its keys, and their `first` key: the parts of a kind are
        in the order of their keys. Without it, everything written is one part. If the edition already exists,
        as signed and with the same content, the existing one stays: it may be in use.
        """
        destination = self._editions / edition
        signed = (self._signed or {}).get(edition, "")
        if signed and _is_whole(destination, signed, manifest):
            self._finished(edition, signed)
            self.abandon()
            return
        with operator_errors(self._unfinished):
            if (parts := manifest.get("parts")) is None:
                self.end_part("")
                parts = [{"kinds": sorted(self._kinds), "first": "", "content": ""}]
            stored = [self._held[part["content"]] for part in parts]
            for file in manifest.get("files", ()):
                stored.append(self._held.get(file["sha256"]) or describe_file(self.files / file["name"]))
            checksums = b"".join(file.pages for file in stored)
            content, seal = seal_manifest(
                {
                    **manifest,
                    "edition": edition,
                    "parts": [
                        {**part, "sha256": file.sha256, "size_bytes": file.size}
                        for part, file in zip(parts, stored, strict=False)
                    ],
                    "checksums_sha256": hashlib.sha256(checksums).hexdigest(),
                }
            )
            (self._folder / CHECKSUMS).write_bytes(checksums)
            (self._folder / MANIFEST).write_bytes(content)
            self._make_durable()
            if destination.exists():
                shutil.rmtree(destination)
            self._folder.rename(destination)
            sync(self._editions)
        self._finished(edition, seal)
        self._building.close()

    def abandon(self) -> None:
        """Leave nothing behind, even on a full disk, where a file's last bytes cannot be written."""
        if self._blocks is not None:
            with suppress(OSError):
                self._blocks.close()
        self._building.close()

    def _part(self) -> BlockFileWriter:
        if self._blocks is None:
            self._blocks = BlockFileWriter(self._unfinished)
        return self._blocks

    def _link(self, known_by: str, folder: Path, name: str) -> bool:
        """Link a file of a kept edition into this one, under its own name unless another is given."""
        if self._stored_files is None:
            self._stored_files = _files_of_editions(self._editions, self._signed)
        if known_by not in self._stored_files:
            return False
        path, stored = self._stored_files[known_by]
        try:
            CheckedFile(path, stored.size, stored.pages, self._opened.states).check_all()
            link_or_copy(path, folder / (name or stored.sha256))
        except (Damaged, OSError):
            return False
        self._held[known_by] = stored
        return True

    def _make_durable(self) -> None:
        """Flush every file to the disk: at once for a reused file, which is there already."""
        for path in (*self._parts.iterdir(), *self.files.iterdir(), *self._folder.glob("*")):
            if path.is_file():
                if path.stat().st_mode & 0o777 != _PRIVATE_FILE:
                    path.chmod(_PRIVATE_FILE)
                sync(path)
        for folder in (self._parts, self.files, self._folder):
            sync(folder)


def _files_of_editions(
    editions: Path, signed: Mapping[str, str] | None
) -> dict[str, tuple[Path, StoredFile]]:
    """Files of the stored editions, newest first: parts by their content, others by their SHA-256."""
    files: dict[str, tuple[Path, StoredFile]] = {}
    for path in sorted(editions.glob(f"*/{MANIFEST}")):
        with suppress(OSError, ValueError, KeyError, TypeError, Damaged):
            manifest = read_manifest(path.parent, None if signed is None else signed[path.parent.name])
            parts = manifest["parts"]
            for number, (named, file) in enumerate(stored_files(path.parent, manifest)):
                known_by = parts[number]["content"] if number < len(parts) else file.sha256
                files[known_by] = named, file
    return files


def _is_whole(folder: Path, seal: str, manifest: Manifest) -> bool:
    """Whether the edition is complete, as signed, and has the content of this manifest."""
    try:
        reader = EditionReader(folder, OpenParts(FileStates()), seal, check_all=True)
    except EditionError:
        return False
    reader.close()
    return bool(reader.manifest.get("content_sha256") == manifest.get("content_sha256"))


@contextmanager
def building_folder(parent: Path) -> Iterator[Path]:
    """A new folder of an edition, removed at the end unless it was renamed. Removes those of ended builds."""
    for folder in parent.glob(f"{BUILDING}*"):
        if (lock := lock_folder(folder)) is not None:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)
    folder = Path(tempfile.mkdtemp(prefix=BUILDING, dir=parent))
    lock = lock_folder(folder)
    try:
        for name in (PARTS, FILES):
            (folder / name).mkdir(PRIVATE_FOLDER)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def lock_folder(folder: Path) -> int | None:
    """A lock on a folder that ends with the process, or None if another holds it."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    if try_lock(descriptor):
        return descriptor
    os.close(descriptor)
    return None


class EditionContents(NamedTuple):
    """The manifest of an edition, and all its files by their path in the edition's folder."""

    edition: str
    manifest: Manifest
    seal: str
    files: tuple[ListedFile, ...]


def edition_contents(folder: Path) -> EditionContents:
    """Raises EditionError if the manifest cannot be read or belongs to another edition."""
    try:
        content = (folder / MANIFEST).read_bytes()
        return listed_contents(folder.name, content, hashlib.sha256(content).hexdigest())
    except (OSError, ValueError, KeyError) as failure:
        raise EditionError(f"edition {folder.name}: {failure}") from failure


def listed_contents(edition: str, content: bytes, seal: str) -> EditionContents:
    """The same from the bytes of its manifest. Raises ValueError or KeyError."""
    manifest = open_manifest(content, seal, edition)
    listed = listed_files(manifest)
    size = DIGEST * sum(page_count(file.size) for file in listed)
    own = ListedFile(MANIFEST, len(content), seal), ListedFile(CHECKSUMS, size, manifest["checksums_sha256"])
    return EditionContents(edition, manifest, seal, (*own, *listed))


def link_edition(folder: Path, files: Iterable[tuple[str, Path]]) -> None:
    """Assembles an edition from links to files (path in its folder, file), in one step. Replaces an edition
    with the same name. Raises OperatorError."""
    with operator_errors(folder), building_folder(folder.parent) as building:
        for path, file in files:
            os.link(file, building / path)
        for changed in {target.parent for target in building.rglob("*")}:
            sync(changed)
        if folder.exists():
            shutil.rmtree(folder)
        building.rename(folder)
        sync(folder.parent)
