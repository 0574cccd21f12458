"""Errors of fetching, and the checks that refuse a reply.

OperatorError
└─ CollectFailed      a source could not be fetched; what was there stays
   ├─ ReplyRefused         a reply is not what it claims to be
   ├─ DeadlinePassed       a document took too long
   └─ Stopped              the operator ended the run
"""

import base64
import binascii
import gzip
import hashlib
import re
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import httpx

from sankofa.model.errors import OperatorError


class CollectFailed(OperatorError):
    """A source could not be fetched; what was there stays."""


class ReplyRefused(CollectFailed):
    """A reply is not what it claims to be."""


class DeadlinePassed(CollectFailed):
    """A document took longer than its source allows; what came of it stays, to go on with."""


class Stopped(CollectFailed):
    """The operator ended the collection."""


_HTML: Final = re.compile(
    rb"\s*+(?><!--.*?-->\s*+)*+<(!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.DOTALL
)
_LOGIN: Final = re.compile(r"/(login|log-in|signin|sign-in|sso|auth|account/login)\b", re.IGNORECASE)
_DIGEST: Final = re.compile(r"(sha-256|sha-512|md5)=:?([A-Za-z0-9+/_-]+={0,2}):?", re.IGNORECASE)
_PIECE: Final = 1 << 20


def refuse_login(url: httpx.URL, asked: httpx.URL) -> None:
    """A redirect that ends at a page to log in is no reply."""
    if url != asked and _LOGIN.search(url.path) and not _LOGIN.search(asked.path):
        raise ReplyRefused(f"redirected to a login ({url.host}{url.path})")


def refuse_untrue(path: Path, name: str, headers: Mapping[str, str], start: bytes, most: int) -> None:
    """Raises ReplyRefused where the content, which begins so, is not of the kind that its name says, or
    unpacks to more than `most` bytes."""
    if not start.strip():
        raise ReplyRefused("the reply is empty")
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if _HTML.match(start) or kind in ("text/html", "application/xhtml+xml"):
        raise ReplyRefused("the reply is an HTML page")
    lower = name.lower()
    if lower.endswith(".zip") and not zipfile.is_zipfile(path):
        raise ReplyRefused("the reply is not a whole zip archive")
    if lower.endswith(".gz"):
        _refuse_broken_gzip(path, most)
    first = start.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if lower.endswith((".json", ".jsonl")) and first not in (b"{", b"["):
        raise ReplyRefused("the reply is not JSON")


def refuse_other_digest(path: Path, headers: Mapping[str, str], *, is_part: bool = False) -> None:
    """Hold the bytes as they were sent against the digests that came with them.

    `is_part`: the headers are those of the last part alone.
    """
    fields = ("digest", "repr-digest") if is_part else ("digest", "repr-digest", "content-digest")
    named = [(m[1].lower(), m[2]) for name in fields if name in headers
             for m in _DIGEST.finditer(headers[name])]  # fmt: skip
    if "content-md5" in headers and not is_part:
        named.append(("md5", headers["content-md5"]))
    for algorithm, text in named:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, algorithm.replace("-", "")).digest()
        if digest != _decoded(text):
            raise ReplyRefused(f"the reply has another {algorithm} than it says")


def refuse_shrunk(size: int, before: int | None) -> None:
    if before and size < before / 2:
        raise ReplyRefused(f"the reply shrank from {before:,} to {size:,} bytes (--accept-shrunk takes it)")


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(
            text + "=" * (-len(text) % 4), altchars=b"-_" if set(text) & set("-_") else None
        )
    except (binascii.Error, ValueError):
        return b""


def _refuse_broken_gzip(path: Path, most: int) -> None:
    """Read it to its end: a gzip file that was cut shows only there."""
    size = 0
    try:
        with gzip.open(path) as stream:
            while piece := stream.read(_PIECE):
                size += len(piece)
                if size > most:
                    raise ReplyRefused(f"the reply has more than max_bytes ({most:,}) unpacked")
    except EOFError:
        raise ReplyRefused("the reply is a gzip file that was cut short") from None
    except (gzip.BadGzipFile, zlib.error) as failure:
        raise ReplyRefused(f"the reply is not gzip: {failure}") from failure
