"""The edition in service, switched under load without a failed request, and the older stored editions."""

import asyncio
import logging
import time
from collections import OrderedDict
from contextlib import suppress
from datetime import datetime

from sankofa.edition.format.keys import LAYOUT, holds_withdrawn, may_hold, may_name_a_person
from sankofa.edition.read.edition import Edition
from sankofa.engines.datastore import Datastore, EditionList
from sankofa.model.errors import EditionError, Gone, NotFound, Problem, StoreUnavailable

_log = logging.getLogger("sankofa.edition")
_LOOK_EVERY = 0.25
_REFUSED_FOR = 5.0  # the same edition may be published again, whole
_OPEN_AT_MOST = 16
_WAIT_FOR_OPENING = 5.0
_SCRUBBED_AT_ONCE = 1 << 20  # bytes per check: 4 MB a second, about 0.5% of a processor


def open_edition(store: Datastore, edition_id: str, *, check_all: bool = False) -> Edition:
    """Raises EditionError if it is corrupt, incomplete, gone, or has another layout."""
    reader = store.open(edition_id, check_all=check_all)
    layout = reader.manifest.get("format")
    if layout != LAYOUT:
        reader.close()
        remedy = "run `sankofa publish` to rebuild it"
        if isinstance(layout, int) and layout > LAYOUT:
            remedy = "a newer version published it, install that one"
        raise EditionError(
            f"edition {edition_id}: has layout {layout}, but this version reads {LAYOUT}: {remedy}"
        )
    return Edition(edition_id, reader)


def open_newest_usable(store: Datastore) -> tuple[Edition | None, list[str]]:
    """The current edition, or the newest older one that is undamaged; and the faults of the others.

    Editions withdrawn by a newer one are not used: they may name a natural person, or hold data that may not
    be redistributed.
    """
    listed = store.list_editions()
    withdrawn = store.withdrawn() - {listed.current}
    complaints: list[str] = []
    candidates = [listed.current] if listed.current else []
    candidates += [name for name in listed.editions if listed.current is None or name < listed.current]
    for name in candidates:
        if name in withdrawn:
            complaints.append(f"edition {name}: withdrawn by a later one")
            continue
        try:
            return open_edition(store, name), complaints
        except EditionError as failure:
            complaints.append(str(failure))
    return None, complaints


class EditionManager:
    """Holds the edition that answers new requests, and checks for a newer one.

    A request keeps the edition it started with; an old edition closes once nothing refers to it. Opening
    takes a moment, so it runs in a thread.
    """

    def __init__(self, store: Datastore, *, follows: bool = False) -> None:
        self._store = store
        self._follows = follows
        """Whether this node pulls its editions."""
        self._edition: Edition | None = None
        self.id = ""
        """The id of the current edition; empty while there is none."""
        self._refused = ""
        self._try_again = 0.0
        self._complaints: list[str] = []
        self._older = _Older(store)
        self._unreadable: StoreUnavailable | None = None
        """Why the last check found no current edition."""
        self._opening: str | None = "the current edition"
        """The edition being opened, until the first check ends."""

    def get(self) -> Edition:
        """Raises StoreUnavailable while there is none, with the reason."""
        if self._edition is None:
            raise self._unavailable()
        return self._edition

    def _unavailable(self) -> StoreUnavailable:
        if self._unreadable is not None:
            return self._unreadable
        if self._opening is not None:
            message = "The current edition is being opened and verified; retry."
            cause = f"{self._opening} is being opened and verified"
            return StoreUnavailable("datastore", cause, message=message)
        if self._refused:
            return StoreUnavailable("datastore", f"edition {self._refused} cannot be served")
        if self._follows:
            message = "The current edition has not been pulled yet; retry."
            return StoreUnavailable("datastore", "no edition is pulled yet", message=message)
        return StoreUnavailable("datastore", "no edition is published")

    async def for_cursor(self, edition_id: str) -> Edition:
        """The edition of a cursor while it may be served; afterwards the current one."""
        if self._edition is not None and self._edition.id == edition_id:
            return self._edition
        try:
            return await self.by_id(edition_id)
        except (Gone, NotFound):
            return self.get()

    async def by_id(self, edition_id: str) -> Edition:
        """A stored edition by its id, to answer from.

        Raises Gone if it is no longer stored, may name a natural person, or holds a withdrawn source or file;
        NotFound if it was never published; StoreUnavailable while it is being opened.
        """
        edition = await self.to_compare(edition_id)
        if self._edition is not None and (
            may_name_a_person(edition_id, self._edition.last_person_capture)
            or may_hold(edition.manifest, self._edition.left_out)
            or holds_withdrawn(edition_id, edition.manifest, self._edition.manifest.get("withdrawals", ()))
        ):
            raise Gone(f"edition: {edition_id} is withdrawn.")
        if await asyncio.to_thread(self._is_withdrawn, edition_id):
            raise Gone(f"edition: {edition_id} is withdrawn.")
        return edition

    def _is_withdrawn(self, edition_id: str) -> bool:
        """Whether the store lists it as withdrawn, perhaps before this process switches to the newer
        edition."""
        return edition_id in self._store.withdrawn() and edition_id != self._store.list_editions().current

    async def known_by(self, moment: datetime) -> Edition | None:
        """The newest edition published by an instant that may still be served; None if none was published by
        then. Raises Gone if none of them is kept."""
        published = await asyncio.to_thread(self._store.log.published)
        then = [edition_id for at, edition_id in published if at <= moment]
        for edition_id in reversed(then):
            with suppress(Gone, NotFound):
                return await self.by_id(edition_id)
        if then:
            raise Gone(f"known_by: no edition of that time is kept; the last was {then[-1]}.")
        return None

    async def to_compare(self, edition_id: str) -> Edition:
        """A stored edition by its id, only to compare with."""
        if self._edition is not None and self._edition.id == edition_id:
            return self._edition
        return await self._older.get(edition_id)

    async def look(self) -> None:
        """Switch to the current edition if it is undamaged; otherwise stay, and try again later."""
        try:
            listed = await asyncio.to_thread(self._store.list_editions)
        except StoreUnavailable as failure:
            self._unreadable = failure
            raise
        self._unreadable = None
        self._older.see(listed)
        await asyncio.to_thread(self._scrub)
        current = listed.current
        if current is None or (self._edition is not None and self._edition.id == current):
            self._opening = None
            return
        if current == self._refused and time.monotonic() < self._try_again:
            return
        before = self._edition
        self._opening = f"edition {current}"
        try:
            self._edition, complaints = await asyncio.to_thread(self._open, current)
        except EditionError as failure:
            complaints = [str(failure)]
        finally:
            self._opening = None
        if complaints:
            self._refused, self._try_again = current, time.monotonic() + _REFUSED_FOR
            if complaints != self._complaints:
                _log.error("refused: %s", "; ".join(complaints))
        self._complaints = complaints
        if before is not None and before is not self._edition:
            self._older.add(before)
        if self._edition is not None:
            self.id = self._edition.id
            _log.info("serving edition %s", self.id)

    def _scrub(self) -> None:
        """Verify more of the served edition. Stop serving it if it is damaged."""
        self._older.check_open()
        edition = self._edition
        if edition is not None:
            edition.scrub(_SCRUBBED_AT_ONCE)
            if edition.damage is not None:
                _log.error("edition %s is no longer served: %s", edition.id, edition.damage)
                self._edition, self.id, self._try_again = None, "", 0.0

    def _open(self, current: str) -> tuple[Edition | None, list[str]]:
        """Open the current edition; if none is in service, also try older ones."""
        if self._edition is None:
            return open_newest_usable(self._store)
        return open_edition(self._store, current), []

    async def watch(self, first_look: "asyncio.Task[None] | None" = None) -> None:
        """Check for a new edition until cancelled, after the first check ends."""
        if first_look is not None:
            await asyncio.wait({first_look})
            first_look.exception()  # the next check finds the fault again and reports it
        blind = False
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            try:
                await self.look()
            except Exception as failure:
                if not blind:  # said once, not four times a second
                    cause = failure.logged if isinstance(failure, StoreUnavailable) else repr(failure)
                    _log.error("cannot check for a new edition: %s", cause)
                blind = True
            else:
                blind = False


class _Older:
    """The stored editions besides the current one, opened on request.

    Names of unknown editions do not reach the store. Few editions stay open, and one is opened at a time.
    """

    def __init__(self, store: Datastore) -> None:
        self._store = store
        self._open: OrderedDict[str, Edition] = OrderedDict()
        self._opening: dict[str, asyncio.Task[Edition]] = {}
        self._one_at_a_time = asyncio.Lock()
        self._stored_ids: frozenset[str] = frozenset()
        self._published: frozenset[str] = frozenset()
        self._published_read_at = float("-inf")
        self._listed_at = 0.0
        self._unusable: dict[str, float] = {}

    def see(self, listed: EditionList) -> None:
        """Take note of the stored editions, and drop the others."""
        self._listed_at = time.monotonic()
        if self._stored_ids != (stored_ids := frozenset(listed.editions)):
            self._stored_ids = stored_ids
            for edition_id in set(self._open) - stored_ids:
                del self._open[edition_id]
            for edition_id in set(self._unusable) - stored_ids:
                del self._unusable[edition_id]

    def add(self, edition: Edition) -> None:
        """Add a verified edition that may be asked for again."""
        self._open[edition.id] = edition
        self._open.move_to_end(edition.id)
        while len(self._open) > _OPEN_AT_MOST:
            self._open.popitem(last=False)

    async def get(self, edition_id: str) -> Edition:
        """Raises Gone, NotFound, or StoreUnavailable while it is still being verified."""
        if edition_id not in self._stored_ids and time.monotonic() - self._listed_at > _LOOK_EVERY:
            self.see(await asyncio.to_thread(self._store.list_editions))
        if edition_id not in self._stored_ids:
            problem = await self._missing(edition_id)
            if not isinstance(problem, Gone) or edition_id < max(self._stored_ids, default=""):
                raise problem
            self.see(await asyncio.to_thread(self._store.list_editions))  # published since the last check
            if edition_id not in self._stored_ids:
                raise problem
        if (edition := self._open.get(edition_id)) is not None and edition.damage is None:
            self._open.move_to_end(edition_id)
            return edition
        if time.monotonic() < self._unusable.get(edition_id, 0.0):
            raise Gone(f"edition: {edition_id} can no longer be read.")
        opening = self._opening.get(edition_id)
        if opening is None:
            opening = self._opening[edition_id] = asyncio.create_task(self._opened(edition_id))
            opening.add_done_callback(lambda done: self._forget(edition_id, done))
        try:
            return await asyncio.wait_for(asyncio.shield(opening), _WAIT_FOR_OPENING)
        except TimeoutError:
            raise StoreUnavailable("edition", f"{edition_id} is still being verified") from None
        except EditionError:
            raise Gone(f"edition: {edition_id} can no longer be read.") from None

    def check_open(self) -> None:
        """Drop editions that are damaged or about to change."""
        for edition_id, edition in list(self._open.items()):
            edition.scrub(0)
            if edition.damage is not None:
                _log.error("refused: edition %s: %s", edition_id, edition.damage)
                self._unusable[edition_id] = time.monotonic() + _REFUSED_FOR
                self._open.pop(edition_id, None)

    async def _missing(self, edition_id: str) -> Problem:
        """The error for an edition that is not stored: no longer kept, or never published."""
        if edition_id not in self._published and time.monotonic() - self._published_read_at > _LOOK_EVERY:
            self._published = await asyncio.to_thread(self._store.published)
            self._published_read_at = time.monotonic()
        if edition_id in self._published:
            return Gone(f"edition: {edition_id} is no longer kept.")
        return NotFound(f"edition: {edition_id} was never published here.")

    async def _opened(self, edition_id: str) -> Edition:
        async with self._one_at_a_time:
            try:
                edition = await asyncio.to_thread(open_edition, self._store, edition_id)
            except EditionError as failure:
                self._unusable[edition_id] = time.monotonic() + _REFUSED_FOR
                _log.error("refused: %s", failure)
                raise
            self.add(edition)
            return edition

    def _forget(self, edition_id: str, done: "asyncio.Task[Edition]") -> None:
        self._opening.pop(edition_id, None)
        if not done.cancelled():
            done.exception()  # all waiting requests may have been cancelled
