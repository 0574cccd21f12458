"""Following a destination: look at its pointer, pull what is new, switch, keep the ones before."""

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, TypeVar

from msgspec.structs import replace

from sankofa.engines.datastore import Datastore
from sankofa.engines.edition_folder import make_private_folder
from sankofa.engines.edition_transfer import edition_contents, link_edition
from sankofa.engines.object_store import ObjectError, ObjectSource
from sankofa.model.errors import EditionError, OperatorError
from sankofa.replication.documents import (
    INDEX_BYTES,
    POINTER,
    POINTER_BYTES,
    Digest,
    EditionEntry,
    EditionFiles,
    Index,
    Pointer,
    decode,
)
from sankofa.replication.following_store import damaged_editions, forget_damage
from sankofa.replication.pool import Pool
from sankofa.replication.state import read_state, utc, write_state

_log = logging.getLogger("sankofa.following")
_Document = TypeVar("_Document")
_PROGRESS_SECONDS: Final = 5.0
_SLOWEST: Final = 15.0
"""Most seconds between two looks while they fail."""


class Follower:
    """One process at a time on one HOME: see `sankofa.cli.commands.following`."""

    def __init__(
        self,
        source: ObjectSource,
        store: Datastore,
        home: Path,
        *,
        layout: int,
        kept: int,
        clock: Callable[[], datetime],
    ) -> None:
        self._source = source
        self._store = store
        self._editions = home / "editions"
        self._pool = Pool(self._editions / "pool")
        self._layout = layout
        self._kept = kept
        self._clock = clock
        make_private_folder(home)
        make_private_folder(self._editions)
        self.state = read_state(self._editions)
        self._files = 0
        self._bytes = 0
        self._told = 0.0
        self._lock = threading.Lock()

    def run(self, seconds: float, stopped: Callable[[float], bool]) -> None:
        """Look again and again; `stopped` waits for so long, and says whether to end."""
        failures = 0
        while True:
            before = self.state
            try:
                changed = self.look()
            except (ObjectError, OperatorError) as failure:
                failures += 1
                if before.failure != str(failure):
                    _log.warning("following: %s", failure)
            else:
                failures = 0
                if before.failure:
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
        """Do what the pointer says; whether anything changed. Raises ObjectError or OperatorError."""
        try:
            changed = self._look()
        except (ObjectError, OperatorError) as failure:
            self._note(failure=str(failure), looked_at=utc(self._clock()))
            raise
        except OSError as failure:
            self._note(failure=str(failure), looked_at=utc(self._clock()))
            raise OperatorError(f"{failure.filename or 'HOME'}: {failure.strerror}") from failure
        self._note(failure="", looked_at=utc(self._clock()))
        return changed

    def _look(self) -> bool:
        pointer = decode(self._source.read(POINTER, POINTER_BYTES), Pointer, POINTER)
        if pointer.written_at < self.state.written_at:
            raise ObjectError(f"{POINTER}: older than one seen before: a cache on the way answers")
        self._note(answered_at=utc(self._clock()))
        damaged = damaged_editions(self._editions)
        here = self._store.list_editions()
        if pointer.index.sha256 == self.state.index and here.current in here.editions and not damaged:
            return False
        began = time.monotonic()
        self._files = self._bytes = 0
        index = self._document(pointer.index, Index)
        for edition in damaged:
            self._repair(index, edition)
        self._take(index)
        self._note(
            index=pointer.index.sha256,
            written_at=pointer.written_at,
            pulled_files=self._files,
            pulled_bytes=self._bytes,
            pulled_seconds=round(time.monotonic() - began, 3),
        )
        return True

    def _take(self, index: Index) -> None:
        readable = [entry for entry in index.editions if entry.layout == self._layout]
        current = next((entry for entry in readable if entry.edition == index.current), None)
        self._note(remote_edition=index.current, refusal=self._refusal(index) if current is None else "")
        self._store.list_as_published(index.published)
        self._store.withdraw(index.withdrawn)
        if current is None:
            usable = [entry for entry in readable if entry.edition not in index.withdrawn]
            here = self._store.list_editions().current
            if not usable or (here is not None and here not in index.withdrawn):
                return  # its own stays in service
            current = max(usable, key=lambda entry: entry.edition)
        self._pull(current)
        others = sorted((e for e in readable if e is not current), key=lambda e: e.edition, reverse=True)
        others = others[: self._kept]
        self._switch(current, [current, *others])
        for entry in others:  # for cursors and questions about an edition before
            self._pull(entry)
        self._pool.prune([entry.files for entry in (current, *others)])

    def _refusal(self, index: Index) -> str:
        entry = next((e for e in index.editions if e.edition == index.current), None)
        if entry is None:
            return f"edition {index.current}: named as current and not listed"
        return (
            f"edition {entry.edition} has layout {entry.layout}, and this version reads layout "
            f"{self._layout}: install the version that published it; the edition here stays in service"
        )

    def _switch(self, current: EditionEntry, kept: Sequence[EditionEntry]) -> None:
        with self._store.exclusive("switch"):
            self._store.open(current.edition).close()
            listed = self._store.list_editions()
            names = [entry.edition for entry in kept]
            if listed.current != current.edition or set(listed.editions) - {*names}:
                self._store.set_current_and_prune(names, current.edition)

    def _pull(self, entry: EditionEntry) -> None:
        """Bring an edition that is not here, whole."""
        folder = self._editions / entry.edition
        files = self._document(entry.files, EditionFiles)
        if files.edition != entry.edition:
            raise ObjectError(f"edition {entry.edition}: its list of files is of {files.edition}")
        try:
            if edition_contents(folder).seal == files.seal:
                return
        except EditionError:
            pass  # not here, or not whole
        wanted = [file.content for file in files.files]
        self._files += sum(not self._pool.holds(digest) for digest in set(wanted))
        self._pool.fetch(self._source, wanted, self._count)
        with self._store.exclusive("switch"):
            link_edition(folder, files.seal, [(f.path, self._pool.path(f.content)) for f in files.files])
        try:
            self._store.open(entry.edition).close()
        except EditionError:
            # One of the files that were here before is damaged: the others are compared, too.
            self._pool.drop_damaged(set(wanted))
            raise

    def _repair(self, index: Index, edition: str) -> None:
        """What is damaged of an edition is removed, and comes again with the next pull."""
        entry = next((entry for entry in index.editions if entry.edition == edition), None)
        folder = self._editions / edition
        if entry is not None and folder.exists():
            files = self._document(entry.files, EditionFiles)
            if self._pool.drop_damaged({file.content for file in files.files}):
                _log.warning("following: edition %s is damaged here and is pulled again", edition)
                self._pool.fetch(self._source, [file.content for file in files.files], self._count)
            with self._store.exclusive("switch"):
                links = [(file.path, self._pool.path(file.content)) for file in files.files]
                link_edition(folder, files.seal, links)
        forget_damage(self._editions, edition)

    def _document(self, digest: Digest, kind: type[_Document]) -> _Document:
        if digest.size > INDEX_BYTES:
            raise ObjectError(f"{digest.path}: more than {INDEX_BYTES} bytes")
        self._pool.fetch(self._source, [digest], self._count)
        return decode(self._pool.path(digest).read_bytes(), kind, digest.path)

    def _count(self, count: int) -> None:
        """Called from several threads. While something comes, the other side answers."""
        with self._lock:
            self._bytes += count
            if time.monotonic() - self._told > _PROGRESS_SECONDS:
                self._note(answered_at=utc(self._clock()))

    def _note(self, **changes: object) -> None:
        self.state = replace(self.state, **changes)
        self._told = time.monotonic()
        write_state(self._editions, self.state)
