"""Withdraws files: a tombstone, and the source's next generation without them.

Rows that came before the first of them do not depend on it and are copied. Files that came after are read
again from their bytes where these are held, as they were read then: so a row that a withdrawn file gave stays
only where a valid file gives it too, and is that file's. Where the bytes are not held the rows are copied,
and rows that the file merely repeated are missing until it is ingested again: `Withdrawn.not_read_again`
names it.

See contract: ING-9.
"""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Final, NamedTuple, Protocol

import msgspec

from sankofa.engines.datastore import LedgerSession, Row
from sankofa.ledger.capture import Capture
from sankofa.ledger.generations import Generations, WithdrawnFile, columns_of, stored_id
from sankofa.ledger.store import Ledger
from sankofa.model.days import instant
from sankofa.model.errors import OperatorError

_BATCH: Final = 10_000
_PER_CAPTURE: Final = 1 << 32
_BY_SOURCE: Final = ("acceptance", "fact", "entity_record", "link", "spell", "annual", "series")
_BY_CAPTURE: Final = ("release", "indicator", "series_info", "fact_subject")
_LONGEST_REASON: Final = 1_000


class FileOfSource(NamedTuple):
    """A file that was read from a source."""

    number: int
    file_name: str
    content_sha256: str
    observed_at: str
    license_class: str
    counts: str
    """Empty if it said nothing new."""

    @property
    def named(self) -> WithdrawnFile:
        return WithdrawnFile(self.number, self.file_name, self.content_sha256, self.observed_at)


class ReadsAgain(Protocol):
    """Gives the stored bytes of a source's files."""

    def holds(self, file: FileOfSource) -> bool: ...

    def read(self, capture: Capture, file: FileOfSource) -> None:
        """Ingests the file as on the day it was observed."""


class Withdrawn(NamedTuple):
    """The withdrawn files, and the outcome for the others."""

    files: tuple[WithdrawnFile, ...]
    valid: int
    """Files of the source that are not withdrawn."""
    not_read_again: list[str]
    """Later files that may have repeated what was withdrawn, and whose bytes are not held."""


def withdraw(
    ledger: Ledger,
    source_id: str,
    *,
    capture: int = 0,
    file_name: str = "",
    everywhere: bool = False,
    reason: str,
    now: datetime,
    reads_again: ReadsAgain | None = None,
    number: int = 0,
    appended: Callable[[int], None] = lambda number: None,
) -> Withdrawn:
    """Append a tombstone for a source, or for one capture or file of it, in one transaction with the rest.

    `appended` is called with its number before it lasts; `number` is that of a replay. Raises OperatorError
    if there is nothing to withdraw.
    """
    if not reason.strip() or len(reason) > _LONGEST_REASON:
        raise OperatorError(f"--reason: expected a text of 1 to {_LONGEST_REASON} characters")
    with ledger.writing() as session:
        ledger.persons()  # another gate secret could not seal it
        generations = Generations(session)
        before = generations.stored_id(source_id)
        held = sorted(_held(session, generations, before))
        chosen = _chosen(held, capture, file_name)
        if not chosen:
            raise OperatorError(_nothing(source_id, capture, file_name, held))
        generation = generations.generation(source_id) + 1
        number = number or ledger.next_number()
        named = tuple(file.named for file in held if file in chosen)
        row = (
            number, source_id, generation, instant(now), capture, file_name, int(everywhere), reason.strip(),
            msgspec.json.encode(named).decode(),
        )  # fmt: skip
        session.append("withdrawal", [row])
        again = _Again(ledger, session, before, stored_id(source_id, generation), generations)
        missing = again.take(number + 1, held, chosen, reads_again)
        appended(number)
    return Withdrawn(named, len(held) - len(chosen), missing)


def _held(session: LedgerSession, generations: Generations, stored: str) -> Iterator[FileOfSource]:
    """The files of the current generation, under the numbers by which they are known."""
    for number, *rest in session.query(
        "SELECT capture_id, file_name, content_sha256, observed_at, license_class, counts FROM capture "
        "WHERE source_id = ? UNION ALL SELECT capture_id, file_name, content_sha256, observed_at, "
        "license_class, '' FROM unchanged_file WHERE source_id = ?",
        (stored, stored),
    ):
        yield FileOfSource(generations.stands_for.get(number) or number, *rest)


def _chosen(held: list[FileOfSource], capture: int, file_name: str) -> set[FileOfSource]:
    """The selected files. For a capture, also other captures of the same file."""
    if not capture:
        return {file for file in held if not file_name or file.file_name == file_name}
    same = {(file.file_name, file.content_sha256) for file in held if file.number == capture}
    return {file for file in held if (file.file_name, file.content_sha256) in same}


def _nothing(source_id: str, capture: int, file_name: str, held: list[FileOfSource]) -> str:
    if not held:
        return f"nothing of source {source_id!r} is in the ledger"
    if capture:
        return f"{source_id}: there is no capture {capture}; see `sankofa ledger captures {source_id}`"
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
        self, number: int, held: list[FileOfSource], chosen: set[FileOfSource], bytes_of: ReadsAgain | None
    ) -> list[str]:
        """Returns the files that came after what is withdrawn, and could not be read again."""
        numbers = {file: n for n, file in enumerate((f for f in held if f not in chosen), number)}
        # An unchanged file gave no row, so nothing depends on it.
        first = min((file.number for file in chosen if file.counts), default=None)
        later = [file for file in numbers if first is not None and file.number > first]
        read = [f for f in later if bytes_of is not None and bytes_of.holds(f)]
        missing = {*later}.difference(read)
        self._copy({file: n for file, n in numbers.items() if file in missing or file not in later})
        for file in read:
            if bytes_of is not None:
                self._read(file, numbers[file], bytes_of)
        self._session.append("recapture", [(n, file.number) for file, n in numbers.items()])
        return [file.file_name for file in later if file in missing]

    def _read(self, file: FileOfSource, number: int, bytes_of: ReadsAgain) -> None:
        with self._ledger.take(
            number, self._after, file.license_class, file.file_name, file.content_sha256, file.observed_at
        ) as capture:
            bytes_of.read(capture, file)

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
        place = columns.index("number") if "number" in columns else None
        batch: list[Row] = []
        for row in self._session.query(select, (self._before,)):
            number = moved.get(row[at])
            if number is None:
                continue
            copy = list(row)
            copy[at] = number
            if source is not None:
                copy[source] = self._after
            if place is not None:
                copy[place] = number * _PER_CAPTURE + copy[place] % _PER_CAPTURE
            batch.append(tuple(copy))
            if len(batch) >= _BATCH:
                self._session.append(table, batch)
                batch.clear()
        if batch:
            self._session.append(table, batch)
