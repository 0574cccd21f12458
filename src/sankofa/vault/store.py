"""The vault as its users see it: keep a file, find its bytes again, verify everything.

See docs/decisions/collecting.md. See contract: VLT-1, VLT-2, VLT-3.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal, NamedTuple

import msgspec

from sankofa.engines.private_files import is_alive, locked, open_private, remove_partial, sync
from sankofa.model.days import instant
from sankofa.model.errors import OperatorError
from sankofa.settings import Settings
from sankofa.vault.objects import LineWriter, ObjectDamaged, Objects, cipher_of, read_lines

Kept = Literal["bytes", "encrypted", "hash"]
"""How the vault stores a file: its bytes, its bytes encrypted with the operator's key, or only its hash."""


class JournalDamaged(OperatorError):
    """A line of the journal is not what was written."""


class HttpExchange(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a file was fetched, without the secrets of the request."""

    method: str
    url: str
    status: int
    request_headers: dict[str, str] = {}
    response_headers: dict[str, str] = {}
    final_url: str = ""
    """The final address after redirects; empty without any."""
    body_sha256: str = ""
    """SHA-256 of the request body, if there was one."""


class Received(msgspec.Struct, frozen=True, tag="received", tag_field="event", omit_defaults=True):
    """A file of a source came in and was read into the ledger."""

    at: str
    source: str
    license_class: str
    file: str
    """Name in the ledger; empty if the file is encrypted or only its hash is stored."""
    sha256: str
    size: int
    kept: Kept
    capture: int = 0
    """Number in the ledger; 0 if the ledger already has this file."""
    stored_sha256: str = ""
    """SHA-256 of an encrypted object as stored."""
    rows_sha256: str = ""
    """SHA-256 of the stored cleaned copy, if the vault has only the hash of the file."""
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
    """The journal: read whole once; one process at a time appends."""

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
        """One process at a time. Reads first what other processes wrote meanwhile."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(self._path.with_name(".lock")):
            self.events()
            yield

    def append(self, event: Event) -> None:
        """Write an event durably; call while `writing`."""
        text = _encode(event)
        chain = self._next(text)
        line = _encode({"chain": chain, "event": msgspec.Raw(text)}) + b"\n"
        try:
            descriptor = open_private(str(self._path), os.O_WRONLY | os.O_CREAT)
            try:
                os.ftruncate(descriptor, self._end)  # an incomplete line left by a crash
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


_COPIES: Final = ".read-"


class Verified(NamedTuple):
    """The result of reading everything."""

    events: int
    objects: int
    size: int
    hash_only: int
    """Files of which only the hash is stored."""
    unreadable: int
    """Encrypted objects that were compared undecrypted, because the key is missing."""
    faults: list[str]


class Vault:
    def __init__(self, home: Path, gate_key: bytes, vault_key: str = "", retention_days: int = 0) -> None:
        self._folder = home / "vault"
        self._journal = Journal(self._folder / "journal.jsonl", gate_key)
        self._objects = Objects(self._folder / "objects", cipher_of(vault_key) if vault_key else None)
        self._retention = timedelta(days=retention_days) if retention_days else None
        self._is_tidy = False
        self._indexed_files: set[tuple[str, str]] = set()
        self._indexed = 0

    @classmethod
    def of(cls, settings: Settings) -> "Vault":
        return cls(settings.home, settings.gate_key(), settings.vault_key, settings.vault_retention_days)

    def events(self) -> list[Event]:
        """Everything that happened, oldest first. Raises JournalDamaged."""
        return self._journal.events()

    def settled_events(self) -> list[Event]:
        """Leaves out events interrupted by a crash: their number was given to another capture."""
        events = self.events()
        last = {number: position for position, event in enumerate(events) if (number := event_number(event))}
        return [e for position, e in enumerate(events) if last.get(event_number(e), position) == position]

    @property
    def has_key(self) -> bool:
        return self._objects.has_key

    def rows_writer(self) -> LineWriter:
        """A writer for the cleaned copy of a file whose bytes are not stored; pass it closed to `keep`."""
        return LineWriter(self._objects.rows_draft())

    def keep(self, path: Path, received: Received, *, confidential: bool, rows: Path | None = None) -> None:
        """Stores the bytes of a file durably, then its line in the journal.

        `confidential`: the file may name people, so its bytes are stored encrypted with the operator's key or
        not at all; in the latter case the `rows` that passed the gate are stored. A file that was ingested
        before and changed nothing is recorded only if the journal lacks it.
        """
        with self._writing():
            if not received.capture and (received.source, received.sha256) in self._received():
                return
            changes: dict[str, Any] = {"kept": "bytes"}
            if not confidential:
                self._objects.put(path, received.sha256)
            elif self._objects.has_key:
                stored = self._objects.put_encrypted(path, received.sha256, path.name)
                changes = {"kept": "encrypted", "stored_sha256": stored, "file": ""}
            else:
                changes = {"kept": "hash", "file": ""}
                if rows is not None:
                    stored = self._objects.put_rows(rows, received.sha256, received.source, received.capture)
                    changes["rows_sha256"] = stored
            self._journal.append(msgspec.structs.replace(received, **changes))

    def record_withdrawal(self, withdrew: Withdrew) -> None:
        with self._writing():
            self._journal.append(withdrew)

    def drop_expired(self, now: datetime) -> int:
        """Remove encrypted bytes that are older than the retention; how many."""
        if self._retention is None or not (self._folder / "journal.jsonl").exists():
            return 0
        oldest = instant(now - self._retention)
        with self._writing():
            latest: dict[str, str] = {}
            for event in self.events():
                if isinstance(event, Received) and event.kept == "encrypted":
                    latest[event.sha256] = max(event.at, latest.get(event.sha256, ""))
                elif isinstance(event, Dropped):
                    latest.pop(event.sha256, None)
            expired = [sha256 for sha256, at in latest.items() if at < oldest]
            for sha256 in expired:
                self._journal.append(Dropped(instant(now), sha256))
                self._objects.remove_encrypted(sha256)
        return len(expired)

    def held(self) -> dict[str, Received]:
        """The files whose bytes can be read, by SHA-256."""
        held: dict[str, Received] = {}
        for event in self.events():
            if isinstance(event, Received):
                readable = event.kept == "bytes" or (event.kept == "encrypted" and self._objects.has_key)
                if readable and (event.sha256 not in held or event.kept == "bytes"):
                    held[event.sha256] = event
            elif isinstance(event, Dropped):
                held.pop(event.sha256, None)
        return held

    def rows(self, received: Received) -> Iterator[bytes]:
        """The lines of the cleaned copy of a file. Raises ObjectDamaged."""
        path = self._objects.rows_path(received.sha256, received.source, received.capture)
        try:
            if self._objects.stored_digest(path) != received.rows_sha256:
                raise ObjectDamaged("has other rows than were stored")
            yield from read_lines(path)
        except ObjectDamaged as failure:
            raise ObjectDamaged(_named(received, str(failure))) from failure

    @contextmanager
    def file(self, received: Received, name: str = "") -> Iterator[Path]:
        """Opens a file as received, under its stored name or, without one, this name. Raises
        OperatorError."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=f"{_COPIES}{os.getpid()}-", dir=self._folder) as folder:
            encrypted = received.kept == "encrypted"
            try:
                with self._objects.opened(received.sha256, encrypted=encrypted) as (kept_name, chunks):
                    path = Path(folder, kept_name or name or received.file)
                    with open(path, "wb", opener=open_private) as stream:
                        stream.writelines(chunks)
            except ObjectDamaged as failure:
                raise ObjectDamaged(_named(received, str(failure))) from failure
            yield path

    def verify(self) -> Verified:
        """Reads every byte and compares it with the journal."""
        faults: list[str] = []
        try:
            events = list(self.events())
        except JournalDamaged as failure:
            return Verified(0, 0, 0, 0, 0, [str(failure)])
        dropped = {event.sha256 for event in events if isinstance(event, Dropped)}
        checked: dict[tuple[str, str], int] = {}
        unreadable = 0
        for event in events:
            if not isinstance(event, Received) or event.sha256 in dropped:
                continue
            kind = (
                event.kept
                if event.kept != "hash"
                else event.rows_sha256 and f"rows {event.capture} of {event.source}"
            )
            if not kind or (event.sha256, kind) in checked:
                continue
            try:
                if event.kept == "hash":
                    checked[event.sha256, kind] = sum(len(line) + 1 for line in self.rows(event))
                elif event.kept == "bytes" or self._objects.has_key:
                    encrypted = event.kept == "encrypted"
                    with self._objects.opened(event.sha256, encrypted=encrypted) as (_, chunks):
                        checked[event.sha256, kind] = sum(map(len, chunks))
                else:
                    unreadable += 1
                    path = self._objects.path(event.sha256, encrypted=True)
                    if self._objects.stored_digest(path) != event.stored_sha256:
                        raise ObjectDamaged("differs from what was stored")
                    checked[event.sha256, kind] = event.size
            except OperatorError as failure:
                checked[event.sha256, kind] = 0
                faults.append(str(failure) if event.kept == "hash" else _named(event, str(failure)))
        hash_only = sum(isinstance(event, Received) and event.kept == "hash" for event in events)
        return Verified(len(events), len(checked), sum(checked.values()), hash_only, unreadable, faults)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        is_new = not self._folder.exists()
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if is_new:
            sync(self._folder.parent)
        with self._journal.writing():
            if not self._is_tidy:
                self._is_tidy = True
                remove_partial(self._folder)
                self._remove_left_copies()
            yield

    def _remove_left_copies(self) -> None:
        for folder in self._folder.glob(f"{_COPIES}*"):
            process = folder.name.removeprefix(_COPIES).partition("-")[0]
            if not is_alive(process):
                shutil.rmtree(folder, ignore_errors=True)

    def _received(self) -> set[tuple[str, str]]:
        events = self.events()
        for event in events[self._indexed :]:
            if isinstance(event, Received):
                self._indexed_files.add((event.source, event.sha256))
        self._indexed = len(events)
        return self._indexed_files


def event_number(event: Event) -> int:
    """Number of the capture or withdrawal in the ledger; 0 if there is none."""
    if isinstance(event, Received):
        return event.capture
    return event.number if isinstance(event, Withdrew) else 0


def _named(received: Received, fault: str) -> str:
    file = received.file or "an unnamed file"
    return f"{received.source} {file} ({received.sha256[:12]}, {received.at}): {fault}"
