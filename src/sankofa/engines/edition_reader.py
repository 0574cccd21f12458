"""Reads an edition from its folder (`engines.edition_folder` says what is there)."""

import asyncio
import errno
import hashlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from sankofa.engines.block_file import BlockFileReader, NotChecked
from sankofa.engines.checked_file import DIGEST, CheckedFile, Damaged, page_count
from sankofa.engines.datastore import ALIASES, Block, ByteRange, Manifest, NeedsRows
from sankofa.engines.edition_files import OpenParts, StoredFile
from sankofa.engines.edition_log import row_trees_path
from sankofa.engines.manifest import open_manifest
from sankofa.engines.parts_by_kind import PartsByKind
from sankofa.engines.pieces import PieceReader
from sankofa.model.errors import EditionError, StoreUnavailable

PARTS = "parts"
FILES = "files"
MANIFEST = "manifest.json"
CHECKSUMS = "checksums"
_CHECKED_AT_OPENING = 16 << 20
"""Bytes: all of a small edition, and of a large one what takes some hundredths of a second."""
_PIECES_A_TURN = 128


@contextmanager
def edition_errors(folder: Path) -> Iterator[None]:
    """Turn any fault of an edition's files into an EditionError that names it."""
    try:
        yield
    except FileNotFoundError as failure:
        missing = Path(failure.filename).name
        raise EditionError(f"edition {folder.name}: incomplete: {missing} is missing") from None
    except Damaged as damage:
        raise EditionError(f"edition {folder.name}: {damage}") from None
    except (ValueError, KeyError, TypeError, OSError) as failure:
        if isinstance(failure, OSError) and failure.errno in (errno.EMFILE, errno.ENFILE):
            raise EditionError(f"edition {folder.name}: cannot be opened: {failure.strerror}") from failure
        raise EditionError(f"edition {folder.name}: corrupt: {failure}") from failure


class EditionFolderReader:
    """See `engines.datastore.EditionReader`. Reads take microseconds, so they run where they are asked."""

    def __init__(
        self, folder: Path, opened: OpenParts, seal: str | None = None, *, check_all: bool = False
    ) -> None:
        """`seal` is the digest of its manifest that was signed; without it the file beside it is believed."""
        self._edition = folder.name
        self._row_trees = row_trees_path(folder)
        self.damage: str | None = None
        with edition_errors(folder):
            self.manifest: Manifest = read_manifest(folder, seal)
            stored = stored_files(folder, self.manifest)
            parts = [opened.open(path, file) for path, file in stored[: len(self.manifest["parts"])]]
            self._files = {
                path.name: CheckedFile(path, file.size, file.pages, opened.states)
                for path, file in stored[len(parts) :]
            }
            self._scrubbed = [*(part.file for part in parts), *self._files.values()]
            _check_files(self._scrubbed, sys.maxsize if check_all else _CHECKED_AT_OPENING)
            self._mapped = [part.file for part in parts]
            self._parts = PartsByKind(self.manifest, [part.blocks for part in parts])
            self._pieces = PieceReader(self._parts)

    async def blocks(
        self, kind: str, key: str, skip: int, most: int, needs_rows: NeedsRows | None = None
    ) -> Sequence[Block] | None:
        if (part := self._parts.of_key(kind, key)) is None:
            return None
        try:
            blocks = part.blocks(kind, key, skip, most, needs_rows)
            if blocks is None and (target := self._target(kind, key)) is not None:
                blocks = target.blocks(kind, key, skip, most, needs_rows)
        except (NotChecked, Damaged) as reason:
            await self._check(reason)
            return await self.blocks(kind, key, skip, most, needs_rows)
        return blocks

    def _target(self, kind: str, key: str) -> BlockFileReader | None:
        """The part that has the rows under a key that leads to another."""
        parts = self._parts
        if len(parts.of_kind(kind)) == 1 or (aliases := parts.of_key(ALIASES, key)) is None:
            return None
        rows = aliases.blocks(ALIASES, key, 0, 1)
        return parts.of_key(kind, str(rows[0][1], "utf-8")) if rows else None

    async def pieces(self, kind: str, ranges: Sequence[ByteRange]) -> Sequence[bytes | memoryview]:
        """Each may be of a block that has to be decompressed first: others have a turn between them."""
        pieces: list[bytes | memoryview] = []
        try:
            for first in range(0, len(ranges), _PIECES_A_TURN):
                if first:
                    await asyncio.sleep(0)
                pieces += self._pieces.read(kind, ranges[first : first + _PIECES_A_TURN])
        except Damaged as damage:
            raise self._unavailable(damage) from None
        return pieces

    async def file_bytes(self, name: str, start: int, end: int) -> bytes:
        """In a thread: a disk that is slow must not hold up the others."""
        try:
            return await asyncio.to_thread(self._files[name].read, start, end)
        except Damaged as damage:
            raise self._unavailable(damage) from None

    def row_trees(self) -> bytes:
        return self._row_trees.read_bytes()

    async def digests(self, kind: str, after: str, most: int) -> Sequence[tuple[str, bytes]]:
        digests: list[tuple[str, bytes]] = []
        try:
            for span in self._parts.spans(kind, after):
                asked, first = most - len(digests), span.first
                some = span.part.digests(kind, max(after, first), asked, with_it=after < first)
                digests += [one for one in some if span.has(one[0])]
                if len(digests) == most:
                    break
        except (NotChecked, Damaged) as reason:
            await self._check(reason)
            return await self.digests(kind, after, most)
        return digests

    def scrub(self, most: int) -> None:
        try:
            for file in self._mapped:
                file.check_lease()
            if most and not self._scrubbed[0].scrub(most):
                self._scrubbed = [*self._scrubbed[1:], self._scrubbed[0]]
        except Damaged as damage:
            self.damage = str(damage)

    def close(self) -> None:
        """A part is closed with the last edition that has it, its map with the last view of it: an answer may
        still be on its way out."""
        self._parts.clear()
        self._pieces.clear()
        self._mapped, self._scrubbed = [], []
        for file in self._files.values():
            file.close()

    async def _check(self, reason: NotChecked | Damaged) -> None:
        """Compare what is to be compared first, in a thread: it is much."""
        try:
            if isinstance(reason, Damaged):
                raise reason
            await asyncio.to_thread(reason.file.check, reason.start, reason.end)
        except Damaged as damage:
            raise self._unavailable(damage) from None

    def _unavailable(self, damage: Damaged) -> StoreUnavailable:
        self.damage = str(damage)
        return StoreUnavailable("datastore", f"edition {self._edition}: {damage}")


def seal_path(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.seal")


def read_manifest(folder: Path, seal: str | None = None) -> Manifest:
    """Raises ValueError where it is not the one that was sealed, OSError where it cannot be read."""
    content = (folder / MANIFEST).read_bytes()
    own = read_seal(folder)
    if seal is not None and own != seal:
        raise ValueError(f"its seal {seal_path(folder).name} is not the one that was signed")
    return open_manifest(content, own, folder.name)


def read_seal(folder: Path) -> str:
    """Raises ValueError or OSError."""
    try:
        seal, line_end, rest = seal_path(folder).read_text("ascii").partition("\n")
    except FileNotFoundError:
        raise ValueError(f"its seal {seal_path(folder).name} is missing: publish again") from None
    if not line_end or rest:
        raise ValueError(f"its seal {seal_path(folder).name} is damaged")
    return seal


def stored_files(folder: Path, manifest: Manifest) -> list[tuple[Path, StoredFile]]:
    """Every part and every Parquet file, with the digests of its pages. Raises Damaged, OSError, KeyError."""
    checksums = (folder / CHECKSUMS).read_bytes()
    if hashlib.sha256(checksums).hexdigest() != manifest["checksums_sha256"]:
        raise Damaged(f"corrupt: {CHECKSUMS} is not what was published")
    named = [
        (folder / PARTS / part["sha256"], part["sha256"], part["size_bytes"]) for part in manifest["parts"]
    ]
    named += [
        (folder / FILES / file["name"], file["sha256"], file["size_bytes"])
        for file in manifest.get("files", ())
    ]
    files = []
    start = 0
    for path, sha256, size in named:
        end = start + DIGEST * page_count(size)
        files.append((path, StoredFile(sha256, size, checksums[start:end])))
        start = end
    return files


def _check_files(files: Iterable[CheckedFile], most: int) -> None:
    """Up to so many bytes; what is left is compared when it is read, and by `scrub`."""
    for file in files:
        if most <= 0:
            return
        most -= file.check_all(most)
