"""The publications of a store, read by name alone: no folder is ever listed.

Two kinds of place have the same signed note and differ by where the files are. One that `sankofa push` wrote
to has each under its SHA-256; the folder `editions/` of another HOME has one folder for each edition. Its
publisher may work in it meanwhile: a file that it removes is missing, and the next look finds the new ones.
"""

from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec

from sankofa.engines.checked_file import DIGEST, page_count
from sankofa.engines.edition_reader import CHECKSUMS, MANIFEST
from sankofa.engines.edition_transfer import listed_files
from sankofa.engines.manifest import open_manifest
from sankofa.engines.object_store import ObjectError, ObjectMissing, ObjectSource
from sankofa.engines.publication import LIST, NOTE, NOTE_BYTES, Publication
from sankofa.replication.documents import INDEX_BYTES, Deltas, decode, deltas_path, pool_path
from sankofa.replication.pool import Pool, PooledFile, Progress, pooled

_NOTHING_READ: Final = Publication(0, "", "", {}, (), "", 0, ())


class RemoteEdition(NamedTuple):
    edition: str
    layout: object
    seal: str
    files: tuple[tuple[str, PooledFile], ...]
    """The path of each in the folder of the edition; empty where the layout is not ours."""


class RemoteDelta(NamedTuple):
    target: str
    base: str
    """The SHA-256 of the files that it leads to and from."""
    file: PooledFile


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

    def deltas(self, name: str) -> list[RemoteDelta]:
        """Deltas to files of an edition from files of an earlier one; none if none are listed."""
        if not self._pushed:
            return []
        path = deltas_path(name)
        try:
            content = self._source.read(path, INDEX_BYTES)
            self._progress(len(content))
            known = decode(content, Deltas, path)
        except ObjectError:
            return []
        return [RemoteDelta(one.target, one.base, pooled(one.content)) for one in known.files]

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
