"""The append-only log of editions, as C2SP specifies logs in tiles (tlog-tiles).

The log is two files beside the editions. `entries` has every entry after its length in two bytes, as in
bundles of entries. `checkpoint` is a signed note with the number of entries and the root of their Merkle tree
(RFC 9162). Tiles and bundles are made from the entries on request.

`rows/` has the hashes of the rows of each kept edition, and `rows.note` lists those files, signed.
"""

import os
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from sankofa.engines.private_files import make_private_folder, open_private, operator_errors, replace_file
from sankofa.model.errors import OperatorError, StoreUnavailable
from sankofa.model.signed_notes import (
    NotTrusted,
    Signer,
    Verifier,
    leaf_hash,
    level_above,
    levels_above,
    note_text,
    root_of,
    sign_note,
    verified_text,
)

FOLDER: Final = "log"
ENTRIES: Final = "log/entries"
CHECKPOINT: Final = "log/checkpoint"
STAMP: Final = "log/checkpoint.tsr"
"""The stamp of an authority on the text of the checkpoint (RFC 3161)."""
ROW_TREES: Final = "log/rows/"
"""Folder of the hashes of rows, a file for each kept edition."""
ROW_TREES_NOTE: Final = "log/rows.note"
_HEADING: Final = "sankofa/rows/v1\n"
LARGEST_LOG: Final = 256 << 20
"""Most bytes that a follower reads from a log; four times the log of a daily edition over 1,000 years."""
_LENGTH: Final = 2
_TILE_WIDTH: Final = 256
_LARGEST_LEVEL: Final = 63
_TILE: Final = re.compile(r"tile/(entries|[0-9]{1,2})/((?:x[0-9]{3}/){0,5}[0-9]{3})(?:\.p/([0-9]{1,3}))?")
"""Paths such as `tile/0/000`, `tile/1/x001/234.p/17` and `tile/entries/000.p/3`."""


Cosign = Callable[[bytes, Sequence[bytes]], bytes]


class LoggedEdition(msgspec.Struct, frozen=True, tag="edition"):
    edition: str
    published_at: str
    manifest_sha256: str
    rows: dict[str, dict[str, Any]]
    """The number of rows of each dataset and the root over them (`count`, `root`)."""


class LoggedErasure(msgspec.Struct, frozen=True, tag="erasure"):
    """The entry about editions that may not be served any more because their content was withdrawn."""

    at: str
    editions: list[str]


_decode: Final = msgspec.json.Decoder(LoggedEdition | LoggedErasure).decode


@dataclass(frozen=True)
class LogTree:
    """The entries of a log and their hashes; derived values are computed once."""

    entries: tuple[bytes, ...]
    leaves: tuple[bytes, ...]

    def first(self, size: int) -> "LogTree":
        """The log when it had `size` entries."""
        return self if size == len(self.leaves) else LogTree(self.entries[:size], self.leaves[:size])

    @cached_property
    def levels(self) -> list[Sequence[bytes]]:
        return levels_above(self.leaves)

    @cached_property
    def decoded(self) -> list[LoggedEdition | LoggedErasure]:
        """Raises StoreUnavailable for a malformed entry."""
        try:
            return [_decode(entry) for entry in self.entries]
        except msgspec.DecodeError as failure:
            raise StoreUnavailable("datastore", f"{ENTRIES}: {failure}") from failure

    def text(self, origin: str) -> str:
        return f"{origin}\n{len(self.leaves)}\n{b64encode(root_of(self.leaves)).decode()}\n"

    def bundle(self) -> bytes:
        return b"".join(len(entry).to_bytes(_LENGTH) + entry for entry in self.entries)

    def tile(self, path: str) -> bytes | None:
        """The tile or the bundle of entries at a path below `/log/`; None if there is none."""
        if (match := _TILE.fullmatch(path)) is None:
            return None
        kind, number, width = match.groups()
        groups = [int(part.removeprefix("x")) for part in number.split("/")]
        index = int("".join(f"{group:03}" for group in groups))
        if (len(groups) > 1 and not groups[0]) or (width is not None and not 0 < int(width) < _TILE_WIDTH):
            return None
        count = _TILE_WIDTH if width is None else int(width)
        first = index * _TILE_WIDTH
        if kind == "entries":
            entries = self.entries[first : first + count]
            return LogTree(entries, ()).bundle() if len(entries) == count else None
        hashes = self._of_level(int(kind))[first : first + count] if str(int(kind)) == kind else ()
        return b"".join(hashes) if len(hashes) == count else None

    def _of_level(self, level: int) -> Sequence[bytes]:
        """The hashes of the whole subtrees that tiles of a level have."""
        if level > _LARGEST_LEVEL:
            return ()
        hashes: Sequence[bytes] = self.leaves
        for _ in range(8 * level):
            hashes = level_above(hashes[: len(hashes) // 2 * 2])
        return hashes


NO_ENTRIES: Final = LogTree((), ())


def row_trees_path(edition_folder: Path) -> Path:
    """The file with the hashes of the rows of an edition."""
    return edition_folder.parent / ROW_TREES / edition_folder.name


class RowTreesFile(NamedTuple):
    """The line of a signed note about such a file."""

    sha256: str
    size: int


def listed_row_trees(note: bytes, trusted: Sequence[Verifier]) -> dict[str, RowTreesFile]:
    """The file of each edition that a note of a trusted key lists. Raises NotTrusted."""
    heading, _, listed = verified_text(note, trusted).partition("\n")
    try:
        if f"{heading}\n" == _HEADING:
            return msgspec.json.decode(listed, type=dict[str, RowTreesFile])
    except msgspec.DecodeError:
        pass
    raise NotTrusted(f"{ROW_TREES_NOTE} lists no hashes of rows")


def read_entries(content: bytes) -> LogTree:
    """The entries of a file, without an incomplete one at the end."""
    entries, at = [], 0
    while at + _LENGTH <= len(content):
        end = at + _LENGTH + int.from_bytes(content[at : at + _LENGTH])
        if end > len(content):
            break
        entries.append(content[at + _LENGTH : end])
        at = end
    return LogTree(tuple(entries), tuple(map(leaf_hash, entries)))


def checked_log(content: bytes, checkpoint: bytes, trusted: Sequence[Verifier], before: LogTree) -> LogTree:
    """The log up to a checkpoint of a trusted key, from a file that may be longer. Raises NotTrusted if it
    does not match, or lacks entries seen `before`."""
    tree = _signed_part(read_entries(content), verified_text(checkpoint, trusted))
    if tree.leaves[: len(before.leaves)] != before.leaves:
        raise NotTrusted(f"{ENTRIES} leaves out or changes entries that were there before: a fork")
    return tree


def checkpoint_head(text: str) -> tuple[int, bytes]:
    """The number of entries and the root in the text of a checkpoint. Raises NotTrusted."""
    lines = text.split("\n")
    try:
        return int(lines[1]), b64decode(lines[2], validate=True)
    except (IndexError, ValueError):
        raise NotTrusted(f"{CHECKPOINT} is not a checkpoint") from None


def bundle_paths(size: int) -> Iterator[str]:
    """The paths of the bundles of entries of a log of a size."""
    for first in range(0, size, _TILE_WIDTH):
        *groups, last = f"{first // _TILE_WIDTH:,}".split(",")
        path = "".join(f"x{group:>03}/" for group in groups) + f"{last:>03}"
        count = min(size - first, _TILE_WIDTH)
        yield f"{FOLDER}/tile/entries/{path}" + (f".p/{count}" if count < _TILE_WIDTH else "")


def _signed_part(tree: LogTree, checkpoint: str) -> LogTree:
    """The entries that the text of a checkpoint is about. Raises NotTrusted if they are others."""
    size, root = checkpoint_head(checkpoint)
    tree = tree.first(size)
    if len(tree.leaves) != size or root_of(tree.leaves) != root:
        raise NotTrusted(f"{ENTRIES} is not the log that was signed")
    return tree


def is_stamp_of(stamp: bytes, text: str) -> bool:
    """Whether a stamp names the digest of the text; `sankofa verify --roots` checks its authority."""
    return sha256(text.encode()).digest() in stamp


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as failure:
        raise StoreUnavailable("datastore", f"{FOLDER}/{path.name}: {failure}") from failure


class EditionLog:
    """The log of one store. Writers hold its lock to switch."""

    def __init__(self, editions: Path) -> None:
        self._folder = editions / FOLDER
        self._entries = editions / ENTRIES
        self._checkpoint = editions / CHECKPOINT
        self._stamp = editions / STAMP
        self._row_trees = editions / ROW_TREES
        self._row_trees_note = editions / ROW_TREES_NOTE
        self._read: tuple[tuple[int, int, int], LogTree] | None = None
        """The log as last read, and the inode, time and size of its file."""

    def tree(self) -> LogTree:
        """Every entry. Raises StoreUnavailable."""
        try:
            status = self._entries.stat()
            state = status.st_ino, status.st_mtime_ns, status.st_size
            if self._read is None or self._read[0] != state:
                self._read = state, read_entries(self._entries.read_bytes())
        except FileNotFoundError:
            return NO_ENTRIES
        except OSError as failure:
            raise StoreUnavailable("datastore", f"{ENTRIES}: {failure}") from failure
        return self._read[1]

    def checkpoint(self) -> bytes | None:
        """The signed note; None if there is none yet. Raises StoreUnavailable."""
        return _content(self._checkpoint)

    def stamp(self) -> bytes | None:
        """The stamp on this checkpoint; None if there is none. Raises StoreUnavailable."""
        stamp, checkpoint = _content(self._stamp), self.checkpoint()
        return stamp if stamp and checkpoint and is_stamp_of(stamp, note_text(checkpoint)) else None

    def take_stamp(self, stamp: bytes) -> None:
        """Store a stamp. `stamp` ignores stamps of other checkpoints."""
        with operator_errors(self._stamp):
            replace_file(self._stamp, stamp)

    def row_trees_note(self) -> bytes | None:
        """The signed list of the files with the hashes of rows; None if there is none yet."""
        return _content(self._row_trees_note)

    def list_row_trees(self, stored: Collection[str], signers: Sequence[Signer]) -> None:
        """Remove hashes of rows of editions that are not kept, and sign the remaining list."""
        self.prune_row_trees(stored)
        listed = {}
        with operator_errors(self._row_trees):
            for path in sorted(self._row_trees.glob("*")):
                with path.open("rb") as stream:
                    listed[path.name] = RowTreesFile(file_digest(stream, "sha256").hexdigest(), stream.tell())
            note = sign_note(f"{_HEADING}{msgspec.json.encode(listed).decode()}\n", signers)
            if listed and note != self.row_trees_note():
                replace_file(self._row_trees_note, note)

    def prune_row_trees(self, stored: Collection[str]) -> None:
        for path in self._row_trees.glob("*"):
            if path.name not in stored:
                path.unlink(missing_ok=True)

    def append(
        self,
        entries: Sequence[LoggedEdition | LoggedErasure],
        signers: Sequence[Signer],
        cosign: Cosign = lambda note, leaves: note,
    ) -> None:
        """Append entries, then sign the log. Without entries, replaces a missing or older checkpoint.

        `cosign` is given the checkpoint and the hashes of the entries, and adds signatures of others.

        Raises OperatorError if the stored entries are not the signed ones.
        """
        tree, before = self.tree(), self.checkpoint()
        try:
            if before is not None:
                _signed_part(tree, note_text(before))
        except NotTrusted as failure:
            raise OperatorError(
                f"editions/{failure}: put editions/{FOLDER} back from a backup (`sankofa editions verify`)"
            ) from failure
        added = LogTree(tuple(msgspec.json.encode(entry) for entry in entries), ())
        with operator_errors(self._entries):
            make_private_folder(self._folder)
            if added.entries:
                whole = len(tree.bundle())
                with open(self._entries, "ab", buffering=0, opener=open_private) as stream:
                    stream.truncate(whole)  # removes an entry half-written by a killed process
                    stream.write(added.bundle())
                    os.fsync(stream.fileno())
                self._read = None
                tree = self.tree()
            origin = signers[0].verifier.name
            note = sign_note(tree.text(origin), signers)
            if before is not None and before.startswith(note):  # with its cosignatures
                retired = f"\N{EM DASH} {origin} ".encode()
                lines = before.removeprefix(note).splitlines(keepends=True)
                note += b"".join(line for line in lines if not line.startswith(retired))
            note = cosign(note, tree.leaves) if tree.entries else note
            if tree.entries and note != before:
                replace_file(self._checkpoint, note)

    def take(self, content: bytes, checkpoint: bytes | None = None) -> None:
        """Replaces the log with another store's, verified against its checkpoint, or with a backup's, to be
        signed again."""
        with operator_errors(self._entries):
            make_private_folder(self._folder)
            for path, new in ((self._entries, content), (self._checkpoint, checkpoint)):
                if new is not None and (not path.exists() or path.read_bytes() != new):
                    replace_file(path, new)

    def published(self) -> list[tuple[datetime, str]]:
        """When each edition was published, and its id, in the order of the log."""
        entries = [entry for entry in self.tree().decoded if isinstance(entry, LoggedEdition)]
        return [(datetime.fromisoformat(entry.published_at), entry.edition) for entry in entries]
