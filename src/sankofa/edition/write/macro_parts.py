"""Derives each macro column once for all datasets and tables, and reuses those that did not change.

A column is one indicator in one country, or the series of one key. Its parts are made of its rows in the
ledger, their captures and the metadata of its code. A digest of these and of the code is the key under which
its parts are kept, as those of an issuer are (`write.issuer_parts`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from sankofa.derive.series import MacroColumn, MacroMetadata
from sankofa.edition.write.checks import captures_at, refuse_rows_of
from sankofa.edition.write.issuer_cache import IssuerCache, PackedRecord, pack_record
from sankofa.edition.write.issuer_parts import code_digest
from sankofa.edition.write.worker_processes import WorkerProcesses
from sankofa.engines.datastore import Row
from sankofa.ledger.reader import CaptureInfo, LedgerReader
from sankofa.model.errors import SankofaError
from sankofa.model.observations import tabled_series

Make = Callable[[MacroColumn], Iterable[tuple[str, bytes]]]
"""Makes parts of a column, each with its kind."""
_PARTS: Final[list[Make]] = []
_BYTES_OF_A_VALUE: Final = 24
_write = msgspec.msgpack.Encoder().encode


def macro_part(make: Make) -> Make:
    """Declare the function below as a maker of parts of a macro column."""
    _PARTS.append(make)
    return make


class _ColumnTask(NamedTuple):
    """A column to derive."""

    code: str
    country: str
    rows: list[Row]
    key: bytes = b""

    @property
    def name(self) -> str:
        return f"{self.country}|{self.code}"


@contextmanager
def _deriving(
    metadata: MacroMetadata, captures: Mapping[int, CaptureInfo]
) -> Iterator[Callable[[_ColumnTask], tuple[str, bytes, PackedRecord]]]:
    """Derives columns in a process of its own."""
    yield partial(_record, metadata, captures)


def _record(
    metadata: MacroMetadata, captures: Mapping[int, CaptureInfo], task: _ColumnTask
) -> tuple[str, bytes, PackedRecord]:
    """Raises BuildFailed, which names the captures, if a column cannot be derived."""
    try:
        column = MacroColumn(task.code, task.country, task.rows, metadata, captures)
        parts = [part for make in _PARTS for part in make(column)]
    except (SankofaError, OSError, MemoryError):
        raise
    except Exception as failure:
        if numbers := captures_at(failure) & captures.keys():
            raise refuse_rows_of(failure, captures, numbers) from failure
        raise
    return task.name, task.key, pack_record({kind: part for kind, part in parts if part})


def _values(task: _ColumnTask) -> int:
    """About how many values a column has, by the length of its text."""
    return sum(len(values) for *_, values in task.rows) // _BYTES_OF_A_VALUE


class MacroParts:
    """The parts of every macro column by its name."""

    def __init__(
        self,
        ledger: LedgerReader,
        captures: Mapping[int, CaptureInfo],
        path: Path | None = None,
        processes: WorkerProcesses | None = None,
    ) -> None:
        self._captures = captures
        self._metadata = MacroMetadata(ledger)
        self._cache = IssuerCache(path)
        self.indicators: list[str] = []
        """The names of all indicators, by country and code."""
        self.series: list[str] = []
        """The names of all keys of published series, in order."""
        self.by_series: list[str] = []
        """All names in the order of their series."""
        self._by_series: list[tuple[str, str]] = []
        anew = self._anew(ledger)
        alone = partial(_record, self._metadata, captures)
        job = partial(_deriving, self._metadata, captures)
        self._cache.fill(processes.derive(job, alone, anew, _values) if processes else map(alone, anew))
        self.by_series = [name for _, name in sorted(self._by_series)]

    def parts(self, kind: str, names: Iterable[str]) -> Iterator[bytes]:
        """The parts of these columns for a dataset or table, without those that have none."""
        return filter(None, (self._cache.read(name, kind) for name in names))

    def _anew(self, ledger: LedgerReader) -> Iterator[_ColumnTask]:
        """The columns that are not reused. Each is listed."""
        for code, rows in ledger.stored_series():
            yield from self._listed(self.series, code, _ColumnTask(code, "", rows))
        for (country, code), rows in ledger.stored_annual():
            series = tabled_series(code, country)
            yield from self._listed(self.indicators, series, _ColumnTask(code, country, rows))

    def _listed(self, names: list[str], series: str, task: _ColumnTask) -> Iterator[_ColumnTask]:
        names.append(task.name)
        self._by_series.append((series, task.name))
        key = self._key(task.name, task.code, task.rows)
        if not self._cache.carry(task.name, key):
            yield task._replace(key=key)

    def _key(self, name: str, code: str, rows: list[Row]) -> bytes:
        captures = {capture_id: self._captures[capture_id] for *_, capture_id, _, _ in rows}
        identity = (name, rows, sorted(captures.items()), self._metadata.of_code(code))
        return blake2b(code_digest() + _write(identity), digest_size=16).digest()
