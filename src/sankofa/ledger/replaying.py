"""Reads files of the vault into a ledger again: those of one source after a withdrawal, or all of them.

A file is read as on the day it was observed, under the name and the licence class that it had then.
"""

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from sankofa.ledger.capture import Capture
from sankofa.ledger.generations import Generations
from sankofa.ledger.ingest import read_into
from sankofa.ledger.store import Ledger
from sankofa.ledger.tenders import take_again
from sankofa.ledger.withdrawing import FileOfSource, withdraw
from sankofa.model.errors import FormatError, OperatorError
from sankofa.model.records import Rejected
from sankofa.sources.base import InputFile, Limits
from sankofa.sources.registry import Source
from sankofa.vault.journal import Received, Withdrew
from sankofa.vault.store import Vault, event_number


class VaultFiles:
    """The files of one source that the vault holds; see `withdrawing.ReadsAgain`."""

    def __init__(self, vault: Vault, source: Source, limits: Limits) -> None:
        self._vault = vault
        self._source = source
        self._limits = limits
        self._held = vault.held()
        self._rows = {
            (event.sha256, event.capture): event
            for event in vault.events()
            if isinstance(event, Received) and event.source == source.id and event.rows_sha256
        }

    def holds(self, file: FileOfSource) -> bool:
        return file.content_sha256 in self._held or (file.content_sha256, file.number) in self._rows

    def read(self, capture: Capture, file: FileOfSource) -> None:
        if file.content_sha256 not in self._held:
            lines = self._vault.rows(self._rows[file.content_sha256, file.number])
            take_again(capture, lines, datetime.fromisoformat(file.observed_at), self._limits)
            return
        take_file(self._vault, self._held[file.content_sha256], capture, self._source, self._limits, file)


def take_file(
    vault: Vault,
    received: Received,
    capture: Capture,
    source: Source,
    limits: Limits,
    file: FileOfSource,
) -> None:
    """Read a stored file into a capture. Raises OperatorError if its bytes have changed."""

    def reject(rejected: Rejected) -> None:
        """Ignored: it was recorded when the file was ingested."""

    with vault.file(received, file.file_name) as path:
        capture.file_name = capture.file_name or path.name  # the name of an encrypted file is inside it
        read_into(capture, source, InputFile(path, limits), reject, datetime.fromisoformat(file.observed_at))


class Replayed(NamedTuple):
    """The result of a replay."""

    captures: int
    missing: dict[str, int]
    """By source, how many files could not be read for want of their bytes."""
    failures: list[str]


def replay(
    vault: Vault,
    ledger: Ledger,
    sources: dict[str, Source],
    limits: Limits,
    started: Callable[[str], None] = lambda name: None,
    *,
    until: int | None = None,
) -> Replayed:
    """Ingests the whole vault into an empty ledger, each file under its number. `until`: skips files that
    a crash kept out of the ledger of this position."""
    if ledger.position():
        raise OperatorError("the ledger is not empty: replay into an empty HOME")
    held = vault.held()
    missing: Counter[str] = Counter()
    failures: list[str] = []
    for event in vault.settled_events():
        if until is not None and event_number(event) > until:
            continue
        if isinstance(event, Received):
            started(event.source)
            if event.sha256 not in held:
                missing[event.source] += 1
            elif event.source not in sources:
                failures.append(f"{event.source}: is not registered")
            else:
                readable = held[event.sha256]
                received = event if event.kept == readable.kept else readable
                try:
                    _take_again(vault, ledger, sources[event.source], event, received, limits)
                except (FormatError, OperatorError) as failure:
                    failures.append(str(failure))
        elif isinstance(event, Withdrew):
            try:
                _withdraw_again(vault, ledger, sources, event, limits)
            except OperatorError as failure:
                if event.source not in missing:  # else there may be nothing left to withdraw
                    failures.append(str(failure))
    return Replayed(len(ledger.captures()), dict(sorted(missing.items())), list(dict.fromkeys(failures)))


def _take_again(
    vault: Vault, ledger: Ledger, source: Source, event: Received, held: Received, limits: Limits
) -> None:
    with ledger.writing() as session:
        stored = Generations(session).stored_id(source.id)
        number = event.capture or ledger.next_number()
        with ledger.take(
            number,
            stored,
            event.license_class,
            event.file,
            event.sha256,
            event.at,
            numbered=bool(event.capture),
        ) as capture:
            file = FileOfSource(number, event.file, event.sha256, event.at, event.license_class, "")
            take_file(vault, held, capture, source, limits, file)


def _withdraw_again(
    vault: Vault, ledger: Ledger, sources: dict[str, Source], event: Withdrew, limits: Limits
) -> None:
    source = sources.get(event.source)
    again = source and VaultFiles(vault, source, limits)
    withdraw(
        ledger,
        event.source,
        capture=event.capture,
        file_name=event.file,
        everywhere=event.everywhere,
        reason=event.reason,
        now=datetime.fromisoformat(event.at),
        reads_again=again or None,
        number=event.number,
    )
