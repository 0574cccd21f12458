"""Pushing what is new in the files of an edition, for the nodes that have the edition before it."""

from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

from sankofa.engines.edition_reader import PARTS
from sankofa.engines.edition_transfer import EditionContents, EditionFile
from sankofa.engines.object_store import ObjectDestination, ObjectError
from sankofa.replication.delta_file import make_delta
from sankofa.replication.documents import (
    DELTAS,
    INDEX_BYTES,
    DeltaEntry,
    Deltas,
    decode,
    deltas_path,
    digest_of,
    encode,
)

_AT_ONCE: Final = 4
_WORTH_IT: Final = 0.8
"""A delta is sent where it has less than this of the bytes of the file."""


class PushedDeltas:
    """The deltas that a destination has."""

    def __init__(self, destination: ObjectDestination, kept: frozenset[str]) -> None:
        self._destination = destination
        self._documents = {stored.path: stored for stored in destination.objects(DELTAS)}
        self._kept = {deltas_path(edition) for edition in kept}
        self.needed: set[str] = set()
        """The objects of the pool that deltas to kept editions are in."""
        self._unlisted = Deltas("", ())
        self._base = ""
        for path in self._kept.intersection(self._documents):
            with suppress(ObjectError):
                known = decode(destination.read(path, INDEX_BYTES), Deltas, path)
                self.needed.update(entry.content.path for entry in known.files)

    def holds(self, edition: str) -> bool:
        return deltas_path(edition) in self._documents

    def take(self, base: str, deltas: Deltas) -> None:
        """Deltas that were sent and are not listed yet."""
        self._base, self._unlisted = base, deltas
        self.needed.update(entry.content.path for entry in deltas.files)

    def list_between(self, whole: Collection[str]) -> None:
        """List what was sent, where it leads from a whole edition to a whole one. Raises ObjectError."""
        if {self._base, self._unlisted.edition} <= set(whole):
            path = deltas_path(self._unlisted.edition)
            self._destination.write(path, encode(self._unlisted)[0], immutable=True)

    def remove_unused(self, before: datetime) -> None:
        """Those to editions that are no longer kept, unless they are newer than this."""
        unused = (stored for path, stored in self._documents.items() if path not in self._kept)
        self._destination.delete([stored.path for stored in unused if stored.modified <= before])


def push_deltas(
    destination: ObjectDestination,
    editions: Mapping[str, EditionContents],
    current: str,
    before: str,
    sizes: Mapping[str, int],
) -> PushedDeltas:
    """Send what leads to the current edition from the one that was current before, where both are kept. It
    is for `PushedDeltas.list_between` to say so.

    `sizes` are those of the objects there. Raises ObjectError.
    """
    pushed = PushedDeltas(destination, frozenset(editions))
    if before == current or before not in editions or pushed.holds(current):
        return pushed
    changed = sorted(_changed(editions[before], editions[current]), key=lambda pair: -pair[1].size)

    def send(pair: tuple[EditionFile, EditionFile]) -> DeltaEntry | None:
        old, new = pair
        try:
            content = make_delta(old.file, new.file)
            if len(content) > _WORTH_IT * new.size:
                return None
        except OSError:  # removed meanwhile: it is pulled whole
            return None
        digest = digest_of(content)
        if sizes.get(digest.path) != digest.size:
            destination.write(digest.path, content, immutable=True)
        return DeltaEntry(new.sha256, old.sha256, digest)

    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="delta") as threads:
        entries = tuple(filter(None, threads.map(send, changed)))
    pushed.take(before, Deltas(current, entries))
    return pushed


def _changed(before: EditionContents, after: EditionContents) -> Iterator[tuple[EditionFile, EditionFile]]:
    """The files that are new, each with the one that it follows."""
    known = {file.sha256 for file in before.files}
    old = {file.path: file for file in before.files}
    parts = {f"{PARTS}/{part['sha256']}": part for part in after.manifest["parts"]}
    for file in after.files:
        if file.sha256 in known:
            continue
        path = file.path
        if (part := parts.get(path)) is not None:
            path = _part_before(before.manifest["parts"], part)
        if path in old:
            yield old[path], file


def _part_before(parts: list[dict[str, Any]], part: Mapping[str, Any]) -> str:
    """The part of the same kinds that had the first key of this one; empty where there is none."""
    alike = [p for p in parts if p["kinds"] == part["kinds"] and p["first"] <= part["first"]]
    return f"{PARTS}/{max(alike, key=lambda p: p['first'])['sha256']}" if alike else ""
