"""A node that follows a store: its datastore, and the follower, which reads the signed note, pulls new files,
switches, and keeps earlier editions.

A store has one of two layouts. A store that `sankofa push` wrote has each file under its SHA-256; the folder
`editions/` of another HOME has a folder for each edition. No folder is ever listed. If the publisher removes
a file meanwhile, the pull fails, and the next check finds the new files.
"""

import logging
import random
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from sankofa.edition.format.keys import LAYOUT
from sankofa.engines.datastore import Datastore, EditionList
from sankofa.engines.edition_folder import EditionContents, edition_contents, link_edition, listed_contents
from sankofa.engines.edition_log import (
    CHECKPOINT,
    ROW_TREES,
    ROW_TREES_NOTE,
    STAMP,
    LogTree,
    listed_row_trees,
    row_trees_path,
)
from sankofa.engines.edition_reader import MANIFEST, EditionReader, ListedFile
from sankofa.engines.object_store import ObjectError, ObjectMissing, ObjectSource
from sankofa.engines.private_files import locked, make_private_folder, operator_errors, replace_file
from sankofa.engines.publication import (
    LIST,
    NOTE,
    NOTE_BYTES,
    Publication,
    checked_list,
    read_publication,
    refuse_unless_later,
)
from sankofa.model.errors import EditionError, OperatorError, StoreUnavailable
from sankofa.model.signed_notes import NotTrusted, Verifier
from sankofa.replication.pool import INDEX_BYTES, Pool, changed_files, pool_path
from sankofa.replication.remote_log import read_log

FILE: Final = "FOLLOWING"
SILENT_SECONDS: Final = 30.0
"""After this time without an answer a node reports that it may be behind."""


class FollowState(msgspec.Struct, frozen=True):
    """Times are UTC, as ISO 8601."""

    looked_at: str = ""
    answered_at: str = ""
    """When the pointer was last read, or more of an edition came."""
    index: str = ""
    """The digest of the note that everything is there of."""
    remote_edition: str = ""
    failure: str = ""
    """Why the last check failed; empty if it succeeded."""
    failing_since: str = ""
    """Time of the first failed check since the last successful one."""
    refusal: str = ""
    """Why the edition that is current there is not served here, though everything answers."""
    untrusted: str = ""
    """Why the last note was refused; empty if it was accepted."""
    refused: int = 0
    """How many checks found a note that was refused."""
    pulled_files: int = 0
    pulled_bytes: int = 0
    """Bytes of the last change."""
    pulled_seconds: float = 0.0

    def age_seconds(self, now: datetime) -> float | None:
        """Seconds since the followed store last answered; None if it never did."""
        if not self.answered_at:
            return None
        return _seconds(self.answered_at, now)

    def complaint(self, now: datetime) -> str | None:
        """The fault of following, or None."""
        if self.untrusted:
            return self.untrusted
        age = self.age_seconds(now)
        if age is None:
            return self.failure or "not asked yet"
        if age > SILENT_SECONDS:
            return f"no answer for {age:.0f} s: {self.failure or 'no follower runs'}"
        if self.failing_since and (failing := _seconds(self.failing_since, now)) > SILENT_SECONDS:
            return f"no update for {failing:.0f} s: {self.failure}"
        return self.refusal or None


def _seconds(since: str, now: datetime) -> float:
    return max((now - datetime.fromisoformat(since)).total_seconds(), 0.0)


def read_state(editions: Path) -> FollowState:
    """An empty state if none can be read."""
    try:
        return msgspec.json.decode((editions / FILE).read_bytes(), type=FollowState)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return FollowState()


def write_state(editions: Path, state: FollowState) -> None:
    """Does not wait for the disk: state lost in a power failure is found again at the next check."""
    replace_file(editions / FILE, msgspec.json.encode(state), durable=False)


def utc_now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


_DAMAGED: Final = ".damaged-"


class FollowingStore(Datastore):
    """A damaged edition is marked, and the follower pulls it again.

    The note is the publisher's. CURRENT is the node's own, because its version may not read the publisher's
    current edition.
    """

    def open(self, edition: str, *, check_all: bool = False) -> EditionReader:
        folder = self.edition_folder(edition)
        try:
            return super().open(edition, check_all=check_all)
        except EditionError:
            with suppress(OSError):
                if folder.exists():
                    (self.editions / f"{_DAMAGED}{edition}").touch()
            raise

    def trusted_log(self) -> LogTree:
        """The log that the publisher's log must begin with."""
        return self.log.tree()

    def following(self) -> FollowState:
        return read_state(self.editions)

    def take_list(self, content: bytes) -> None:
        """The publisher's list of everything it ever published, verified against the signed digest."""
        with operator_errors(self._published):
            if not self._published.exists() or self._published.read_bytes() != content:
                replace_file(self._published, content)

    def take(self, note: bytes, current: str, keep: Sequence[str]) -> None:
        """Serve an edition from a verified note, and remove editions that are no longer kept."""
        with operator_errors(self._note):
            if not self._note.exists() or self._note.read_bytes() != note:
                replace_file(self._note, note)
            if self._unsigned_pointer() != current:
                replace_file(self._pointer, f"{current}\n".encode())
            for name in self.list_editions().editions:
                if name not in keep and name != current:
                    shutil.rmtree(self.editions / name)
        self._unsigned.clear()

    def trusted(self) -> tuple[Verifier, ...]:
        """The keys that may sign; none if the first key seen is trusted."""
        return self._trusted

    def _trusted_keys(self) -> tuple[Verifier, ...] | None:
        return self.trusted() or None

    def _current_of(self, publication: Publication) -> str:
        own = self._unsigned_pointer()
        usable = own in publication.editions and own not in publication.withdrawn
        return own if own is not None and usable else publication.current


_log = logging.getLogger("sankofa.following")
_PROGRESS_SECONDS: Final = 5.0
_LOOK_LOCK: Final = ".look.lock"
_LOG_SECONDS: Final = 60.0
_SLOWEST: Final = 15.0
"""Most seconds between two checks while they fail."""


class RefusedNote(ObjectError):
    """The note is not followed: no trusted key signed it, or it is older than the last one."""


class Follower:
    """Pulls editions into one HOME."""

    def __init__(self, source: ObjectSource, store: FollowingStore, editions_kept: int) -> None:
        """`editions_kept`: how many editions before the current one are kept."""
        self._source = source
        self._store = store
        self._editions = store.editions
        self._pool = Pool(self._editions / "pool")
        self._editions_kept = editions_kept
        self._trusted = store.trusted()
        make_private_folder(self._editions)
        self.state = read_state(self._editions)
        self._seals: dict[str, str] = {}
        """The digest of the manifest of each edition that the last note lists."""
        self._is_pushed = False
        """Whether `sankofa push` wrote to the store."""
        self._files = 0
        self._bytes = 0
        self._noted_at = 0.0
        self._log_read_at = -_LOG_SECONDS
        self._lock = threading.Lock()

    def run(self, seconds: float, stopped: Callable[[float], bool]) -> None:
        """Check repeatedly; `stopped` waits for the given time and returns whether to end."""
        failures = 0
        while True:
            before = self.state
            try:
                changed = self.look()
            except (ObjectError, OperatorError) as failure:
                failures += 1
                if str(failure) not in (before.failure, before.untrusted):
                    level = logging.ERROR if isinstance(failure, RefusedNote) else logging.WARNING
                    _log.log(level, "following: %s", failure)
            else:
                failures = 0
                if before.failure or before.untrusted:
                    _log.warning("following: answered again")
                if self.state.refusal and self.state.refusal != before.refusal:
                    _log.error("following: %s", self.state.refusal)
                if changed:
                    _log.info(
                        "following: edition %s, %d files and %d bytes pulled in %.1f s",
                        *(self.state.remote_edition, self.state.pulled_files),
                        *(self.state.pulled_bytes, self.state.pulled_seconds),
                    )
            # Nodes that lost their origin together do not come back together.
            slower = min(seconds * 2 ** min(failures, 5), max(_SLOWEST, seconds))
            if stopped(slower * random.uniform(0.8, 1.2) if failures else seconds):  # noqa: S311 - no secret
                return

    def look(self) -> bool:
        """Apply the note; returns whether anything changed. Raises ObjectError or OperatorError."""
        try:
            with locked(self._editions / _LOOK_LOCK):  # a command may check while a server follows
                changed = self._look()
        except RefusedNote as refused:
            self._note(untrusted=str(refused), refused=self.state.refused + 1, failure="", failing_since="")
            raise
        except (ObjectError, OperatorError, OSError) as failure:
            moment = utc_now()
            since = self.state.failing_since or moment
            self._note(failure=str(failure), looked_at=moment, failing_since=since)
            if isinstance(failure, OSError):
                raise OperatorError(f"{failure.filename or 'HOME'}: {failure.strerror}") from failure
            raise
        self._note(failure="", failing_since="", untrusted="", looked_at=utc_now())
        return changed

    def _look(self) -> bool:
        try:
            content = self._source.read(NOTE, NOTE_BYTES)
        except ObjectMissing:
            self._note(answered_at=utc_now(), refusal="it has no signed edition yet")
            return False
        self._note(answered_at=utc_now())
        before, here = self._here()
        damaged = [path.name.removeprefix(_DAMAGED) for path in self._editions.glob(f"{_DAMAGED}*")]
        fingerprint = sha256(content).hexdigest()
        if fingerprint == self.state.index and here.current in here.editions and not damaged:
            if before is not None:
                self._pull_log(before)
            return False
        began = time.monotonic()
        self._files = self._bytes = 0
        publication, published = self._verified(content, before)
        for edition in damaged:
            self._repair(edition)
        self._take(content, publication, published, before)
        self._pull_log(publication)
        self._note(
            index=fingerprint,
            pulled_files=self._files,
            pulled_bytes=self._bytes,
            pulled_seconds=round(time.monotonic() - began, 3),
        )
        return True

    def _here(self) -> tuple[Publication | None, EditionList]:
        """The last publication followed; none if its signers are no longer trusted."""
        try:
            return self._store.publication(), self._store.list_editions()
        except StoreUnavailable:
            return None, EditionList((), None)

    def _verified(self, content: bytes, before: Publication | None) -> tuple[Publication, bytes]:
        """The publication of the store and its list of all editions. Raises RefusedNote or ObjectError."""
        try:
            trusted = self._trusted or (before.verifiers() if before is not None else None)
            publication = read_publication(content, trusted)
            refuse_unless_later(publication, before, datetime.now(UTC))
            known = self._store.published_list() if before is not None else None
            listed = self._published(publication)[: publication.published_size]
            checked_list(publication, listed, known)
        except NotTrusted as refused:
            raise RefusedNote(f"{NOTE}: refused: {refused}") from None
        return publication, listed

    def _take(
        self, note: bytes, publication: Publication, published: bytes, before: Publication | None
    ) -> None:
        current = self._edition(publication.current)
        readable = bool(current.files)
        refusal = (
            ""
            if readable
            else (
                f"edition {current.edition} has layout {current.manifest['format']}, and this version reads "
                f"layout {LAYOUT}: install the version that published it; the edition here stays in service"
            )
        )
        self._note(remote_edition=current.edition, refusal=refusal)
        with self._unless_published_here(before):
            self._store.take_list(published)
        if not readable:
            here = self._here()[1].current
            if here is not None and here not in publication.withdrawn:
                return  # its own stays in service
            usable = [e for e in self._older(publication) if e.edition not in publication.withdrawn]
            if not usable:
                return
            current = usable[0]
        if not self._pull(current):
            self._store.await_signature(current.edition, current.seal)
            self._store.open(current.edition).close()
        # Earlier editions, for cursors and requests that name them.
        older = [edition for edition in self._older(publication) if edition.edition != current.edition]
        with self._unless_published_here(before):
            self._store.take(note, current.edition, [edition.edition for edition in older])
        for edition in older:
            self._pull(edition)
        self._pool.prune()

    def _pull_log(self, publication: Publication) -> None:
        """Pull the store's log if the local one lacks the current edition, and the hashes of rows; once a
        minute also new attestations. Raises RefusedNote."""
        log = self._store.log
        is_missing = all(edition != publication.current for _, edition in log.published())
        try:
            if is_missing or time.monotonic() - self._log_read_at > _LOG_SECONDS:
                self._log_read_at = time.monotonic()
                checkpoint = self._source.read(CHECKPOINT, NOTE_BYTES)
                if checkpoint != log.checkpoint():
                    trusted, trusted_log = publication.verifiers(), self._store.trusted_log()
                    tree = read_log(self._source, trusted, trusted_log, checkpoint)
                    with self._store.locked_here("switch"):
                        if is_missing or len(tree.leaves) >= len(log.tree().leaves):
                            log.take(tree.bundle(), checkpoint)
                if log.stamp() is None:
                    with suppress(ObjectError):  # editions do not wait for the log
                        log.take_stamp(self._source.read(STAMP, NOTE_BYTES))
            current = self._store.edition_folder(publication.current)
            if current.exists() and not row_trees_path(current).exists():
                self._pull_row_trees(publication)
        except ObjectMissing:
            return  # an older version published
        except NotTrusted as refused:
            raise RefusedNote(f"log: refused: {refused}") from None

    def _pull_row_trees(self, publication: Publication) -> None:
        """Bring the hashes of the rows of every edition that is here. Raises NotTrusted or ObjectError."""
        listed = listed_row_trees(self._source.read(ROW_TREES_NOTE, NOTE_BYTES), publication.verifiers())
        self._published(publication)
        here = self._store.list_editions().editions
        for edition in here:
            path = row_trees_path(self._store.edition_folder(edition))
            if edition in listed and not path.exists():
                digest, size = listed[edition]
                object_path = pool_path(digest) if self._is_pushed else f"{ROW_TREES}{edition}"
                file = ListedFile(object_path, size, digest)
                before = max((one for one in listed if one < edition), default="") if self._is_pushed else ""
                bases = {digest: listed[before].sha256} if before else {}
                self._pool.fetch(self._source, [file], self._count, bases)
                with self._store.locked_here("switch"):
                    make_private_folder(path.parent)
                    path.hardlink_to(self._pool.path(file))
        self._store.log.prune_row_trees(here)
        self._pool.prune()

    @contextmanager
    def _unless_published_here(self, before: Publication | None) -> Iterator[None]:
        """Raises ObjectError if a command on this HOME published since the note was read."""
        with self._store.locked_here("switch"):
            if self._here()[0] != before:
                raise ObjectError("an edition was published here meanwhile")
            yield

    def _published(self, publication: Publication) -> bytes:
        """The list that a note names, perhaps with later entries; the caller compares it with the digest.
        From then on files are read as of this note."""
        self._seals = publication.editions
        try:
            content = self._source.read(pool_path(publication.published_sha256), INDEX_BYTES)
            self._is_pushed = True
        except ObjectMissing:
            content = self._source.read(LIST, INDEX_BYTES)
            self._is_pushed = False
        self._count(len(content))
        return content

    def _edition(self, edition: str) -> EditionContents:
        """An edition of the store; without files if this version cannot read its layout. Raises ObjectError
        or ObjectMissing."""
        if (seal := self._seals.get(edition)) is None:
            raise ObjectMissing(f"edition {edition}: not signed")
        content = self._pool.read(seal)
        if content is None:
            path = self._stored_path(edition, MANIFEST, seal)
            content = self._source.read(path, INDEX_BYTES)
            if sha256(content).hexdigest() != seal:
                raise ObjectError(f"{path}: not the manifest that was signed")
            self._pool.put(seal, content)
            self._count(len(content))
        try:
            layout = msgspec.json.decode(content, type=dict[str, Any]).get("format")
            if layout != LAYOUT:
                return EditionContents(edition, {"format": layout}, seal, ())
            return listed_contents(edition, content, seal)
        except (msgspec.DecodeError, KeyError, TypeError, ValueError) as failure:
            raise ObjectError(f"{edition}/{MANIFEST}: this version cannot read it: {failure!r}") from None

    def _stored_path(self, edition: str, path: str, digest: str) -> str:
        """Path of a file in the store."""
        return pool_path(digest) if self._is_pushed else f"{edition}/{path}"

    def _older(self, publication: Publication) -> list[EditionContents]:
        """Older editions to store, as many as the settings say. Skips those removed from the store since."""
        older: list[EditionContents] = []
        for name in sorted({*publication.editions} - {publication.current}, reverse=True):
            if len(older) == self._editions_kept:
                break
            with suppress(ObjectMissing):
                if (edition := self._edition(name)).files:
                    older.append(edition)
        return older

    def _pull(self, remote: EditionContents) -> bool:
        """Pull a complete edition and open it once; False if it is here already."""
        try:
            if edition_contents(self._editions / remote.edition).seal == remote.seal:
                return False
        except EditionError:
            pass  # not here, or not whole
        files = self._objects(remote)
        self._files += sum(not self._pool.holds(file) for file in {f.sha256: f for f in files}.values())
        bases = dict[str, str]()
        before = max((e for e in self._here()[1].editions if e < remote.edition), default="")
        if before and self._is_pushed:
            with suppress(EditionError):
                changed = changed_files(edition_contents(self._editions / before), remote)
                bases = {new.sha256: old.sha256 for old, new in changed}
        self._pool.fetch(self._source, files, self._count, bases)
        self._link(remote)
        self._store.await_signature(remote.edition, remote.seal)
        try:
            self._store.open(remote.edition).close()
        except EditionError:
            # A file that was here before is damaged, so compare the others too.
            self._pool.drop_damaged(files)
            raise
        return True

    def _objects(self, remote: EditionContents) -> list[ListedFile]:
        """The files of an edition by their paths in the store."""
        return [
            file._replace(path=self._stored_path(remote.edition, file.path, file.sha256))
            for file in remote.files
        ]

    def _link(self, remote: EditionContents) -> None:
        folder = self._editions / remote.edition
        with self._store.locked_here("switch"):
            link_edition(folder, [(file.path, self._pool.path(file)) for file in remote.files])

    def _repair(self, edition: str) -> None:
        """Remove the damaged files of an edition and pull them again."""
        if (self._editions / edition).exists():
            with suppress(ObjectMissing):
                remote = self._edition(edition)
                files = self._objects(remote)
                if self._pool.drop_damaged(files):
                    _log.warning("following: edition %s is damaged here and is pulled again", edition)
                    self._pool.fetch(self._source, files, self._count)
                if files:
                    self._link(remote)
        (self._editions / f"{_DAMAGED}{edition}").unlink(missing_ok=True)

    def _count(self, count: int) -> None:
        """Called from several threads. While something comes, the other side answers."""
        with self._lock:
            self._bytes += count
            if time.monotonic() - self._noted_at > _PROGRESS_SECONDS:
                self._note(answered_at=utc_now())

    def _note(self, **changes: object) -> None:
        self.state = replace(self.state, **changes)
        self._noted_at = time.monotonic()
        write_state(self._editions, self.state)
