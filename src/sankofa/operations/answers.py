"""Answers as bytes: envelopes, problems, content encodings, JSON schemas and the cache of answers.

All surfaces share this code, so the same call returns the same body everywhere.
"""

import gzip
import sys
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import brotli
import msgspec
from xxhash import xxh64_hexdigest

from sankofa.edition.read.edition import Edition
from sankofa.edition.read.yield_points import in_thread_if_large
from sankofa.engines.block_file import BoundedCache
from sankofa.model.errors import ABSENCES, Problem, Unauthorized
from sankofa.model.provenance import LICENSE_NOTICE
from sankofa.model.rows import Row
from sankofa.operations.contract import MEMBERS, Answer, Encoded, Operation
from sankofa.operations.parameter_types import JsonSchema

Headers = list[tuple[bytes, bytes]]

API_VERSION = b"1.0.0"
API_VERSION_FIELD = (b"x-service-api-version", API_VERSION)
JSON = (b"content-type", b"application/json")
PROBLEM_JSON = (b"content-type", b"application/problem+json")
PRIVATE = (b"cache-control", b"private")
NO_STORE = (b"cache-control", b"no-store")
PRIVATE_NO_STORE = (b"cache-control", b"private, no-store")
RESOURCE_METADATA = "/.well-known/oauth-protected-resource"
"""Address of the metadata about keys (RFC 9728); for MCP its path follows."""
_BEARER = b'Bearer realm="sankofa"'
_encode = msgspec.json.Encoder(decimal_format="number").encode


def envelope(answer: Answer, edition: Edition, operation: Operation) -> bytes:
    """The body of a list response. Rows arrive as bytes and are copied only here."""
    selection = answer.selection
    slices: Sequence[bytes | memoryview] = selection.slices
    if selection.between and len(slices) > 1:
        slices = [selection.between] * (2 * len(slices) - 1)
        slices[::2] = selection.slices
    edition_id = f'"{answer.edition_id or edition.id}"'
    if edition.lock is not None or answer.edition_id == "":
        edition_id = "null"
    as_of = "" if answer.as_of is msgspec.UNSET else f'"as_of":{_encode(answer.as_of).decode()},'
    rest = (
        f'],"count":{selection.count},"_license":{operation.notice(answer, edition).json},'
        f'{as_of}"edition":{edition_id},'
        f'"truncated":{"true" if selection.truncated else "false"},"absent":'
    )
    members: list[bytes | memoryview] = [b"null" if answer.absent is None else _encode(answer.absent)]
    for name, value in answer.members.items():
        members.append(b',"%b":' % name.encode())
        members += value if type(value) is Encoded else (b"null" if value is None else _encode(value),)
    return b"".join((b'{"%b":[' % operation.rows_under.encode(), *slices, rest.encode(), *members, b"}"))


body_digest: Final = xxh64_hexdigest
"""A fingerprint of a body, the same on every machine: the entity tag in a locked view. Not XXH3: its AVX-512
instructions slow the processor for the questions that follow."""


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
            **problem.members,
            "docs": page,
            "request_id": request_id,
        }
    )


def common_headers(request_id: str) -> Headers:
    """The header fields of every response, errors included."""
    return [API_VERSION_FIELD, (b"x-request-id", request_id.encode())]


def problem_headers(problem: Problem, metadata: str = "") -> Headers:
    """The header fields of a problem: Retry-After, WWW-Authenticate, Allow, the upgrade link.

    `metadata` is the address that tells a client without a key how to get one.
    """
    headers = [(name.lower().encode(), value.encode()) for name, value in problem.headers.items()]
    if not metadata or not isinstance(problem, Unauthorized):
        return headers
    led_on = b'%b, resource_metadata="%b"' % (_BEARER, metadata.encode())
    return [(name, value.replace(_BEARER, led_on)) for name, value in headers]


if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ENCODINGS: Final = ("zstd", "br", "gzip")
_SMALLEST_COMPRESSED: Final = 1024


def choose_encoding(accept_encoding: bytes, size: int) -> str | None:
    """The best encoding that the client accepts, by its weights, then by our order; None for identity."""
    if not accept_encoding:
        return None
    best, plain = _preference(accept_encoding)
    return None if plain and size < _SMALLEST_COMPRESSED else best


@lru_cache(maxsize=256)
def _preference(accept_encoding: bytes) -> tuple[str | None, bool]:
    """The client's preferred encoding, and whether it accepts a plain answer (RFC 9110, section 12.5.3)."""
    weights = weights_in(accept_encoding)
    fallback = weights.get("*", 0.0)
    best = max(ENCODINGS, key=lambda e: (weights.get(e, fallback), -ENCODINGS.index(e)))
    weight = weights.get(best, fallback)
    liked = weight > 0 and weight >= weights.get("identity", 0.0)
    return best if liked else None, weights.get("identity", weights.get("*", 1.0)) > 0


def matching_tag(if_none_match: bytes, tag: str) -> str | None:
    """The tag under which a client already has this answer, in any encoding, or None."""
    if if_none_match.strip() == b"*":
        return tag
    for candidate in if_none_match.split(b","):
        client_tag = candidate.strip().removeprefix(b"W/").strip(b'"').decode("latin-1")
        base, _, encoding = client_tag.rpartition(".")
        if client_tag == tag or (base == tag and encoding in ENCODINGS):
            return client_tag
    return None


def weights_in(accept: bytes) -> dict[str, float]:
    """What a header field accepts, with its weight (RFC 9110, section 12.4.2); 0 for no weight."""
    weights: dict[str, float] = {}
    for part in accept.decode("latin-1").lower().split(","):
        name, *parameters = (text.strip() for text in part.split(";"))
        quality = next((text[2:] for text in parameters if text.startswith("q=")), "1")
        try:
            weight = float(quality)
        except ValueError:
            weight = 0.0
        weights[name] = max(weights.get(name, 0.0), weight if 0 <= weight <= 1 else 0.0)
    return weights


def compress(body: bytes, encoding: str) -> bytes:
    """Compresses at levels cheaper than making the body. The next levels save 10% in twice the time."""
    if encoding == "zstd":
        return zstd.compress(body, level=1)
    if encoding == "br":
        return bytes(brotli.compress(body, quality=1))
    return gzip.compress(body, compresslevel=3, mtime=0)


async def compressed(body: bytes, encoding: str) -> bytes:
    """Like `compress`, but large bodies run in a thread: the libraries release the interpreter lock."""
    return await in_thread_if_large(len(body), compress, body, encoding)


_LARGEST_SHARE: Final = 8
"""Largest share of the cache that one answer may take."""
_MOST_REMEMBERED: Final = 16_384
"""Number of past questions to remember as hashes; the oldest is dropped first."""


class CachedAnswer(NamedTuple):
    """A body and the header fields that describe it."""

    headers: Headers
    body: bytes
    tag: str = ""
    """The entity tag, without a suffix for the encoding."""


class AnswerCache:
    """Caches an answer on its second request, so a client that reads everything once evicts nothing. The
    least recently used answer is evicted first."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._answers: OrderedDict[Hashable, CachedAnswer] = OrderedDict()
        self._asked_once: BoundedCache[int, bool] = BoundedCache(_MOST_REMEMBERED)
        self.size = 0
        """Total bytes of the cached bodies."""

    def get(self, key: Hashable) -> CachedAnswer | None:
        answer = self._answers.get(key)
        if answer is not None:
            self._answers.move_to_end(key)
        return answer

    def offer(self, key: Hashable, answer: CachedAnswer) -> None:
        """Caches an answer if it was offered once before and is not too large."""
        size = len(answer.body)
        if size * _LARGEST_SHARE > self._most or key in self._answers:
            return
        question = hash(key)
        if not self._asked_once.get(question):
            self._asked_once.put(question, True)
            return
        self._answers[key] = answer
        self.size += size
        while self.size > self._most:
            self.size -= len(self._answers.popitem(last=False)[1].body)


MEMBERS["_license"]["examples"] = [LICENSE_NOTICE]
MEMBERS["absent"]["properties"]["reason"] |= {
    "enum": list(ABSENCES),
    "description": " ".join(f"`{code}`: {meaning}" for code, meaning in ABSENCES.items()),
}


def row_schema(row_type: type[Row], ref_template: str) -> tuple[JsonSchema, dict[str, JsonSchema]]:
    """The schema of a row, and by name those of the types it refers to through `ref_template`."""
    (reference,), components = msgspec.json.schema_components((row_type,), ref_template=ref_template)
    schemas = {name: _as_on_the_wire(schema) for name, schema in components.items()}
    row = schemas.pop(reference["$ref"].removeprefix(ref_template.removesuffix("{name}")))
    more = getattr(row_type, "MORE_COLUMNS", None)  # columns that the question names
    return row if more is None else {**row, "additionalProperties": more}, schemas


def envelope_of(operation: Operation, *shapes: JsonSchema) -> JsonSchema:
    """The schema of an operation's answer. `rows` are the schemas of its rows, or references to them.

    It allows further members, so one can be added without a new version.
    """
    row = shapes[0] if len(shapes) == 1 else {"anyOf": list(shapes)}
    names = ["count", "_license", "as_of", "edition", "truncated", "absent", "next_cursor"]
    for name, parameter in (("as_of", "as_of"), ("next_cursor", "cursor")):
        if parameter not in operation.parameters:
            names.remove(name)
    properties = {
        operation.rows_under: {"type": "array", "items": row, "description": "In the documented order."},
        **{name: MEMBERS[name] for name in names},
        **operation.members,
    }
    return {
        "type": "object",
        "properties": {**properties, "known_by": MEMBERS["known_by"]},
        "required": list(properties),
        "additionalProperties": True,
    }


def _as_on_the_wire(schema: Any) -> Any:
    """Declares decimals as numbers, and every field of a row as required."""
    if isinstance(schema, list):
        return [_as_on_the_wire(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("format") == "decimal":
        return {**{k: v for k, v in schema.items() if k != "format"}, "type": "number"}
    fixed = {key: _as_on_the_wire(value) for key, value in schema.items()}
    if "properties" in fixed:
        fixed["required"] = list(fixed["properties"])
        if observed := fixed["properties"].get("observed_at"):
            observed |= {"type": ["string", "null"]}
            observed["description"] = f"{observed['description'].rstrip('.')}; null in a locked view."
    return fixed
