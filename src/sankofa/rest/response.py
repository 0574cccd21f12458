"""Answers as bytes: the envelope, problems, entity tags and compression."""

import gzip
import hashlib
import sys
from datetime import date
from typing import NamedTuple

import brotli
import msgspec

from sankofa.model.errors import Problem
from sankofa.model.provenance import LICENSE_NOTICE
from sankofa.operations.contract import Answer

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Headers = list[tuple[bytes, bytes]]

API_VERSION = b"1.0.0"
VARY = (b"vary", b"X-API-Key, Accept, Accept-Encoding")
_SMALLEST_COMPRESSED = 1024
_ENCODINGS = ("zstd", "br", "gzip")
_LICENSE = b',"_license":' + msgspec.json.encode(LICENSE_NOTICE)
_encode = msgspec.json.Encoder(decimal_format="number").encode


class Response(NamedTuple):
    status: int
    headers: Headers
    body: bytes


def envelope(answer: Answer, edition_id: str, rows_under: str) -> bytes:
    """The body of a list response; the rows are already bytes."""
    rows, count, truncated = answer.selection
    members = b"".join(b"," + _encode(name) + b":" + _encode(value) for name, value in answer.members.items())
    as_of = b"" if answer.as_of is None else b',"as_of":"%b"' % answer.as_of.isoformat().encode()
    return b'{"%b":[%b],"count":%d%b%b,"edition":"%b","truncated":%b%b}' % (
        rows_under.encode(),
        rows,
        count,
        _LICENSE,
        as_of,
        edition_id.encode(),
        b"true" if truncated else b"false",
        members,
    )


def problem_body(problem: Problem, base_url: str, instance: str, request_id: str) -> bytes:
    """RFC 9457, plus `error` for simple clients, the link to its documentation and the request id."""
    page = f"{base_url}/problems/{problem.slug}"
    return _encode(
        {
            "type": page,
            "title": problem.title,
            "status": problem.status,
            "detail": problem.detail,
            "instance": instance,
            "error": problem.detail,
            **problem.members(),
            "docs": page,
            "request_id": request_id,
        }
    )


def entity_tag(edition_id: str, path: str, arguments: object, rows: int, today: date) -> str:
    """Edition and query, and what else decides the bytes: the caller's row cap, and the day when none is given."""
    question = repr((path, arguments, rows, today.toordinal())).encode()
    return f"{edition_id}-{hashlib.blake2b(question, digest_size=9).hexdigest()}"


def tag_matches(if_none_match: bytes, tag: str) -> bool:
    """Whether a client holds this very answer, in any encoding."""
    for candidate in if_none_match.split(b","):
        held = candidate.strip().removeprefix(b"W/").strip(b'"').decode("latin-1")
        base, _, encoding = held.rpartition(".")
        if held == tag or (base == tag and encoding in _ENCODINGS):
            return True
    return False


def choose_encoding(accept_encoding: bytes, size: int) -> str | None:
    """The best encoding the client takes, by its weights and then by ours; None for identity."""
    if not accept_encoding or size < _SMALLEST_COMPRESSED:
        return None
    weights: dict[str, float] = {}
    for part in accept_encoding.decode("latin-1").lower().split(","):
        name, _, parameters = part.strip().partition(";")
        _, _, quality = parameters.strip().partition("q=")
        try:
            weights[name.strip()] = float(quality) if quality else 1.0
        except ValueError:
            weights[name.strip()] = 0.0
    fallback = weights.get("*", 0.0)
    best = max(_ENCODINGS, key=lambda e: (weights.get(e, fallback), -_ENCODINGS.index(e)))
    weight = weights.get(best, fallback)
    return best if weight > 0 and weight >= weights.get("identity", 0.0) else None


def compress(body: bytes, encoding: str) -> bytes:
    if encoding == "zstd":
        return zstd.compress(body, level=3)
    if encoding == "br":
        return bytes(brotli.compress(body, quality=4))
    return gzip.compress(body, compresslevel=5, mtime=0)
