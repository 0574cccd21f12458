"""Each refusal of the service raises its own error with the service's explanation."""

import traceback

import pytest

from sankofa.client import (
    AsyncClient,
    BadRequest,
    Client,
    ConnectionFailed,
    NotFound,
    QuotaExceeded,
    Retries,
    SankofaError,
    Unauthorized,
    UnexpectedAnswer,
    UpgradeRequired,
)
from tests.client.conftest import Scripted
from tests.every import every
from tests.live import LiveServer, free_port

ONCE = Retries(attempts=1)


def test_a_malformed_parameter_is_named(client: Client) -> None:
    with pytest.raises(BadRequest, match="as_of") as raised:
        client.get_fundamentals("DC8342E4A6CD9A7F25CAC383F4", as_of="2024-02-31")
    assert (raised.value.status, raised.value.parameter) == (400, "as_of")
    assert raised.value.request_id


def test_a_wrong_key_is_unauthorized_and_not_repeated(server: LiveServer) -> None:
    secret = "sk-nobody-has-this-key"
    with Client(secret, server.url) as client, pytest.raises(Unauthorized) as raised:
        client.get_export()
    assert secret not in "".join(traceback.format_exception(raised.value)) + repr(vars(raised.value))


@every("columns", [False, True])
def test_more_than_the_sample_tier_serves_tells_where_to_upgrade(
    server: LiveServer, sample_key: str, columns: bool
) -> None:
    with Client(sample_key, server.url) as client, pytest.raises(UpgradeRequired) as raised:
        (client.columns if columns else client).search_tenders(limit=26)
    told = server.get("/v1/tenders?limit=26", sample_key)
    assert raised.value.link == told.headers["X-Upgrade-URL"] != ""
    assert raised.value.link in str(raised.value)
    assert raised.value.detail == told.json()["detail"]


def test_an_organisation_and_an_edition_that_never_were_are_not_found(client: Client) -> None:
    with pytest.raises(NotFound):
        client.get_entity("DC000000000000000000000000")
    with pytest.raises(NotFound):
        client.get_export(edition="20200101T000000Z-nobody")


def test_a_real_limit_is_a_quota_and_says_when_to_come_back(server: LiveServer) -> None:
    key = server.key("sample", "--per-minute", "1000", "--per-month", "1")
    with Client(key, server.url) as client:
        client.get_export()
        with pytest.raises(QuotaExceeded) as raised:  # until next month: not waited for
            client.get_export()
    assert raised.value.retry_after is not None
    assert raised.value.retry_after > 0


def test_a_status_nobody_expects_is_told(scripted: Scripted) -> None:
    scripted.answers = [(502, {}, b"<html>bad gateway</html>")]
    with Client("k", scripted.url, retries=ONCE) as client, pytest.raises(UnexpectedAnswer) as raised:
        client.get_export()
    assert raised.value.status == 502


def test_no_answer_is_a_failed_connection_without_the_key() -> None:
    secret = "sk-never-to-be-shown"
    url = f"http://127.0.0.1:{free_port()}"
    with Client(secret, url, retries=ONCE) as client, pytest.raises(ConnectionFailed) as raised:
        client.get_export()
    assert secret not in "".join(traceback.format_exception(raised.value))
    assert isinstance(raised.value, SankofaError)
    assert str(raised.value).startswith(f"{url}/v1/export: ConnectError: ")


def test_a_password_in_an_address_is_not_repeated() -> None:
    url = f"http://somebody:hidden@127.0.0.1:{free_port()}/base/"
    with Client("k", url, retries=ONCE) as client, pytest.raises(ConnectionFailed) as raised:
        client.get_export()
    assert str(raised.value).startswith(f"{url.replace('somebody:hidden@', '')}v1/export: ")
    assert "hidden" not in repr(client)


def test_without_a_key_the_refusal_says_where_one_is_taken_from(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SANKOFA_API_KEY", raising=False)
    with (
        Client(base_url=server.url) as client,
        pytest.raises(Unauthorized, match="SANKOFA_API_KEY is not set"),
    ):
        client.get_export()
    with Client("wrong", server.url) as client, pytest.raises(Unauthorized) as raised:
        client.get_export()
    assert "SANKOFA_API_KEY" not in str(raised.value)


def test_an_answer_that_is_not_ours_is_told(scripted: Scripted) -> None:
    scripted.answers = [
        (200, {}, b"<html>welcome</html>"),
        (200, {}, b'{"hello":[]}'),
        (200, {}, b'{"data":[]}'),
    ]
    with Client("k", scripted.url) as client:
        for _ in range(3):
            with pytest.raises(SankofaError):
                client.get_export()


def test_a_redirect_does_not_take_the_key_elsewhere(scripted: Scripted) -> None:
    scripted.answers = [(302, {"Location": f"{scripted.url}/elsewhere"}, b"")]
    with Client("k", scripted.url) as client, pytest.raises(UnexpectedAnswer):
        client.get_export()
    assert [path for path, _ in scripted.asked] == ["/v1/export"]


@every("key", ["", "two words", "line\nfeed", "caf\u00e9"])
@every("kind", [Client, AsyncClient])
def test_a_key_that_cannot_be_one_is_refused_and_not_repeated(kind: type, key: str) -> None:
    with pytest.raises(ValueError, match="key: expected") as raised:
        kind(key)
    assert not key or key not in str(raised.value)


def test_an_address_that_is_none_fails_at_once() -> None:
    waited: list[float] = []
    with Client("k", "ftp://example.org", sleep=waited.append) as client, pytest.raises(ConnectionFailed):
        client.get_export()
    assert waited == []
