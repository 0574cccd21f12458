"""Errors: RFC 9457, and what is added to it (contract: ERR-1)."""

from collections.abc import Callable

import httpx
import pytest

from tests.every import every
from tests.live import LiveServer

ISSUER = "/v1/fundamentals/DC46AF1B1AAA424B58D1368176"
NOBODY = "/v1/fundamentals/DC000000000000000000000000"
MEMBERS = {"type", "title", "status", "detail", "instance", "error", "docs", "request_id"}

PAID_LOOKUP = "/v1/crosswalk?id_type=registry&id_value=ZA-CIPC:1"

Ask = Callable[[LiveServer, str, str], httpx.Response]
PROBLEMS: dict[int, Ask] = {
    400: lambda s, key, _: s.get(f"{ISSUER}?as_of=x", key),
    401: lambda s, *_: s.get(ISSUER),
    402: lambda s, *_: s.get(PAID_LOOKUP, "sankofa-sandbox"),
    404: lambda s, key, _: s.get(NOBODY, key),
    405: lambda s, key, _: s.http.post(ISSUER, headers={"X-API-Key": key}),
    414: lambda s, key, _: s.get(f"{ISSUER}?{'a' * 5000}", key),
    429: lambda s, _, spent: s.get(ISSUER, spent),
    431: lambda s, key, _: s.get(ISSUER, key, a="a" * 20_000),
}


@pytest.fixture(scope="module")
def spent_key(server: LiveServer) -> str:
    key = server.key("starter", "--per-month", "1")
    assert server.get(ISSUER, key).status_code == 200
    return key


@pytest.mark.rule("ERR-1", "ERR-4")
@pytest.mark.parametrize("status", PROBLEMS)
def test_an_error_is_a_problem_with_every_member(
    server: LiveServer, paid_key: str, spent_key: str, status: int
) -> None:
    answer = PROBLEMS[status](server, paid_key, spent_key)
    assert answer.status_code == status
    assert answer.headers["Content-Type"] == "application/problem+json"
    body = answer.json()
    assert body.keys() >= MEMBERS
    assert body["status"] == status
    assert body["instance"] == answer.url.path
    assert body["error"] == body["detail"]
    assert body["request_id"] == answer.headers["X-Request-Id"]
    assert ("parameter" in body) == (status == 400)
    assert ("upgrade" in body) == (status == 402)


@pytest.mark.rule("ERR-4")
@pytest.mark.parametrize("status", PROBLEMS)
def test_the_documentation_of_a_problem_is_there(
    server: LiveServer, paid_key: str, spent_key: str, status: int
) -> None:
    body = PROBLEMS[status](server, paid_key, spent_key).json()
    assert body["docs"].startswith(server.url)
    assert body["type"].startswith(server.url)
    for address in (body["docs"], body["type"]):
        page = server.http.get(address)
        assert page.status_code == 200
        assert str(status) in page.text


def test_an_unknown_path_is_a_problem_too(server: LiveServer) -> None:
    body = server.get("/v1/nothing").json()
    assert body.keys() >= MEMBERS
    assert body["instance"] == "/v1/nothing"


@every("path", ["/%FF", "/a%20b", "/%22%3C%3E%0D%0A", "/\N{LATIN SMALL LETTER E WITH ACUTE}"])
def test_the_instance_is_a_uri_reference_whatever_was_asked_for(server: LiveServer, path: str) -> None:
    instance = server.get(path).json()["instance"]
    assert instance.isascii()
    assert not set(instance) & set(' "<>\\^`{|}')


def test_an_error_says_nothing_of_what_is_inside(server: LiveServer, paid_key: str) -> None:
    for ask in PROBLEMS.values():
        text = ask(server, paid_key, paid_key).text
        assert "Traceback" not in text
        assert str(server.home) not in text
