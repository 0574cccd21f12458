"""What HTTP adds to an answer: entity tags and links."""

import hashlib
from collections.abc import AsyncIterator, Mapping
from datetime import date
from urllib.parse import quote

import msgspec

from sankofa.access.tiers import Grant
from sankofa.operations.answers import Headers
from sankofa.operations.encodings import ENCODINGS

VARY = (b"vary", b"X-API-Key, Accept, Accept-Encoding")
VARY_BY_EDITION = (b"vary", b"X-Edition")
"""Added where that field chose the edition."""
VARY_BY_AUTHORIZATION = (b"vary", b"Authorization")
"""Added where that field carries the key."""


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
    request = f"{path} {grant.sample} {grant.row_cap} {today.toordinal()} ".encode() + query
    return f"{edition_id}-{hashlib.blake2b(request, digest_size=9).hexdigest()}"


def matching_tag(if_none_match: bytes, tag: str) -> str | None:
    """The tag under which a client holds this very answer, in whichever encoding; None where it does not."""
    for candidate in if_none_match.split(b","):
        client_tag = candidate.strip().removeprefix(b"W/").strip(b'"').decode("latin-1")
        base, _, encoding = client_tag.rpartition(".")
        if client_tag == tag or (base == tag and encoding in ENCODINGS):
            return client_tag
    return None


def next_link(base_url: str, path: str, query: Mapping[str, str], cursor: str) -> tuple[bytes, bytes]:
    """The header that names the next page: this request with another cursor."""
    others = "&".join(f"{name}={_quoted(value)}" for name, value in query.items() if name != "cursor")
    return (
        b"link",
        f'<{base_url}{path}?{others}{"&" if others else ""}cursor={cursor}>; rel="next"'.encode(),
    )


def _quoted(text: str) -> str:
    return text if text.isalnum() and text.isascii() else quote(text)
