"""Pushing the editions of this machine to a destination that nodes follow.

Files first, then the list of what was published, then the signed note: a reader meanwhile finds what was
there before, whole. Only what is missing is read, compared with its digest, and sent. What no listed
edition needs is removed after a while, so that nobody who began to pull it is cut off.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import msgspec

from sankofa.engines.datastore import Datastore, EditionList
from sankofa.engines.edition_folder import EditionContents, EditionFile, edition_contents
from sankofa.engines.edition_log import (
    CHECKPOINT,
    ENTRIES,
    ROW_TREES,
    ROW_TREES_NOTE,
    STAMP,
    listed_row_trees,
    row_trees_path,
)
from sankofa.engines.object_store import ObjectDestination, ObjectError, ObjectMissing, StoredObject
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
from sankofa.replication.deltas import INDEX_BYTES, OPEN, POOL, digest_of, pool_path, push_deltas
from sankofa.replication.pool import file_digest
from sankofa.replication.remote_log import refuse_contradiction

_AT_ONCE: Final = 4
_OPEN_INDEX: Final = f"{OPEN}index.json"
_OPEN_EDITION: Final = re.compile(rf"{OPEN}([^/]+)/")


class Pushed(NamedTuple):
    """The result of a push."""

    current: str
    editions: int
    files: int
    bytes: int
    removed: int
    changed: bool
    replaced: str
    """Why the note that was there before is not believed; empty if it is, or there was none."""
    signed: "SignedList"


class SignedList(NamedTuple):
    """The note that a destination has now, and the list of everything ever published that it names."""

    note: bytes
    published: bytes


def push(
    store: Datastore,
    destination: ObjectDestination,
    *,
    keep_unused: timedelta,
    progress: Callable[[str, int], None],
    now: Callable[[], datetime],
    listed: EditionList | None = None,
) -> Pushed:
    """Send what is `listed`, by default everything that the store keeps.

    Raises OperatorError, EditionError where the current edition is damaged, or ObjectError.
    """
    if listed is None:
        listed = store.list_editions()
    if listed.current is None:
        raise OperatorError("no edition is published: run `sankofa publish` first")
    with destination.batch():
        return _push(store, destination, keep_unused, progress, now, listed.editions, listed.current)


def _push(
    store: Datastore,
    destination: ObjectDestination,
    keep_unused: timedelta,
    progress: Callable[[str, int], None],
    now: Callable[[], datetime],
    editions: Sequence[str],
    current: str,
) -> Pushed:
    signers = store.signers()
    there = {stored.path: stored for stored in destination.objects(POOL)}
    sizes = {path: stored.size for path, stored in there.items()}
    before, present, replaced = _present(destination, signers, store)
    contents = _contents(store, current, editions)
    last = before.current if before else ""
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
    sent = _send(destination, sending, sizes, progress)
    whole = {edition.edition: edition for edition in sending}
    deltas = push_deltas(destination, whole, current, last, sizes, now() - keep_unused)
    published = PublishedList(store.published(), store.withdrawn()).text
    digest = digest_of(published)
    publication, note = sign_publication(
        signers,
        current=current,
        editions={edition.edition: edition.seal for edition in sending},
        withdrawn=store.withdrawn(),
        published=published,
        before=_later(before, store.publication()),
        now=now(),
    )
    changed = before is None or not publication.says_the_same(before)
    push_log(store, destination)
    if changed or digest.path not in there:
        destination.write(digest.path, published, immutable=True)
    if changed:
        destination.write(NOTE, note, immutable=False)
    needed = {digest.path, *deltas}
    needed.update(pool_path(file.sha256) for edition in sending for file in edition.files)
    unused = [path for path in there if path not in needed]
    unused = [path for path in unused if now() - there[path].modified >= keep_unused]
    destination.delete(unused)
    _send_open_files(
        destination, sending, store.withdrawn(), lambda stored: now() - stored.modified < keep_unused
    )
    return Pushed(
        current=current,
        editions=len(sending),
        files=len(sent),
        bytes=sum(sent),
        removed=len(unused),
        changed=changed,
        replaced=replaced,
        signed=SignedList(note if changed else present, published),
    )


def push_log(store: Datastore, destination: ObjectDestination) -> None:
    """Send the log of editions and the list of the hashes of rows, the checkpoint last.

    Raises OperatorError if the log that is there is no beginning of this one.
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


def _later(one: Publication | None, other: Publication | None) -> Publication | None:
    known = [publication for publication in (one, other) if publication is not None]
    return max(known, key=lambda publication: publication.sequence, default=None)


def _contents(store: Datastore, current: str, names: Iterable[str]) -> dict[str, EditionContents]:
    """Contents of the local editions, the current one first. Raises EditionError if that one is damaged."""
    contents = {current: _with_row_trees(edition_contents(store.edition_folder(current)), store)}
    for name in names:
        if name != current:
            with suppress(EditionError):
                contents[name] = _with_row_trees(edition_contents(store.edition_folder(name)), store)
    return contents


def _with_row_trees(contents: EditionContents, store: Datastore) -> EditionContents:
    """With the hashes of its rows, where they are here."""
    path = row_trees_path(store.edition_folder(contents.edition))
    try:
        digest = file_digest(path)
    except OSError:
        return contents
    return contents._replace(
        files=(*contents.files, EditionFile(ROW_TREES, path, digest.sha256, digest.size))
    )


def _present(
    destination: ObjectDestination, signers: Iterable[Signer], store: Datastore
) -> tuple[Publication | None, bytes, str]:
    """The last push and its note if a key of this HOME signed it; else the reason why it is not believed.

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
    """Compare the files that are not there yet with their digests. Raises EditionError."""

    def check(file: EditionFile) -> None:
        if not _is_there(file, sizes):
            _check_digest(contents.edition, file)

    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="digest") as threads:
        opening = threads.submit(store.open, contents.edition)
        list(threads.map(check, contents.files))
        opening.result().close()


def _check_digest(edition: str, file: EditionFile) -> None:
    try:
        digest = file_digest(file.file)
    except OSError as failure:  # removed meanwhile by a publisher
        raise EditionError(f"edition {edition}: {failure.strerror}") from failure
    if file.sha256 != digest.sha256:
        raise EditionError(f"edition {edition}: {file.path} is not what was published")


def _is_there(file: EditionFile, sizes: Mapping[str, int]) -> bool:
    return sizes.get(pool_path(file.sha256)) == file.size


def _send(
    destination: ObjectDestination,
    editions: Iterable[EditionContents],
    sizes: Mapping[str, int],
    progress: Callable[[str, int], None],
) -> list[int]:
    """Upload what is missing or of another size; the sizes of those sent."""
    files = {file.sha256: file for edition in editions for file in edition.files}

    def upload(file: EditionFile) -> int:
        destination.upload(pool_path(file.sha256), file.file)
        progress(file.sha256[:12], file.size)
        return file.size

    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="push") as threads:
        return list(threads.map(upload, [file for file in files.values() if not _is_there(file, sizes)]))


def _send_open_files(
    destination: ObjectDestination,
    editions: Iterable[EditionContents],
    withdrawn: Collection[str],
    is_recent: Callable[[StoredObject], bool],
) -> None:
    """The open Parquet files of the current edition, the first of these, by name. Older ones stay a while,
    unless their edition is withdrawn."""
    current = next(iter(editions))
    there = {stored.path: stored for stored in destination.objects(OPEN)}
    listed = []
    for file in current.manifest.get("files", ()):
        if file.get("access") != "open":
            continue
        path = f"{OPEN}{current.edition}/{file['name']}"
        source = next(f.file for f in current.files if f.path.endswith(f"/{file['name']}"))
        if path not in there or there[path].size != file["size_bytes"]:
            destination.upload(path, source)
        members = ("name", "size_bytes", "sha256", "row_count", "columns", "license", "signal_key", "sku")
        listed.append({**{name: file.get(name) for name in members}, "path": path.removeprefix(OPEN)})
    content = msgspec.json.encode({"edition": current.edition, "files": listed}, order="sorted")
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
        and named[1] != current.edition
        and (named[1] in withdrawn or not is_recent(stored))
    ]
    destination.delete(old)
