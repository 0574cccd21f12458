"""Files by path: whole or one range of bytes (RFC 9110, section 14), under the rules of their tier."""

import re
from collections.abc import AsyncIterator, Callable, Iterable
from datetime import date
from functools import partial
from typing import Final, NamedTuple

from msgspec.structs import replace

from sankofa.access.tiers import Grant
from sankofa.edition.read.edition import Edition
from sankofa.model.errors import (
    InvalidParameter,
    NotFound,
    PreconditionFailed,
    RangeNotSatisfiable,
)
from sankofa.operations.answers import JSON, Headers
from sankofa.operations.catalogue import LICENSED_FILES, MEDIA_TYPE, OPEN_FILES, day_file, signed_grant
from sankofa.operations.locked import AT, locked, narrower, refuse_edition, refuse_file
from sankofa.operations.proofs import LOCKED, file_proof
from sankofa.operations.service import Exchange, Head, Response
from sankofa.rest.request import (
    VARY,
    VARY_BY_AUTHORIZATION,
    VARY_BY_EDITION,
    authenticate,
    read_query,
    requested_edition,
)

_RANGE: Final = re.compile(r"[ \t]*bytes[ \t]*=[ \t]*([0-9]{0,18})-([0-9]{0,18})[ \t]*\Z", re.IGNORECASE)

Chunks = Callable[[int, int], AsyncIterator[bytes]]
"""Reads the bytes of a file from one position to another."""


def requested_range(header: str, size: int) -> tuple[int, int] | None:
    """The first byte requested, and the position after the last. Raises RangeNotSatisfiable.

    None if RFC 9110 allows ignoring the header: it is malformed, in another unit, or asks for several ranges.
    """
    match = _RANGE.match(header)
    first, last = match.groups() if match else ("", "")
    if first:
        if last and int(last) < int(first):
            return None
        start, end = int(first), min(int(last) + 1 if last else size, size)
    elif last:
        start, end = max(size - int(last), 0), size
    else:
        return None
    if start >= end:
        raise RangeNotSatisfiable(size)
    return start, end


_PROOF: Final = ".proof"
"""The suffix that turns a file's address into that of its proof."""
_TYPE: Final = (b"content-type", MEDIA_TYPE.encode())
_CONDITIONS: Final = (b"range", b"if-range", b"if-match", b"if-none-match")
_ANY_PAGE: Final = (b"access-control-allow-origin", b"*")  # DuckDB in a browser included


class FileRoute(NamedTuple):
    """The name of a file, whether its path needs a key, and whether its proof is requested."""

    name: str
    needs_key: bool
    proof: bool = False


def file_route(path: str) -> FileRoute | None:
    for folder, needs_key in ((OPEN_FILES, False), (LICENSED_FILES, True)):
        if path.startswith(folder):
            name = path.removeprefix(folder)
            return FileRoute(name.removesuffix(_PROOF), needs_key, name.endswith(_PROOF))
    return None


def preflight(route: FileRoute) -> Headers:
    """The CORS preflight headers that let a page of another site read parts of an open file."""
    if route.needs_key:
        return []
    return [
        _ANY_PAGE,
        (b"access-control-allow-methods", b"GET, HEAD"),
        (b"access-control-allow-headers", b", ".join((*_CONDITIONS, b"x-edition"))),
        (b"access-control-max-age", b"86400"),
    ]


async def file_response(exchange: Exchange, route: FileRoute, head: Head) -> Response:
    """The answer to a request for a file, by key or by a signed address. Raises Problem."""
    service, scope = exchange.service, exchange.scope
    grant, now = None, service.clock()
    is_signed = route.needs_key and b"signature=" in scope["query_string"]
    if route.needs_key and not is_signed:
        grant = await authenticate(exchange, head)
    query = read_query(scope["query_string"])
    if is_signed:
        exchange.site = await service.domains.site(head.host)
        signature, named = query.pop("signature", ""), query.get("edition")
        grant = await exchange.admit(
            await signed_grant(service.cursors, service.keys, signature, route.name, named, now)
        )
    lock = narrower(scope.get(AT), grant, now)
    if not route.needs_key and (sent := await service.lock_sent(head.keys, head.authorizations)):
        lock = sent if lock is None else min(lock, sent)
    if not is_signed:
        refuse_file(lock)
    by_url = "edition" in query
    asked = requested_edition(query.pop("edition", None), query.pop("known_by", None), head, now)
    if asked.known_by is not None:
        refuse_edition(lock)
    for name in query:
        raise InvalidParameter(name[:64], "no such parameter; expected one of: edition, known_by")
    edition = await asked.edition(service)
    if edition is None:
        raise NotFound(f"known_by: no edition was published by {asked.known_by}.")
    answer = await _answer(exchange, route, edition, grant, by_url=by_url, lock=lock)
    extra = [
        *([VARY_BY_EDITION] if head.edition else []),
        *(exchange.usage.headers if exchange.usage else []),
    ]
    if grant is not None and head.authorizations:
        extra.append(VARY_BY_AUTHORIZATION)
    return replace(answer, headers=[*answer.headers, *extra])


async def _answer(
    exchange: Exchange,
    route: FileRoute,
    edition: Edition,
    grant: Grant | None,
    *,
    by_url: bool,
    lock: date | None,
) -> Response:
    """The file, the requested range, or a 304 if the client already has it. With `lock` it has the rows known
    on that day.

    Raises NotFound, UpgradeRequired, PreconditionFailed or RangeNotSatisfiable.
    """
    file = edition.files.get(route.name)
    if file is None or (grant is None and file["access"] != "open"):
        raise NotFound("No such file; /v1/export lists the files.")
    if grant is not None and file["min_tier"] is not None:
        grant.requires_paid(f"The file {route.name}")
    if route.proof:
        if lock is not None:
            raise NotFound(LOCKED)
        proof = await file_proof(exchange.service, edition, route.name)
        return Response(200, [JSON, *_caching(grant, by_url=False)], proof)
    size, sha256 = file["size_bytes"], file["sha256"]
    chunks_of: Chunks = partial(edition.file_chunks, route.name)
    if lock is not None:
        of_day = await day_file(locked(edition, lock), route.name)
        size, sha256, chunks_of = len(of_day.content), of_day.sha256, partial(_chunks, of_day.content)
    tag = f'"{sha256}"'
    conditions = _conditions(exchange.scope["headers"])
    if (match := conditions.get(b"if-match")) is not None and not _has_tag(match, tag, weakly=False):
        raise PreconditionFailed()
    response_headers = [
        (b"etag", tag.encode()),
        (b"accept-ranges", b"bytes"),
        *_caching(grant, by_url=by_url),
    ]
    if (none_match := conditions.get(b"if-none-match")) is not None and _has_tag(
        none_match, tag, weakly=True
    ):
        return Response(304, response_headers, b"")
    response_headers.append((b"content-disposition", f'attachment; filename="{route.name}"'.encode()))
    if exchange.scope["method"] == "HEAD":
        return Response(200, [_TYPE, *response_headers], b"", chunks_of(0, size), size)
    part = None
    if b"range" in conditions and conditions.get(b"if-range", tag).strip() == tag:
        part = requested_range(conditions[b"range"], size)
    if part is None:
        return Response(200, [_TYPE, *response_headers], b"", await _begun(chunks_of(0, size)), size)
    start, end = part
    response_headers.append((b"content-range", f"bytes {start}-{end - 1}/{size}".encode()))
    return Response(206, [_TYPE, *response_headers], b"", await _begun(chunks_of(start, end)), end - start)


async def _chunks(content: bytes, start: int, end: int) -> AsyncIterator[bytes]:
    yield content[start:end]


async def _begun(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Returns the chunks after reading the first, so that an unreadable file is a 503."""
    first = await anext(chunks, b"")

    async def following() -> AsyncIterator[bytes]:
        yield first
        async for chunk in chunks:
            yield chunk

    return following()


def _conditions(headers: Iterable[tuple[bytes, bytes]]) -> dict[bytes, str]:
    conditions: dict[bytes, str] = {}
    for name, value in headers:
        if name in _CONDITIONS:
            text = value.decode("latin-1")
            conditions[name] = f"{conditions[name]},{text}" if name in conditions else text
    return conditions


def _has_tag(condition: str, tag: str, *, weakly: bool) -> bool:
    """Whether a list of entity tags has this one, or is `*`."""
    tags = [candidate.strip() for candidate in condition.split(",")]
    if weakly:
        tags = [candidate.removeprefix("W/") for candidate in tags]
    return tag in tags or tags == ["*"]


def _caching(grant: Grant | None, *, by_url: bool) -> Headers:
    """A URL with its edition never changes; any other is revalidated on every use."""
    scope = "public" if grant is None else "private"
    lifetime = "max-age=31536000, immutable" if by_url else "no-cache"
    headers = [(b"cache-control", f"{scope}, {lifetime}".encode())]
    if grant is None:
        exposed = b"accept-ranges, content-length, content-range, etag"
        headers += [_ANY_PAGE, (b"access-control-expose-headers", exposed)]
    else:
        headers.append(VARY)
    return headers
