"""Compression by Accept-Encoding (RFC 9110, section 12.5.3)."""

import gzip
import sys

import brotli
import httpx
import pytest

from tests.live import LiveServer

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ISSUER = "/v1/fundamentals/DC46AF1B1AAA424B58D1368176"
NO_ROWS = f"{ISSUER}?as_of=1990-01-01"
DECODERS = {"gzip": gzip.decompress, "br": brotli.decompress, "zstd": zstd.decompress, None: bytes}


def raw(
    server: LiveServer, key: str, accept: str | None, path: str = ISSUER
) -> tuple[str | None, bytes, httpx.Response]:
    """The encoding of an answer and its body as it travelled."""
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
        ("GZip", "gzip"),
        ("gzip, deflate, br, zstd", "zstd"),
        ("gzip, br", "br"),
        ("gzip;q=1.0, br;q=0.5, zstd;q=0.1", "gzip"),
        ("gzip;q=0.2,br;q=0.9", "br"),
        ("gzip;q=0, br", "br"),
        ("*", "zstd"),
        ("*;q=0.5, zstd;q=0", "br"),
        ("gzip;q=0.001", "gzip"),
        ("identity;q=0.5, gzip;q=0.6", "gzip"),
        ("identity;q=0, gzip", "gzip"),
        ("identity;q=0, *", "zstd"),
        ("", None),
        ("identity", None),
        ("deflate", None),
        ("compress, x-unknown", None),
        ("gzip;q=0", None),
        ("gzip;q=0, br;q=0, zstd;q=0", None),
        ("*;q=0", None),
        ("identity, gzip;q=0.5", None),
        ("gzip;q=high", None),
        ("gzip;q=nan", None),
        (";;,,=,q=1", None),
    ],
)
def test_the_client_weighs_the_encodings(
    server: LiveServer, paid_key: str, plain: bytes, accept: str, expected: str | None
) -> None:
    encoding, body, answer = raw(server, paid_key, accept)
    assert encoding == expected
    assert DECODERS[encoding](body) == plain
    assert "Accept-Encoding" in answer.headers["Vary"]
    if encoding:
        assert len(body) < len(plain) / 2


def test_a_small_answer_is_left_as_it_is(server: LiveServer, paid_key: str) -> None:
    assert raw(server, paid_key, "gzip", NO_ROWS)[0] is None


def test_a_small_answer_is_compressed_for_a_client_that_refuses_it_plain(server: LiveServer, paid_key: str):
    encoding, body, _ = raw(server, paid_key, "gzip, identity;q=0", NO_ROWS)
    assert encoding == "gzip"
    assert gzip.decompress(body) == raw(server, paid_key, None, NO_ROWS)[1]


def test_accept_encoding_may_be_given_in_several_fields(server: LiveServer, paid_key: str) -> None:
    fields = [("X-API-Key", paid_key), ("Accept-Encoding", "gzip;q=0.5"), ("Accept-Encoding", "br")]
    assert server.http.get(ISSUER, headers=fields).headers["Content-Encoding"] == "br"
