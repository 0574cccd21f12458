"""The day on which each key was last used: a small record in the usage store, written at most once a day."""

from contextlib import suppress
from datetime import UTC, date, datetime
from typing import Final

from sankofa.engines.keyvalue import KeyValue
from sankofa.model.errors import StoreUnavailable

_NAMES: Final = "used:"
_MOST: Final = 65_536
_SECONDS_A_DAY: Final = 86_400


class LastUsed:
    """Notes and tells the days. A process looks at a record once a day, and writes it if nobody has yet."""

    def __init__(self, store: KeyValue) -> None:
        self._store = store
        self.noted: dict[str, int] = {}
        """The day that was last noted of each key, as days since 1970."""

    async def note(self, key_id: str, day: int) -> None:
        """A key was used on a day (days since 1970). A store that does not answer stops no request."""
        if len(self.noted) >= _MOST:
            self.noted.clear()
        self.noted[key_id] = day
        text = datetime.fromtimestamp(day * _SECONDS_A_DAY, UTC).date().isoformat().encode()
        with suppress(StoreUnavailable):
            if await self._store.get(_NAMES + key_id) != text:
                await self._store.put(_NAMES + key_id, text)

    async def day_of(self, key_id: str) -> date | None:
        """The day on which a key was last used; None where it never was. Raises StoreUnavailable."""
        stored = await self._store.get(_NAMES + key_id)
        try:
            return None if stored is None else date.fromisoformat(stored.decode())
        except ValueError:  # damaged: nobody knows
            return None
