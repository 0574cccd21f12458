"""Which key a request carries: the same rule on every surface (contract: KEY-1)."""

import dataclasses
import hashlib
import hmac
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from typing import Any

import msgspec

from sankofa.access.records import DamagedRecord, Records, SealedRecords
from sankofa.access.tiers import TIERS, Grant, Lock, grant
from sankofa.model.days import instant
from sankofa.model.errors import OperatorError, StoreUnavailable, Unauthorized
from sankofa.model.limits import limit
from sankofa.settings import Settings

_BEARER = "bearer "


def presented_key(api_keys: Sequence[str], authorizations: Sequence[str]) -> str:
    """The key in `X-API-Key` or in `Authorization: Bearer`, given every value of both header fields.

    Raises Unauthorized unless there is exactly one. Authorization schemes other than Bearer are ignored: they
    may be a proxy's, for example.
    """
    if len(api_keys) == 1 and not authorizations:  # nearly every request
        return api_keys[0]
    if len(authorizations) > 1:
        raise Unauthorized("Send exactly one Authorization header.")
    tokens = [text[len(_BEARER) :].strip(" ") for text in authorizations if text[:7].lower() == _BEARER]
    if len(api_keys) + len(tokens) > 1:
        raise Unauthorized("Send exactly one API key, in X-API-Key or as Authorization: Bearer.")
    for key in (*api_keys, *tokens):
        return key
    raise Unauthorized()


_PREFIX = "key:"
_LONGEST = limit("API key", 256, "characters", "401")
_ID = 12


class KeyRecord(msgspec.Struct, frozen=True, omit_defaults=True):
    """The record of a key, stored under its hash."""

    id: str
    hash: str
    tier: str
    created_at: str
    label: str = ""
    per_minute: int | None = None
    per_month: int | None = None
    revoked_at: str | None = None
    expires_at: str | None = None
    """The last second of validity."""
    counted_as: str = ""
    """The id that its requests are counted under, if not its own."""
    replaced_by: str = ""
    lock: Lock | None = None
    opens: str = ""
    """The target of a link: `path:` and a path, or `dialect:` and a name; empty for a key."""
    of: str = ""
    """The hash of the key that a link belongs to."""
    owner: bool = False
    """Whether it is the key of the installation's owner, which has no quota."""


class Keys:
    def __init__(self, records: SealedRecords, settings: Settings, clock: Callable[[], datetime]) -> None:
        self.sealed = records
        self._records = Records(records, _PREFIX, KeyRecord, lambda record: record.hash)
        self._settings = settings
        self._clock = clock
        self._sandbox_hash = _hash(settings.sandbox_key) if settings.sandbox_key else None
        self._grants: dict[bytes, tuple[str, Grant, datetime | None, KeyRecord]] = {}

    async def authenticate(self, key: str, opens: str = "") -> Grant:
        """The grant of a key. Raises Unauthorized, or StoreUnavailable when the store does not answer.

        The sandbox key is a real sample-tier key, issued on its first use. `opens` is the target that the
        request needs a link for: a link works only for its target, a key for everything else.
        """
        if not key or len(key) > _LONGEST or not key.isascii():
            raise Unauthorized()
        digest = _hash(key)
        stored = await self.sealed.get(_PREFIX + digest)
        if stored is None:
            if digest != self._sandbox_hash:
                raise Unauthorized()
            record = self._record(digest, "sample", "sandbox")
            try:
                stored = await self._records.put(record)
            except StoreUnavailable:  # readable but not writable: serve visitors even if the disk is full
                return self.grant_of(record)
        known = self._grants.get(stored)
        if known is None:
            try:
                record = self._records.read(digest, stored)
            except DamagedRecord:
                raise Unauthorized() from None
            if record.revoked_at is not None:
                raise Unauthorized()
            known = record.hash, self.grant_of(record), _end(record), record
            if len(self._grants) >= 4096:
                self._grants.clear()
            self._grants[stored] = known
        if not hmac.compare_digest(known[0], digest):
            raise Unauthorized()
        if known[2] is not None and self._clock() >= known[2]:
            raise Unauthorized(f"This API key expired at {known[1].expires_at}: ask for another.")
        if opens or known[3].opens:
            return await self._of_link(known[3], opens)
        return known[1]

    async def _of_link(self, link: KeyRecord, opens: str) -> Grant:
        """The rights of the link's key, with the link's own limits."""
        if link.opens != opens:
            raise Unauthorized("This link opens another address, and nothing else.")
        key = await self._valid(link.of, "The key that this link belongs to is no longer valid.")
        own = msgspec.structs.replace(
            key, per_minute=link.per_minute, per_month=link.per_month, counted_as=link.id, owner=False
        )
        return dataclasses.replace(self.grant_of(own), link=link.id, presented=link.hash)

    async def presented(self, digest: str) -> Grant:
        """The grant, today, of the key or link with this hash. Raises Unauthorized."""
        record = await self._valid(digest, "The key that this address was made with is no longer valid.")
        return await self._of_link(record, record.opens) if record.opens else self.grant_of(record)

    async def _valid(self, digest: str, refusal: str) -> KeyRecord:
        record = None
        with suppress(DamagedRecord):
            record = await self._records.get(digest)
        if record is None or record.revoked_at is not None or self.is_expired(record):
            raise Unauthorized(refusal)
        return record

    def grant_of(self, record: KeyRecord) -> Grant:
        return grant(
            self._settings,
            record.id,
            record.tier,
            record.per_minute,
            record.per_month,
            owner=record.owner,
            expires_at=record.expires_at,
            counted_as=record.counted_as,
            lock=record.lock,
            presented=record.hash,
        )

    def is_expired(self, record: KeyRecord) -> bool:
        end = _end(record)
        return end is not None and self._clock() >= end

    async def create(
        self,
        tier: str,
        label: str = "",
        per_minute: int | None = None,
        per_month: int | None = None,
        last_day: date | None = None,
        lock: Lock | None = None,
        *,
        owner: bool = False,
    ) -> str:
        """Issue a key, valid to the end of a UTC day, and return it. It cannot be shown again.

        With `lock` it sees nothing that became public after that day.
        """
        if tier not in TIERS:
            raise OperatorError(f"no tier {tier!r}: expected one of {', '.join(TIERS)}")
        if last_day is not None and last_day < self._clock().date():
            raise OperatorError(f"{last_day} is over: a key that expires then would never be valid")
        if lock is not None and lock.day > self._clock().date():
            raise OperatorError(f"{lock.day} is in the future: a lock is a day that is over, or today")
        expires_at = None if last_day is None else f"{last_day}T23:59:59Z"
        caps = per_minute, per_month
        key, _ = await self._issue("sk", tier, label, *caps, expires_at=expires_at, lock=lock, owner=owner)
        return key

    async def link(self, named: str, opens: str, per_minute: int, per_month: int) -> str:
        """Issue a link of a key and return its token. It cannot be shown again. Raises OperatorError."""
        key = await self._find_key(named)
        if key.revoked_at is not None or self.is_expired(key):
            raise OperatorError(f"key {key.id} is no longer valid")
        label = f"link of {key.id}"
        token, _ = await self._issue("lk", key.tier, label, per_minute, per_month, opens=opens, of=key.hash)
        return token

    async def _find_key(self, named: str) -> KeyRecord:
        """As `find`. Raises OperatorError for a link, too."""
        record = await self.find(named)
        if record.opens:
            raise OperatorError(f"{record.id} is a link of key {record.of[:_ID]}: name that key")
        return record

    async def lock(self, named: str, day: date) -> KeyRecord:
        """Lock a key to a day, or move its lock forward. Raises OperatorError: a lock never moves back."""
        key = await self._find_key(named)
        now = self._clock()
        if key.revoked_at is not None:
            raise OperatorError(f"key {key.id} was revoked at {key.revoked_at}")
        if day > now.date():
            raise OperatorError(f"{day} is in the future: a lock is a day that is over, or today")

        def moved(record: KeyRecord) -> KeyRecord:
            if record.lock is not None and day < record.lock.on(now):
                raise OperatorError(
                    f"key {record.id} is locked to {record.lock.on(now)}: a lock moves forward, never back"
                )
            return msgspec.structs.replace(record, lock=Lock(day))

        return await self._records.change(key.hash, moved) or key

    async def replace(self, named: str) -> tuple[str, KeyRecord, KeyRecord]:
        """Issue a key with the rights of another, counted together. Returns the old and the new record.

        The old key stays valid: see `expire`. Raises OperatorError.
        """
        old = await self._find_key(named)
        if old.hash == self._sandbox_hash:
            raise OperatorError("the sandbox key is a setting: change SANKOFA_SANDBOX_KEY instead")
        if old.owner:
            raise OperatorError("the owner's key is in HOME: revoke it, and `sankofa open` issues another")
        if old.revoked_at is not None:
            raise OperatorError(f"key {old.id} was revoked at {old.revoked_at}")
        if old.replaced_by:
            raise OperatorError(f"key {old.id} was replaced by {old.replaced_by}: rotate that one")
        if self.is_expired(old):
            raise OperatorError(f"key {old.id} expired at {old.expires_at}")
        key, new = await self._issue(
            "sk",
            *(old.tier, old.label, old.per_minute, old.per_month),
            expires_at=old.expires_at,
            counted_as=old.counted_as or old.id,
            lock=old.lock,
        )
        return key, old, new

    async def expire(self, old: KeyRecord, replaced_by: KeyRecord, overlap: timedelta) -> KeyRecord:
        """Let a replaced key expire after an overlap, or on its own date if that is earlier."""
        end = instant(self._clock() + overlap)

        def expiring(record: KeyRecord) -> KeyRecord:
            expires_at = min(end, record.expires_at or end)
            return msgspec.structs.replace(record, expires_at=expires_at, replaced_by=replaced_by.id)

        return await self._records.change(old.hash, expiring) or expiring(old)

    async def list(self) -> list[KeyRecord]:
        """Every undamaged record; the others are named in the log."""
        records = await self._records.whole()
        return sorted(records, key=lambda record: (record.created_at, record.id))

    async def find(self, named: str) -> KeyRecord:
        """The record of a key, given its id or the key itself. Raises OperatorError."""
        record = await self._records.get(_hash(named))
        if record is not None:
            return record
        for record in await self.list():
            if record.id == named:
                return record
        # The input may be a key: repeat it only if it looks like an id.
        description = f"id {named!r}" if len(named) <= _ID else "that id, nor is it a key"
        raise OperatorError(f"no key with {description}: see `sankofa keys list`")

    async def revoke(self, named: str) -> KeyRecord:
        """Revoke a key. Raises OperatorError."""
        key = await self.find(named)
        revoked_at = instant(self._clock())

        def revoked(record: KeyRecord) -> KeyRecord:
            return msgspec.structs.replace(record, revoked_at=record.revoked_at or revoked_at)

        return await self._records.change(key.hash, revoked) or key

    async def _issue(
        self, kind: str, tier: str, label: str, per_minute: int | None, per_month: int | None, **fields: Any
    ) -> tuple[str, KeyRecord]:
        """Create a key, store its record, and return both."""
        key = f"{kind}_{secrets.token_urlsafe(32)}"
        record = self._record(_hash(key), tier, label, per_minute, per_month, **fields)
        await self._records.put(record)
        return key, record

    def _record(
        self,
        digest: str,
        tier: str,
        label: str,
        per_minute: int | None = None,
        per_month: int | None = None,
        **fields: Any,
    ) -> KeyRecord:
        created = instant(self._clock())
        return KeyRecord(digest[:_ID], digest, tier, created, label, per_minute, per_month, **fields)


def _end(record: KeyRecord) -> datetime | None:
    """The instant from which a key is no longer valid."""
    if record.expires_at is None:
        return None
    return datetime.fromisoformat(record.expires_at) + timedelta(seconds=1)


def _hash(key: str) -> str:
    """Keys are 256 random bits, so one round of BLAKE2 is enough to make the store useless to a thief."""
    return hashlib.blake2b(key.encode(), digest_size=32).hexdigest()
