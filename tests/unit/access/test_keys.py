"""Keys: only a hash is stored, and what the store says now is what counts."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, date, datetime, timedelta

import pytest

from sankofa.access.keys import Keys
from sankofa.access.records import SealedRecords
from sankofa.engines.keyvalue import Window
from sankofa.model.errors import OperatorError, StoreUnavailable, Unauthorized
from sankofa.settings import Settings
from tests.every import every


class Values:
    """A KeyValue in memory that only stores."""

    def __init__(self) -> None:
        self.stored: dict[str, bytes] = {}
        self.down = False

    async def get(self, name: str) -> bytes | None:
        if self.down:
            raise StoreUnavailable("key store")
        return self.stored.get(name)

    async def put(self, name: str, value: bytes) -> None:
        self.stored[name] = value

    async def replace(self, name: str, expected: bytes, value: bytes) -> bool:
        if self.stored.get(name) != expected:
            return False
        self.stored[name] = value
        return True

    async def names(self, prefix: str) -> list[str]:
        return sorted(name for name in self.stored if name.startswith(prefix))

    async def count(self, name: str, windows: Sequence[Window]) -> tuple[int, ...]:
        raise AssertionError("keys are not counted here")

    async def counts(self, name: str, windows: Sequence[Window]) -> tuple[int, ...]:
        raise AssertionError("keys are not counted here")

    async def ping(self) -> None: ...

    async def probe_counting(self) -> None: ...

    async def close(self) -> None: ...


@pytest.fixture
def values() -> Values:
    return Values()


@pytest.fixture
def keys(values: Values) -> Keys:
    return Keys(SealedRecords(values, [b"secret"]), Settings(), lambda: datetime(2026, 1, 1, tzinfo=UTC))


def test_a_revoked_sandbox_key_stays_revoked(keys: Keys) -> None:
    granted = asyncio.run(keys.authenticate("sankofa-sandbox"))
    asyncio.run(keys.revoke(granted.key_id))
    with pytest.raises(Unauthorized):
        asyncio.run(keys.authenticate("sankofa-sandbox"))


def test_without_a_sandbox_key_there_is_none(values: Values) -> None:
    keys = Keys(
        SealedRecords(values, [b"secret"]), Settings(sandbox_key=""), lambda: datetime(2026, 1, 1, tzinfo=UTC)
    )
    for key in ("", "sankofa-sandbox"):
        with pytest.raises(Unauthorized):
            asyncio.run(keys.authenticate(key))


def test_an_expired_key_is_refused_from_the_day_after_and_told_why(values: Values) -> None:
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    keys = Keys(SealedRecords(values, [b"secret"]), Settings(), lambda: now[0])
    key = asyncio.run(keys.create("starter", last_day=date(2026, 3, 31)))
    assert asyncio.run(keys.authenticate(key)).expires_at == "2026-03-31T23:59:59Z"
    now[0] = datetime(2026, 3, 31, 23, 59, 59, 999_999, tzinfo=UTC)
    asyncio.run(keys.authenticate(key))
    now[0] = datetime(2026, 4, 1, tzinfo=UTC)
    with pytest.raises(Unauthorized, match="expired at 2026-03-31T23:59:59Z"):
        asyncio.run(keys.authenticate(key))
    with pytest.raises(Unauthorized) as failure:
        asyncio.run(keys.authenticate(key + "x"))
    assert "expired" not in failure.value.detail
    with pytest.raises(OperatorError, match="is over"):
        asyncio.run(keys.create("starter", last_day=date(2026, 3, 31)))


def test_a_replaced_key_ends_after_the_overlap_and_never_later_than_it_would_have(values: Values) -> None:
    now = [datetime(2026, 1, 1, tzinfo=UTC)]
    keys = Keys(SealedRecords(values, [b"secret"]), Settings(), lambda: now[0])

    async def rotate(key: str, overlap: timedelta) -> tuple[str, str | None]:
        new_key, old, new = await keys.replace(key)
        return new_key, (await keys.expire(old, new, overlap)).expires_at

    key = asyncio.run(keys.create("starter", "a desk", per_month=7, last_day=date(2026, 1, 20)))
    second, ended = asyncio.run(rotate(key, timedelta(days=7)))
    assert ended == "2026-01-08T00:00:00Z"
    with pytest.raises(OperatorError, match="was replaced by"):
        asyncio.run(keys.replace(key))
    third, ended = asyncio.run(rotate(second, timedelta(days=70)))
    assert ended == "2026-01-20T23:59:59Z"
    grants = [asyncio.run(keys.authenticate(one)) for one in (key, second, third)]
    assert {grant.counter for grant in grants} == {f"use:{grants[0].key_id}"}
    assert {(grant.tier, grant.per_month) for grant in grants} == {("starter", 7)}
    now[0] = datetime(2026, 1, 9, tzinfo=UTC)
    with pytest.raises(Unauthorized, match="expired"):
        asyncio.run(keys.authenticate(key))
    assert asyncio.run(keys.authenticate(third)).expires_at == "2026-01-20T23:59:59Z"


class Interrupted(Values):
    """Something else happens between the reading of a record and what follows from it."""

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: list[Callable[[], Awaitable[object]]] = []

    async def get(self, name: str) -> bytes | None:
        stored = await super().get(name)
        if name.startswith("key:") and self.meanwhile:
            await self.meanwhile.pop()()
        return stored


@every("command", ["reseal", "expire", "revoke"])
def test_a_revocation_beside_another_change_is_not_lost(command: str) -> None:
    values = Interrupted()
    now = datetime(2026, 1, 1, tzinfo=UTC)
    before = Keys(SealedRecords(values, [b"old"]), Settings(), lambda: now)
    after = Keys(SealedRecords(values, [b"new", b"old"]), Settings(), lambda: now + timedelta(days=1))

    async def scene() -> None:
        key = await before.create("starter")
        record = await before.find(key)
        _, old, new = await before.replace(key)
        values.meanwhile = [lambda: before.revoke(record.id)]
        changes = {
            "reseal": after.reseal,
            "expire": lambda: after.expire(old, new, timedelta(hours=1)),
            "revoke": lambda: after.revoke(key),
        }
        await changes[command]()
        assert not values.meanwhile
        left = await after.find(key)
        assert left.revoked_at == "2026-01-01T00:00:00Z"
        assert (left.replaced_by == new.id) == (command == "expire")
        with pytest.raises(Unauthorized):
            await after.authenticate(key)

    asyncio.run(scene())
