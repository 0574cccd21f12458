"""Derives each issuer, each macro column and the red flags of each country once for all datasets.

Unchanged results are reused. Issuers and columns are derived in several processes.

The inputs of an issuer's parts are the facts of its subjects, the captures of those facts, the acceptances of
its documents, its exchanges, its name and its country. The ledger only grows, so the captures that brought
facts of a subject identify those facts without reading them (`Ledger.fact_captures`). A capture is identified
by its number, source, instant, licence class in the registry, file name and digest, and by whether its source
rounds dates. Captures of left-out sources do not count. The rest of the key is the code: all source files of
this package, and the versions of the libraries it computes with. No clock or setting is part of it.

A macro column is one indicator in one country, or the series of one key. Columns are derived in groups. The
inputs of a group are the rows of its columns in the ledger, their captures and the metadata of their codes.
Its key is a digest of these and of the code. The inputs of a country's red flags are the indicator data in
its releases, and the captures of these.

Each process reads the facts of its issuers through its own connection and sends back one issuer at a time. It
reads the same rows as the build, even during an ingest (`ledger.generations.CaptureFilter`).
"""

import os
import pickle  # nosec B403
import sys
import weakref
from array import array
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager, nullcontext
from functools import cache, partial
from hashlib import blake2b
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import chain
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Final, NamedTuple, cast, get_type_hints

import msgspec

from sankofa.derive.issuers import Issuer
from sankofa.derive.quality import MacroCounts
from sankofa.derive.series import MacroColumn, MacroMetadata
from sankofa.derive.tenders import Tenders, processes
from sankofa.edition.format.issuer_pages import Step
from sankofa.edition.write.checks import refuse_rows
from sankofa.edition.write.flag_steps import FlagSteps, FlagSweep
from sankofa.edition.write.worker_processes import Job, WorkerProcesses
from sankofa.engines.ledger_store import LedgerRows, Row
from sankofa.engines.record_file import PackedRecord, RecordFile, pack_record
from sankofa.ledger.entities import Entity
from sankofa.ledger.generations import CaptureFilter
from sankofa.ledger.reader import CaptureInfo, LedgerReader
from sankofa.ledger.spells import dated_locations
from sankofa.model.errors import SankofaError
from sankofa.model.ocds.red_flags import FlagCounts

ISSUER_STEPS: Final = "issuer-steps"
_BYTES_OF_A_FACT: Final = 1024


class IssuerSteps(msgspec.Struct, frozen=True, array_like=True):
    """The figures of an issuer from each day on, and the provenance of the first."""

    steps: list[Step]
    source_ref: str
    observed_at: str


read_issuer_steps = msgspec.msgpack.Decoder(IssuerSteps).decode
MakePart = Callable[[Issuer], bytes]


class _IssuerTask(NamedTuple):
    entity: Entity
    key: bytes


_DerivedIssuer = tuple[str, bytes, PackedRecord]
"""Its service_id, its key and its parts."""


@contextmanager
def _reading(
    open_ledger: Callable[[], LedgerRows],
    capture_filter: CaptureFilter,
    captures: Mapping[int, CaptureInfo],
) -> Iterator[Callable[[_IssuerTask], _DerivedIssuer]]:
    """Derives issuers in a separate process."""
    with closing(open_ledger()) as rows, rows.snapshot():
        facts = LedgerReader(rows, b"", capture_filter=capture_filter)
        yield partial(_derived, facts, captures)


def _derived(facts: LedgerReader, captures: Mapping[int, CaptureInfo], task: _IssuerTask) -> _DerivedIssuer:
    """Raises BuildFailed, which names a capture, if a row cannot be derived."""
    issuer = Issuer(task.entity, facts, captures)
    try:
        parts = ((kind, _ISSUER_PARTS[kind](issuer)) for kind in sorted(_ISSUER_PARTS))
        return task.entity.service_id, task.key, pack_record({kind: part for kind, part in parts if part})
    except (SankofaError, OSError, MemoryError):
        raise
    except Exception as failure:
        own = (number for one in issuer.entity.subjects for number in issuer.facts(one).capture_id)
        raise refuse_rows(failure, issuer.captures, own) from None


_COMPUTED_WITH = ("msgspec", "pyarrow", "pycountry")
_write = msgspec.msgpack.Encoder().encode

_ISSUER_PARTS: dict[str, MakePart] = {}


def issuer_part(kind: str) -> Callable[[MakePart], MakePart]:
    """Declare the function below as the maker of an issuer's part of a dataset; it returns empty bytes for
    none."""

    def declare(make: MakePart) -> MakePart:
        _ISSUER_PARTS[kind] = make
        return make

    return declare


class Issuers:
    """The parts of every issuer by service_id."""

    def __init__(
        self,
        ledger: LedgerReader,
        captures: Mapping[int, CaptureInfo],
        entities: Iterable[Entity],
        path: Path | None = None,
        processes: WorkerProcesses | None = None,
    ) -> None:
        self._ledger = ledger
        self._captures = captures
        self._cache = RecordFile(path)
        self._facts: dict[str, int] = {}
        with closing(self._derived(processes, self._anew(entities))) as derived:
            self._cache.fill(derived)

    def _anew(self, entities: Iterable[Entity]) -> Iterator[_IssuerTask]:
        """The issuers that are not reused."""
        for task in self._tasks(entities):
            self._facts[task.entity.service_id] = sum(map(self._ledger.count_facts, task.entity.subjects))
            if not self._cache.carry(task.entity.service_id, task.key):
                yield task

    def _tasks(self, entities: Iterable[Entity]) -> Iterator[_IssuerTask]:
        numbers_of, accepted = self._ledger.fact_captures(), self._ledger.acceptance_captures()
        written = {number: _write((number, *capture)) for number, capture in self._captures.items()}
        for entity in entities:
            known = [(subject, numbers_of[subject]) for subject in entity.subjects if subject in numbers_of]
            if known:
                known += [(subject, accepted[subject]) for subject in entity.subjects if subject in accepted]
                yield _IssuerTask(entity, self._key(entity, known, written))

    def _derived(
        self, processes: WorkerProcesses | None, tasks: Iterator[_IssuerTask]
    ) -> Generator[_DerivedIssuer, None, None]:
        alone = partial(_derived, self._ledger, self._captures)
        if processes is None:
            yield from map(alone, tasks)
            return
        setup = (processes.open_ledger, self._ledger.capture_filter(), self._captures)
        yield from processes.derive(
            partial(_reading, *setup), alone, tasks, lambda task: self._facts[task.entity.service_id]
        )

    def part(self, kind: str, service_id: str) -> bytes:
        """The part of an issuer for a dataset; empty if there is none."""
        return self._cache.read(service_id, kind)

    def parts(self, kind: str, entities: Iterable[Entity]) -> Iterator[tuple[Entity, bytes]]:
        """The issuers among some organisations that have a part for a dataset, and the part."""
        for entity in entities:
            if part := self.part(kind, entity.service_id):
                yield entity, part

    def first_figure(self, service_id: str) -> int:
        """The first day on which a figure of an issuer was known; 0 if there is none."""
        part = self.part(ISSUER_STEPS, service_id)
        return read_issuer_steps(part).steps[0].day if part else 0

    def key(self, service_id: str) -> bytes:
        """The digest of the inputs of an issuer; empty if it has no facts."""
        return self._cache.key(service_id)

    def size(self, service_id: str) -> int:
        """Approximate size of its rows, independent of a library's compression."""
        return _BYTES_OF_A_FACT * self._facts.get(service_id, 0)

    def _key(self, entity: Entity, known: list[tuple[str, list[int]]], captures: dict[int, bytes]) -> bytes:
        key = blake2b(code_digest(), digest_size=16)
        placed = dated_locations(entity, self._captures)
        identity = (entity.service_id, entity.legal_name, entity.country, placed, known)
        key.update(_write(identity))
        for number in sorted({number for _, numbers in known for number in numbers}):
            key.update(captures[number])
        return key.digest()


@cache
def code_digest() -> bytes:
    """A digest of the package and its libraries: after any change everything is made again."""
    digest = blake2b(digest_size=16)
    for path, content in sorted(_sources(files("sankofa"), "")):
        digest.update(_write((path, content)))
    digest.update(_write((sys.version, [version(name) for name in _COMPUTED_WITH])))
    return digest.digest()


def _sources(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for child in folder.iterdir():
        name = f"{path}/{child.name}"
        if child.is_dir():
            if child.name != "__pycache__":
                yield from _sources(child, name)
        else:
            yield name, child.read_bytes()


MakeGroupParts = Callable[[Sequence[MacroColumn]], Iterable[tuple[str, bytes]]]
"""Makes parts of a group of columns, each with its kind. All are of annual tables, or none is."""
_GROUP_PARTS: Final[list[MakeGroupParts]] = []
_BYTES_OF_A_VALUE: Final = 24
_VALUES_IN_A_GROUP: Final = 1 << 13
"""Average size. A group is a row group of a Parquet file, and is rebuilt when one of its columns changes."""
_COUNTS: Final = "counts"
_read_counts = msgspec.msgpack.Decoder(MacroCounts).decode


def macro_part(make: MakeGroupParts) -> MakeGroupParts:
    """Declare the function below as a maker of parts of a group of macro columns."""
    _GROUP_PARTS.append(make)
    return make


class _StoredColumn(NamedTuple):
    code: str
    country: str
    """Empty for the series of a key."""
    rows: list[Row]

    @property
    def values(self) -> int:
        """Approximate number of values, by the length of the text."""
        return sum(len(values) for *_, values in self.rows) // _BYTES_OF_A_VALUE


class _GroupTask(NamedTuple):
    columns: list[_StoredColumn]
    key: bytes

    @property
    def name(self) -> str:
        return f"{self.columns[0].country}|{self.columns[0].code}"

    @property
    def values(self) -> int:
        return sum(column.values for column in self.columns)


def _group_record(
    metadata: MacroMetadata, captures: Mapping[int, CaptureInfo], task: _GroupTask
) -> tuple[str, bytes, PackedRecord]:
    """Raises BuildFailed, which names the captures, if a column cannot be derived."""
    try:
        columns = [MacroColumn(*column, metadata, captures) for column in task.columns]
        parts = [part for make in _GROUP_PARTS for part in make(columns)]
        counts = MacroCounts()
        for column in columns:
            counts.add(MacroCounts.of(column))
        parts.append((_COUNTS, _write(counts)))
    except (SankofaError, OSError, MemoryError):
        raise
    except Exception as failure:
        raise refuse_rows(failure, captures) from None
    return task.name, task.key, pack_record({kind: part for kind, part in parts if part})


class MacroParts:
    """The parts of every group of macro columns: published series by key, annual tables by country and
    indicator. They are derived in the background if there are processes."""

    def __init__(
        self,
        ledger: LedgerReader,
        captures: Mapping[int, CaptureInfo],
        path: Path | None = None,
        processes: WorkerProcesses | None = None,
    ) -> None:
        self._captures = captures
        self._metadata = MacroMetadata(ledger)
        self._cache = RecordFile(path)
        self._names: list[str] = []
        make = partial(_group_record, self._metadata, captures)
        # mypy does not see through a partial class.
        job: Job = partial(nullcontext, make)  # type: ignore[assignment]
        self._derived: Future[None] | None = None
        if processes is None:
            self._cache.fill(map(make, self._anew(ledger)))
        else:
            # A ledger has one thread, so all tasks are read first, into a file.
            tasks = _spooled(self._anew(ledger))
            derive = partial(processes.derive, job, make, tasks, attrgetter("values"))
            self._derived = processes.in_background(lambda: self._cache.fill(derive()))

    def parts(self, kind: str) -> Iterator[bytes]:
        """The parts of all groups for a dataset or table; groups without one are left out."""
        if self._derived is not None:
            self._derived.result()
        return filter(None, (self._cache.read(name, kind) for name in self._names))

    def counts(self) -> Iterator[MacroCounts]:
        return map(_read_counts, self.parts(_COUNTS))

    def _anew(self, ledger: LedgerReader) -> Iterator[_GroupTask]:
        """The groups that are not reused."""
        series = (_StoredColumn(code, "", rows) for code, rows in ledger.stored_series())
        annual = (_StoredColumn(code, country, rows) for (country, code), rows in ledger.stored_annual())
        for columns in chain(_groups(series), _groups(annual)):
            task = _GroupTask(columns, self._key(columns))
            self._names.append(task.name)
            if not self._cache.carry(task.name, task.key):
                yield task

    def _key(self, columns: list[_StoredColumn]) -> bytes:
        key = blake2b(code_digest(), digest_size=16)
        for column in columns:
            captures = {capture_id: self._captures[capture_id] for *_, capture_id, _, _ in column.rows}
            key.update(_write((column, sorted(captures.items()), self._metadata.of_code(column.code))))
        return key.digest()


def _spooled(tasks: Iterable[_GroupTask]) -> Iterator[_GroupTask]:
    """Writes tasks to a file, and returns them one by one, the largest first: processes then end together."""
    file = TemporaryFile()  # noqa: SIM115 - closed with the iterator
    stored: list[tuple[int, int]] = []
    for task in tasks:
        stored.append((-task.values, file.tell()))
        pickle.dump(task, file)
    at = (file.seek(start) for _, start in sorted(stored))
    tasks = (pickle.load(file) for _ in at)  # nosec B301  # noqa: S301 - ours
    weakref.finalize(tasks, file.close)
    return tasks


def _groups(columns: Iterable[_StoredColumn]) -> Iterator[list[_StoredColumn]]:
    """Columns in groups. Only the column itself decides whether a group begins at it."""
    group: list[_StoredColumn] = []
    for column in columns:
        name = f"{column.country}|{column.code}"
        if group and begins_part(name, column.values + 1, _VALUES_IN_A_GROUP):
            yield group
            group = []
        group.append(column)
    if group:
        yield group


def begins_part(key: str, size: int, average: int) -> bool:
    """Whether a part begins with a key of this size, given the average size of parts.

    The size is rounded up to a power of two, so a small change rarely moves a boundary.
    """
    weight = 1 << (size - 1).bit_length()
    chance = int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "little")
    return chance * average < weight << 64


_FLAG_FIELDS: Final = {
    name: msgspec.msgpack.Decoder(shape).decode for name, shape in get_type_hints(FlagSteps).items()
}


class CountryFlags:
    """The red flags of every country, recomputed if one of its releases changed."""

    def __init__(
        self, tenders: Tenders, captures: Mapping[int, CaptureInfo], path: Path | None = None
    ) -> None:
        self._tenders = tenders
        self._captures = captures
        self._states = TemporaryFile()  # noqa: SIM115 - closed with this object
        weakref.finalize(self, self._states.close)
        self._sizes: dict[str, tuple[int, array[int]]] = {}
        """The start of a country's processes in the file, and the size of each."""
        self._cache = RecordFile(path)
        self._cache.fill(self._anew())

    def read(self, country: str, field: str) -> Any:
        """A field of `FlagSteps`."""
        return _FLAG_FIELDS[field](self._cache.read(country, field))

    def processes(self, country: str) -> Iterator[bytes]:
        """Its processes in the order of their ocids, as JSON (`ProcessReleases`); compiled once."""
        if country not in self._sizes:
            for process in processes(self._tenders, country, self._captures):
                yield msgspec.json.encode(process)
            return
        start, sizes = self._sizes[country]
        for size in sizes:
            yield os.pread(self._states.fileno(), size, start)
            start += size

    def quarters(self, country: str) -> dict[int, FlagCounts]:
        """Counts on the last day of each quarter with a release."""
        return cast("dict[int, FlagCounts]", self.read(country, "quarters"))

    def _anew(self) -> Iterator[tuple[str, bytes, PackedRecord]]:
        for country in self._tenders.countries:
            key = self._key(country)
            if not self._cache.carry(country, key):
                sweep = FlagSweep()
                sizes = array("q")
                for process in processes(self._tenders, country, self._captures):
                    sweep.add(process)
                    sizes.append(self._states.write(msgspec.json.encode(process)))
                self._states.flush()
                self._sizes[country] = self._states.tell() - sum(sizes), sizes
                fields = sweep.close()._asdict()
                yield country, key, pack_record({name: _write(own) for name, own in fields.items()})

    def _key(self, country: str) -> bytes:
        """A digest of the inputs of a country's flags."""
        digest = blake2b(code_digest(), digest_size=16)
        for tender in self._tenders.of(country):
            row = tender.row
            capture = self._captures[row.capture_id]
            digest.update(
                _write((row.ocid, row.release_id, row.release_date, row.location, capture, tender.flag_facts))
            )
        return digest.digest()
