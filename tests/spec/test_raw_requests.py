"""Malformed HTTP gets a 4xx, and the next request is answered."""

import socket
import threading
import time
from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.every import every
from tests.live import LiveServer
from tests.patience import PATIENCE, Stopwatch
from tests.wire import exchange, request, statuses

ENTITY = "/v1/entities/DC46AF1B1AAA424B58D1368176"
HEADER_SECONDS = 10.0
SMUGGLED = b"GET /v1/smuggled HTTP/1.1\r\nHost: x\r\n\r\n"


def upload(*fields: str, body: bytes) -> bytes:
    return "\r\n".join(["POST /health HTTP/1.1", "Host: x", *fields, "", ""]).encode() + body


@pytest.mark.rule("ERR-2")
@every("version", ["1.0", "1.1"])
@every("path", ["/health", ENTITY])
def test_a_request_without_host_is_400(server: LiveServer, paid_key: str, version: str, path: str) -> None:
    answer = exchange(server.port, request(path, f"X-API-Key: {paid_key}", version=version))
    assert statuses(answer) == [400]
    assert b"application/problem+json" in answer
    assert b"x-service-api-version: 1.0.0" in answer


def test_an_empty_host_is_no_host(server: LiveServer) -> None:
    assert statuses(exchange(server.port, request("/health", "Host:"))) == [400]


@every("version", ["1.0", "1.1"])
def test_both_versions_of_http_are_answered(server: LiveServer, version: str) -> None:
    assert statuses(exchange(server.port, request("/health", "Host: x", version=version))) == [200]


@pytest.mark.rule("ERR-6")
@every("size", [17_000, 40_000, 200_000, 2_000_000])
def test_header_fields_that_are_too_large_are_431(server: LiveServer, size: int) -> None:
    assert statuses(exchange(server.port, request("/health", "Host: x", f"A: {'a' * size}"))) in ([431], [])
    assert server.get("/health").status_code == 200


def test_too_many_header_fields_are_431(server: LiveServer) -> None:
    many = [f"A{n}: a" for n in range(2000)]
    assert statuses(exchange(server.port, request("/health", "Host: x", *many))) == [431]


def test_a_url_that_never_ends_is_refused(server: LiveServer) -> None:
    assert statuses(exchange(server.port, request("/" + "a" * 1_000_000, "Host: x")))[:1] in (
        [414],
        [431],
        [],
    )
    assert server.get("/health").status_code == 200


GARBAGE = {
    "a TLS hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
    "words": b"HELLO\r\n\r\n",
    "nothing but ends of lines": b"\r\n" * 100 + b"x\r\n\r\n",
    "another version": b"GET /health HTTP/3.0\r\nHost: x\r\n\r\n",
    "a space before the colon": b"GET /health HTTP/1.1\r\nHost : x\r\n\r\n",
    "a folded field": b"GET /health HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
    "NUL in a field": b"GET /health HTTP/1.1\r\nHost: x\r\nA: b\x00c\r\n\r\n",
    "NUL in the target": b"GET /hea\x00lth HTTP/1.1\r\nHost: x\r\n\r\n",
    "a space in the target": b"GET /health x HTTP/1.1\r\nHost: x\r\n\r\n",
    "a tunnel": b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n",
    "two lengths": upload("Content-Length: 4", "Content-Length: 5", body=b"abcde" + SMUGGLED),
    "a negative length": upload("Content-Length: -1", body=SMUGGLED),
    "a signed length": upload("Content-Length: +5", body=b"abcde" + SMUGGLED),
    "an enormous length": upload("Content-Length: 99999999999999999999999", body=SMUGGLED),
    "length and chunks": upload(
        "Content-Length: 4", "Transfer-Encoding: chunked", body=b"0\r\n\r\n" + SMUGGLED
    ),
    "chunks that are not last": upload("Transfer-Encoding: chunked, identity", body=b"0\r\n\r\n" + SMUGGLED),
    "chunks of no size": upload("Transfer-Encoding: chunked", body=b"zz\r\n\r\n" + SMUGGLED),
    "an upload that hides a request": upload(f"Content-Length: {len(SMUGGLED)}", body=SMUGGLED),
}


@pytest.mark.rule("ERR-6")
@every("name", GARBAGE)
def test_garbage_is_refused_once_and_nothing_hides_in_it(server: LiveServer, name: str) -> None:
    answer = exchange(server.port, GARBAGE[name])
    (status,) = statuses(answer)
    assert 400 <= status < 500
    assert b"smuggled" not in answer
    assert server.get("/health").status_code == 200


def test_requests_may_follow_each_other_on_one_connection(server: LiveServer) -> None:
    first = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
    assert statuses(exchange(server.port, first + request("/nothing", "Host: x"))) == [200, 404]


def test_a_body_on_a_get_is_not_parsed_as_a_request(server: LiveServer) -> None:
    first = b"GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(SMUGGLED)
    assert statuses(exchange(server.port, first + SMUGGLED + request("/nothing", "Host: x")))[0] == 200


class Dribble(threading.Thread):
    """Sends a beginning and then a byte now and then; records when the server hung up."""

    def __init__(self, port: int, beginning: bytes, drop: bytes) -> None:
        super().__init__(daemon=True)
        self.port, self.beginning, self.drop = port, beginning, drop
        self.lasted: float | None = None

    def run(self) -> None:
        with Stopwatch() as watch:
            self._dribble(time.monotonic() + 3 * HEADER_SECONDS)
        self.lasted = watch.seconds

    def _dribble(self, end: float) -> None:
        with socket.create_connection(("127.0.0.1", self.port), timeout=0.25) as connection:
            try:
                connection.sendall(self.beginning)
                while time.monotonic() < end:
                    try:
                        if not connection.recv(4096):
                            break
                    except TimeoutError:
                        connection.sendall(self.drop)
            except ConnectionError:
                pass


@pytest.fixture(scope="module")
def endless_form(server: LiveServer) -> Iterator[socket.socket]:
    """An endless form: sent before the dribbling requests, so that one wait covers both."""
    head = b"POST /key HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=HEADER_SECONDS + PATIENCE) as link:
        link.sendall(head + b"Content-Length: 100\r\n\r\naction=")
        yield link


@pytest.mark.ci
@pytest.mark.slow
@pytest.mark.limit("time for the head of a request")
@pytest.mark.usefixtures("endless_form")
def test_a_client_that_dribbles_its_request_is_cut_off(server: LiveServer) -> None:
    dribbles = [
        Dribble(server.port, b"GET /health HTTP/1.1\r\nHost: x\r\nA: ", b"a"),
        Dribble(server.port, b"GET /health HTTP/1.1\r\n", b"A: b\r\n"),
        Dribble(server.port, b"G", b""),
        Dribble(server.port, b"", b""),
        Dribble(server.port, b"POST /health HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n", b"a"),
    ]
    for dribble in dribbles:
        dribble.start()
    assert server.get("/health").status_code == 200
    for dribble in dribbles:
        dribble.join(PATIENCE)
        assert dribble.lasted is not None
        assert dribble.lasted < 2 * HEADER_SECONDS, dribble.beginning


@pytest.mark.slow
@pytest.mark.limit("time for a form")
def test_a_form_that_never_ends_is_refused(endless_form: socket.socket) -> None:
    assert statuses(endless_form.recv(65_536)) == [408]


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
def test_every_problem_links_to_its_documentation(
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


def test_an_error_shows_no_internal_details(server: LiveServer, paid_key: str) -> None:
    for ask in PROBLEMS.values():
        text = ask(server, paid_key, paid_key).text
        assert "Traceback" not in text
        assert str(server.home) not in text
