"""Answers as bytes: what every surface sends, so that the same call has the same body on each of them."""

from functools import cache

import msgspec

from sankofa.access.quotas import RateState
from sankofa.edition.read.edition import Edition
from sankofa.model.errors import Problem, Unauthorized
from sankofa.operations.contract import Answer, Operation

Headers = list[tuple[bytes, bytes]]

API_VERSION = b"1.0.0"
JSON = (b"content-type", b"application/json")
PROBLEM_JSON = (b"content-type", b"application/problem+json")
PRIVATE = (b"cache-control", b"private")
NO_STORE = (b"cache-control", b"no-store")
PRIVATE_NO_STORE = (b"cache-control", b"private, no-store")
RESOURCE_METADATA = "/.well-known/oauth-protected-resource"
"""Where it is said how to present a key (RFC 9728); of MCP, with its path behind."""
_BEARER = b'Bearer realm="sankofa"'
_encode = msgspec.json.Encoder(decimal_format="number").encode


def envelope(answer: Answer, edition: Edition, operation: Operation) -> bytes:
    """The body of a list response; the rows are already bytes, and copied only here."""
    selection = answer.selection
    parts: list[bytes | memoryview] = [f'{{"{operation.rows_under}":['.encode()]
    if selection.between and selection.runs:
        spaced: list[bytes | memoryview] = [selection.between] * (2 * len(selection.runs) - 1)
        spaced[::2] = selection.runs
        parts += spaced
    else:
        parts += selection.runs
    as_of = "" if answer.as_of is msgspec.UNSET else f'"as_of":{_encode(answer.as_of).decode()},'
    truncated = "true" if selection.truncated else "false"
    terms = f'"_license":{operation.notice(answer, edition).json}'
    edition_id = answer.edition_id or edition.id
    parts.append(
        f'],"count":{selection.count},{terms},{as_of}"edition":"{edition_id}","truncated":{truncated}'.encode()
    )
    for name, value in answer.members.items():
        parts += (_member(name), b"null" if value is None else _encode(value))
    parts.append(b"}")
    return b"".join(parts)


@cache
def _member(name: str) -> bytes:
    return b",%b:" % _encode(name)


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


def common_headers(request_id: str) -> Headers:
    """What every response carries, errors included."""
    return [(b"x-service-api-version", API_VERSION), (b"x-request-id", request_id.encode())]


def problem_headers(problem: Problem, metadata: str = "") -> Headers:
    """What the class of a problem adds: Retry-After, WWW-Authenticate, Allow, the upgrade link.

    `metadata` is the address that a client without a key is led to.
    """
    headers = [(name.lower().encode(), value.encode()) for name, value in problem.headers()]
    if not metadata or not isinstance(problem, Unauthorized):
        return headers
    led_on = b'%b, resource_metadata="%b"' % (_BEARER, metadata.encode())
    return [(name, value.replace(_BEARER, led_on)) for name, value in headers]


def rate_headers(usage: RateState) -> Headers:
    """The quota left (the RateLimit header fields of the IETF draft)."""
    return [(b"ratelimit-policy", usage.policy.encode()), (b"ratelimit", usage.state.encode())]
