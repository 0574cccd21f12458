"""What a place has published, read by name alone: no folder is ever listed.

Two kinds of place look different and are read alike: one that `sankofa push` wrote to, and the folder
`editions/` of another HOME, served as it lies there.
"""

import re
from hashlib import sha256
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from sankofa.engines.checked_file import DIGEST, page_count
from sankofa.engines.edition_transfer import listed_files
from sankofa.engines.object_store import ObjectError, ObjectMissing, ObjectSource
from sankofa.replication.documents import (
    INDEX_BYTES,
    POINTER,
    POINTER_BYTES,
    Deltas,
    Digest,
    EditionFiles,
    Index,
    Pointer,
    decode,
    deltas_path,
)
from sankofa.replication.pool import Pool, PooledFile, Progress, pooled

_CURRENT, _PUBLISHED, _MANIFEST, _CHECKSUMS = "CURRENT", "PUBLISHED", "manifest.json", "checksums"
_EDITION: Final = re.compile(r"[A-Za-z0-9-]{1,64}\Z")
_SEAL: Final = re.compile(r"[0-9a-f]{64}\Z")
_SAFE_PATH: Final = re.compile(r"([a-z]+/)?[A-Za-z0-9][A-Za-z0-9._-]{0,120}\Z")
_WITHDRAWN: Final = "withdrawn "


class Look(NamedTuple):
    """What a pointer says: another fingerprint, another state of the place."""

    fingerprint: str
    written_at: str


class RemotePublications(NamedTuple):
    current: str
    older: tuple[str, ...]
    """Those that may be kept there besides, newest first."""
    published: frozenset[str]
    withdrawn: frozenset[str]


class RemoteEdition(NamedTuple):
    edition: str
    layout: object
    seal: str
    files: tuple[tuple[str, PooledFile], ...]
    """The path of each in the folder of the edition; empty where the layout is not ours."""
    documents: tuple[PooledFile, ...] = ()
    """What else was read to know that."""


class RemoteDelta(NamedTuple):
    target: str
    base: str
    """The SHA-256 of the files that it leads to and from."""
    file: PooledFile


class Catalogue(Protocol):
    """Every call raises ObjectError; `look` and `edition` ObjectMissing for what is not there."""

    def look(self) -> Look: ...

    def published(self) -> RemotePublications: ...

    def edition(self, name: str) -> RemoteEdition: ...

    def deltas(self, name: str) -> list[RemoteDelta]:
        """What leads to files of an edition from files of one before it; none where nothing is known."""


class PushedCatalogue:
    """See `Catalogue`. Of a place that `sankofa push` wrote to."""

    def __init__(self, source: ObjectSource, pool: Pool, progress: Progress) -> None:
        self._source = source
        self._pool = pool
        self._progress = progress
        self._pointer: Pointer | None = None
        self._index: Index | None = None

    def look(self) -> Look:
        self._pointer = decode(self._source.read(POINTER, POINTER_BYTES), Pointer, POINTER)
        return Look(self._pointer.index.sha256, self._pointer.written_at)

    def published(self) -> RemotePublications:
        if self._pointer is None:
            raise ObjectError(f"{POINTER}: not looked at yet")
        index = self._index = decode(self._document(self._pointer.index), Index, POINTER)
        older = sorted((e.edition for e in index.editions if e.edition != index.current), reverse=True)
        return RemotePublications(
            index.current, tuple(older), frozenset(index.published), frozenset(index.withdrawn)
        )

    def edition(self, name: str) -> RemoteEdition:
        entries = self._index.editions if self._index is not None else ()
        entry = next((entry for entry in entries if entry.edition == name), None)
        if entry is None:
            raise ObjectMissing(f"edition {name}: not listed")
        files = decode(self._document(entry.files), EditionFiles, name)
        if files.edition != name:
            raise ObjectError(f"edition {name}: its list of files is of {files.edition}")
        links = tuple((file.path, pooled(file.content)) for file in files.files)
        return RemoteEdition(name, entry.layout, files.seal, links, (pooled(entry.files),))

    def deltas(self, name: str) -> list[RemoteDelta]:
        path = deltas_path(name)
        try:
            content = self._source.read(path, INDEX_BYTES)
            self._progress(len(content))
            known = decode(content, Deltas, path)
        except ObjectError:
            return []
        return [RemoteDelta(one.target, one.base, pooled(one.content)) for one in known.files]

    def _document(self, digest: Digest) -> bytes:
        if digest.size > INDEX_BYTES:
            raise ObjectError(f"{digest.path}: more than {INDEX_BYTES} bytes")
        return self._pool.fetch_content(self._source, pooled(digest), self._progress)


class FolderCatalogue:
    """See `Catalogue`. Of the folder `editions/` of another HOME, in which its publisher may work meanwhile:
    what it removes while it is read is missing, and the next look finds what is there instead."""

    def __init__(self, source: ObjectSource, pool: Pool, progress: Progress, layout: int) -> None:
        self._source = source
        self._pool = pool
        self._progress = progress
        self._layout = layout
        self._current = ""

    def look(self) -> Look:
        self._current = self._text(_CURRENT, 256).strip()
        if not _EDITION.match(self._current):
            raise ObjectError(f"{_CURRENT}: not the name of an edition")
        return Look(f"{self._current} {self._seal(self._current)}", "")

    def published(self) -> RemotePublications:
        try:
            lines = self._text(_PUBLISHED, INDEX_BYTES).split("\n")
        except ObjectMissing:
            lines = []
        names = {line for line in lines if _EDITION.match(line)} | {self._current}
        withdrawn = {line.removeprefix(_WITHDRAWN) for line in lines if line.startswith(_WITHDRAWN)}
        older = sorted(names - {self._current}, reverse=True)
        return RemotePublications(self._current, tuple(older), frozenset(names), frozenset(withdrawn & names))

    def edition(self, name: str) -> RemoteEdition:
        seal = self._seal(name)
        content = self._manifest(name, seal)
        try:
            manifest: dict[str, Any] = msgspec.json.decode(content, type=dict[str, Any])
            if manifest["edition"] != name:
                raise ObjectError(f"{name}/{_MANIFEST}: of another edition")
            layout = manifest.get("format")
            if layout != self._layout:
                return RemoteEdition(name, layout, seal, ())
            files = self._files(name, manifest)
        except (msgspec.DecodeError, KeyError, TypeError, ValueError) as failure:
            raise ObjectError(f"{name}/{_MANIFEST}: not what this version reads: {failure!r}") from None
        own = PooledFile(seal, f"{name}/{_MANIFEST}", len(content))
        return RemoteEdition(name, layout, seal, ((_MANIFEST, own), *files))

    def deltas(self, name: str) -> list[RemoteDelta]:
        """A publisher's folder has none."""
        return []

    def _files(self, name: str, manifest: dict[str, Any]) -> list[tuple[str, PooledFile]]:
        listed = listed_files(manifest)
        if not all(_SAFE_PATH.match(file.path) for file in listed):
            raise ObjectError(f"{name}/{_MANIFEST}: names a file that is none")
        size = DIGEST * sum(page_count(file.size) for file in listed)
        checksums = PooledFile(manifest["checksums_sha256"], f"{name}/{_CHECKSUMS}", size)
        files = [(file.path, PooledFile(file.sha256, f"{name}/{file.path}", file.size)) for file in listed]
        return [(_CHECKSUMS, checksums), *files]

    def _manifest(self, name: str, seal: str) -> bytes:
        """As it was sealed, read once."""
        pooled_content = self._pool.read(seal)
        content = (
            self._source.read(f"{name}/{_MANIFEST}", INDEX_BYTES)
            if pooled_content is None
            else pooled_content
        )
        if sha256(content).hexdigest() != seal:
            raise ObjectError(f"{name}/{_MANIFEST}: not the one that was sealed")
        if pooled_content is None:
            self._pool.put(seal, content)
            self._progress(len(content))
        return content

    def _seal(self, name: str) -> str:
        seal = self._text(f"{name}.seal", 256).removesuffix("\n")
        if not _SEAL.match(seal):
            raise ObjectError(f"{name}.seal: not a seal")
        return seal

    def _text(self, path: str, most: int) -> str:
        return self._source.read(path, most).decode("ascii", errors="replace")
