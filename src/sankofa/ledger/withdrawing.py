"""Withdraws captures: a tombstone, and the source's next generation without them.

What came before the first of them does not depend on it and is copied row by row. What came after is read
again from its bytes where they are held, as it was read then; else its rows are copied, and whatever it
merely repeated of the withdrawn file is missing until it is ingested again: `Withdrawn.not_read_again`
names it.

See contract: ING-9.
"""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Final, NamedTuple, Protocol

import msgspec

from sankofa.engines.datastore import LedgerSession, Row
from sankofa.ledger.capture import Capture
from sankofa.ledger.generations import Generations, WithdrawnCapture, columns_of, stored_id
from sankofa.ledger.store import Ledger
from sankofa.model.days import instant
from sankofa.model.errors import OperatorError

_BATCH: Final = 10_000
_PER_CAPTURE: Final = 1 << 32
_BY_SOURCE: Final = ("fact", "entity_record", "link", "annual", "series")
_BY_CAPTURE: Final = ("release", "indicator", "series_info", "fact_subject")
_LONGEST_REASON: Final = 1_000


class FileOfSource(NamedTuple):
    """A file that was captured, or read without saying anything new (then it has no number)."""

    number: int
    file_name: str
    content_sha256: str
    observed_at: str
    license_class: str
    counts: str

    @property
    def named(self) -> WithdrawnCapture:
        return WithdrawnCapture(self.number, self.file_name, self.content_sha256)


class ReadsAgain(Protocol):
    """Where the bytes of a source's files are held."""

    def holds(self, sha256: str) -> bool: ...

    def read(self, capture: Capture, file: FileOfSource) -> None:
        """Take everything that the file says, as on the day it was observed."""

    def seen(self) -> list[FileOfSource]:
        """Every file of the source whose bytes are held, in the order they came."""


class Withdrawn(NamedTuple):
    """What was withdrawn, and what became of the rest."""

    captures: tuple[WithdrawnCapture, ...]
    standing: int
    """Captures of the source that stand."""
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
    where there is nothing to withdraw.
    """
    if not reason.strip() or len(reason) > _LONGEST_REASON:
        raise OperatorError(f"--reason: expected a text of 1 to {_LONGEST_REASON} characters")
    with ledger.writing() as session:
        ledger.persons()  # another gate secret could not seal it
        generations = Generations(session)
        held = list(_held(session, generations, source_id))
        chosen = [file for file in held if _is_meant(file, capture, file_name)]
        if not chosen:
            raise OperatorError(_nothing(source_id, capture, file_name, held))
        generation = generations.generation(source_id) + 1
        number = number or ledger.next_number()
        named = tuple(file.named for file in chosen)
        row = (
            number, source_id, generation, instant(now), capture, file_name, int(everywhere), reason.strip(),
            msgspec.json.encode(named).decode(),
        )  # fmt: skip
        session.append("withdrawal", [row])
        again = _Again(ledger, session, generations.stored_id(source_id), stored_id(source_id, generation))
        missing = again.take(number + 1, held, chosen, reads_again)
        appended(number)
    return Withdrawn(named, len(held) - len(chosen), missing)


def _held(session: LedgerSession, generations: Generations, source_id: str) -> Iterator[FileOfSource]:
    """The captures of the generation that stands, under the numbers by which they are known."""
    for number, *rest in session.query(
        "SELECT capture_id, file_name, content_sha256, observed_at, license_class, counts FROM capture "
        "WHERE source_id = ? ORDER BY capture_id",
        (generations.stored_id(source_id),),
    ):
        yield FileOfSource(generations.stands_for.get(number) or number, *rest)


def _is_meant(file: FileOfSource, capture: int, file_name: str) -> bool:
    if capture:
        return file.number == capture
    return not file_name or file.file_name == file_name


def _nothing(source_id: str, capture: int, file_name: str, held: list[FileOfSource]) -> str:
    if not held:
        return f"nothing of source {source_id!r} is in the ledger"
    if capture:
        return f"{source_id}: no capture {capture} stands; see `sankofa ledger captures {source_id}`"
    return f"{source_id}: no file {file_name!r} was captured; see `sankofa ledger captures {source_id}`"


class _Again:
    """Takes what stands of a source into its next generation."""

    def __init__(self, ledger: Ledger, session: LedgerSession, before: str, after: str) -> None:
        self._ledger = ledger
        self._session = session
        self._before = before
        self._after = after
        stands_for = Generations(session).stands_for
        self._stored_numbers = {known: number for number, known in stands_for.items()}

    def take(
        self, number: int, held: list[FileOfSource], chosen: list[FileOfSource], bytes_of: ReadsAgain | None
    ) -> list[str]:
        """Returns the files that came after what is withdrawn, and could not be read again."""
        first = min(file.number for file in chosen)
        gone = {file.content_sha256 for file in chosen}
        standing = [file for file in held if file.content_sha256 not in gone]
        copied = [
            file
            for file in standing
            if file.number < first or bytes_of is None or not bytes_of.holds(file.content_sha256)
        ]
        order = {file: (file.number, 0) for file in standing}
        order |= _said_nothing_new(held, gone, bytes_of)
        in_order = sorted(order, key=order.__getitem__)
        numbers = {file: number + at for at, file in enumerate(in_order)}
        read = [file for file in in_order if file not in copied]
        self._copy({file: numbers[file] for file in copied})
        last = max((file.number for file in copied if file.number < first), default=0)
        for file in read:
            if bytes_of is not None:
                last = self._read(file, numbers[file], bytes_of, last)
        return [file.file_name for file in copied if file.number > first]

    def _read(self, file: FileOfSource, number: int, bytes_of: ReadsAgain, last: int) -> int:
        """Returns the number that it stands for: its own where it had none, or one out of order."""
        with self._ledger.take(
            number, self._after, file.license_class, file.file_name, file.content_sha256, file.observed_at
        ) as capture:
            bytes_of.read(capture, file)
        if not capture.is_news:
            return last
        if file.number > last:
            self._session.append("recapture", [(number, file.number)])
            return file.number
        return number

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
        self._session.append(
            "capture",
            [
                (n, self._after, f.file_name, f.content_sha256, f.observed_at, f.license_class, f.counts)
                for f, n in numbers.items()
            ],
        )
        self._session.append("recapture", [(n, file.number) for file, n in numbers.items()])

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


def _said_nothing_new(
    held: list[FileOfSource], gone: set[str], bytes_of: ReadsAgain | None
) -> dict[FileOfSource, tuple[int, int]]:
    """Files that had no news while the withdrawn one stood, each behind the capture that it came after."""
    captured = {file.content_sha256: file.number for file in held}
    behind: dict[str, tuple[FileOfSource, tuple[int, int]]] = {}
    newest = 0
    for place, file in enumerate(bytes_of.seen() if bytes_of is not None else (), 1):
        newest = max(newest, captured.get(file.content_sha256, 0))
        if file.content_sha256 not in captured and file.content_sha256 not in gone:
            behind.setdefault(file.content_sha256, (file, (newest, place)))
    return dict(behind.values())
