"""Content encodings: which one a client takes, and compressing with it. Every HTTP surface uses these."""

import gzip
import sys
from functools import lru_cache
from typing import Final

import brotli

from sankofa.edition.read.turns import in_thread_if_large

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ENCODINGS: Final = ("zstd", "br", "gzip")
_SMALLEST_COMPRESSED: Final = 1024


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
    best = max(ENCODINGS, key=lambda e: (weights.get(e, fallback), -ENCODINGS.index(e)))
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
