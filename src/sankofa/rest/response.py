"""What HTTP adds to an answer: entity tags and compression."""

import gzip
import hashlib
import sys
from collections.abc import AsyncIterator
from datetime import date
from functools import lru_cache
from urllib.parse import quote

import brotli
import msgspec

from sankofa.access.tiers import Grant
from sankofa.edition.read.turns import in_thread_if_large
from sankofa.operations.answers import Headers
from sankofa.rest.request import read_query

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

VARY = (b"vary", b"X-API-Key, Accept, Accept-Encoding")
VARY_BY_EDITION = (b"vary", b"X-Edition")
"""Added where that field chose the edition."""
VARY_BY_AUTHORIZATION = (b"vary", b"Authorization")
"""Added where that field carries the key."""
_SMALLEST_COMPRESSED = 1024
_ENCODINGS = ("zstd", "br", "gzip")


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
        if client_tag == tag or (base == tag and encoding in _ENCODINGS):
            return client_tag
    return None


def choose_encoding(accept_encoding: bytes, size: int) -> str | None:
    """The best encoding the client takes, by its weights and then by ours; None for identity."""
    if not accept_encoding:
        return None
    best, plain = _preference(accept_encoding)
    return None if plain and size < _SMALLEST_COMPRESSED else best


@lru_cache(maxsize=256)
def _preference(accept_encoding: bytes) -> tuple[str | None, bool]:
    """The encoding a client likes best, and whether a plain answer will do (RFC 9110, section 12.5.3)."""
    weights: dict[str, float] = {}
    for part in accept_encoding.decode("latin-1").lower().split(","):
        name, _, parameters = part.strip().partition(";")
        _, _, quality = parameters.strip().partition("q=")
        try:
            weight = float(quality) if quality else 1.0
        except ValueError:
            weight = 0.0
        weights[name.strip()] = weight if 0 <= weight <= 1 else 0.0
    fallback = weights.get("*", 0.0)
    best = max(_ENCODINGS, key=lambda e: (weights.get(e, fallback), -_ENCODINGS.index(e)))
    weight = weights.get(best, fallback)
    liked = weight > 0 and weight >= weights.get("identity", 0.0)
    return best if liked else None, weights.get("identity", weights.get("*", 1.0)) > 0


def compress(body: bytes, encoding: str, *, quickly: bool = False) -> bytes:
    """`quickly` is for bodies that are dense already, such as columns: more effort hardly shrinks them."""
    if encoding == "zstd":
        return zstd.compress(body, level=1 if quickly else 3)
    if encoding == "br":
        return bytes(brotli.compress(body, quality=1 if quickly else 4))
    return gzip.compress(body, compresslevel=1 if quickly else 5, mtime=0)


async def compressed(body: bytes, encoding: str) -> bytes:
    """As `compress`; what is large in a thread, where the libraries let go of the interpreter."""
    return await in_thread_if_large(len(body), compress, body, encoding)


def next_link(address: str, cursor: str) -> tuple[bytes, bytes]:
    """The header that names the next page: an address that lacks its cursor only."""
    return b"link", f'<{address}cursor={cursor}>; rel="next"'.encode()


@lru_cache(maxsize=1024)
def address_without_cursor(base_url: str, path: str, query: bytes, edition_id: str | None) -> str:
    """This request, ready for another cursor behind it; with the edition where a header field named it."""
    given = read_query(query) | ({"edition": edition_id} if edition_id is not None else {})
    others = "".join(f"{name}={_quoted(value)}&" for name, value in given.items() if name != "cursor")
    return f"{base_url}{path}?{others}"


def _quoted(text: str) -> str:
    return text if text.isalnum() and text.isascii() else quote(text)
