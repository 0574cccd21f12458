"""Reads stored files again: to withdraw a file, and to fill an empty ledger from the vault.

A withdrawal appends a tombstone, and the source's next generation without the file. Earlier rows do not
depend on the file and are copied. Later files are read again from their stored bytes, as they were read then.
So a withdrawn file's row stays only if a valid file has it too, and then belongs to that file. If a later
file's bytes are not stored, its rows are copied, and rows that it only repeated are missing until it is
ingested again: `Withdrawn.not_read_again` names it.

A replay reads every file of the vault in order, with its original number, time, name and licence class.

See contract: ING-9.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from sankofa.engines.ledger_store import LedgerSession, Row
from sankofa.ledger.capture import Capture
from sankofa.ledger.generations import PER_CAPTURE, Generations, WithdrawnFile, columns_of, stored_id
from sankofa.ledger.ingest import read_into
from sankofa.ledger.store import Ledger
from sankofa.ledger.tenders import take_again
from sankofa.model.days import instant
from sankofa.model.errors import FormatError, OperatorError
from sankofa.model.ocds.redaction import CUT
from sankofa.model.records import Rejected
from sankofa.sources.base import InputFile, Limits
from sankofa.sources.registry import Source
from sankofa.vault.store import Received, Vault, Withdrew, event_number

_BATCH: Final = 8 << 20
"""Characters of rows that are copied together."""
_BY_SOURCE: Final = ("acceptance", "fact", "entity_record", "link", "spell", "annual", "series")
_BY_CAPTURE: Final = ("release", "indicator", "series_info")
_LONGEST_REASON: Final = 1_000


class FileOfSource(NamedTuple):
    number: int
    file_name: str
    content_sha256: str
    observed_at: str
    license_class: str
    counts: str
    """Empty if it said nothing new."""


class VaultFiles:
    def __init__(self, vault: Vault, source: Source, limits: Limits) -> None:
        self._vault = vault
        self._source = source
        self._limits = limits
        self._objects = vault.held()
        self._rows = {
            (event.sha256, event.capture): event
            for event in vault.events()
            if isinstance(event, Received) and event.source == source.id and event.rows_sha256
        }

    def holds(self, file: FileOfSource) -> bool:
        return file.content_sha256 in self._objects or (file.content_sha256, file.number) in self._rows

    def read(self, capture: Capture, file: FileOfSource) -> None:
        if file.content_sha256 not in self._objects:
            lines = self._vault.rows(self._rows[file.content_sha256, file.number])
            take_again(capture, lines, datetime.fromisoformat(file.observed_at), self._limits)
            return
        take_file(self._vault, self._objects[file.content_sha256], capture, self._source, self._limits, file)


def take_file(
    vault: Vault, received: Received, capture: Capture, source: Source, limits: Limits, file: FileOfSource
) -> None:
    """Read a stored file into a capture. Raises OperatorError if its bytes have changed."""

    def reject(rejected: Rejected) -> None:
        """Ignored: it was recorded when the file was ingested."""

    with vault.file(received, file.file_name) as path:
        capture.file_name = capture.file_name or path.name  # the name of an encrypted file is inside it
        read_into(capture, source, InputFile(path, limits), reject, datetime.fromisoformat(file.observed_at))


class Withdrawn(NamedTuple):
    """The withdrawn files, and the outcome for the others."""

    files: tuple[WithdrawnFile, ...]
    valid: int
    """Files of the source that are not withdrawn."""
    not_read_again: list[str]
    """Later files that may have repeated withdrawn rows, and whose bytes are not stored."""


def withdraw(
    ledger: Ledger,
    source_id: str,
    *,
    capture: int = 0,
    file_name: str = "",
    everywhere: bool = False,
    reason: str,
    now: datetime,
    reads_again: VaultFiles | None = None,
    number: int = 0,
    appended: Callable[[int], None] = lambda number: None,
) -> Withdrawn:
    """Append a tombstone for a source, or for one capture or file of it, in one transaction with the rest.

    `appended` is called with its number before the commit; `number` is set in a replay. Raises OperatorError
    if there is nothing to withdraw.
    """
    if not reason.strip() or len(reason) > _LONGEST_REASON:
        raise OperatorError(f"--reason: expected a text of 1 to {_LONGEST_REASON} characters")
    with ledger.writing() as session:
        ledger.persons()  # another gate secret could not seal it
        generations = Generations(session)
        before = generations.stored_id(source_id)
        files = sorted(_files_of_source(session, generations, before))
        chosen = _chosen(files, capture, file_name)
        if not chosen:
            raise OperatorError(_nothing(source_id, capture, file_name, files))
        generation = generations.generation(source_id) + 1
        number = number or ledger.next_number()
        named = tuple(WithdrawnFile(*file[:4]) for file in files if file in chosen)
        row = (
            number, source_id, generation, instant(now), capture, file_name, int(everywhere), reason.strip(),
            msgspec.json.encode(named).decode(),
        )  # fmt: skip
        session.append("withdrawal", [row])
        again = _Again(ledger, session, before, stored_id(source_id, generation), generations)
        missing = again.take(number + 1, files, chosen, reads_again)
        appended(number)
    return Withdrawn(named, len(files) - len(chosen), missing)


def _files_of_source(session: LedgerSession, generations: Generations, stored: str) -> Iterator[FileOfSource]:
    """The files of the current generation, under the numbers by which they are known."""
    for number, *rest in session.query(
        "SELECT capture_id, file_name, content_sha256, observed_at, license_class, counts FROM capture "
        "WHERE source_id = ? UNION ALL SELECT capture_id, file_name, content_sha256, observed_at, "
        "license_class, '' FROM unchanged_file WHERE source_id = ?",
        (stored, stored),
    ):
        yield FileOfSource(generations.stands_for.get(number) or number, *rest)


def _chosen(files: list[FileOfSource], capture: int, file_name: str) -> set[FileOfSource]:
    """The selected files. For a capture, also other captures of the same file."""
    if not capture:
        return {file for file in files if not file_name or file.file_name == file_name}
    same = {(file.file_name, file.content_sha256) for file in files if file.number == capture}
    return {file for file in files if (file.file_name, file.content_sha256) in same}


def _nothing(source_id: str, capture: int, file_name: str, files: list[FileOfSource]) -> str:
    if not files:
        return f"nothing of source {source_id!r} is in the ledger"
    if capture:
        return f"{source_id}: there is no capture {capture}; see `sankofa ledger captures {source_id}`"
    for file in files:
        before, cut, _ = file.file_name.partition(CUT)  # the name of a withheld person
        if cut and file_name.startswith(before) and file_name.endswith(file.file_name.rpartition(CUT)[2]):
            hint = f"if it is {file.file_name!r}, give --capture {file.number}"
            return f"{source_id}: no file of this name; {hint}"
    return f"{source_id}: no file {file_name!r} was ingested; see `sankofa ledger captures {source_id}`"


class _Again:
    """Copies the valid rows of a source into its next generation."""

    def __init__(
        self, ledger: Ledger, session: LedgerSession, before: str, after: str, generations: Generations
    ) -> None:
        self._ledger = ledger
        self._session = session
        self._before = before
        self._after = after
        self._stored_numbers = {known: number for number, known in generations.stands_for.items()}

    def take(
        self, number: int, files: list[FileOfSource], chosen: set[FileOfSource], bytes_of: VaultFiles | None
    ) -> list[str]:
        """Returns the files that came after the withdrawn one and could not be read again."""
        numbers = {file: n for n, file in enumerate((f for f in files if f not in chosen), number)}
        # An unchanged file gave no row, so nothing depends on it.
        first = min((file.number for file in chosen if file.counts), default=None)
        later = [file for file in numbers if first is not None and file.number > first]
        read = [f for f in later if bytes_of is not None and bytes_of.holds(f)]
        missing = {*later}.difference(read)
        self._copy({file: n for file, n in numbers.items() if file in missing or file not in later})
        for file in read:
            if bytes_of is not None:
                identity = file.license_class, file.file_name, file.content_sha256, file.observed_at
                with self._ledger.take(numbers[file], self._after, *identity) as capture:
                    bytes_of.read(capture, file)
        self._session.append("recapture", [(n, file.number) for file, n in numbers.items()])
        return [file.file_name for file in later if file in missing]

    def _copy(self, numbers: dict[FileOfSource, int]) -> None:
        if not numbers:
            return
        moved = {self._stored_numbers.get(file.number, file.number): n for file, n in numbers.items()}
        for table in _BY_SOURCE:
            self._copy_rows(table, f"SELECT * FROM {table} WHERE source_id = ?", moved)  # noqa: S608 - a table's name
        for table in _BY_CAPTURE:
            select = (
                f"SELECT t.* FROM {table} AS t JOIN capture AS c ON c.capture_id = t.capture_id "  # noqa: S608 - a table's name
                "WHERE c.source_id = ?"
            )
            self._copy_rows(table, select, moved)
        rows = [
            (n, self._after, f.file_name, f.content_sha256, f.observed_at, f.license_class, f.counts)
            for f, n in numbers.items()
        ]
        self._session.append("capture", [row for row in rows if row[-1]])
        self._session.append("unchanged_file", [row[:-1] for row in rows if not row[-1]])

    def _copy_rows(self, table: str, select: str, moved: dict[int, int]) -> None:
        columns = columns_of(table)
        at = columns.index("capture_id")
        source = columns.index("source_id") if "source_id" in columns else None
        position = columns.index("number") if "number" in columns else None
        batch: list[Row] = []
        size = 0
        for row in self._session.query(select, (self._before,)):
            number = moved.get(row[at])
            if number is None:
                continue
            copy = list(row)
            copy[at] = number
            if source is not None:
                copy[source] = self._after
            if position is not None:
                copy[position] = number * PER_CAPTURE + copy[position] % PER_CAPTURE
            batch.append(tuple(copy))
            size += sum(len(value) for value in copy if isinstance(value, str))
            if size >= _BATCH:
                self._session.append(table, batch)
                batch.clear()
                size = 0
        self._session.append(table, batch)


class Replayed(NamedTuple):
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
    objects = vault.held()
    missing: Counter[str] = Counter()
    failures: list[str] = []
    for event in vault.settled_events():
        if until is not None and event_number(event) > until:
            continue
        if isinstance(event, Received):
            started(event.source)
            if event.sha256 not in objects:
                missing[event.source] += 1
            elif event.source not in sources:
                failures.append(f"{event.source}: is not registered")
            else:
                readable = objects[event.sha256]
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
    vault: Vault, ledger: Ledger, source: Source, event: Received, readable: Received, limits: Limits
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
            take_file(vault, readable, capture, source, limits, file)


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
