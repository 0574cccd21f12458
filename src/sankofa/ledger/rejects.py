"""The file that names every rejected row, up to a bound for each file that is ingested.

A publisher decides how many rows of a file are wrong. After 1,000 lines, or a megabyte, what else is rejected
is counted by its reason.
"""

import json
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Final

from sankofa.ledger.capture import Capture
from sankofa.model.errors import FormatError
from sankofa.model.limits import limit
from sankofa.model.records import Rejected

_COUNTED: Final = "the others are counted by reason"
MOST_LINES: Final = limit("rejected rows that are listed", 1_000, "lines for each file", _COUNTED)
MOST_BYTES: Final = limit("list of rejected rows", 1_000_000, "bytes for each file", _COUNTED)
REASONS_SHOWN: Final = 5
_MOST_REASONS: Final = 100
_LONGEST_REASON: Final = 300
_FOR_COUNTS: Final = 100_000
"""Bytes of the bound that are left for the counts."""
_OTHER: Final = "other reasons"


class RejectsFile:
    """Created with the first reject. The rejects of a file that fails as a whole are removed again."""

    def __init__(self, path: Path | None, reasons: list[str]) -> None:
        """`reasons` takes the first ones, for the operator. Without a path no file is written."""
        self._path = path
        self._stream: IO[str] | None = None
        self.reasons = reasons

    def of(self, capture: Capture, shown_path: str) -> "RejectsOfFile":
        capture.shown_path = shown_path
        return RejectsOfFile(self, capture)

    def stream(self) -> IO[str] | None:
        if self._stream is None and self._path is not None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._stream = open(self._path, "x+", opener=_private)  # noqa: SIM115 - closed by close()
        return self._stream

    def close(self) -> Path | None:
        if self._stream is None or self._path is None:
            return None
        has_rows = self._stream.tell() > 0
        self._stream.close()
        if not has_rows:
            self._path.unlink()
        return self._path if has_rows else None


class RejectsOfFile:
    """The rejects of one ingested file."""

    def __init__(self, rejects: RejectsFile, capture: Capture) -> None:
        self._rejects = rejects
        self._capture = capture
        self._named = capture.shown_path
        self._start: int | None = None
        self._lines = 0
        self._bytes = 0
        self._more: Counter[str] = Counter()
        self._first_reason = len(rejects.reasons)

    def __enter__(self) -> Callable[[Rejected], None]:
        return self._write

    def _write(self, rejected: Rejected) -> None:
        reasons = self._rejects.reasons
        if len(reasons) < REASONS_SHOWN:
            value = f" ({rejected.value})" if rejected.value else ""
            reasons.append(f"{self._named}, {rejected.position[:_LONGEST_REASON]}: {rejected.reason}{value}")
        stream = self._rejects.stream()
        if stream is None:
            return
        if self._start is None:
            self._start = stream.tell()
        line = _line({"file": self._named, "position": rejected.position, "reason": rejected.reason})
        size = len(line.encode(errors="replace"))
        if self._lines >= MOST_LINES or self._bytes + size > MOST_BYTES - _FOR_COUNTS:
            reason = rejected.reason[:_LONGEST_REASON]
            known = reason in self._more or len(self._more) < _MOST_REASONS
            self._more[reason if known else _OTHER] += 1
            return
        self._lines += 1
        self._bytes += size
        stream.write(line)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        reasons, shown = self._rejects.reasons, self._capture.shown_path
        own = reasons[self._first_reason :]
        reasons[self._first_reason :] = (
            [] if kind is FormatError else [shown + reason.removeprefix(self._named) for reason in own]
        )
        stream = self._rejects.stream() if self._start is not None else None
        if stream is None or self._start is None:
            return
        if kind is not None or shown != self._named:
            stream.seek(self._start)
            rows = [] if kind is not None else [json.loads(line) for line in stream]
            stream.seek(self._start)
            stream.truncate()
            for row in rows:  # its name turned out to name somebody who is withheld
                stream.write(_line({**row, "file": shown}))
        if kind is None:
            for reason, count in self._more.most_common():
                stream.write(_line({"file": shown, "position": "", "reason": reason, "count": count}))


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
