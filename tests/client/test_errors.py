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


def test_a_wrong_key_is_unauthorized_and_the_error_does_not_show_it(server: LiveServer) -> None:
    secret = "sk-nobody-has-this-key"
    with Client(secret, server.url) as client, pytest.raises(Unauthorized) as raised:
        client.get_export()
    assert secret not in "".join(traceback.format_exception(raised.value)) + repr(vars(raised.value))


@every("columns", [False, True])
def test_a_request_beyond_the_sample_tier_says_where_to_upgrade(
    server: LiveServer, sample_key: str, columns: bool
) -> None:
    with Client(sample_key, server.url) as client, pytest.raises(UpgradeRequired) as raised:
        (client.columns if columns else client).search_tenders(limit=26)
    refused = server.get("/v1/tenders?limit=26", sample_key)
    assert raised.value.link == refused.headers["X-Upgrade-URL"] != ""
    assert raised.value.link in str(raised.value)
    assert raised.value.detail == refused.json()["detail"]


def test_unknown_organisations_and_editions_are_not_found(client: Client) -> None:
    with pytest.raises(NotFound):
        client.get_entity("DC000000000000000000000000")
    with pytest.raises(NotFound):
        client.get_export(edition="20200101T000000Z-nobody")


def test_a_real_limit_raises_a_quota_error_that_says_when_to_retry(server: LiveServer) -> None:
    key = server.key("sample", "--per-minute", "1000", "--per-month", "1")
    with Client(key, server.url) as client:
        client.get_export()
        with pytest.raises(QuotaExceeded) as raised:  # it lasts until next month, so the client does not wait
            client.get_export()
    assert raised.value.retry_after is not None
    assert raised.value.retry_after > 0


def test_an_unexpected_status_is_reported(scripted: Scripted) -> None:
    scripted.answers = [(502, {}, b"<html>bad gateway</html>")]
    with Client("k", scripted.url, retries=ONCE) as client, pytest.raises(UnexpectedAnswer) as raised:
        client.get_export()
    assert raised.value.status == 502


def test_a_failed_connection_is_reported_without_the_key() -> None:
    secret = "sk-never-to-be-shown"
    url = f"http://127.0.0.1:{free_port()}"
    with Client(secret, url, retries=ONCE) as client, pytest.raises(ConnectionFailed) as raised:
        client.get_export()
    assert secret not in "".join(traceback.format_exception(raised.value))
    assert isinstance(raised.value, SankofaError)
    assert str(raised.value).startswith(f"{url}/v1/export: ConnectError: ")


def test_errors_do_not_show_a_password_in_the_address() -> None:
    url = f"http://somebody:hidden@127.0.0.1:{free_port()}/base/"
    with Client("k", url, retries=ONCE) as client, pytest.raises(ConnectionFailed) as raised:
        client.get_export()
    assert str(raised.value).startswith(f"{url.replace('somebody:hidden@', '')}v1/export: ")
    assert "hidden" not in repr(client)


def test_without_a_key_the_error_says_where_to_set_one(
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


def test_an_answer_of_another_service_is_reported(scripted: Scripted) -> None:
    scripted.answers = [
        (200, {}, b"<html>welcome</html>"),
        (200, {}, b'{"hello":[]}'),
        (200, {}, b'{"data":[]}'),
    ]
    with Client("k", scripted.url) as client:
        for _ in range(3):
            with pytest.raises(SankofaError):
                client.get_export()


def test_a_redirect_does_not_send_the_key_to_another_host(scripted: Scripted) -> None:
    scripted.answers = [(302, {"Location": f"{scripted.url}/elsewhere"}, b"")]
    with Client("k", scripted.url) as client, pytest.raises(UnexpectedAnswer):
        client.get_export()
    assert [path for path, _ in scripted.requests] == ["/v1/export"]


@every("key", ["", "two words", "line\nfeed", "caf\u00e9"])
@every("kind", [Client, AsyncClient])
def test_a_malformed_key_is_refused_and_the_error_does_not_show_it(kind: type, key: str) -> None:
    with pytest.raises(ValueError, match="key: expected") as raised:
        kind(key)
    assert not key or key not in str(raised.value)


def test_a_malformed_address_fails_at_once() -> None:
    waited: list[float] = []
    with Client("k", "ftp://example.org", sleep=waited.append) as client, pytest.raises(ConnectionFailed):
        client.get_export()
    assert waited == []
