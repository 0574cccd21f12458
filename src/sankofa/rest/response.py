"""Responses: the answer in the client's format and encoding, entity tags, links and deprecation headers."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import UTC, date, datetime, time
from email.utils import format_datetime
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import quote

from msgspec.structs import replace

from sankofa.access.tiers import Grant
from sankofa.edition.read.edition import Edition
from sankofa.model.errors import InvalidParameter, SettingsError
from sankofa.operations.answers import (
    JSON,
    CachedAnswer,
    Headers,
    body_digest,
    choose_encoding,
    compressed,
    envelope,
)
from sankofa.operations.contract import Call, Operation
from sankofa.operations.locked import perform
from sankofa.operations.service import Head, Response
from sankofa.rest.feeds import ATOM, atom
from sankofa.rest.formats import ResponseFormat
from sankofa.rest.request import read_query

VARY = (b"vary", b"X-API-Key, Accept, Accept-Encoding")
VARY_BY_EDITION = (b"vary", b"X-Edition")
"""Added to `Vary` if that field chose the edition."""
VARY_BY_AUTHORIZATION = (b"vary", b"Authorization")
"""Added to `Vary` if that field carries the key."""

PageAnswer = Callable[[Head, bytes], Awaitable[Response]]
"""Computes an answer from the header fields and the query."""


class OpenPage(NamedTuple):
    """A path that needs no key, and the function that answers it."""

    answer: PageAnswer


def entity_tag(edition_id: str, path: str, query: bytes, grant: Grant, today: date) -> str:
    """A digest of everything that decides the bytes: edition, query, the key's rights and today's date."""
    request = f"{path} {grant.sample} {grant.row_cap} {today.toordinal()} ".encode() + query
    return f"{edition_id}-{hashlib.blake2b(request, digest_size=9).hexdigest()}"


def next_link(
    base_url: str, path: str, query: bytes, edition_id: str | None, cursor: str
) -> tuple[bytes, bytes]:
    """The header that names the next page: this request with its cursor, and with the edition it named."""
    given = read_query(query) | ({} if edition_id is None else {"edition": edition_id}) | {"cursor": cursor}
    # A cursor needs no quoting, and caching would not help: each is unique.
    pairs = [f"{name}={text if name == 'cursor' else _quoted(text)}" for name, text in given.items()]
    question = "&".join(pairs)
    return b"link", f'<{base_url}{path}?{question}>; rel="next"'.encode()


@lru_cache(maxsize=1024)
def _quoted(text: str) -> str:
    return quote(text, safe="")


NOTICE_DAYS = 180


class Deprecation(NamedTuple):
    """An endpoint's day of deprecation, day of removal and successor."""

    since: date
    sunset: date
    successor: str


DEPRECATIONS: Mapping[str, Deprecation] = {}
"""By path of the operation, e.g. `/v1/macro`."""


def deprecation_headers(
    table: Mapping[str, Deprecation], known: Collection[str]
) -> dict[str, list[tuple[bytes, bytes]]]:
    """The header fields of each deprecated endpoint.

    Raises SettingsError for too short a notice, or an unknown path.
    """
    headers = {}
    for path, (since, sunset, successor) in table.items():
        if path not in known:
            raise SettingsError(f"deprecation of {path}: no endpoint has that path")
        if (sunset - since).days < NOTICE_DAYS:
            raise SettingsError(f"deprecation of {path}: {NOTICE_DAYS} days' notice is promised")
        if not successor:
            raise SettingsError(f"deprecation of {path}: it names no successor")
        at = _midnight(sunset)
        headers[path] = [
            (b"deprecation", f"@{int(_midnight(since).timestamp())}".encode()),
            (b"sunset", format_datetime(at, usegmt=True).encode()),
            (b"link", f'<{successor}>; rel="successor-version"'.encode()),
        ]
    return headers


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


async def write_answer(
    operation: Operation,
    call: Call,
    arguments: dict[str, Any],
    fmt: ResponseFormat | None,
    tag: str,
    accept_encoding: bytes,
    edition_id: str | None,
    path: str,
    query: bytes,
) -> CachedAnswer:
    """Perform the operation and encode its answer. Links name the edition that the request names."""
    if fmt is not None and fmt.takes_columns and call.lock is None:  # a locked view rewrites rows
        call = replace(call, as_columns=True)
    answer = await perform(operation, call, arguments)
    headers: Headers = []
    if following := answer.members.get("next_cursor"):
        headers.append(next_link(call.base_url, path, query, edition_id, str(following)))
    if fmt is None:
        headers.append(JSON)
        body = envelope(answer, call.edition, operation)
    elif fmt is ATOM:
        target = f"{path}?{query.decode('latin-1')}" if query else path
        content_headers, body = await asyncio.to_thread(atom, operation, answer, call, target)
        headers += content_headers
    else:
        stored = await fmt.stored(operation, answer, call.edition)
        work = operation, answer, call.edition, stored
        # Let other requests run: ten thousand rows take a twentieth of a second.
        content_headers, body = (
            fmt.body(*work) if fmt.is_quick(answer, stored) else await asyncio.to_thread(fmt.body, *work)
        )
        headers += content_headers
    tag = own_tag = tag if call.lock is None else body_digest(body)
    encoding = choose_encoding(accept_encoding, len(body))
    if encoding is not None:
        body = await compressed(body, encoding)
        own_tag = f"{tag}.{encoding}"
        headers.append((b"content-encoding", encoding.encode()))
    if not operation.live:
        headers.append((b"etag", f'"{own_tag}"'.encode()))
    return CachedAnswer(headers, body, tag)


def same_edition(edition: Edition) -> Callable[[str], Awaitable[Edition]]:
    """Raises InvalidParameter (400) if the cursor belongs to another edition than the request names."""

    async def open_for_cursor(requested: str) -> Edition:
        if requested != edition.id:
            raise InvalidParameter("cursor", "of another edition than the one asked for")
        return edition

    return open_for_cursor
