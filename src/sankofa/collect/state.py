"""What is remembered of the last fetch: of each request what its reply was, of each source when it succeeded.

One small file for each source, replaced whole. Losing one costs a download, and nothing else.
"""

import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec

from sankofa.engines.private_files import replace_file
from sankofa.model.days import instant


class LastReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """The reply that was ingested last."""

    sha256: str
    size: int
    etag: str = ""
    last_modified: str = ""


class SourceState(msgspec.Struct, omit_defaults=True):
    """What is remembered of a source."""

    succeeded_at: str = ""
    replies: dict[str, LastReply] = {}


class StateFile:
    """The state of one source on disk."""

    def __init__(self, folder: Path, source_id: str) -> None:
        self._path = folder / f"{source_id}.json"
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
