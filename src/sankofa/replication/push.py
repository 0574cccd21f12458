"""Pushing the editions of this machine to a destination that nodes follow.

Parts first, then the lists of files, then the index, then the pointer: whoever reads meanwhile finds what was
there before, whole. Only what is missing is read, compared with its digest, and sent. What no listed edition
needs is removed after a while, so that nobody who began to pull it is cut off.
"""

import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from sankofa.engines.datastore import Datastore
from sankofa.engines.edition_transfer import EditionContents, EditionFile, edition_contents
from sankofa.engines.object_store import ObjectDestination, ObjectError, ObjectMissing
from sankofa.model.errors import EditionError, OperatorError
from sankofa.replication.documents import (
    INDEX_BYTES,
    OPEN,
    POINTER,
    POINTER_BYTES,
    POOL,
    Digest,
    EditionEntry,
    EditionFiles,
    FileEntry,
    Index,
    Pointer,
    decode,
    digest_of,
    encode,
)
from sankofa.replication.pool import file_digest
from sankofa.replication.push_deltas import push_deltas

_AT_ONCE: Final = 4
_OPEN_INDEX: Final = f"{OPEN}index.json"
_OPEN_EDITION: Final = re.compile(rf"{OPEN}([^/]+)/")


class Pushed(NamedTuple):
    """What a push did."""

    current: str
    editions: int
    files: int
    bytes: int
    removed: int
    changed: bool


class _Listed(NamedTuple):
    """An edition and its files, ready to be sent."""

    entry: EditionEntry
    document: bytes
    files: dict[Digest, Path]
    contents: EditionContents


def push(
    store: Datastore,
    destination: ObjectDestination,
    *,
    keep_unused: timedelta,
    progress: Callable[[str, int], None],
    now: Callable[[], datetime],
) -> Pushed:
    """Raises OperatorError, EditionError where the current edition is damaged, or ObjectError."""
    listed = store.list_editions()
    if listed.current is None:
        raise OperatorError("no edition is published: run `sankofa publish` first")
    there = {stored.path: stored for stored in destination.objects(POOL)}
    sizes = {path: stored.size for path, stored in there.items()}
    pointer, before = _present(destination)
    entries = {entry.edition: entry for entry in before.editions} if before else {}
    contents = _contents(store, listed.current, listed.editions)
    # What changed is looked for while everything is compared, and listed only where that came out well.
    with ThreadPoolExecutor(1, thread_name_prefix="deltas") as beside:
        last = before.current if before else ""
        making = beside.submit(push_deltas, destination, contents, listed.current, last, sizes)
        sending: list[_Listed] = []
        for name, own in contents.items():
            try:
                sending.append(_listed(store, own, entries.get(name), destination, there))
            except EditionError:
                if name == listed.current:
                    raise
        sent = _send(destination, sending, sizes, progress)
        deltas = making.result()
    deltas.list_between({edition.entry.edition for edition in sending})
    index = Index(
        listed.current,
        tuple(edition.entry for edition in sending),
        tuple(sorted(store.published())),
        tuple(sorted(store.withdrawn())),
    )
    content, digest = encode(index)
    changed = pointer is None or pointer.index != digest
    if changed or digest.path not in there:
        destination.write(digest.path, content, immutable=True)
    if changed:
        written = Pointer(1, _later_than(pointer, now()), digest)
        destination.write(POINTER, encode(written)[0], immutable=False)
    needed = {digest.path, *deltas.needed, *(edition.entry.files.path for edition in sending)}
    needed.update(part.path for edition in sending for part in edition.files)
    unused = [path for path, stored in there.items() if path not in needed]
    unused = [path for path in unused if now() - there[path].modified >= keep_unused]
    destination.delete(unused)
    deltas.remove_unused(now() - keep_unused)
    _send_open_files(destination, sending, keep_unused, now)
    return Pushed(listed.current, len(sending), len(sent), sum(sent), len(unused), changed)


def _contents(store: Datastore, current: str, names: Iterable[str]) -> dict[str, EditionContents]:
    """What the editions here say that they hold, the current one first. Raises EditionError for that one."""
    contents = {current: edition_contents(store.edition_folder(current))}
    for name in names:
        if name != current:
            with suppress(EditionError):
                contents[name] = edition_contents(store.edition_folder(name))
    return contents


def _present(destination: ObjectDestination) -> tuple[Pointer | None, Index | None]:
    """What was pushed last. A damaged index is as none: everything is looked at again."""
    try:
        pointer = decode(destination.read(POINTER, POINTER_BYTES), Pointer, POINTER)
    except ObjectMissing:
        return None, None
    try:
        content = destination.read(pointer.index.path, INDEX_BYTES)
        if digest_of(content) != pointer.index:
            return pointer, None
        return pointer, decode(content, Index, POINTER)
    except ObjectError:
        return pointer, None


def _listed(
    store: Datastore,
    contents: EditionContents,
    known: EditionEntry | None,
    destination: ObjectDestination,
    there: dict[str, Any],
) -> _Listed:
    """One that was pushed before, whole, is not read again; nor is a file that an edition before it had."""
    if known is not None and known.files.path in there:
        try:
            document = destination.read(known.files.path, INDEX_BYTES)
            files = decode(document, EditionFiles, known.edition)
        except ObjectError:
            document, files = b"", EditionFiles(known.edition, "", ())
        if digest_of(document) == known.files and files.seal == contents.seal:
            by_path = {file.path: file.file for file in contents.files}
            if all(_is_there(file.content, there) for file in files.files):
                parts = {file.content: by_path[file.path] for file in files.files}
                return _Listed(known, document, parts, contents)

    def digest(file: EditionFile) -> Digest:
        listed = Digest(file.sha256, file.size)
        return listed if _is_there(listed, there) else _checked_digest(contents.edition, file)

    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="digest") as threads:
        opening = threads.submit(store.open, contents.edition)
        digests = list(threads.map(digest, contents.files))
        opening.result().close()
    entries = [FileEntry(f.path, content) for f, content in zip(contents.files, digests, strict=True)]
    document, own = encode(EditionFiles(contents.edition, contents.seal, tuple(entries)))
    entry = EditionEntry(contents.edition, contents.manifest.get("format"), own)
    paths = {e.content: f.file for e, f in zip(entries, contents.files, strict=True)}
    return _Listed(entry, document, paths, contents)


def _checked_digest(edition: str, file: EditionFile) -> Digest:
    try:
        digest = file_digest(file.file)
    except OSError as failure:  # removed meanwhile by a publisher
        raise EditionError(f"edition {edition}: {failure.strerror}") from failure
    if file.sha256 != digest.sha256:
        raise EditionError(f"edition {edition}: {file.path} is not what was published")
    return digest


def _is_there(digest: Digest, there: dict[str, Any]) -> bool:
    stored = there.get(digest.path)
    return stored is not None and stored.size == digest.size


def _send(
    destination: ObjectDestination,
    editions: Iterable[_Listed],
    sizes: dict[str, int],
    progress: Callable[[str, int], None],
) -> list[int]:
    """Upload what is missing or of another size, files before the lists of them; the sizes of those sent."""
    editions = list(editions)
    files = {digest: file for edition in editions for digest, file in edition.files.items()}
    missing = [digest for digest in files if sizes.get(digest.path) != digest.size]

    def upload(digest: Digest) -> int:
        destination.upload(digest.path, files[digest])
        progress(digest.sha256[:12], digest.size)
        return digest.size

    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="push") as threads:
        sent = list(threads.map(upload, missing))
    for edition in editions:
        if sizes.get(edition.entry.files.path) != edition.entry.files.size:
            destination.write(edition.entry.files.path, edition.document, immutable=True)
    return sent


def _later_than(pointer: Pointer | None, now: datetime) -> str:
    """The time, and never one before that of the last pointer: a node takes no older one."""
    if pointer is not None:
        now = max(now, datetime.fromisoformat(pointer.written_at) + timedelta(microseconds=1))
    return now.astimezone(UTC).isoformat(timespec="microseconds")


def _send_open_files(
    destination: ObjectDestination,
    editions: Iterable[_Listed],
    keep_unused: timedelta,
    now: Callable[[], datetime],
) -> None:
    """The open Parquet files of the current edition, the first of these, by name; older ones stay a while."""
    current = next(iter(editions))
    there = {stored.path: stored for stored in destination.objects(OPEN)}
    listed = []
    for file in current.contents.manifest.get("files", ()):
        if file.get("access") != "open":
            continue
        path = f"{OPEN}{current.entry.edition}/{file['name']}"
        source = next(f.file for f in current.contents.files if f.path.endswith(f"/{file['name']}"))
        if path not in there or there[path].size != file["size_bytes"]:
            destination.upload(path, source)
        members = ("name", "size_bytes", "sha256", "row_count", "columns", "license", "signal_key", "sku")
        listed.append({**{name: file.get(name) for name in members}, "path": path.removeprefix(OPEN)})
    content = msgspec.json.encode({"edition": current.entry.edition, "files": listed}, order="sorted")
    try:
        unchanged = destination.read(_OPEN_INDEX, INDEX_BYTES) == content
    except ObjectError:
        unchanged = False
    if not unchanged:
        destination.write(_OPEN_INDEX, content, immutable=False)
    old = [
        stored.path
        for stored in there.values()
        if (named := _OPEN_EDITION.match(stored.path))
        and named[1] != current.entry.edition
        and now() - stored.modified >= keep_unused
    ]
    destination.delete(old)
