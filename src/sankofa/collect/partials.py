"""A transfer under way, on disk: what has come so far, and a note beside it of what that is a part of."""

import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx
import msgspec

from sankofa.collect.errors import ReplyRefused
from sankofa.engines.private_files import open_private

_CHUNK: Final = 1 << 16


class Partial(msgspec.Struct, frozen=True):
    """What is known of a transfer under way: enough to ask for the rest of the same thing."""

    validator: str


def progress(partial: Path) -> tuple[int, Partial | None]:
    """How much of a transfer is there, and what it is of."""
    if not os.path.exists(f"{partial}.json"):  # noqa: PTH110 - most often; to catch an exception costs more
        return 0, None
    try:
        known = msgspec.json.decode(partial.with_suffix(".json").read_bytes(), type=Partial)
        return partial.stat().st_size, known if known.validator else None
    except (OSError, msgspec.MsgspecError):
        return 0, None


def note(partial: Path, headers: Mapping[str, str]) -> None:
    """A weak ETag says nothing of bytes: such a transfer begins anew."""
    etag = headers.get("etag", "")
    validator = etag if etag and not etag.startswith("W/") else headers.get("last-modified", "")
    ranges = headers.get("accept-ranges", "").lower() != "none"
    partial.with_suffix(".json").write_bytes(msgspec.json.encode(Partial(validator if ranges else "")))


@contextmanager
def noted_when_cut(partial: Path, headers: Mapping[str, str]) -> Iterator[None]:
    """What was small enough not to be noted before is noted when it turns out to be needed."""
    try:
        yield
    except httpx.TransportError:
        if not partial.with_suffix(".json").exists():
            note(partial, headers)
        raise


def write_private(path: Path, content: bytes) -> None:
    """Write a file that nobody else may read."""
    with open(path, "wb", buffering=0, opener=open_private) as stream:
        stream.write(content)


def remove(partial: Path) -> None:
    """Forget a transfer: the next one begins anew."""
    partial.unlink(missing_ok=True)
    partial.with_suffix(".json").unlink(missing_ok=True)


def continues(headers: Mapping[str, str], size: int) -> bool:
    """Whether a partial reply begins where the file ends."""
    return str(headers.get("content-range", "")).startswith(f"bytes {size}-")


def decompress(source: Path, target: Path, most: int) -> None:
    """Unpack gzip, at most so many bytes. Raises ReplyRefused."""
    unzip = zlib.decompressobj(wbits=31)
    written = 0
    try:
        with source.open("rb") as packed, open(target, "wb", opener=open_private) as stream:
            while piece := packed.read(_CHUNK):
                while piece and not unzip.eof:
                    unpacked = unzip.decompress(piece, 16 * _CHUNK)
                    piece = unzip.unconsumed_tail
                    written += len(unpacked)
                    if written > most:
                        raise ReplyRefused(f"the reply has more than max_bytes ({most:,}) unpacked")
                    stream.write(unpacked)
    except zlib.error as failure:
        raise ReplyRefused(f"the reply is not the gzip that it says it is: {failure}") from failure
    if not unzip.eof or unzip.unused_data:
        raise ReplyRefused("the reply is not the gzip that it says it is")
