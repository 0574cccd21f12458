"""Ingests files: one transaction each, every record checked, every rejected row written down.

See contract: ING-1, ING-2, ING-3, ING-4.
"""

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from sankofa.engines.private_files import open_private
from sankofa.ledger.capture import Capture
from sankofa.ledger.generations import Withdrawal
from sankofa.ledger.matching import named_key
from sankofa.ledger.store import Ledger
from sankofa.ledger.tenders import ReleaseIngester, cleaned_copy, too_long_text
from sankofa.model.countries import country
from sankofa.model.days import EARLIEST, latest_day, out_of_range
from sankofa.model.errors import FormatError, OperatorError
from sankofa.model.limits import limit
from sankofa.model.observations import AnnualColumn, SeriesColumn, SeriesInfo
from sankofa.model.organisations import org_evidence
from sankofa.model.records import (
    Acceptance,
    Counts,
    EntityRecord,
    Fact,
    IdentifierLink,
    Record,
    Rejected,
    Release,
    Skipped,
    Withheld,
)
from sankofa.sources.base import InputFile, Limits, adapters
from sankofa.sources.registry import Source
from sankofa.vault.store import HttpExchange, Received, Vault

_COUNTED: Final = "the others are counted by reason"
MOST_LINES: Final = limit("rejected rows that are listed", 1_000, "lines for each file", _COUNTED)
MOST_BYTES: Final = limit("list of rejected rows", 1_000_000, "bytes for each file", _COUNTED)
REASONS_SHOWN: Final = 5
_MOST_REASONS: Final = 100
_LONGEST_REASON: Final = 300
_FOR_COUNTS: Final = 100_000
"""Bytes of the limit that are reserved for the counts."""
_OTHER: Final = "other reasons"


class RejectsFile:
    """The rejected rows of a command, file by file. Files that fail as a whole are left out."""

    def __init__(self, path: Path | None, reasons: list[str]) -> None:
        """`reasons` collects the first rejects, for the operator. Without a path no file is written."""
        self._path = path
        self._reasons = reasons
        self.written: Path | None = None
        """The file; None until it has a row."""

    @contextmanager
    def of(self, capture: Capture, shown_path: str) -> Iterator[Callable[[Rejected], None]]:
        """Takes the rejects of one file. They are written at its end, because the file's own name may name a
        withheld person."""
        capture.shown_path = shown_path
        reasons: list[str] = []
        listed: list[dict[str, Any]] = []
        others: Counter[str] = Counter()
        size = 0

        def take(rejected: Rejected) -> None:
            nonlocal size
            if len(self._reasons) + len(reasons) < REASONS_SHOWN:
                value = f" ({rejected.value})" if rejected.value else ""
                reasons.append(f"{rejected.position[:_LONGEST_REASON]}: {rejected.reason}{value}")
            row = {"file": shown_path, "position": rejected.position, "reason": rejected.reason}
            own = len(_line(row).encode(errors="replace"))
            if len(listed) < MOST_LINES and size + own <= MOST_BYTES - _FOR_COUNTS:
                size += own
                listed.append(row)
            else:
                reason = rejected.reason[:_LONGEST_REASON]
                others[reason if reason in others or len(others) < _MOST_REASONS else _OTHER] += 1

        try:
            yield take
            name = {"file": capture.shown_path}
            counts = ({"position": "", "reason": reason, "count": n} for reason, n in others.most_common())
            self._write([_line({**row, **name}) for row in (*listed, *({**name, **one} for one in counts))])
        except FormatError:
            reasons.clear()
            raise
        finally:
            self._reasons += [f"{capture.shown_path}, {reason}" for reason in reasons]

    def _write(self, lines: list[str]) -> None:
        if lines and self._path is not None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(self._path, "a", opener=open_private) as stream:
                stream.writelines(lines)
            self.written = self._path


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


_LONGEST_KEY = limit(  # a length that every engine can index
    "document, concept and location of a fact", 600, "characters", "the row is rejected"
)
_MAY_BE_EMPTY = ("ocds",)
"""Adapters of portals, which publish packages of nothing on days without news."""
_MOST_REJECTED_AT_FIRST = limit(
    "rejected rows before the first accepted one", 100_000, "rows", "the file is refused"
)
"""Rows rejected before the first accepted one, after which a file counts as another format."""


@dataclass
class Summary:
    """The result of one ingest command for one source."""

    source_id: str
    counts: Counts = field(default_factory=Counts)
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """Notes for the operator about a file that was read."""
    reasons: list[str] = field(default_factory=list)
    """Why the first rows were rejected: file, row, reason and value."""
    warnings: int = 0
    """Rows that were accepted and look wrong."""
    first_warnings: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)
    """Files without a single row."""
    rejects: Path | None = None

    def line(self) -> str:
        return f"{self.source_id}: {self.counts}" + (f" (rejects: {self.rejects})" if self.rejects else "")

    def warn(self, file: str, position: str, warning: str) -> None:
        self.warnings += 1
        if len(self.first_warnings) < REASONS_SHOWN:
            self.first_warnings.append(f"{file}, {position}: {warning}")


class _Undone(Exception):
    """Ends the transaction of a file that is only tried."""


def ingest(
    ledger: Ledger,
    source: Source,
    paths: Iterable[Path],
    *,
    rejects_folder: Path,
    clock: Callable[[], datetime],
    started: Callable[[Path], None] = lambda path: None,
    limits: Limits = Limits(),  # noqa: B008 - immutable
    folders: Sequence[Path] = (),
    vault: Vault | None = None,
    exchange: HttpExchange | None = None,
    dry_run: bool = False,
) -> Summary:
    """Read files of one source into the ledger. A file of another format fails alone.

    Rejects name the file by its path inside one of the `folders`. Bytes are stored in the `vault` before rows
    enter the ledger; `exchange` says how they were fetched. `dry_run` reads, gates and counts everything, and
    stores nothing.
    """
    source.refuse_unless_redistributable()
    summary = Summary(source.id)
    rejects = RejectsFile(
        None if dry_run else rejects_folder / f"{source.id}-{clock():%Y%m%dT%H%M%S%fZ}.jsonl", summary.reasons
    )
    for path in paths:
        started(path)
        counts = Counts()
        try:
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            with (
                ledger.capture(source.id, source.license_class, path.name, digest) as capture,
                rejects.of(capture, _path_inside(path, folders)) as reject,
            ):
                with cleaned_copy(vault, source, capture) as finished_copy:
                    read_into(capture, source, InputFile(path, limits), reject, clock(), summary.warn)
                    if vault is not None:
                        _keep(vault, source, path, digest, capture, exchange, finished_copy())
                counts = capture.counts
                if dry_run:
                    raise _Undone
            if capture.withdrawn_before is not None:
                summary.notes.append(_counts_again(capture, capture.withdrawn_before))
        except _Undone:
            pass
        except FormatError as failure:
            summary.failures.append(str(failure))
            continue
        except OSError as failure:
            summary.failures.append(f"{path.name}: cannot be read: {failure.strerror}")
            continue
        summary.counts.add(counts)
        if not counts.read and source.adapter not in _MAY_BE_EMPTY:
            summary.empty.append(path.name)
        elif counts.rejected and counts.accepted == counts.skipped:
            summary.failures.append(f"{path.name}: none of its {counts.read} rows was accepted")
    summary.rejects = rejects.written
    return summary


def _path_inside(path: Path, folders: Sequence[Path]) -> str:
    """The path relative to the folder that the operator named; else the name of the file."""
    inside = [path.relative_to(folder).as_posix() for folder in folders if path.is_relative_to(folder)]
    return min(inside, key=len, default=path.name)


def read_into(
    capture: Capture,
    source: Source,
    file: InputFile,
    reject: Callable[[Rejected], None],
    now: datetime,
    warn: Callable[[str, str, str], None] = lambda file, position, warning: None,
) -> None:
    """Take everything that a file of a source says. Raises FormatError."""
    country_code = country(source.country or "") or ""
    capture.macro.country = country_code
    longest = file.limits.text_length
    ingester = ReleaseIngester(capture, country_code, now, longest)
    _take(adapters()[source.adapter].read(file), capture, ingester, reject, longest, warn)


def _keep(
    vault: Vault,
    source: Source,
    path: Path,
    sha256: str,
    capture: Capture,
    exchange: HttpExchange | None,
    rows: Path | None,
) -> None:
    is_repeated = capture.is_known_file and not capture.is_news
    received = Received(
        at=capture.observed_at,
        source=source.id,
        license_class=source.license_class,
        file=capture.file_name,
        sha256=sha256,
        size=path.stat().st_size,
        kept="hash",
        capture=0 if is_repeated else capture.id,
        exchange=exchange,
    )
    confidential = adapters()[source.adapter].names_people or capture.counts.withheld > 0
    vault.keep(path, received, confidential=confidential, rows=rows)


def _counts_again(capture: Capture, withdrawal: Withdrawal) -> str:
    return (
        f"{capture.file_name}: was withdrawn on {withdrawal.observed_at[:10]} ({withdrawal.reason}); "
        f"ingested again, it is a new capture ({capture.id}) and counts again"
    )


def files_under(paths: Iterable[Path]) -> list[Path]:
    """The named files, and the files inside the named folders, in a stable order."""
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = (p for p in path.rglob("*") if p.is_file() and not p.name.startswith("."))
            files += sorted(inside)
        elif path.exists():
            files.append(path)
        else:
            raise OperatorError(f"{path}: no such file")
    return files


def _take(
    records: Iterator[Record],
    capture: Capture,
    release_ingester: ReleaseIngester,
    reject: Callable[[Rejected], None],
    longest: int,
    warn: Callable[[str, str, str], None],
) -> None:
    counts = capture.counts
    today = capture.observed_at[:10]
    latest = latest_day(today)
    hopeless = _MOST_REJECTED_AT_FIRST

    def refuse(rejected: Rejected) -> None:
        counts.read += 1
        counts.rejected += 1
        reject(rejected)

    for record in records:
        if counts.rejected >= hopeless:
            release_ingester.flush()
            capture.flush()
            if not counts.accepted:
                raise FormatError(f"{capture.file_name}: none of its first {counts.read:,} rows can be used")
            hopeless = sys.maxsize
        if type(record) is Fact:
            if fault := _fault(record, today, latest, longest):
                if record.subject in capture.persons:
                    capture.fact(record)
                else:
                    refuse(Rejected(_position(record), fault))
                continue
            if record.period_end > record.available_at != "":
                warning = f"the period ends after its available_at ({record.available_at})"
                warn(capture.file_name, _position(record), warning)
            capture.fact(record)
        elif type(record) is Release:
            for rejected in release_ingester.take(record):
                counts.rejected += 1
                reject(rejected)
        elif type(record) is EntityRecord:
            if _has_long_text(record, longest):
                refuse(Rejected(record.subject[:_LONGEST_KEY], too_long_text(longest)))
            else:
                if undated := _date_fault(record, latest):
                    refuse(Rejected(record.subject[:_LONGEST_KEY], undated))
                    record = record._replace(effective="")
                capture.entity(record)
        elif type(record) is Acceptance:
            capture.acceptance(record)
        elif type(record) is IdentifierLink:
            fault = _link_fault(record, today)
            if fault is None:
                capture.link(record)
            else:
                refuse(Rejected(record.location[:_LONGEST_KEY], fault))
        elif type(record) is AnnualColumn:
            for rejected in capture.macro.annual(record):
                refuse(rejected)
        elif type(record) is SeriesColumn:
            for rejected in capture.macro.series(record):
                refuse(rejected)
        elif type(record) is SeriesInfo:
            capture.macro.describe(record)
        elif type(record) is Rejected:
            refuse(record)
        elif type(record) is Withheld:
            is_like_a_firm = org_evidence(record.name, country=record.country) or org_evidence(record.name)
            capture.withhold(record.subject, named_key(record.name) if is_like_a_firm else "")
        elif type(record) is Skipped:
            counts.skip(record.rows)
    release_ingester.flush()
    capture.flush()
    for rejected in capture.macro.refused():
        refuse(rejected)


def _position(fact: Fact) -> str:
    return f"{fact.document}#{fact.location}"[:_LONGEST_KEY]


def _has_long_text(record: EntityRecord, most: int) -> bool:
    return any(
        len(text) > most
        for value in msgspec.structs.astuple(record.profile)
        for text in (value if isinstance(value, tuple) else (value,))
        if isinstance(text, str)
    )


def _date_fault(record: EntityRecord, latest: str) -> str | None:
    """Why a record counts from its capture instead of from its own date."""
    if not record.effective:
        return None
    fault = out_of_range("its last update", record.effective[:10], latest)
    return fault and f"the record is kept without its date: {fault}"


def _link_fault(link: IdentifierLink, today: str) -> str | None:
    """Why the days of an identifier are refused."""
    for name, day in (("from", link.first), ("to", link.last)):
        if day and (fault := out_of_range(name, day, latest_day(today))):
            return fault
    return "from is in the future" if link.first > today else None


def _fault(fact: Fact, today: str, latest: str, longest: int) -> str | None:
    """Faults that no source may have, in any format."""
    subject, concept, unit, start, end, available, document, value, location, *_ = fact
    # Called for millions of facts: `min` and `max` of a tuple take twice as long.
    if (
        not EARLIEST <= end <= latest
        or (start and not EARLIEST <= start <= latest)
        or (available and not EARLIEST <= available <= latest)
    ):
        days = (("period_end", end), ("period_start", start or end), ("available_at", available or end))
        return next(fault for field, day in days if (fault := out_of_range(field, day, latest)))
    if available > today:
        return "available_at is in the future"
    if len(document) + len(concept) + len(location) > _LONGEST_KEY:
        return f"document, concept and location of more than {_LONGEST_KEY} characters"
    if len(value) + len(unit) + len(subject) > longest:
        return too_long_text(longest)
    return None
