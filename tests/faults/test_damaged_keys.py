"""A damaged record of the key store refuses only that key: a 401 and a line in the log, never a 500."""

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sankofa.engines.keyvalue import open_keyvalue
from tests.faults.load import ISSUER, ask
from tests.live import LiveServer, create_key, run, succeed
from tests.services import RedisServer
from tests.torture import Trial, rounds


class Store:
    """The key store of a HOME on either engine, accessed past the product."""

    def __init__(self, home: Path, redis: RedisServer | None) -> None:
        url = "" if redis is None else redis.url
        self.home = home
        self.redis = redis
        self.settings: dict[str, Any] = {"keystore": url} if url else {}
        self._url = url or f"embedded:{home / 'keys'}"

    def get(self, name: str) -> bytes:
        return asyncio.run(self._get(name))

    def put(self, name: str, value: bytes) -> None:
        asyncio.run(self._put(name, value))

    def names(self, prefix: str) -> list[str]:
        return asyncio.run(self._names(prefix))

    async def _get(self, name: str) -> bytes:
        store = open_keyvalue(self._url)
        value = await store.get(name)
        await store.close()
        assert value is not None
        return value

    async def _put(self, name: str, value: bytes) -> None:
        store = open_keyvalue(self._url)
        await store.put(name, value)
        await store.close()

    async def _names(self, prefix: str) -> list[str]:
        store = open_keyvalue(self._url)
        names = await store.names(prefix)
        await store.close()
        return names


@pytest.fixture(params=["embedded", "redis"])
def store(request: pytest.FixtureRequest, home: Path) -> Store:
    for old in home.glob("keys*"):
        old.unlink()
    return Store(home, request.getfixturevalue("redis_server") if request.param == "redis" else None)


def status_from_anywhere(live: LiveServer, key: str, number: int) -> int:
    """Like `ask`, but from a new address each time: one address gets 200 times 401 in a minute, then 429."""
    return live.get(ISSUER, key, x_forwarded_for=f"198.18.{number // 250}.{number % 250}").status_code


def issue(store: Store, tier: str = "professional") -> tuple[str, str]:
    """A new key and the name of its record."""
    before = set(store.names("key:"))
    key = create_key(store.home, tier, **store.settings)
    (name,) = set(store.names("key:")) - before
    return key, name


def test_a_flipped_bit_in_a_record_refuses_that_key_alone(store: Store, trial: Trial) -> None:
    picked = trial.chance
    good, _ = issue(store)
    key, name = issue(store, "starter")
    whole = store.get(name)
    with LiveServer(store.home, workers=1, proxies="127.0.0.1", **store.settings) as live:
        assert ask(live, key)[0] == 200
        for number in range(trial.count(rounds(4, 12), 300)):
            damaged = bytearray(whole)
            damaged[picked.randrange(len(damaged))] ^= 1 << picked.randrange(8)
            store.put(name, bytes(damaged))
            assert status_from_anywhere(live, key, number) == 401, bytes(damaged)
            assert ask(live, good)[0] == 200
            trial.saw("401")
        assert live.log.count(f"the record of key {name[4:16]} is damaged") == 1
        assert "Traceback" not in live.log
        store.put(name, whole)
        assert ask(live, key)[0] == 200
    store.put(name, whole[:-1])
    listed = run(store.home, "keys", "list", "--json", **store.settings)
    assert [key["tier"] for key in json.loads(listed.stdout)] == ["professional"]
    assert f"key {name[4:16]} is damaged" in listed.stderr
    revoked = run(store.home, "keys", "revoke", key, **store.settings)
    assert revoked.returncode == 1
    assert "restore the key store" in revoked.stderr.splitlines()[-1]


@pytest.mark.deep
def test_editing_a_record_does_not_undo_a_revocation(store: Store) -> None:
    key, name = issue(store)
    before = store.get(name)
    succeed(store.home, "keys", "revoke", key, **store.settings)
    revoked = store.get(name)
    other, elsewhere = issue(store)
    with LiveServer(store.home, **store.settings) as live:
        for forged in (
            revoked.replace(b'"revoked_at"', b'"revoked_it"'),
            before[: before.index(b',"seal"')] + b"}",  # without its seal
            store.get(elsewhere),  # the record of another key
            b"",
            b"null",
        ):
            store.put(name, forged)
            assert ask(live, key)[0] == 401
        assert ask(live, other)[0] == 200
    with LiveServer(store.home, **store.settings) as live:  # and a restart of the service does not seal it
        store.put(name, before[: before.index(b',"seal"')] + b"}")
        assert ask(live, key)[0] == 401


def test_a_record_without_a_seal_is_refused_even_if_the_mark_of_the_store_is_gone(store: Store) -> None:
    (sealed, _), (unsealed, name) = issue(store), issue(store)
    stored = store.get(name)
    without_seal = stored[: stored.index(b',"seal"')] + b"}"
    store.put(name, without_seal)
    _forget_mark(store)
    with LiveServer(store.home, **store.settings) as live:
        assert [ask(live, key)[0] for key in (sealed, unsealed)] == [200, 401]
    assert store.get(name) == without_seal


def test_commands_and_the_server_report_a_wrong_secret(store: Store) -> None:
    key, _ = issue(store)
    refused = run(store.home, "keys", "list", **{**store.settings, "keys_secret": "another"})
    assert refused.returncode == 1
    assert "SANKOFA_KEYS_SECRET" in refused.stderr
    with LiveServer(store.home, **{**store.settings, "keys_secret": "another"}) as live:
        assert ask(live, key)[0] == 401
        assert "SANKOFA_KEYS_SECRET" in live.log


@pytest.mark.deep
def test_rotating_the_secret_of_the_key_store_refuses_no_key(store: Store) -> None:
    old, both, new = ({**store.settings, "keys_secret": secret} for secret in ("one", "two, one", "two"))
    key = create_key(store.home, "professional", **old)
    succeed(store.home, "domains", "add", "data.customer.example", "--key", key, **old)
    revoked = create_key(store.home, "starter", **old)
    succeed(store.home, "keys", "revoke", revoked, **old)
    with LiveServer(store.home, **both) as live:
        later = live.key("starter")
        assert [ask(live, one)[0] for one in (key, later, revoked)] == [200, 200, 401]
        resealed = run(store.home, "keys", "reseal", **both)
        assert resealed.stdout == "3 records sealed with the first secret\n", resealed.stderr
        assert [ask(live, one)[0] for one in (key, later, revoked)] == [200, 200, 401]
    assert "0 records" in run(store.home, "keys", "reseal", **both).stdout
    with LiveServer(store.home, **new) as live:
        assert [ask(live, one)[0] for one in (key, later, revoked)] == [200, 200, 401]
        headers = {"X-API-Key": key, "Host": "data.customer.example"}
        assert live.http.get("/v1/screen?metric=net_margin", headers=headers).status_code == 200
    assert "SANKOFA_KEYS_SECRET" in run(store.home, "keys", "list", **old).stderr


def test_any_flipped_bit_of_the_key_file_is_a_401_or_a_503_and_never_a_500(home: Path, trial: Trial) -> None:
    picked = trial.chance
    good = create_key(home, "starter")
    revoked = create_key(home, "starter")
    succeed(home, "keys", "revoke", revoked)
    whole = (home / "keys").read_bytes()
    with LiveServer(home, proxies="127.0.0.1") as live:
        for number in range(trial.count(rounds(4, 12), 300)):
            damaged = bytearray(whole)
            damaged[picked.randrange(len(damaged))] ^= 1 << picked.randrange(8)
            for companion in ("keys-wal", "keys-shm"):
                (home / companion).unlink(missing_ok=True)
            (home / "keys.new").write_bytes(damaged)
            (home / "keys.new").replace(home / "keys")
            # A key used for the first time is looked up, so the other file is noticed.
            assert status_from_anywhere(live, f"{good}{number}", number) in (401, 503)
            assert status_from_anywhere(live, revoked, number) in (401, 503)
            status = ask(live, good)[0]
            assert status in (200, 401, 503)
            trial.saw(status)
        assert "Traceback" not in live.log


def _forget_mark(store: Store) -> None:
    if store.settings:
        assert store.redis is not None
        store.redis.execute("HDEL sankofa:values seals")
        return
    with closing(sqlite3.connect(store.home / "keys", isolation_level=None)) as database:
        database.execute("DELETE FROM stored WHERE name = 'seals'")


@pytest.mark.parametrize("text", [",", " , ,"])
def test_a_cursor_secret_without_a_secret_is_an_error_at_the_start(home: Path, text: str) -> None:
    refused = run(home, "serve", "--port", "1", cursor_secret=text)
    assert refused.returncode == 1
    assert "SANKOFA_CURSOR_SECRET" in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_an_empty_cursor_secret_in_home_is_replaced_and_other_empty_secrets_are_refused(home: Path) -> None:
    (home / "cursor-secret").write_text("\n")
    key = create_key(home, "starter")
    with LiveServer(home) as live:
        page = live.http.get("/v1/tenders?country=KE&limit=1", headers={"X-API-Key": key})
        assert page.status_code == 200
        assert page.json()["next_cursor"]
    assert len((home / "cursor-secret").read_text().strip()) > 30
    (home / "keys-secret").write_text("")
    refused = run(home, "serve", "--port", "1")
    assert refused.returncode == 1
    assert "keys-secret in HOME: is empty" in refused.stderr
    (home / "gate-secret").write_text(" ")
    refused = run(home, "publish")
    assert refused.returncode == 1
    assert "gate-secret in HOME: is empty" in refused.stderr
