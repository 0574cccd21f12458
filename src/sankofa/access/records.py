"""The records of one type in the key store: read, listed and written one way, whatever they are of."""

from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

import msgspec

from sankofa.access.sealing import DamagedRecord, SealedRecords

R = TypeVar("R", bound=msgspec.Struct)


class Records(Generic[R]):
    """Sealed records under names that begin with one prefix.

    `name_of` gives the rest of a record's name. `is_plausible` says of a record without a seal, which an
    older version left, whether everything in it is as this service writes it.
    """

    def __init__(
        self,
        sealed: SealedRecords,
        prefix: str,
        kind: type[R],
        name_of: Callable[[R], str],
        is_plausible: Callable[[R], bool] = lambda record: True,
    ) -> None:
        self._sealed = sealed
        self._prefix = prefix
        self._name_of = name_of
        self._is_plausible = is_plausible
        self._decode = msgspec.json.Decoder(kind).decode
        sealed.register(prefix, self._is_record)

    async def stored(self, name: str) -> bytes | None:
        """A record as it is stored, to be given to `read`."""
        return await self._sealed.get(self._prefix + name)

    def read(self, name: str, stored: bytes) -> R:
        """Raises DamagedRecord."""
        name = self._prefix + name
        try:
            return self._decode(self._sealed.read(name, stored))
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._sealed.refuse(name) from None

    async def get(self, name: str) -> R | None:
        """Raises DamagedRecord."""
        stored = await self.stored(name)
        return None if stored is None else self.read(name, stored)

    async def whole(self) -> list[R]:
        """Every record that is not damaged; the others are named in the log."""
        records: list[R] = []
        for name in await self._sealed.names(self._prefix):
            with suppress(DamagedRecord):
                record = await self.get(name.removeprefix(self._prefix))
                if record is not None:
                    records.append(record)
        return records

    async def reseal(self) -> tuple[int, int]:
        """See `SealedRecords`."""
        return await self._sealed.reseal()

    async def put(self, record: R) -> bytes:
        """Seal and store it; what is stored."""
        return await self._sealed.put(self._prefix + self._name_of(record), msgspec.json.encode(record))

    async def change(self, name: str, changed: Callable[[R], R]) -> R | None:
        """Store what `changed` makes of a record; that, or None where there is none. Raises DamagedRecord.

        Where another process changes the record meanwhile, `changed` is asked again: neither is lost.
        """
        while (stored := await self.stored(name)) is not None:
            record = self.read(name, stored)
            after = changed(record)
            if after == record:
                return record
            body = msgspec.json.encode(after)
            if await self._sealed.replace(self._prefix + name, stored, body):
                return after
        return None

    def _is_record(self, name: str, stored: bytes) -> bool:
        try:
            record = self._decode(stored)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return False
        return (
            name == self._prefix + self._name_of(record)
            and msgspec.json.encode(record) == stored  # a member whose name is damaged would be passed over
            and self._is_plausible(record)
        )
