"""API keys: only their hash is stored, and a revoked one is refused at the next request."""

import hashlib
import hmac
import secrets
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

import msgspec

from sankofa.access.sealing import DamagedRecord, SealedRecords
from sankofa.access.tiers import TIERS, Grant, grant
from sankofa.model.days import instant
from sankofa.model.errors import OperatorError, Unauthorized
from sankofa.settings import Settings

_NAMES = "key:"
_LONGEST = 256
_ID = 12
"""Characters of a key's id."""


class KeyRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is stored of a key, under its hash."""

    id: str
    hash: str
    tier: str
    created_at: str
    label: str = ""
    per_minute: int | None = None
    per_month: int | None = None
    revoked_at: str | None = None


class Keys:
    """The key store."""

    def __init__(self, records: SealedRecords, settings: Settings, clock: Callable[[], datetime]) -> None:
        self._records = records
        records.register(_NAMES, self._is_record)
        self._settings = settings
        self._clock = clock
        self._sandbox_hash = _hash(settings.sandbox_key) if settings.sandbox_key else None
        self._decode = msgspec.json.Decoder(KeyRecord).decode
        self._grants: dict[bytes, tuple[str, Grant]] = {}

    async def authenticate(self, key: str) -> Grant:
        """The grant of a key. Raises Unauthorized, or StoreUnavailable when the store does not answer."""
        if not key or len(key) > _LONGEST or not key.isascii():
            raise Unauthorized()
        digest = _hash(key)
        stored = await self._records.get(_NAMES + digest)
        if stored is None:
            if digest != self._sandbox_hash:
                raise Unauthorized()
            stored = await self._issue_sandbox(digest)
        known = self._grants.get(stored)
        if known is None:
            try:
                record = self._read(_NAMES + digest, stored)
            except DamagedRecord:
                raise Unauthorized() from None
            if record.revoked_at is not None:
                raise Unauthorized()
            known = (
                record.hash,
                grant(self._settings, record.id, record.tier, record.per_minute, record.per_month),
            )
            if len(self._grants) >= 4096:
                self._grants.clear()
            self._grants[stored] = known
        if not hmac.compare_digest(known[0], digest):
            raise Unauthorized()
        return known[1]

    async def create(
        self, tier: str, label: str = "", per_minute: int | None = None, per_month: int | None = None
    ) -> str:
        """Issue a key and return it: the only time it is ever seen."""
        if tier not in TIERS:
            raise OperatorError(f"no tier {tier!r}: expected one of {', '.join(TIERS)}")
        key = f"sk_{secrets.token_urlsafe(32)}"
        await self._put(self._record(_hash(key), tier, label, per_minute, per_month))
        return key

    async def list(self) -> list[KeyRecord]:
        """Every record that is whole; the others are named in the log."""
        records: list[KeyRecord] = []
        for name in await self._records.names(_NAMES):
            stored = await self._records.get(name)
            if stored is not None:
                with suppress(DamagedRecord):
                    records.append(self._read(name, stored))
        return sorted(records, key=lambda record: (record.created_at, record.id))

    async def find(self, named: str) -> KeyRecord:
        """The record of a key, named by its id or by the key itself. Raises OperatorError."""
        name = _NAMES + _hash(named)
        stored = await self._records.get(name)
        if stored is not None:
            return self._read(name, stored)
        for record in await self.list():
            if record.id == named:
                return record
        # What was typed may be a key: it is repeated only where it looks like an id.
        shown = f"id {named!r}" if len(named) <= _ID else "that id, nor is it a key"
        raise OperatorError(f"no key with {shown}: see `sankofa keys list`")

    async def revoke(self, named: str) -> KeyRecord:
        """Refuse a key from now on. Raises OperatorError."""
        record = await self.find(named)
        if record.revoked_at is None:
            record = msgspec.structs.replace(record, revoked_at=instant(self._clock()))
            await self._put(record)
        return record

    async def reseal(self) -> tuple[int, int]:
        """Seal the records of keys and domains with the newest secret; how many were, and were refused."""
        return await self._records.reseal()

    async def _issue_sandbox(self, digest: str) -> bytes:
        """The sandbox key is a real sample-tier key; it is issued the first time it is used."""
        return await self._put(self._record(digest, "sample", "sandbox", None, None))

    def _record(
        self, digest: str, tier: str, label: str, per_minute: int | None, per_month: int | None
    ) -> KeyRecord:
        created = instant(self._clock())
        return KeyRecord(digest[:_ID], digest, tier, created, label, per_minute, per_month)

    async def _put(self, record: KeyRecord) -> bytes:
        return await self._records.put(_NAMES + record.hash, msgspec.json.encode(record))

    def _read(self, name: str, stored: bytes) -> KeyRecord:
        """Raises DamagedRecord."""
        try:
            return self._decode(self._records.read(name, stored))
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise self._records.refuse(name) from None

    def _is_record(self, name: str, stored: bytes) -> bool:
        """Whether everything in a record without a seal is as this service writes it."""
        try:
            record = self._decode(stored)
            days = [
                datetime.fromisoformat(day)
                for day in (record.created_at, record.revoked_at)
                if day is not None
            ]
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError):
            return False
        return (
            name == _NAMES + record.hash
            and record.id == record.hash[:_ID]
            and record.tier in TIERS
            and len(days) > 0
            and msgspec.json.encode(record) == stored  # a member whose name is damaged would be passed over
        )


def _hash(key: str) -> str:
    """Keys are 256 random bits, so one round of BLAKE2 is enough to make the store useless to a thief."""
    return hashlib.blake2b(key.encode(), digest_size=32).hexdigest()
