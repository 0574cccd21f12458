"""Checks of a build: every row is read back before it is written, and a failure names its captures."""

import re
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import GenericAlias, TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import msgspec

from sankofa.edition.format.row_blocks import Entry
from sankofa.ledger.generations import Withdrawal, WithdrawnFile
from sankofa.ledger.reader import CaptureInfo
from sankofa.model.errors import BuildFailed, CheckFailed
from sankofa.model.provenance import LICENSE_CLASSES, file_mark
from sankofa.model.rows import Row

if TYPE_CHECKING:
    import pyarrow

R = TypeVar("R", bound=Row)
_INSTANT: Final = re.compile(rb'"observed_at":"([^"]*)"')
_FILE: Final = re.compile(rb'"source_ref":"([^":]*):[^"]*?@([0-9a-f]{8})#')


_KNOWN_CLASSES: Final = frozenset(LICENSE_CLASSES)


class RowCheck(Generic[R]):
    """Reads encoded rows of a kind back."""

    def __init__(self, kind: str, row: type[R]) -> None:
        self._kind = kind
        self._decode = msgspec.json.Decoder(row).decode
        self._decode_all = msgspec.json.Decoder(GenericAlias(list, (row,))).decode

    def all(self, key: str, entries: Sequence[Entry]) -> list[R]:
        """Checks many rows at once, at half the cost."""
        try:
            rows: list[R] = self._decode_all(b"[%b]" % b",".join([entry.row for entry in entries]))
        except msgspec.ValidationError:
            return [self(key, entry) for entry in entries]  # the error names the row and its fault
        if (
            len(rows) != len(entries)
            or not {row.license_class for row in rows} <= _KNOWN_CLASSES
            or any(entry.first >= entry.until for entry in entries)
        ):
            return [self(key, entry) for entry in entries]
        return rows

    def __call__(self, key: str, entry: Entry) -> R:
        try:
            row = self._decode(entry.row)
        except msgspec.ValidationError as failure:
            raise check_failed(self._kind, key, f"a row has a wrong shape: {failure}") from failure
        if row.license_class not in LICENSE_CLASSES:
            raise check_failed(self._kind, key, f"unknown licence class {row.license_class!r}")
        check_days(self._kind, key, entry)
        return row


def check_days(kind: str, key: str, entry: Entry) -> None:
    if not entry.first < entry.until:
        raise check_failed(kind, key, "a row that is never seen")


def check_failed(kind: str, key: str, reason: str) -> CheckFailed:
    return CheckFailed(f"{kind} {key}: {reason}" if key else f"{kind}: {reason}")


class WithdrawnRows:
    """Refuses rows of a withdrawn file.

    `observed_at`, and the mark of the file in `source_ref`, identify the file of a row.

    See contract: ING-9.
    """

    def __init__(self, withdrawals: Sequence[Withdrawal], captures: Mapping[int, CaptureInfo]) -> None:
        """`captures` has the captures of the build by number, with files that were ingested again."""
        withdrawn = {(w.source_id, file.capture_id) for w in withdrawals for file in w.files}
        read_before = {
            (w.source_id, file.file_name, file.content_sha256, file.observed_at)
            for w in withdrawals
            for file in w.files
            if file.observed_at < w.observed_at
        }
        valid = [
            c
            for number, c in captures.items()
            if (c.source_id, number) not in withdrawn
            and (c.source_id, c.file_name, c.content_sha256, c.observed_at) not in read_before
        ]
        instants = {capture.observed_at for capture in valid}
        instants |= {
            withdrawal.observed_at for withdrawal in withdrawals
        }  # the clock of an edition without rows
        marks = {(capture.source_id, file_mark(capture.content_sha256)) for capture in valid}
        self._instants: dict[bytes, str] = {}
        self._marks: dict[tuple[bytes, bytes], str] = {}
        for withdrawal in withdrawals:
            for file in withdrawal.files:
                message = _withdrawn(withdrawal, file)
                if file.observed_at and file.observed_at not in instants:
                    self._instants[file.observed_at.encode()] = message
                mark = withdrawal.source_id, file_mark(file.content_sha256)
                if mark not in marks:
                    self._marks[mark[0].encode(), mark[1].encode()] = message

    def __bool__(self) -> bool:
        return bool(self._instants or self._marks)

    def refuse(self, kind: str, key: str, rows: bytes) -> None:
        """Raises CheckFailed if one of these encoded rows is from a withdrawn file."""
        for instant in _INSTANT.findall(rows):
            if instant in self._instants:
                raise check_failed(kind, key, self._instants[instant])
        for mark in _FILE.findall(rows):
            if mark in self._marks:
                raise check_failed(kind, key, self._marks[mark])

    def refuse_columns(self, table: str, columns: "pyarrow.Table") -> None:
        """The same for a table of a Parquet file."""
        if not self:
            return
        from pyarrow import compute

        refs = columns.column("source_ref")  # without their locations there are few
        files = compute.replace_substring_regex(refs, r"^([^:]*:).*?(@[0-9a-f]{8}#).*$", r"\1\2").unique()
        for name, values in (("observed_at", columns.column("observed_at").unique()), ("source_ref", files)):
            for value in values.to_pylist():
                self.refuse(table, "", msgspec.json.encode({name: value}))


def _withdrawn(withdrawal: Withdrawal, file: WithdrawnFile) -> str:
    return (
        f"a row of {withdrawal.source_id} capture {file.capture_id} ({file.file_name}), which was "
        f"withdrawn on {withdrawal.observed_at[:10]} ({withdrawal.reason})"
    )


_NAMED: Final = 5
_LOOKED_AT: Final = 1_000
"""Number of list items in which captures are looked for."""


def refuse_rows(
    failure: Exception, captures: Mapping[int, CaptureInfo], otherwise: Iterable[int] = ()
) -> Exception:
    """The error to raise for a failure on a row; it names the row's captures, or else these.

    The failure itself if there are none.
    """
    numbers = _captures_at(failure) & captures.keys() or set(otherwise)
    if not numbers:
        return failure
    named = [
        f"capture {number} ({captures[number].source_id}, {captures[number].file_name})"
        for number in sorted(numbers)[:_NAMED]
    ]
    if len(numbers) > _NAMED:
        named.append(f"{len(numbers) - _NAMED} more")
    where = " or ".join(named)
    first = min(numbers)
    trace = "".join(traceback.format_exception(failure))
    traceback.clear_frames(failure.__traceback__)  # they hold rows of the ledger
    return BuildFailed(
        f"the edition cannot be built: {type(failure).__name__} ({failure}) on a row of {where}. "
        f"`sankofa withdraw {captures[first].source_id} --capture {first} --reason TEXT` leaves it out; "
        "`sankofa publish --verbose` prints the traceback of this defect",
        trace,
    )


def _captures_at(failure: BaseException) -> set[int]:
    """The captures of the rows in the local variables of the innermost function with any."""
    at_hand: set[int] = set()
    for frame in _frames(failure.__traceback__):
        at_hand = {number for name, value in frame.items() for number in _captures(name, value)} or at_hand
    return at_hand


def _frames(trace: TracebackType | None) -> Iterator[dict[str, Any]]:
    while trace is not None:
        yield trace.tb_frame.f_locals
        trace = trace.tb_next


def _captures(name: str, value: Any) -> Iterator[int]:
    """The captures of a row, of the rows in a list, or of a row inside an object."""
    if name == "capture_id" and isinstance(value, int):
        yield value
    for one in islice(value, _LOOKED_AT) if isinstance(value, list) else (value,):
        for row in (one, getattr(one, "row", None), getattr(one, "report", None)):
            number = getattr(row, "capture_id", None)
            if isinstance(number, int):
                yield number
