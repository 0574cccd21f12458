"""The edition in service: switched under load without one failed request."""

import asyncio
import logging
import time
from collections import OrderedDict

from sankofa.edition.reading import Edition, open_edition, open_newest_usable
from sankofa.engines.datastore import Datastore
from sankofa.model.errors import EditionError, InvalidParameter, StoreUnavailable

_log = logging.getLogger("sankofa.edition")
_LOOK_EVERY = 0.25
_REFUSED_FOR = 5.0  # the same edition may be published again, whole
_OPEN_AT_MOST = 8  # more than are kept by default: nobody can have them opened over and over


class CurrentEdition:
    """Holds the edition that new requests are answered from, and looks for a newer one.

    A request keeps the edition it began with: an old one is closed only once nothing refers to it
    any more. Opening verifies the whole file, so it happens in a thread.
    """

    def __init__(self, store: Datastore) -> None:
        self._store = store
        self._edition: Edition | None = None
        self._refused = ""
        self._try_again = 0.0
        self._complaints: list[str] = []
        self._older: OrderedDict[str, Edition] = OrderedDict()

    def get(self) -> Edition:
        """Raises StoreUnavailable while there is none."""
        if self._edition is None:
            raise StoreUnavailable("datastore", "no edition is published")
        return self._edition

    async def named(self, edition_id: str, parameter: str = "cursor") -> Edition:
        """A kept edition, for a walk that began on it. Raises InvalidParameter when it is gone."""
        if self._edition is not None and self._edition.id == edition_id:
            return self._edition
        edition = self._older.get(edition_id)
        if edition is None:
            try:
                edition = await asyncio.to_thread(open_edition, self._store, edition_id)
            except EditionError:
                reason = "its edition is no longer kept; start again" if parameter == "cursor" else "not kept"
                raise InvalidParameter(parameter, reason) from None
            self._older[edition_id] = edition
            while len(self._older) > _OPEN_AT_MOST:
                self._older.popitem(last=False)
        return edition

    async def look(self) -> None:
        """Switch to the edition that is current now, if it is whole; else stay, and try again in a while."""
        current = (await asyncio.to_thread(self._store.shelf)).current
        if current is None or (self._edition is not None and self._edition.id == current):
            return
        if current == self._refused and time.monotonic() < self._try_again:
            return
        try:
            self._edition, complaints = await asyncio.to_thread(self._open, current)
        except EditionError as failure:
            complaints = [str(failure)]
        if complaints:
            self._refused, self._try_again = current, time.monotonic() + _REFUSED_FOR
            if complaints != self._complaints:
                _log.error("refused: %s", "; ".join(complaints))
        self._complaints = complaints
        if self._edition is not None:
            _log.info("serving edition %s", self._edition.id)

    def _open(self, current: str) -> tuple[Edition | None, list[str]]:
        """With nothing to serve yet, an older edition is better than none."""
        if self._edition is None:
            return open_newest_usable(self._store)
        return open_edition(self._store, current), []

    async def watch(self) -> None:
        """Look for a new edition until cancelled, whatever happens."""
        blind = False
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            try:
                await self.look()
            except Exception as failure:
                if not blind:  # said once, not four times a second
                    cause = failure.logged if isinstance(failure, StoreUnavailable) else repr(failure)
                    _log.error("cannot look for a new edition: %s", cause)
                blind = True
            else:
                blind = False
