"""Derives each issuer once for all datasets, in several processes, and reuses issuers that did not change.

The parts of an issuer are made of the facts of its subjects, the captures of those facts, the acceptances of
its documents, its exchanges, its name and its country. The ledger only grows, so the captures that brought
facts of a subject identify those facts without reading them (`Ledger.fact_captures`). A capture is identified
by its number, source, instant, licence class in the registry, file name and digest, and by whether its source
rounds dates. Captures of sources that are left out do not count. The rest of the key is the code: every
source file of this package and the versions of the libraries it computes with. No clock or setting enters.

Each process reads the facts of its issuers through its own connection and sends back one issuer at a time. It
reads what the build reads, even if something is ingested meanwhile (`ledger.generations.CaptureFilter`).
"""

import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import cache, partial
from hashlib import blake2b
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import NamedTuple

import msgspec

from sankofa.derive.issuers import Issuer
from sankofa.edition.write.checks import refuse_issuer
from sankofa.edition.write.issuer_cache import IssuerCache, PackedRecord, pack_record
from sankofa.edition.write.worker_processes import WorkerProcesses
from sankofa.engines.datastore import LedgerRows
from sankofa.ledger.entities import Entity
from sankofa.ledger.generations import CaptureFilter
from sankofa.ledger.reader import CaptureInfo, FactReader, Facts, LedgerReader
from sankofa.ledger.spells import places
from sankofa.model.errors import SankofaError

Make = Callable[[Issuer], bytes]
Makes = Mapping[str, Make]
"""Functions that make the parts of an issuer, by kind."""


class IssuerTask(NamedTuple):
    """An issuer to derive."""

    entity: Entity
    key: bytes


DerivedIssuer = tuple[str, bytes, PackedRecord]
"""Its service_id, its key and its parts."""


def make_record(makes: Makes, issuer: Issuer) -> PackedRecord:
    """Raises BuildFailed, which names a capture, if a row cannot be derived."""

    def derived(issuer: Issuer) -> dict[str, bytes]:
        parts = ((kind, make(issuer)) for kind, make in makes.items())
        return {kind: part for kind, part in parts if part}

    try:
        return pack_record(derived(issuer))
    except (SankofaError, OSError, MemoryError):
        raise
    except Exception as failure:
        raise refuse_issuer(failure, issuer, derived) from failure


@contextmanager
def _reading(
    open_ledger: Callable[[], LedgerRows],
    capture_filter: CaptureFilter,
    captures: Mapping[int, CaptureInfo],
    kinds: list[str],
) -> Iterator[Callable[[IssuerTask], DerivedIssuer]]:
    """Derives issuers in a process of its own."""
    with closing(open_ledger()) as rows, rows.snapshot():
        yield partial(_derived, declared_parts(kinds), FactReader(rows, capture_filter), captures)


def _derived(
    makes: Makes, facts: Facts, captures: Mapping[int, CaptureInfo], task: IssuerTask
) -> DerivedIssuer:
    record = make_record(makes, Issuer(task.entity, facts, captures))
    return task.entity.service_id, task.key, record


_COMPUTED_WITH = ("msgspec", "pyarrow", "pycountry")
_write = msgspec.msgpack.Encoder().encode

_PARTS: dict[str, Make] = {}


def issuer_part(kind: str) -> Callable[[Make], Make]:
    """Declare the function below as the maker of an issuer's part of a dataset; empty bytes for none."""

    def declare(make: Make) -> Make:
        _PARTS[kind] = make
        return make

    return declare


def declared_parts(kinds: Iterable[str] | None = None) -> dict[str, Make]:
    """The makers of all parts, or of these, in a fixed order."""
    return {kind: _PARTS[kind] for kind in sorted(_PARTS if kinds is None else kinds)}


class Issuers:
    """The parts of every issuer by service_id; `parts` selects some of them."""

    def __init__(
        self,
        ledger: LedgerReader,
        captures: Mapping[int, CaptureInfo],
        entities: Iterable[Entity],
        path: Path | None = None,
        parts: Iterable[str] | None = None,
        processes: WorkerProcesses | None = None,
    ) -> None:
        self._makes = declared_parts(parts)
        self._ledger = ledger
        self._captures = captures
        self._cache = IssuerCache(path)
        self.count = 0
        with closing(self._derived(processes, self._anew(entities))) as derived:
            self._cache.fill(derived)

    def _anew(self, entities: Iterable[Entity]) -> Iterator[IssuerTask]:
        """The issuers that are not reused."""
        for task in self._tasks(entities):
            self.count += 1
            if not self._cache.carry(task.entity.service_id, task.key):
                yield task

    def _tasks(self, entities: Iterable[Entity]) -> Iterator[IssuerTask]:
        numbers_of, accepted = self._ledger.fact_captures(), self._ledger.acceptance_captures()
        written = {number: _write((number, *capture)) for number, capture in self._captures.items()}
        for entity in entities:
            known = [(subject, numbers_of[subject]) for subject in entity.subjects if subject in numbers_of]
            if known:
                known += [(subject, accepted[subject]) for subject in entity.subjects if subject in accepted]
                yield IssuerTask(entity, self._key(entity, known, written))

    def _derived(
        self, processes: WorkerProcesses | None, tasks: Iterator[IssuerTask]
    ) -> Generator[DerivedIssuer, None, None]:
        alone = partial(_derived, self._makes, self._ledger, self._captures)
        if processes is None:
            yield from map(alone, tasks)
            return
        setup = (processes.open_ledger, self._ledger.capture_filter(), self._captures, list(self._makes))
        yield from processes.derive(partial(_reading, *setup), alone, tasks, self._facts)

    def _facts(self, task: IssuerTask) -> int:
        return sum(map(self._ledger.count_facts, task.entity.subjects))

    @property
    def carried(self) -> int:
        """Number of reused issuers."""
        return self._cache.carried

    def part(self, kind: str, service_id: str) -> bytes:
        """The part of an issuer for a dataset; empty if it has none."""
        return self._cache.read(service_id, kind)

    def key(self, service_id: str) -> bytes:
        """The digest of the inputs of an issuer; empty if it has no facts."""
        return self._cache.key(service_id)

    def size(self, service_id: str) -> int:
        """Size of all its parts."""
        return self._cache.size(service_id)

    def _key(self, entity: Entity, known: list[tuple[str, list[int]]], captures: dict[int, bytes]) -> bytes:
        key = blake2b(code_digest(), digest_size=16)
        placed = places(entity, self._captures)
        identity = (entity.service_id, entity.legal_name, entity.country, placed, known, list(self._makes))
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
