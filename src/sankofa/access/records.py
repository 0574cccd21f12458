"""Records of the key store, each sealed with a keyed hash, so that altered records are refused. Also cursors:
opaque, signed, bound to the filters they were issued for (contract: PAR-5).

The seal is the last member of the record's JSON. It covers the record and the name it is stored under. A
record without a seal is refused. A sealed mark tells a wrong secret from a damaged record. See
docs/decisions/sealed-ledger.md.
"""

import binascii
import hmac
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec

from sankofa.engines.keyvalue import KeyValue
from sankofa.model.errors import InvalidParameter, OperatorError, SettingsError
from sankofa.model.limits import limit

_log = logging.getLogger("sankofa.access")

_MARK: Final = "seals"
_SEALED: Final = b'{"state":"sealed"}'
_SEAL: Final = re.compile(rb',"seal":"([0-9a-f]{32})"\}\Z')
_MOST_REFUSED: Final = 4096
_LARGEST_RECORD: Final = limit("record of the key store", 64 << 10, "bytes", "the key is refused: 401")


class DamagedRecord(OperatorError):
    """A record that was changed after it was written."""


class SealedRecords:
    """The named records of a key store; one instance per process.

    The first secret seals and any verifies, so secrets can be rotated. After `reseal` the first suffices.
    """

    def __init__(self, store: KeyValue, secrets: Sequence[bytes]) -> None:
        self._store = store
        self._keys = tuple(blake2b(secret, person=b"key store").digest() for secret in secrets)
        self._refused: set[str] = set()

    async def prepare(self, *, create: bool = True) -> None:
        """Compare the secret with the mark in the store; with `create`, mark a store that has none.

        Raises SettingsError if the store has another secret.
        """
        mark = await self._store.get(_MARK)
        if mark is None:
            if create:
                await self.put(_MARK, _SEALED)
        elif self._opened(_MARK, mark) is None:
            raise SettingsError(
                "SANKOFA_KEYS_SECRET (or keys-secret in HOME): the records of this key store are sealed with "
                "another secret; everyone who shares the store needs the same one"
            )

    def get(self, name: str) -> Awaitable[bytes | None]:
        """A record as it is stored, for `read`."""
        return self._store.get(name)

    def read(self, name: str, stored: bytes) -> bytes:
        """The record without its seal. Raises DamagedRecord, with a line in the log the first time."""
        body = self._opened(name, stored)
        if body is not None:
            return body
        raise self.refuse(name)

    def refuse(self, name: str) -> DamagedRecord:
        """The error for an unusable record."""
        kind, _, rest = name.partition(":")
        label = f"{kind} {rest[:12] if kind == 'key' else rest}"
        message = f"the record of {label} is damaged, or not sealed with SANKOFA_KEYS_SECRET: it is refused"
        if name not in self._refused:
            if len(self._refused) >= _MOST_REFUSED:
                self._refused.clear()
            self._refused.add(name)
            _log.error(message)
        return DamagedRecord(f"{message}; restore the key store from a backup, or issue another")

    async def put(self, name: str, body: bytes) -> bytes:
        """Seal and store a record (a JSON object). Returns the stored form."""
        stored = self._sealed(name, body)
        await self._store.put(name, stored)
        self._refused.discard(name)
        return stored

    async def replace(self, name: str, stored: bytes, body: bytes) -> bool:
        """Seal a record and store it in place of `stored`. False if `stored` was changed meanwhile."""
        replaced = await self._store.replace(name, stored, self._sealed(name, body))
        if replaced:
            self._refused.discard(name)
        return replaced

    async def reseal(self) -> tuple[int, int]:
        """Seal every record with the first secret. Returns the numbers of resealed and of refused records.

        A record that another process changes meanwhile is read again: a revocation is never undone.

        The mark comes last: the first secret alone opens the store only once everything is done.
        """
        names = [name for name in await self._store.names("") if name != _MARK]
        resealed = refused = 0
        for name in (*names, _MARK):
            try:
                resealed += await self._reseal(name) and name != _MARK
            except DamagedRecord:
                refused += 1
        return resealed, refused

    async def _reseal(self, name: str) -> bool:
        """Whether the record had to be sealed again. Raises DamagedRecord."""
        while True:
            stored = await self._store.get(name)
            if stored is None or self._opened(name, stored, self._keys[:1]) is not None:
                return False
            if await self.replace(name, stored, self.read(name, stored)):
                return True

    async def names(self, prefix: str) -> list[str]:
        return await self._store.names(prefix)

    def _sealed(self, name: str, body: bytes) -> bytes:
        return body[:-1] + b',"seal":"' + _digest(self._keys[0], name, body) + b'"}'

    def _opened(self, name: str, stored: bytes, keys: Sequence[bytes] | None = None) -> bytes | None:
        """The record without its seal, if any of the keys (by default all of ours) made the seal."""
        seal = None if len(stored) > _LARGEST_RECORD else _SEAL.search(stored)
        if seal is None:
            return None
        body = stored[: seal.start()] + b"}"
        known = any(hmac.compare_digest(seal[1], _digest(key, name, body)) for key in keys or self._keys)
        return body if known else None


def _digest(key: bytes, name: str, body: bytes) -> bytes:
    content = name.encode() + b"\0" + body
    return blake2b(content, digest_size=16, key=key).hexdigest().encode()


R = TypeVar("R", bound=msgspec.Struct)


class Records(Generic[R]):
    """Sealed records under names that begin with one prefix.

    `name_of` gives the rest of a record's name.
    """

    def __init__(
        self, sealed: SealedRecords, prefix: str, kind: type[R], name_of: Callable[[R], str]
    ) -> None:
        self._sealed = sealed
        self._prefix = prefix
        self._name_of = name_of
        self._decode = msgspec.json.Decoder(kind).decode

    def read(self, name: str, stored: bytes) -> R:
        """Raises DamagedRecord."""
        name = self._prefix + name
        try:
            return self._decode(self._sealed.read(name, stored))
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._sealed.refuse(name) from None

    async def get(self, name: str) -> R | None:
        """Raises DamagedRecord."""
        stored = await self._sealed.get(self._prefix + name)
        return None if stored is None else self.read(name, stored)

    async def whole(self) -> list[R]:
        """Every undamaged record; the others are named in the log."""
        records: list[R] = []
        for name in await self._sealed.names(self._prefix):
            with suppress(DamagedRecord):
                record = await self.get(name.removeprefix(self._prefix))
                if record is not None:
                    records.append(record)
        return records

    async def put(self, record: R) -> bytes:
        """Seal and store a record. Returns the stored form."""
        return await self._sealed.put(self._prefix + self._name_of(record), msgspec.json.encode(record))

    async def change(self, name: str, changed: Callable[[R], R]) -> R | None:
        """Replaces a record with the result of `changed` and returns it; None if there is no record.
        Raises DamagedRecord. If another process changes the record meanwhile, `changed` is called again,
        so no change is lost."""
        while (stored := await self._sealed.get(self._prefix + name)) is not None:
            record = self.read(name, stored)
            after = changed(record)
            if after == record:
                return record
            body = msgspec.json.encode(after)
            if await self._sealed.replace(self._prefix + name, stored, body):
                return after
        return None


class StoredRecord(NamedTuple):
    """A record of the key store, without its seal."""

    name: str
    body: bytes


async def read_records(records: SealedRecords) -> tuple[list[StoredRecord], list[str]]:
    """Every undamaged record of the store, and a reason for each damaged record left out."""
    whole: list[StoredRecord] = []
    damaged: list[str] = []
    for name in await records.names(""):
        if ":" not in name:  # the store's own mark
            continue
        stored = await records.get(name)
        if stored is None:
            continue
        try:
            whole.append(StoredRecord(name, records.read(name, stored)))
        except DamagedRecord as failure:
            damaged.append(str(failure))
    return whole, damaged


async def write_records(records: SealedRecords, copied: Iterable[StoredRecord]) -> int:
    """Write the records, replacing those of the same name. Returns how many were new or different."""
    await records.prepare()
    changed = 0
    for name, body in copied:
        stored = await records.get(name)
        try:
            same = stored is not None and records.read(name, stored) == body
        except DamagedRecord:
            same = False
        if not same:
            await records.put(name, body)
            changed += 1
    return changed


_SIGNATURE = 16
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_FROM_URL = bytes.maketrans(b"-_", b"+/")
_encode = msgspec.msgpack.Encoder().encode


class Position(msgspec.Struct, frozen=True, array_like=True):
    """The next position in a list: the edition, the filters, and the sort key of the last row."""

    edition: str
    filters: str
    after: tuple[int | str, ...]


_decode = msgspec.msgpack.Decoder(Position).decode


class Cursors:
    """Signs with the first secret and verifies with any, so that secrets can be rotated."""

    def __init__(self, secrets: Sequence[bytes]) -> None:
        self._secrets = tuple(blake2b(secret).digest() for secret in secrets)  # the longest allowed key

    def issue(self, position: Position) -> str:
        body = _encode(position)
        return _text(_sign(self._secrets[0], body) + body)

    def read(self, cursor: str, filters: str) -> Position:
        """The position of a cursor. Raises InvalidParameter if it was altered or issued for other filters."""
        try:
            raw = binascii.a2b_base64(cursor.encode("ascii").translate(_FROM_URL) + b"==")
        except ValueError:
            raise InvalidParameter("cursor", "not a cursor of this service") from None
        signature, body = raw[:_SIGNATURE], raw[_SIGNATURE:]
        if not any(hmac.compare_digest(signature, _sign(secret, body)) for secret in self._secrets):
            raise InvalidParameter("cursor", "not a cursor of this service, or altered")
        if _text(raw) != cursor:  # each position has one cursor: other texts that decode to it are refused
            raise InvalidParameter("cursor", "altered")
        position = _decode(body)
        if position.filters != filters:
            raise InvalidParameter("cursor", "issued for other filters; pass the ones of the first page")
        return position


IN_LOCKED_VIEWS: Final = Cursors((b"a locked view tells everybody the same",))
"""The same on every installation, so that two with the same data give the same bytes (contract: LOCK-5).

Anybody could make such a cursor and gain nothing: the view ends on its day, whatever the position."""


def _text(raw: bytes) -> str:
    """Base64 for addresses, without padding."""
    return binascii.b2a_base64(raw, newline=False).translate(_URL_SAFE).rstrip(b"=").decode()


def _sign(key: bytes, body: bytes) -> bytes:
    """A keyed hash, a tenth of the cost of an HMAC."""
    return blake2b(body, digest_size=_SIGNATURE, key=key).digest()
