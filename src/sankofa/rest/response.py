"""What HTTP adds to an answer: entity tags and links."""

import hashlib
import re
from collections.abc import AsyncIterator
from datetime import date
from functools import lru_cache
from typing import Final
from urllib.parse import quote

import msgspec

from sankofa.access.tiers import Grant
from sankofa.operations.answers import Headers
from sankofa.operations.encodings import ENCODINGS
from sankofa.rest.request import read_query

VARY = (b"vary", b"X-API-Key, Accept, Accept-Encoding")
VARY_BY_EDITION = (b"vary", b"X-Edition")
"""Added where that field chose the edition."""
VARY_BY_AUTHORIZATION = (b"vary", b"Authorization")
"""Added where that field carries the key."""


_SHORT: Final = 256
"""Characters of a question that may come again."""
_PLAIN_QUERY: Final = re.compile(rb"[a-z_]+=[A-Za-z0-9_.~-]*(&[a-z_]+=[A-Za-z0-9_.~-]*)*")
"""What is the same after reading and quoting."""


class Response(msgspec.Struct, frozen=True):
    """A response whose body is in memory."""

    status: int
    headers: Headers
    body: bytes


class Streamed(msgspec.Struct, frozen=True):
    """A response whose body is sent in chunks."""

    status: int
    headers: Headers
    size: int
    chunks: AsyncIterator[bytes]


def entity_tag(edition_id: str, path: str, query: bytes, grant: Grant, today: date) -> str:
    """Edition and query, and what else decides the bytes: what the key may have, and today's date."""
    tag = _tag if len(path) + len(query) > _SHORT else _cached_tag
    return tag(edition_id, path, query, grant.sample, grant.row_cap, today)


def _tag(edition_id: str, path: str, query: bytes, sample: bool, row_cap: int, today: date) -> str:
    request = f"{path} {sample} {row_cap} {today.toordinal()} ".encode() + query
    return f"{edition_id}-{hashlib.blake2b(request, digest_size=9).hexdigest()}"


_cached_tag = lru_cache(maxsize=4096)(_tag)


def matching_tag(if_none_match: bytes, tag: str) -> str | None:
    """The tag under which a client holds this very answer, in whichever encoding; None where it does not."""
    for candidate in if_none_match.split(b","):
        client_tag = candidate.strip().removeprefix(b"W/").strip(b'"').decode("latin-1")
        base, _, encoding = client_tag.rpartition(".")
        if client_tag == tag or (base == tag and encoding in ENCODINGS):
            return client_tag
    return None


def next_link(address: str, cursor: str) -> tuple[bytes, bytes]:
    """The header that names the next page: an address that lacks its cursor only."""
    return b"link", f'<{address}cursor={cursor}>; rel="next"'.encode()


@lru_cache(maxsize=1024)
def address_without_cursor(base_url: str, path: str, query: bytes, edition_id: str | None) -> str:
    """This request, ready for another cursor behind it; with the edition where a header field named it."""
    if edition_id is None and b"cursor" not in query and _PLAIN_QUERY.fullmatch(query):
        return f"{base_url}{path}?{query.decode()}&"
    given = read_query(query) | ({"edition": edition_id} if edition_id is not None else {})
    others = "".join(f"{name}={_quoted(value)}&" for name, value in given.items() if name != "cursor")
    return f"{base_url}{path}?{others}"


def _quoted(text: str) -> str:
    return text if text.isalnum() and text.isascii() else quote(text)
