"""Methods and header fields of every response."""

import gzip
import sys

import brotli
import httpx
import pytest

from sankofa.operations.contract import Operation
from tests.every import every
from tests.live import LiveServer
from tests.spec.mcp_messages import RETAILER, REVISIONS, call, used
from tests.spec.test_formats import SERVED, questions
from tests.torture import ALL_ROUNDS
from tests.wire import exchange, request, statuses

ISSUER = "/v1/fundamentals/DC46AF1B1AAA424B58D1368176"
NOBODY = "/v1/fundamentals/DC000000000000000000000000"
PATHS = ["/health", "/v1/status", "/openapi.json", "/problems/not-found", ISSUER]
REFUSED = ["POST", "PUT", "PATCH", "DELETE", "TRACE", "BREW"]

# The request and its expected status; `key` stands for a valid key.
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
def test_answers_to_unauthenticated_requests_are_not_stored(server: LiveServer, path: str) -> None:
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


def test_a_refused_upload_does_not_break_the_next_request(server: LiveServer) -> None:
    assert server.http.post(ISSUER, content=b"a" * 1_000_000).status_code == 405
    assert server.get("/health").status_code == 200


if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

NO_ROWS = f"{ISSUER}?as_of=1990-01-01"
DECODERS = {"gzip": gzip.decompress, "br": brotli.decompress, "zstd": zstd.decompress, None: bytes}


def raw(
    server: LiveServer, key: str, accept: str | None, path: str = ISSUER
) -> tuple[str | None, bytes, httpx.Response]:
    """The encoding of an answer and its body as sent."""
    request = server.http.build_request("GET", path, headers={"X-API-Key": key})
    del request.headers["Accept-Encoding"]
    if accept is not None:
        request.headers["Accept-Encoding"] = accept
    answer = server.http.send(request, stream=True)
    body = b"".join(answer.iter_raw())
    answer.close()
    assert answer.status_code == 200
    assert int(answer.headers["Content-Length"]) == len(body)
    return answer.headers.get("Content-Encoding"), body, answer


@pytest.fixture(scope="module")
def plain(server: LiveServer, paid_key: str) -> bytes:
    encoding, body, _ = raw(server, paid_key, None)
    assert encoding is None
    return body


@pytest.mark.rule("ENV-8")
@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("gzip", "gzip"),
        ("br", "br"),
        ("zstd", "zstd"),
        ("gzip, deflate, br, zstd", "zstd"),
        ("gzip;q=1.0, br;q=0.5, zstd;q=0.1", "gzip"),
        ("*", "zstd"),
        ("*;q=0.5, zstd;q=0", "br"),
        ("identity;q=0.5, gzip;q=0.6", "gzip"),
        ("identity;q=0, gzip", "gzip"),
        ("", None),
        ("identity", None),
        ("deflate", None),
        ("gzip;q=0", None),
        ("*;q=0", None),
        ("identity, gzip;q=0.5", None),
        ("gzip;q=nan", None),
        (";;,,=,q=1", None),
    ],
)
def test_the_client_can_weigh_encodings(
    server: LiveServer, paid_key: str, plain: bytes, accept: str, expected: str | None
) -> None:
    encoding, body, answer = raw(server, paid_key, accept)
    assert encoding == expected
    assert DECODERS[encoding](body) == plain
    assert "Accept-Encoding" in answer.headers["Vary"]
    if encoding:
        assert len(body) < len(plain) / 2


def test_a_small_answer_is_not_compressed(server: LiveServer, paid_key: str) -> None:
    assert raw(server, paid_key, "gzip", NO_ROWS)[0] is None


def test_a_small_answer_is_compressed_for_a_client_that_refuses_it_plain(server: LiveServer, paid_key: str):
    encoding, body, _ = raw(server, paid_key, "gzip, identity;q=0", NO_ROWS)
    assert encoding == "gzip"
    assert gzip.decompress(body) == raw(server, paid_key, None, NO_ROWS)[1]


def test_accept_encoding_may_be_given_in_several_fields(server: LiveServer, paid_key: str) -> None:
    fields = [("X-API-Key", paid_key), ("Accept-Encoding", "gzip;q=0.5"), ("Accept-Encoding", "br")]
    assert server.http.get(ISSUER, headers=fields).headers["Content-Encoding"] == "br"


@pytest.fixture(scope="module")
def tag(server: LiveServer, paid_key: str) -> str:
    return server.get(ISSUER, paid_key, accept_encoding="identity").headers["ETag"]


def test_the_tag_is_strong_and_repeatable_and_names_the_edition(
    server: LiveServer, paid_key: str, tag: str
) -> None:
    assert tag.startswith('"')
    assert tag.endswith('"')
    assert server.get(ISSUER, paid_key, accept_encoding="identity").headers["ETag"] == tag
    assert server.get(ISSUER, paid_key).json()["edition"] in tag


@pytest.mark.rule("ENV-5")
@pytest.mark.parametrize("sent", ["{}", "W/{}", '"other", {}', '"other",W/{} , "more"', "*", " {} "])
def test_a_client_that_holds_the_answer_gets_304(server: LiveServer, paid_key: str, tag: str, sent: str):
    answer = server.get(ISSUER, paid_key, if_none_match=sent.format(tag).strip(), accept_encoding="identity")
    assert answer.status_code == 304
    assert answer.content == b""
    assert "Content-Length" not in answer.headers
    assert "Content-Type" not in answer.headers
    assert answer.headers["ETag"] == tag
    assert answer.headers["Cache-Control"] == "private"
    assert "Accept-Encoding" in answer.headers["Vary"]
    assert "RateLimit" in answer.headers


def test_if_none_match_may_be_given_in_several_fields(server: LiveServer, paid_key: str, tag: str) -> None:
    fields = [("X-API-Key", paid_key), ("If-None-Match", '"other"'), ("If-None-Match", tag)]
    assert server.http.get(ISSUER, headers=fields).status_code == 304


@every("sent", ['"other"', 'W/"other"', "", '""', '"*"', "garbage", '"unterminated'])
def test_a_client_that_holds_something_else_gets_the_answer(server: LiveServer, paid_key: str, sent: str):
    assert server.get(ISSUER, paid_key, if_none_match=sent).status_code == 200


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd"])
def test_each_encoding_has_a_tag_of_its_own_and_a_304_repeats_it(
    server: LiveServer, paid_key: str, tag: str, encoding: str
) -> None:
    encoded = server.get(ISSUER, paid_key, accept_encoding=encoding).headers["ETag"]
    assert encoded != tag
    answer = server.get(ISSUER, paid_key, accept_encoding=encoding, if_none_match=encoded)
    assert answer.status_code == 304
    assert answer.headers["ETag"] == encoded


@pytest.mark.rule("ENV-5")
@pytest.mark.parametrize("query", ["?period_type=FY", "?vintages=all", "?as_of=2024-06-30"])
def test_another_question_has_another_tag(server: LiveServer, paid_key: str, tag: str, query: str) -> None:
    answer = server.get(ISSUER + query, paid_key, if_none_match=tag)
    assert answer.status_code == 200
    assert answer.headers["ETag"] != tag


def test_a_capped_answer_has_another_tag(server: LiveServer, sample_key: str, tag: str) -> None:
    answer = server.get(ISSUER, sample_key, if_none_match=tag)
    assert answer.status_code == 200
    assert answer.headers["ETag"] != tag


def test_head_is_conditional_too(server: LiveServer, paid_key: str, tag: str) -> None:
    fields = {"X-API-Key": paid_key, "If-None-Match": tag}
    assert server.http.head(ISSUER, headers=fields).status_code == 304


@every(("path", "status"), [(NOBODY, 404), (f"{ISSUER}?as_of=x", 400)])
def test_a_condition_does_not_hide_an_error(server: LiveServer, paid_key: str, path: str, status: int):
    assert server.get(path, paid_key, if_none_match="*").status_code == status


def test_a_conditional_request_still_needs_a_key(server: LiveServer, tag: str) -> None:
    assert server.get(ISSUER, if_none_match=tag).status_code == 401


TIMES = 4
"""The first is computed, the second is cached, the others come from the cache."""
OF_THE_MOMENT = ("ratelimit", "x-request-id", "date", "content-length")


def body_and_headers(answer: httpx.Response) -> tuple[int, bytes, dict[str, str]]:
    headers = {name: value for name, value in answer.headers.items() if name not in OF_THE_MOMENT}
    body = answer.content if answer.status_code == 200 else b""  # a problem names the request
    return answer.status_code, body, headers


@pytest.mark.rule("ENV-5")
@every("operation", SERVED if ALL_ROUNDS else SERVED[::3])
def test_a_repeated_request_has_the_same_answer(
    server: LiveServer, paid_key: str, sample_key: str, operation: Operation
) -> None:
    """Two tiers and three formats in turn, each with its own answer."""
    forms = [
        (key, {"accept": accept, "accept_encoding": encoding})
        for key in (paid_key, sample_key)
        for accept, encoding in (("*/*", "identity"), ("text/csv", "identity"), ("*/*", "gzip"))
    ]
    for path in questions(operation):
        first = [body_and_headers(server.get(path, key, **fields)) for key, fields in forms]
        for _ in range(TIMES - 1):
            again = [body_and_headers(server.get(path, key, **fields)) for key, fields in forms]
            assert again == first


def test_a_cached_answer_counts_and_is_refused_like_any_other(server: LiveServer) -> None:
    key = server.key("starter", "--per-minute", "3", "--per-month", "3")
    statuses = [server.get(ISSUER, key).status_code for _ in range(TIMES)]
    assert statuses == [200, 200, 200, 429]


def test_a_path_with_an_encoded_slash_is_a_different_path(server: LiveServer, paid_key: str) -> None:
    """Both decode to the same path: the vintages of a series, and a series of that name."""
    plain, encoded = "/v1/series/CPI.ZA/vintages", "/v1/series/CPI.ZA%2Fvintages"
    assert [server.get(plain, paid_key).status_code for _ in range(TIMES)] == [200] * TIMES
    assert [server.get(encoded, paid_key).status_code for _ in range(TIMES)] == [404] * TIMES


@every("revision", REVISIONS)
def test_a_repeated_tool_call_gives_each_tier_its_own_answer_and_counts(
    server: LiveServer, revision: str
) -> None:
    keys = [server.key(tier, "--per-month", "1000") for tier in ("starter", "sample")]
    arguments = {"service_id": RETAILER, "line_items": ["revenue"]}
    first = [call(server, "get_fundamentals", arguments, revision, key).json()["result"] for key in keys]
    for _ in range(TIMES - 1):
        again = [call(server, "get_fundamentals", arguments, revision, key).json()["result"] for key in keys]
        assert again == first
    assert [used(server, key, 1000) for key in keys] == [TIMES, TIMES]
