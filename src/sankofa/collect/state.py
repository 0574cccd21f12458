"""State between fetches: last replies, the last success of each source, and transfers under way.

Each source has one small file, replaced whole. Losing it costs a download and nothing else.
"""

import os
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Final

import httpx
import msgspec

from sankofa.collect.network import ReplyRefused
from sankofa.engines.private_files import open_private, replace_file
from sankofa.model.days import instant


class LastReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """The reply that was ingested last."""

    sha256: str
    size: int
    etag: str = ""
    last_modified: str = ""


class SourceState(msgspec.Struct, omit_defaults=True):
    """The state of a source."""

    succeeded_at: str = ""
    replies: dict[str, LastReply] = {}


class StateFile:
    """The state of one source on disk."""

    def __init__(self, home: Path, source_id: str) -> None:
        self._path = home / "collect" / "state" / f"{source_id}.json"
        self.state = SourceState()
        self._written = time.monotonic()
        with suppress(OSError, msgspec.MsgspecError):
            self.state = msgspec.json.decode(self._path.read_bytes(), type=SourceState)

    @property
    def succeeded_at(self) -> datetime | None:
        text = self.state.succeeded_at
        return datetime.fromisoformat(text) if text else None

    def reply(self, key: str) -> LastReply | None:
        return self.state.replies.get(key)

    def remember(self, key: str, reply: LastReply) -> None:
        """Written at most once a second: a source may have thousands of documents."""
        self.state.replies[key] = reply
        if time.monotonic() - self._written > 1:
            self.write()

    def succeed(self, now: datetime) -> None:
        self.state.succeeded_at = instant(now)
        self.write()

    def write(self) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(self._path, msgspec.json.encode(self.state), durable=False)
        self._written = time.monotonic()


_CHUNK: Final = 1 << 16


class Partial(msgspec.Struct, frozen=True):
    """A transfer under way: the validator with which to ask for the rest."""

    validator: str


def progress(partial: Path) -> tuple[int, Partial | None]:
    """The bytes received so far, and the validator they belong to."""
    if not os.path.exists(f"{partial}.json"):  # noqa: PTH110 - most often; to catch an exception costs more
        return 0, None
    try:
        known = msgspec.json.decode(partial.with_suffix(".json").read_bytes(), type=Partial)
        return partial.stat().st_size, known if known.validator else None
    except (OSError, msgspec.MsgspecError):
        return 0, None


def note(partial: Path, headers: Mapping[str, str]) -> None:
    """A transfer with a weak ETag starts again: weak tags do not identify bytes."""
    etag = headers.get("etag", "")
    validator = etag if etag and not etag.startswith("W/") else headers.get("last-modified", "")
    ranges = headers.get("accept-ranges", "").lower() != "none"
    partial.with_suffix(".json").write_bytes(msgspec.json.encode(Partial(validator if ranges else "")))


@contextmanager
def noted_when_cut(partial: Path, headers: Mapping[str, str]) -> Iterator[None]:
    """Notes a small transfer only when it is cut."""
    try:
        yield
    except httpx.TransportError:
        if not partial.with_suffix(".json").exists():
            note(partial, headers)
        raise


def remove(partial: Path) -> None:
    """Forgets a transfer: the next one starts from the beginning."""
    partial.unlink(missing_ok=True)
    partial.with_suffix(".json").unlink(missing_ok=True)


def continues(headers: Mapping[str, str], size: int) -> bool:
    """Whether a partial reply begins where the file ends."""
    return str(headers.get("content-range", "")).startswith(f"bytes {size}-")


def decompress(source: Path, target: Path, most: int) -> None:
    """Unpacks gzip, up to a number of bytes. Raises ReplyRefused."""
    unzip = zlib.decompressobj(wbits=31)
    written = 0
    try:
        with source.open("rb") as packed, open(target, "wb", opener=open_private) as stream:
            while chunk := packed.read(_CHUNK):
                while chunk and not unzip.eof:
                    unpacked = unzip.decompress(chunk, 16 * _CHUNK)
                    chunk = unzip.unconsumed_tail
                    written += len(unpacked)
                    if written > most:
                        raise ReplyRefused(f"the reply has more than max_bytes ({most:,}) unpacked")
                    stream.write(unpacked)
    except zlib.error as failure:
        raise ReplyRefused(f"the reply is not the gzip that it says it is: {failure}") from failure
    if not unzip.eof or unzip.unused_data:
        raise ReplyRefused("the reply is not the gzip that it says it is")
