"""The journal of a vault: one line for each thing that happened, each chained to the one before.

A line is appended and synced in one go. One that was cut short by a crash has no end; it is passed over by
readers and cut off by the next writer. The chain is keyed, so that a line that was altered, left out or moved
shows, and nobody without the gate secret can write it anew.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from sankofa.engines.private_files import locked, open_private
from sankofa.model.errors import OperatorError

Kept = Literal["bytes", "encrypted", "hash"]
"""How the vault holds a file: its bytes, its bytes under the operator's key, or its hash alone."""


class JournalDamaged(OperatorError):
    """A line of the journal is not the one that was written."""


class HttpExchange(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a file was fetched. Of the request nothing that is a secret."""

    method: str
    url: str
    status: int
    request_headers: dict[str, str] = {}
    response_headers: dict[str, str] = {}
    final_url: str = ""
    """Where redirects led, where they did."""
    body_sha256: str = ""
    """SHA-256 of the request body, if there was one."""


class Received(msgspec.Struct, frozen=True, tag="received", tag_field="event", omit_defaults=True):
    """A file of a source came in and was read into the ledger."""

    at: str
    source: str
    license_class: str
    file: str
    """As the ledger has it; empty if it is encrypted or only its hash is kept."""
    sha256: str
    size: int
    kept: Kept
    capture: int = 0
    """Its number in the ledger; 0 if the ledger has this very file already."""
    stored_sha256: str = ""
    """SHA-256 of an encrypted object as stored."""
    rows_sha256: str = ""
    """SHA-256 of the stored cleaned copy, where only the hash of the file is in the vault."""
    exchange: HttpExchange | None = None


class Withdrew(msgspec.Struct, frozen=True, tag="withdrew", tag_field="event", omit_defaults=True):
    """Something of a source was withdrawn from the ledger."""

    at: str
    source: str
    number: int
    reason: str
    capture: int = 0
    file: str = ""
    everywhere: bool = False


class Dropped(msgspec.Struct, frozen=True, tag="dropped", tag_field="event"):
    """The encrypted bytes of a file were removed when their time was over."""

    at: str
    sha256: str


Event = Received | Withdrew | Dropped


class _Line(msgspec.Struct, frozen=True):
    chain: str
    event: msgspec.Raw


_decode_line = msgspec.json.Decoder(_Line).decode
_decode_event = msgspec.json.Decoder(Event).decode
_encode: Final = msgspec.json.Encoder(order="deterministic").encode


def _damaged(line: int, fault: str) -> JournalDamaged:
    return JournalDamaged(
        f"the vault is damaged: line {line} of the journal {fault}. Restore HOME/vault from a backup, or "
        "move it aside to begin another (docs/how-to/collecting.md)"
    )


class Journal:
    """Read whole once; appended to by one process at a time."""

    def __init__(self, path: Path, key: bytes) -> None:
        self._path = path
        self._key = blake2b(key, person=b"vault journal").digest()
        self._events: list[Event] = []
        self._end = 0
        self._chain = ""

    def events(self) -> list[Event]:
        """Everything that happened, oldest first. Raises JournalDamaged."""
        try:
            with self._path.open("rb") as stream:
                stream.seek(self._end)
                self._read(stream.read())
        except FileNotFoundError:
            pass
        except OSError as failure:
            raise OperatorError(f"{self._path.name}: cannot be read: {failure.strerror}") from failure
        return self._events

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One process at a time. What another wrote meanwhile is read first."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(self._path.with_name(".lock")):
            self.events()
            yield

    def append(self, event: Event) -> None:
        """Make an event last; to be called while `writing`."""
        text = _encode(event)
        chain = self._next(text)
        line = _encode({"chain": chain, "event": msgspec.Raw(text)}) + b"\n"
        try:
            descriptor = open_private(str(self._path), os.O_WRONLY | os.O_CREAT)
            try:
                os.ftruncate(descriptor, self._end)  # what a crash left of a line
                os.pwrite(descriptor, line, self._end)
                os.fdatasync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as failure:
            raise OperatorError(f"the vault cannot be written: {failure.strerror}") from failure
        self._events.append(event)
        self._end += len(line)
        self._chain = chain

    def _read(self, text: bytes) -> None:
        whole, _, _ = text.rpartition(b"\n")
        for number, line in enumerate(whole.split(b"\n") if whole else (), len(self._events) + 1):
            try:
                read = _decode_line(line)
                event: Any = _decode_event(read.event)
            except msgspec.MsgspecError as failure:
                raise _damaged(number, f"cannot be read: {failure}") from failure
            if read.chain != self._next(bytes(read.event)):
                raise _damaged(number, "does not follow from the one before it")
            self._events.append(event)
            self._chain = read.chain
            self._end += len(line) + 1

    def _next(self, text: bytes) -> str:
        return blake2b(self._chain.encode() + b"\n" + text, digest_size=16, key=self._key).hexdigest()
