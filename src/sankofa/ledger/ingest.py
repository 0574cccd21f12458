"""Ingests files: one transaction each, every record checked, every rejected row written down.

See contract: ING-1, ING-2, ING-3, ING-4.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import IO

import msgspec

from sankofa.ledger.capture import Capture, Counts
from sankofa.ledger.cleaned_copy import cleaned_copy
from sankofa.ledger.generations import Withdrawal
from sankofa.ledger.macro import placed
from sankofa.ledger.store import Ledger
from sankofa.ledger.tenders import ReleaseIngester, too_long_text
from sankofa.model.countries import country
from sankofa.model.errors import FormatError, OperatorError
from sankofa.model.observations import AnnualColumn, SeriesColumn, SeriesInfo
from sankofa.model.records import (
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
from sankofa.vault.journal import HttpExchange, Received
from sankofa.vault.store import Vault

_LONGEST_KEY = 600  # what every engine can hold in an index


@dataclass
class Summary:
    """What one run of ingest did for one source."""

    source_id: str
    counts: Counts = field(default_factory=Counts)
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What the operator should know of a file that was read."""
    rejects: Path | None = None

    def line(self) -> str:
        counts = ", ".join(f"{name} {value}" for name, value in vars(self.counts).items())
        return f"{self.source_id}: {counts}" + (f" (rejects: {self.rejects})" if self.rejects else "")


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
) -> Summary:
    """Read files of one source into the ledger. A file of another format fails alone.

    What is rejected is named by its path inside one of the `folders`. Bytes come to the `vault` before rows
    come to the ledger; `exchange` says how they were fetched.
    """
    source.refuse_unless_redistributable()
    summary = Summary(source.id)
    rejects = _RejectsFile(rejects_folder, f"{source.id}-{clock():%Y%m%dT%H%M%S%fZ}.jsonl")
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
                with cleaned_copy(vault, source, capture) as rows:
                    read_into(capture, source, InputFile(path, limits), reject, clock())
                    if vault is not None:
                        rows_file = None if rows is None else rows.finish(capture)
                        _keep(vault, source, path, digest, capture, exchange, rows_file)
                counts = capture.counts
            if capture.withdrawn_before is not None and capture.is_news:
                summary.notes.append(_counts_again(capture.file_name, capture.withdrawn_before))
        except FormatError as failure:
            summary.failures.append(str(failure))
            continue
        except OSError as failure:
            summary.failures.append(f"{path.name}: cannot be read: {failure.strerror}")
            continue
        summary.counts.add(counts)
    summary.rejects = rejects.close()
    return summary


def _path_inside(path: Path, folders: Sequence[Path]) -> str:
    """A path as the operator who named one of the folders thinks of it; else the name of the file."""
    inside = [path.relative_to(folder).as_posix() for folder in folders if path.is_relative_to(folder)]
    return min(inside, key=len, default=path.name)


def read_into(
    capture: Capture, source: Source, file: InputFile, reject: Callable[[Rejected], None], now: datetime
) -> None:
    """Take everything that a file of a source says. Raises FormatError."""
    records = adapters()[source.adapter].read(file)
    country_code = country(source.country or "") or ""
    if country_code:
        records = placed(records, country_code)
    longest = file.limits.text_length
    _take(records, capture, ReleaseIngester(capture, country_code, now, longest), reject, now, longest)


def _keep(
    vault: Vault,
    source: Source,
    path: Path,
    sha256: str,
    capture: Capture,
    exchange: HttpExchange | None,
    rows: Path | None,
) -> None:
    received = Received(
        at=capture.observed_at,
        source=source.id,
        license_class=source.license_class,
        file=capture.file_name,
        sha256=sha256,
        size=path.stat().st_size,
        kept="hash",
        capture=capture.id if capture.is_news else 0,
        exchange=exchange,
    )
    confidential = adapters()[source.adapter].names_people or capture.counts.withheld > 0
    vault.keep(
        path,
        received,
        confidential=confidential,
        repeated=capture.repeated and not capture.is_news,
        rows=rows,
    )


def _counts_again(file_name: str, withdrawal: Withdrawal) -> str:
    return (
        f"{file_name}: was withdrawn on {withdrawal.observed_at[:10]} ({withdrawal.reason}); "
        "ingested again, it is a new capture and counts again"
    )


def files_under(paths: Iterable[Path]) -> list[Path]:
    """The files named, and those inside the folders named, in a stable order."""
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
    now: datetime,
    longest: int,
) -> None:
    counts = capture.counts
    today = f"{now:%Y-%m-%d}"
    for record in records:
        if type(record) is Fact:
            fault = _fault(record, today, longest)
            if fault is None or capture.is_person(record.subject):
                capture.fact(record)
            else:
                counts.read += 1
                counts.rejected += 1
                reject(Rejected(f"{record.document}#{record.location}"[:_LONGEST_KEY], fault))
        elif type(record) is Release:
            for rejected in release_ingester.take(record):
                counts.rejected += 1
                reject(rejected)
        elif type(record) is EntityRecord:
            if _has_long_text(record, longest):
                counts.read += 1
                counts.rejected += 1
                reject(Rejected(record.subject[:_LONGEST_KEY], too_long_text(longest)))
            else:
                capture.entity(record)
        elif type(record) is IdentifierLink:
            capture.link(record)
        elif type(record) is AnnualColumn:
            capture.macro.annual(record)
        elif type(record) is SeriesColumn:
            for rejected in capture.macro.series(record):
                counts.read += 1
                counts.rejected += 1
                reject(rejected)
        elif type(record) is SeriesInfo:
            capture.macro.describe(record)
        elif type(record) is Rejected:
            counts.read += 1
            counts.rejected += 1
            reject(record)
        elif type(record) is Withheld:
            capture.withhold(record.subject)
        elif type(record) is Skipped:
            counts.read += record.rows
            counts.skipped += record.rows
    release_ingester.flush()
    capture.flush()


def _has_long_text(record: EntityRecord, most: int) -> bool:
    return any(
        len(text) > most
        for value in msgspec.structs.astuple(record.profile)
        for text in (value if isinstance(value, tuple) else (value,))
        if isinstance(text, str)
    )


def _fault(fact: Fact, today: str, longest: int) -> str | None:
    """What no source may say, whatever its format."""
    if fact.available_at > today:
        return "available_at is in the future"
    if len(fact.document) + len(fact.concept) + len(fact.location) > _LONGEST_KEY:
        return f"document, concept and location of more than {_LONGEST_KEY} characters"
    if len(fact.value) + len(fact.unit) + len(fact.subject) > longest:
        return too_long_text(longest)
    return None


class _RejectsFile:
    """Created with the first reject; what a file that failed as a whole had rejected is taken back."""

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / name
        self._stream: IO[str] | None = None

    def of(self, capture: Capture, shown_path: str) -> "_RejectsOfFile":
        capture.shown_path = shown_path
        return _RejectsOfFile(self, capture)

    def stream(self) -> IO[str]:
        if self._stream is None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._stream = open(self._path, "x+", opener=_private)  # noqa: SIM115 - closed by close()
        return self._stream

    def close(self) -> Path | None:
        if self._stream is None:
            return None
        has_rows = self._stream.tell() > 0
        self._stream.close()
        if not has_rows:
            self._path.unlink()
        return self._path if has_rows else None


class _RejectsOfFile:
    def __init__(self, rejects: _RejectsFile, capture: Capture) -> None:
        self._rejects = rejects
        self._capture = capture
        self._named = capture.shown_path
        self._start: int | None = None

    def __enter__(self) -> Callable[[Rejected], None]:
        return self._write

    def _write(self, rejected: Rejected) -> None:
        stream = self._rejects.stream()
        if self._start is None:
            self._start = stream.tell()
        self._append(stream, {"file": self._named, "position": rejected.position, "reason": rejected.reason})

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        renamed = self._capture.shown_path != self._named
        if self._start is None or (kind is None and not renamed):
            return
        stream = self._rejects.stream()
        stream.seek(self._start)
        rows = [] if kind is not None else [json.loads(line) for line in stream]
        stream.seek(self._start)
        stream.truncate()
        for row in rows:  # its name turned out to name somebody who is withheld
            self._append(stream, {**row, "file": self._capture.shown_path})

    @staticmethod
    def _append(stream: IO[str], row: dict[str, str]) -> None:
        stream.write(json.dumps(row, ensure_ascii=False) + "\n")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
