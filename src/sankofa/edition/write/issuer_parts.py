"""What is made of each issuer by itself: once for all the datasets that have a part in it, or as it was made
for the edition before where nothing it hangs on changed.

What a part is made of is the facts of the issuer's subjects, the captures that brought them, and its name and
country. The ledger only ever grows, so the facts of a subject are told by the captures that brought any
(`Ledger.fact_captures`), without reading one of them. A capture is told by its number, its source, its
instant, its licence class as the registry has it, the name and digest of its file, and whether its source
rounds dates. The captures of sources that are left out are not among them. The rest of the key is the code:
every source file of this package, and the releases of what it computes with. No clock or setting enters.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from functools import cache
from hashlib import blake2b
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import msgspec

from sankofa.derive.issuers import Issuer
from sankofa.edition.write.issuer_cache import IssuerCache
from sankofa.edition.write.issuer_workers import (
    IssuerProcesses,
    IssuerTask,
    Make,
    WorkerSetup,
    derived_by_processes,
    make_record,
)
from sankofa.ledger.entities import Entity
from sankofa.ledger.reader import CaptureInfo, LedgerReader

_COMPUTED_WITH = ("msgspec", "pyarrow", "pycountry")
_write = msgspec.msgpack.Encoder().encode

_PARTS: dict[str, Make] = {}


def issuer_part(kind: str) -> Callable[[Make], Make]:
    """Declare the function below as what makes an issuer's part of a dataset; nothing where it has none."""

    def declare(make: Make) -> Make:
        _PARTS[kind] = make
        return make

    return declare


def declared_parts(kinds: Iterable[str] | None = None) -> dict[str, Make]:
    """What makes each part, or these; always in the same order."""
    return {kind: _PARTS[kind] for kind in sorted(_PARTS if kinds is None else kinds)}


class Issuers:
    """The parts of every issuer, by service_id. `parts` is for who wants some of them only."""

    def __init__(
        self,
        ledger: LedgerReader,
        captures: Mapping[int, CaptureInfo],
        entities: Iterable[Entity],
        path: Path | None = None,
        parts: Iterable[str] | None = None,
        processes: IssuerProcesses | None = None,
    ) -> None:
        self._makes = declared_parts(parts)
        self._ledger = ledger
        self._captures = captures
        self._cache = IssuerCache(path)
        try:
            tasks = list(self._tasks(entities))
            self.count = len(tasks)
            anew = sum(not self._cache.has(task.entity.service_id, task.key) for task in tasks)
            if processes is not None and processes.number > 1 and anew >= processes.least_issuers:
                self._derive_in(processes, tasks)
            else:
                for entity, key in tasks:
                    self._take(Issuer(entity, ledger, captures), key)
            self._cache.finish()
        except OSError:  # no room: then none is left taken
            self._cache.close()
            raise
        except BaseException:
            self._cache.interrupt()
            raise

    def _tasks(self, entities: Iterable[Entity]) -> Iterator[IssuerTask]:
        numbers_of = self._ledger.fact_captures()
        written = {number: _write((number, *_said(capture))) for number, capture in self._captures.items()}
        for entity in entities:
            known = [(subject, numbers_of[subject]) for subject in entity.subjects if subject in numbers_of]
            if known:
                yield IssuerTask(entity, self._key(entity, known, written))

    def _derive_in(self, processes: IssuerProcesses, tasks: Iterable[IssuerTask]) -> None:
        setup = WorkerSetup(
            processes.open_ledger, self._ledger.capture_filter(), self._captures, list(self._makes)
        )
        anew = (one for one in tasks if not self._cache.carry(one.entity.service_id, one.key))
        with closing(derived_by_processes(processes.number, setup, anew)) as derived:
            for done in derived:
                self._cache.put(done.service_id, done.key, done.record)

    @property
    def carried(self) -> int:
        """How many issuers are as they were."""
        return self._cache.carried

    def part(self, kind: str, service_id: str) -> bytes:
        """What was made of an issuer for a dataset; empty where nothing was."""
        return self._cache.read(service_id, kind)

    def key(self, service_id: str) -> bytes:
        """A digest of all that the parts of an issuer are made of; empty where it has none."""
        return self._cache.key(service_id)

    def size(self, service_id: str) -> int:
        """How many bytes all its parts have."""
        return self._cache.size(service_id)

    def _take(self, issuer: Issuer, key: bytes) -> None:
        name = issuer.entity.service_id
        if not self._cache.carry(name, key):
            self._cache.put(name, key, make_record(self._makes, issuer))

    def _key(self, entity: Entity, known: list[tuple[str, list[int]]], captures: dict[int, bytes]) -> bytes:
        key = blake2b(code_digest(), digest_size=16)
        identity = (entity.service_id, entity.legal_name, entity.country, known, list(self._makes))
        key.update(_write(identity))
        for number in sorted({number for _, numbers in known for number in numbers}):
            key.update(captures[number])
        return key.digest()


def _said(capture: CaptureInfo) -> tuple[object, ...]:
    return tuple(capture)


@cache
def code_digest() -> bytes:
    """Tells one way of making from another: whatever is changed in the package, everything is made anew."""
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
