"""Methods and header fields of every response."""

import pytest

from tests.every import every
from tests.live import LiveServer
from tests.wire import exchange, request, statuses

ISSUER = "/v1/fundamentals/DC46AF1B1AAA424B58D1368176"
NOBODY = "/v1/fundamentals/DC000000000000000000000000"
PATHS = ["/health", "/v1/status", "/openapi.json", "/problems/not-found", ISSUER]
REFUSED = ["POST", "PUT", "PATCH", "DELETE", "TRACE", "BREW"]

# What is asked, and the status it is answered with; `key` is put in place of the word.
EVERY_KIND = [
    ("GET", "/health", None, 200),
    ("GET", "/v1/status", None, 200),
    ("GET", "/openapi.json", None, 200),
    ("GET", ISSUER, "key", 200),
    ("HEAD", ISSUER, "key", 200),
    ("OPTIONS", ISSUER, None, 204),
    ("GET", f"{ISSUER}?as_of=x", "key", 400),
    ("GET", ISSUER, None, 401),
    ("HEAD", ISSUER, None, 401),
    ("GET", NOBODY, "key", 404),
    ("GET", "/nothing", None, 404),
    ("POST", ISSUER, "key", 405),
    ("GET", f"/health?{'a' * 5000}", None, 414),
]


@pytest.mark.rule("ENV-4")
@every(("method", "path", "key", "status"), EVERY_KIND)
def test_every_response_carries_the_api_version_and_a_request_id(
    server: LiveServer, paid_key: str, method: str, path: str, key: str | None, status: int
) -> None:
    answer = server.http.request(method, path, headers={"X-API-Key": paid_key} if key else {})
    assert answer.status_code == status
    assert answer.headers["X-Service-API-Version"] == "1.0.0"
    assert len(answer.headers.get_list("X-Request-Id")) == 1
    assert answer.headers["X-Request-Id"]


def test_request_ids_are_unique(server: LiveServer, paid_key: str) -> None:
    paths = ["/health", ISSUER, NOBODY, "/nothing"] * 25
    assert len({server.get(path, paid_key).headers["X-Request-Id"] for path in paths}) == len(paths)


@pytest.mark.rule("ENV-5")
@every("path", [ISSUER, NOBODY, f"{ISSUER}?as_of=x"])
def test_authenticated_responses_are_private_and_vary(server: LiveServer, paid_key: str, path: str) -> None:
    answer = server.get(path, paid_key)
    assert answer.headers["Cache-Control"] == "private"
    assert {"x-api-key", "accept", "accept-encoding"} == {
        name.strip().lower() for name in answer.headers["Vary"].split(",")
    }
    assert "RateLimit" in answer.headers
    assert "RateLimit-Policy" in answer.headers


@every("path", ["/health", "/v1/status", ISSUER, "/nothing"])
def test_what_no_key_was_read_for_is_not_stored(server: LiveServer, path: str) -> None:
    assert server.get(path).headers["Cache-Control"] == "no-store"


@pytest.mark.rule("ENV-6")
@every("path", [*PATHS, NOBODY, f"{ISSUER}?as_of=x", "/nothing"])
@every("encoding", ["identity", "gzip"])
def test_head_has_the_header_fields_of_get_and_no_body(
    server: LiveServer, paid_key: str, path: str, encoding: str
) -> None:
    fields = {"X-API-Key": paid_key, "Accept-Encoding": encoding}
    get, head = (server.http.request(method, path, headers=fields) for method in ("GET", "HEAD"))
    assert head.status_code == get.status_code
    assert head.content == b""
    changing = {"x-request-id", "date", "ratelimit"} | ({"content-length"} if path == "/v1/status" else set())
    assert _without(head.headers, changing) == _without(get.headers, changing)


def _without(headers: object, names: set[str]) -> dict[str, str]:
    return {name: value for name, value in dict(headers).items() if name not in names}  # type: ignore[call-overload]


@every("path", PATHS)
def test_options_is_204_with_allow(server: LiveServer, path: str) -> None:
    answer = server.http.options(path)
    assert answer.status_code == 204
    assert answer.headers["Allow"] == "GET, HEAD, OPTIONS"
    assert answer.content == b""
    assert "Content-Length" not in answer.headers


@pytest.mark.rule("ENV-6")
@every("method", REFUSED)
@every("path", PATHS)
def test_another_method_is_405_with_allow(server: LiveServer, path: str, method: str) -> None:
    answer = server.http.request(method, path)
    assert answer.status_code == 405
    assert answer.headers["Allow"] == "GET, HEAD, OPTIONS"
    assert answer.json()["status"] == 405


@every("method", ["get", "Get", "G-T"])
def test_the_name_of_a_method_is_case_sensitive(server: LiveServer, method: str) -> None:
    assert statuses(exchange(server.port, request("/health", "Host: x", method=method))) == [405]


@every("method", ["OPTIONS", "POST", "HEAD"])
def test_an_unknown_path_is_404_by_any_method(server: LiveServer, method: str) -> None:
    assert server.http.request(method, "/nothing").status_code == 404


def test_a_refused_upload_does_not_break_the_next_request(server: LiveServer) -> None:
    assert server.http.post(ISSUER, content=b"a" * 1_000_000).status_code == 405
    assert server.get("/health").status_code == 200


@pytest.mark.rule("ENV-7")
@every("accept", ["application/xml", "image/png", "", "*/*;q=0", "text/html, application/json"])
def test_an_unservable_accept_is_answered_in_json(server: LiveServer, paid_key: str, accept: str) -> None:
    answer = server.get(ISSUER, paid_key, accept=accept)
    assert answer.status_code == 200
    assert answer.headers["Content-Type"] == "application/json"


@pytest.mark.rule("ERR-3")
def test_nothing_is_deprecated_at_present(server: LiveServer, paid_key: str) -> None:
    headers = server.get(ISSUER, paid_key).headers
    assert not {"deprecation", "sunset", "link"} & set(headers)


def test_pages_for_browsers_say_what_they_are(server: LiveServer) -> None:
    page = server.get("/")
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert server.get("/problems/not-found").headers["x-content-type-options"] == "nosniff"
