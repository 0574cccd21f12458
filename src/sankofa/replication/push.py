"""Pushes the editions of this machine to a store that nodes follow.

Files are sent first, then the list of publications, then the signed note: until then readers find the earlier
editions, complete. Only missing files are read, compared with their digests, and sent. Files that no listed
edition needs stay for a while, for nodes that are pulling them.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from sankofa.engines.datastore import Datastore, EditionList
from sankofa.engines.edition_folder import EditionContents, edition_contents
from sankofa.engines.edition_log import (
    CHECKPOINT,
    ENTRIES,
    ROW_TREES,
    ROW_TREES_NOTE,
    STAMP,
    listed_row_trees,
    row_trees_path,
)
from sankofa.engines.edition_reader import FILES, ListedFile
from sankofa.engines.object_store import ObjectDestination, ObjectError, ObjectMissing
from sankofa.engines.publication import (
    NOTE,
    NOTE_BYTES,
    Publication,
    PublishedList,
    checked_list,
    read_publication,
    sign_publication,
)
from sankofa.model.errors import EditionError, OperatorError
from sankofa.model.signed_notes import NotTrusted, Signer
from sankofa.replication.pool import (
    DELTAS,
    INDEX_BYTES,
    OPEN,
    POOL,
    changed_files,
    delta_path,
    file_digest,
    make_delta,
    pool_path,
)
from sankofa.replication.remote_log import refuse_contradiction

_AT_ONCE: Final = 4
_WORTH_IT: Final = 0.8
"""A delta is sent if it is smaller than this share of the file's bytes."""
_OPEN_INDEX: Final = f"{OPEN}index.json"
_OPEN_EDITION: Final = re.compile(rf"{OPEN}([^/]+)/")


class Pushed(NamedTuple):
    current: str
    editions: int
    note: bytes
    """The destination's current note."""
    published: bytes
    """The list of publications that it names."""
    files: int
    bytes: int
    removed: int
    changed: bool
    replaced: str
    """Why the destination's previous note is not trusted; empty if it is, or if there was none."""


def push(
    store: Datastore,
    destination: ObjectDestination,
    keep_unused: timedelta,
    *,
    progress: Callable[[str], object] = lambda name: None,
    listed: EditionList | None = None,
) -> Pushed:
    """Sends the `listed` editions, by default all that the store keeps. `progress` is called with the start
    of each file's digest.

    Raises OperatorError, EditionError if the current edition is damaged, or ObjectError.
    """
    if listed is None:
        listed = store.list_editions()
    if listed.current is None:
        raise OperatorError("no edition is published: run `sankofa publish` first")
    current = listed.current
    with destination.batch():
        signers = store.signers()
        there = {stored.path: stored for stored in destination.objects(POOL)}
        sizes = {path: stored.size for path, stored in there.items()}
        before, present, replaced = _present(destination, signers, store)
        contents = _contents(store, current, listed.editions)
        sending: list[EditionContents] = []
        for name, own in contents.items():
            try:
                pushed_before = before is not None and before.editions.get(name) == own.seal
                if not (pushed_before and all(_is_there(file, sizes) for file in own.files)):
                    _check(store, own, sizes)
                sending.append(own)
            except EditionError:
                if name == current:
                    raise
        sent = _send(store, destination, sending, sizes, progress)
        unused_since = datetime.now(UTC) - keep_unused
        whole = {edition.edition: edition for edition in sending}
        _push_deltas(store, destination, whole, current, before.current if before else "", unused_since)
        published = PublishedList(store.published(), store.withdrawn()).text
        list_path = pool_path(sha256(published).hexdigest())
        publication, note = sign_publication(
            signers,
            current=current,
            editions={edition.edition: edition.seal for edition in sending},
            withdrawn=store.withdrawn(),
            published=published,
            before=max(
                filter(None, (before, store.publication())), key=lambda one: one.sequence, default=None
            ),
            now=datetime.now(UTC),
        )
        changed = before is None or not publication.says_the_same(before)
        push_log(store, destination)
        if changed or list_path not in there:
            destination.write(list_path, published, immutable=True)
        if changed:
            destination.write(NOTE, note, immutable=False)
        needed = {list_path, *(pool_path(file.sha256) for edition in sending for file in edition.files)}
        unused = [
            one.path for one in there.values() if one.path not in needed and one.modified <= unused_since
        ]
        destination.delete(unused)
        _send_open_files(store, destination, sending[0], unused_since)
        return Pushed(
            current=current,
            editions=len(sending),
            files=len(sent),
            bytes=sum(sent),
            removed=len(unused),
            changed=changed,
            replaced=replaced,
            note=note if changed else present,
            published=published,
        )


def push_log(store: Datastore, destination: ObjectDestination) -> None:
    """Send the log of editions and the list of the hashes of rows, the checkpoint last.

    Raises OperatorError if this log does not begin with the destination's log.
    """
    log = store.log
    verifiers = [signer.verifier for signer in store.signers()]
    refuse_contradiction(log.tree(), destination, verifiers)
    if (note := log.row_trees_note()) is not None and not _holds(destination, ROW_TREES_NOTE, note):
        listed = listed_row_trees(note, verifiers)
        for edition, file in listed.items():
            path = pool_path(file.sha256)
            if not any(stored.path == path for stored in destination.objects(f"{path.rpartition('/')[0]}/")):
                destination.upload(path, row_trees_path(store.edition_folder(edition)))
        destination.write(ROW_TREES_NOTE, note, immutable=False)
    if (checkpoint := log.checkpoint()) is not None and not _holds(destination, CHECKPOINT, checkpoint):
        destination.write(ENTRIES, log.tree().bundle(), immutable=False)
        destination.write(CHECKPOINT, checkpoint, immutable=False)
    if (stamp := log.stamp()) is not None and not _holds(destination, STAMP, stamp):
        destination.write(STAMP, stamp, immutable=False)


def _holds(destination: ObjectDestination, path: str, content: bytes) -> bool:
    try:
        return destination.read(path, NOTE_BYTES) == content
    except ObjectMissing:
        return False


def _contents(store: Datastore, current: str, names: Iterable[str]) -> dict[str, EditionContents]:
    """Contents of the local editions with the hashes of their rows, if they are here; the current one first.

    Raises EditionError if that one is damaged.
    """
    contents = {}
    for name in dict.fromkeys([current, *names]):
        folder = store.edition_folder(name)
        try:
            own = edition_contents(folder)
        except EditionError:
            if name == current:
                raise
            continue
        with suppress(OSError):
            digest, size = file_digest(row_trees_path(folder))
            own = own._replace(files=(*own.files, ListedFile(f"../{ROW_TREES}{name}", size, digest)))
        contents[name] = own
    return contents


def _present(
    destination: ObjectDestination, signers: Iterable[Signer], store: Datastore
) -> tuple[Publication | None, bytes, str]:
    """The last push and its note if a key of this HOME signed it; else why it is not trusted.

    Editions that its list names and the local list does not are added to the local list: this HOME was
    restored from an older backup.
    """
    try:
        content = destination.read(NOTE, NOTE_BYTES)
        publication = read_publication(content, [signer.verifier for signer in signers])
        listed = destination.read(pool_path(publication.published_sha256), INDEX_BYTES)
        known = checked_list(publication, listed, None)
    except ObjectMissing:
        return None, b"", ""
    except (NotTrusted, ObjectError) as failure:
        return None, b"", str(failure)
    store.list_as_published(known.published - store.published())
    store.withdraw(known.withdrawn - store.withdrawn())
    return publication, content, ""


def _check(store: Datastore, contents: EditionContents, sizes: Mapping[str, int]) -> None:
    """Compares the files that are not there yet with their digests. Raises EditionError."""
    folder = store.edition_folder(contents.edition)

    def check(file: ListedFile) -> None:
        try:
            if not _is_there(file, sizes) and file_digest(folder / file.path)[0] != file.sha256:
                raise EditionError(f"edition {folder.name}: {file.path} is not what was published")
        except OSError as failure:  # removed meanwhile by a publisher
            raise EditionError(f"edition {folder.name}: {failure.strerror}") from failure

    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="digest") as threads:
        opening = threads.submit(store.open, contents.edition)
        list(threads.map(check, contents.files))
        opening.result().close()


def _is_there(file: ListedFile, sizes: Mapping[str, int]) -> bool:
    return sizes.get(pool_path(file.sha256)) == file.size


def _send(
    store: Datastore,
    destination: ObjectDestination,
    editions: Iterable[EditionContents],
    sizes: Mapping[str, int],
    progress: Callable[[str], object],
) -> list[int]:
    """Uploads files that are missing or differ in size; returns the sizes sent."""
    files = {
        file.sha256: (store.edition_folder(edition.edition), file)
        for edition in editions
        for file in edition.files
        if not _is_there(file, sizes)
    }

    def upload(missing: tuple[Path, ListedFile]) -> int:
        folder, file = missing
        destination.upload(pool_path(file.sha256), folder / file.path)
        progress(file.sha256[:12])
        return file.size

    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="push") as threads:
        return list(threads.map(upload, files.values()))


def _push_deltas(
    store: Datastore,
    destination: ObjectDestination,
    editions: Mapping[str, EditionContents],
    current: str,
    before: str,
    unused_since: datetime,
) -> None:
    """Sends the deltas to the current edition from the one that was current before, if both are kept.

    Removes deltas to files that no kept edition has, unless they are newer than `unused_since`. Raises
    ObjectError.
    """
    there = {stored.path: stored for stored in destination.objects(DELTAS)}

    def send(pair: tuple[ListedFile, ListedFile]) -> None:
        old, new = pair
        path = delta_path(old.sha256, new.sha256)
        if path not in there:
            with suppress(OSError):  # removed meanwhile: nodes pull the whole file
                folders = store.edition_folder(before), store.edition_folder(current)
                content = make_delta(folders[0] / old.path, folders[1] / new.path)
                if len(content) <= _WORTH_IT * new.size:
                    destination.write(path, content, immutable=True)

    if before != current and before in editions:
        changed = sorted(changed_files(editions[before], editions[current]), key=lambda pair: -pair[1].size)
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="delta") as threads:
            list(threads.map(send, changed))
    used = {file.sha256 for edition in editions.values() for file in edition.files}
    unused = (stored for path, stored in there.items() if path.split("/")[1] not in used)
    destination.delete([stored.path for stored in unused if stored.modified <= unused_since])


def _send_open_files(
    store: Datastore, destination: ObjectDestination, current: EditionContents, unused_since: datetime
) -> None:
    """The open Parquet files of the current edition by name. Older ones stay a while, unless their edition is
    withdrawn."""
    there = {stored.path: stored for stored in destination.objects(OPEN)}
    listed = []
    for file in current.manifest.get("files", ()):
        if file.get("access") != "open":
            continue
        path = f"{OPEN}{current.edition}/{file['name']}"
        if path not in there or there[path].size != file["size_bytes"]:
            destination.upload(path, store.edition_folder(current.edition) / FILES / file["name"])
        members = ("name", "size_bytes", "sha256", "row_count", "columns", "license", "signal_key", "sku")
        listed.append({**{name: file.get(name) for name in members}, "path": path.removeprefix(OPEN)})
    content = msgspec.json.encode({"edition": current.edition, "files": listed}, order="sorted")
    try:
        unchanged = destination.read(_OPEN_INDEX, INDEX_BYTES) == content
    except ObjectError:
        unchanged = False
    if not unchanged:
        destination.write(_OPEN_INDEX, content, immutable=False)
    withdrawn = store.withdrawn()
    old = [
        stored.path
        for stored in there.values()
        if (named := _OPEN_EDITION.match(stored.path))
        and named[1] != current.edition
        and (named[1] in withdrawn or stored.modified <= unused_since)
    ]
    destination.delete(old)
