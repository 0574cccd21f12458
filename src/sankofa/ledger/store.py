"""The ledger for writing, for backups and for restores; `reader` reads it.

The clock dates captures for good, so a clock is refused if it is more than a day behind the newest capture,
more than a year ahead of it, or more than a day ahead of every file in HOME and every input file.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from sankofa.engines.datastore import Datastore
from sankofa.engines.ledger_store import LedgerSession
from sankofa.ledger import seals
from sankofa.ledger.capture import Capture
from sankofa.ledger.generations import FilteredSession, Generations, PastSession, Withdrawal, source_of
from sankofa.ledger.reader import GATE_MARK, LedgerReader
from sankofa.model.days import instant
from sankofa.model.errors import OperatorError

_DAY: Final = timedelta(days=1)
_LONGEST_PAUSE: Final = timedelta(days=366)


def refuse_doubtful_clock(now: datetime, newest_capture: datetime | None, witnesses: Iterable[Path]) -> None:
    """Raises OperatorError. Does nothing if there is no capture yet."""
    if newest_capture is None:
        return
    if now < newest_capture - _DAY:
        raise _refusal(now, f"the newest capture is from {newest_capture:%Y-%m-%dT%H:%MZ}")
    if now > newest_capture + _LONGEST_PAUSE:
        raise _refusal(now, f"the newest capture is from {newest_capture:%Y-%m-%d}, more than a year before")
    newest = max([newest_capture, *_modified(witnesses)])
    if now > newest + _DAY:
        raise _refusal(now, f"no file in HOME or in the input is newer than {newest:%Y-%m-%dT%H:%MZ}")


def _modified(paths: Iterable[Path]) -> Iterable[datetime]:
    for path in paths:
        with suppress(OSError, OverflowError, ValueError):
            yield datetime.fromtimestamp(path.stat().st_mtime, UTC)


def _refusal(now: datetime, because: str) -> OperatorError:
    return OperatorError(
        f"the clock says {now:%Y-%m-%dT%H:%MZ}, but {because}: captures would keep this date permanently. "
        "Set the clock, or repeat the command with --clock-is-right"
    )


SCHEMA = files("sankofa.ledger").joinpath("schema.sql").read_text()

_SAME_BYTES = (
    "SELECT file_name FROM capture WHERE source_id = ? AND content_sha256 = ? "
    "UNION ALL SELECT file_name FROM unchanged_file WHERE source_id = ? AND content_sha256 = ?"
)


class CaptureContent(NamedTuple):
    """The source and the digest of a capture or a withdrawal."""

    source_id: str
    content: str


class Ledger(LedgerReader):
    """Opened once per command; not shared between threads."""

    def __init__(self, store: Datastore, gate_key: bytes, clock: Callable[[], datetime]) -> None:
        self._session = store.ledgers.open()
        super().__init__(self._session, gate_key)
        self._clock = clock

    def verify(self) -> seals.Checked:
        """Compares every row with the seals. Raises LedgerDamaged; SettingsError with another gate secret."""
        try:
            return seals.verify(self._session, self._gate_key)
        except seals.LedgerDamaged:
            if not seals.is_keyed_with(self._session, self._gate_key):
                self.persons()
            raise

    def contents(self) -> dict[int, CaptureContent]:
        """For every capture its source and a digest of its rows, to be compared with another ledger."""
        named = {number: capture.source_id for number, capture in self.captures().items()}
        named |= {withdrawal.number: withdrawal.source_id for withdrawal in self.withdrawals()}
        named |= {number: file.source_id for number, file in self.unchanged_files().items()}
        return {
            number: CaptureContent(source_of(named.get(number, "")), content)
            for number, content in seals.contents(self._session).items()
        }

    def without(self, source_ids: Collection[str]) -> LedgerReader:
        """The ledger without these sources and without withdrawn files. People whom they proved stay
        withheld."""
        return LedgerReader(FilteredSession(self._rows, source_ids), self._gate_key, partial=True)

    def go_back_to(self, last_capture: int) -> None:
        """Read the ledger as of a capture from now on, without withdrawn rows and without persons proven
        since."""
        self._rows = PastSession(self._session, last_capture)

    @contextmanager
    def verified_snapshot(self) -> Iterator[None]:
        """Reads inside see one verified state of the ledger, unaffected by other ingests. Raises
        LedgerDamaged."""
        with self._session.snapshot():
            self.verify()
            yield

    @contextmanager
    def capture(self, source_id: str, license_class: str, file_name: str, sha256: str) -> Iterator[Capture]:
        """One file, one transaction: a failure inside leaves nothing of the file."""
        with self.writing() as session:
            stored = Generations(session).stored_id(source_id)
            now = instant(self._clock())
            with self.take(self.next_number(), stored, license_class, file_name, sha256, now) as capture:
                if stored != source_id and not capture.is_known_file:
                    capture.withdrawn_before = self._withdrawn_before(source_id, sha256)
                yield capture

    @contextmanager
    def writing(self) -> Iterator[LedgerSession]:
        """One transaction; rows appended inside are sealed at its end."""
        sums = seals.RowSums()
        with self._session.transaction():
            self._session.watch(sums.add)
            try:
                yield self._session
                seals.append_seals(self._session, self._gate_key, sums)
            finally:
                self._session.watch(None)

    @contextmanager
    def take(
        self,
        number: int,
        stored: str,
        license_class: str,
        file_name: str,
        sha256: str,
        observed_at: str,
        *,
        numbered: bool = True,
    ) -> Iterator[Capture]:
        """A file under the stored id of its source, inside `writing`.

        A file with anything new is recorded as a capture, else as an unchanged file. Not `numbered`: an
        unchanged file of a journal, which gave it no number, is not recorded.
        """
        persons = self.persons()
        if not self.position():
            self._session.append("withheld", [(persons.mark, GATE_MARK, 0)])
        names = self._session.query(_SAME_BYTES, (stored, sha256) * 2)
        names_before = frozenset(name for (name,) in names)
        capture = Capture(
            self._session,
            number,
            stored,
            file_name,
            observed_at,
            persons,
            repeated=bool(names_before),
            names_before=names_before,
        )
        yield capture
        capture.flush()
        row = (capture.id, stored, capture.file_name, sha256, observed_at, license_class)
        if capture.is_news:
            self._session.append("capture", [(*row, json.dumps(vars(capture.counts)))])
        elif not capture.is_known_file and numbered:
            self._session.append("unchanged_file", [row])

    def next_number(self) -> int:
        """The number of the next capture, unchanged file or withdrawal."""
        return self.position() + 1

    def _withdrawn_before(self, source_id: str, sha256: str) -> Withdrawal | None:
        own = (one for one in reversed(self.withdrawals()) if one.source_id == source_id)
        return next((one for one in own if sha256 in {file.content_sha256 for file in one.files}), None)


_CHUNK_BYTES: Final = 8 << 20
_decode = msgspec.json.Decoder(list[str | int | None]).decode


def table_names() -> list[str]:
    """Every table of the ledger, seals included."""
    return re.findall(r"CREATE TABLE IF NOT EXISTS (\w+)", SCHEMA)


def dump_rows(session: LedgerSession) -> Iterator[tuple[str, int, bytes]]:
    """(table, number of rows, the rows as lines of JSON), a few megabytes at a time."""
    for table in table_names():
        lines: list[bytes] = []
        size = 0
        for _, line in session.encoded_rows(table):
            lines.append(line)
            size += len(line) + 1
            if size >= _CHUNK_BYTES:
                yield table, len(lines), b"\n".join(lines)
                lines, size = [], 0
        if lines:
            yield table, len(lines), b"\n".join(lines)


def load_rows(session: LedgerSession, table: str, lines: bytes) -> int:
    """Append rows that `dump_rows` wrote; returns how many. Raises OperatorError if their layout differs."""
    if table not in table_names():
        raise OperatorError(f"its ledger has a table {table!r} from a later version: upgrade first")
    try:
        rows = [tuple(_decode(line)) for line in lines.split(b"\n")]
    except msgspec.DecodeError as failure:
        raise OperatorError(f"its table {table} cannot be read: {failure}") from failure
    appended = session.append(table, rows)
    if appended != len(rows):
        raise OperatorError(f"its table {table} has duplicate rows, or the ledger is not empty")
    return appended
