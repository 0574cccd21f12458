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

import gc
import multiprocessing
import pickle  # nosec B403
import signal
import sys
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from hashlib import blake2b
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import islice
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from types import ModuleType
from typing import Final, NamedTuple

import msgspec

from sankofa.derive.issuers import Issuer
from sankofa.edition.write.checks import refuse_issuer
from sankofa.edition.write.dataset import load_declarations
from sankofa.edition.write.issuer_cache import IssuerCache, PackedRecord, pack_record
from sankofa.engines.datastore import LedgerRows
from sankofa.ledger.entities import Entity
from sankofa.ledger.generations import CaptureFilter
from sankofa.ledger.reader import CaptureInfo, FactReader, LedgerReader
from sankofa.ledger.spells import places
from sankofa.model.errors import OperatorError, SankofaError


class _NoPandas:
    """An import hook that hides pandas, which pyarrow loads to look for pandas values in every list."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not needed to build an edition", name=name)


def keep_pandas_out() -> None:
    """Keep pyarrow from loading pandas in this process: saves 0.4 s of processor time and 57 MB."""
    import pyarrow

    if "pandas" not in sys.modules:
        sys.meta_path.insert(0, _NoPandas)
        try:
            pyarrow.array([0])
        finally:
            sys.meta_path.remove(_NoPandas)


_AT_ONCE: Final = 16
"""Issuers given to a process at a time."""
_SECONDS_TO_END: Final = 10

Make = Callable[[Issuer], bytes]
Makes = Mapping[str, Make]
"""Functions that make the parts of an issuer, by kind."""


class IssuerTask(NamedTuple):
    """An issuer to derive."""

    entity: Entity
    key: bytes


class DerivedIssuer(NamedTuple):
    """A derived issuer."""

    service_id: str
    key: bytes
    record: PackedRecord


class IssuerProcesses(NamedTuple):
    """Number of processes, used from `least_issuers` on."""

    number: int
    least_issuers: int
    open_ledger: Callable[[], LedgerRows]
    """`LedgerStore.opener`."""


class WorkerSetup(NamedTuple):
    """The setup of a process."""

    open_ledger: Callable[[], LedgerRows]
    capture_filter: CaptureFilter
    captures: Mapping[int, CaptureInfo]
    kinds: list[str]


class _Failure(NamedTuple):
    error: BaseException | None
    """None if it cannot be pickled."""
    trace: str


class _Worker(NamedTuple):
    process: SpawnProcess
    connection: Connection


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


def derived_by_processes(
    number: int, setup: WorkerSetup, tasks: Iterable[IssuerTask]
) -> Generator[DerivedIssuer, None, None]:
    """Derived issuers as they are done. Raises the error of a process; OperatorError if one died.

    No process is left when the generator ends. Close it to end it early.
    """
    tasks = iter(tasks)
    with _started(number, setup) as workers:
        left = {worker.connection: _give(worker, tasks) for worker in workers}
        while busy := [connection for connection, issuers in left.items() if issuers]:
            ready = wait(busy)
            for worker in workers:
                if worker.connection not in ready:
                    continue
                yield _received(worker)
                left[worker.connection] -= 1
                if not left[worker.connection]:
                    left[worker.connection] = _give(worker, tasks)


@contextmanager
def _started(number: int, setup: WorkerSetup) -> Iterator[list[_Worker]]:
    """Spawns processes instead of forking: this one has threads and connections."""
    context = multiprocessing.get_context("spawn")
    workers: list[_Worker] = []
    try:
        resource_tracker.ensure_running()  # started later, it would unblock the signal
        with _interrupts_held_back():
            for _ in range(number):
                own, other = context.Pipe()
                process = context.Process(target=_work, args=(other, setup), daemon=True)
                process.start()
                other.close()
                workers.append(_Worker(process, own))
        yield workers
    except BaseException:
        for worker in workers:
            worker.process.terminate()
        raise
    finally:
        for worker in workers:
            worker.connection.close()  # it reads the end of it, and ends
        for worker in workers:
            worker.process.join(_SECONDS_TO_END)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Processes started inside ignore an interrupt of the terminal; this process ends them itself."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _give(worker: _Worker, tasks: Iterator[IssuerTask]) -> int:
    """Send the next issuers; returns their number. A process gets more only after it sent all results, so
    neither side waits for the other to read."""
    some = list(islice(tasks, _AT_ONCE))
    if some:
        try:
            worker.connection.send(some)
        except OSError:
            raise _died(worker) from None
    return len(some)


def _received(worker: _Worker) -> DerivedIssuer:
    try:
        message: DerivedIssuer | _Failure = worker.connection.recv()
    except (EOFError, OSError):
        raise _died(worker) from None
    if isinstance(message, _Failure):
        if message.error is None:
            raise OperatorError(f"a process that derives issuers failed: {message.trace}")
        if not isinstance(message.error, SankofaError):
            message.error.add_note(message.trace)
        raise message.error
    return message


def _died(worker: _Worker) -> OperatorError:
    worker.process.join(_SECONDS_TO_END)
    code = worker.process.exitcode
    how = f"with exit code {code}"
    if code is not None and code < 0:
        how = f"by {signal.Signals(-code).name}"
        if -code == signal.SIGKILL:
            how += ", for want of memory perhaps"
    return OperatorError(
        f"a process that derives issuers was ended {how}: nothing is published. `sankofa publish` goes on "
        "where this ended; SANKOFA_PUBLISH_PROCESSES=1 takes the least memory"
    )


def _work(connection: Connection, setup: WorkerSetup) -> None:
    """RowSlices in the process. It ends with the connection, so it does not outlive the build."""
    gc.disable()  # as the build does
    keep_pandas_out()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError), connection:
        try:
            _derive(connection, setup)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise
        except BaseException as failure:
            connection.send(_Failure(_sendable(failure), traceback.format_exc()))


def _derive(connection: Connection, setup: WorkerSetup) -> None:
    load_declarations()  # each dataset declares the parts that it has in an issuer
    makes = declared_parts(setup.kinds)
    with closing(setup.open_ledger()) as rows, rows.snapshot():
        facts = FactReader(rows, setup.capture_filter)
        while True:
            for entity, key in connection.recv():
                record = make_record(makes, Issuer(entity, facts, setup.captures))
                connection.send(DerivedIssuer(entity.service_id, key, record))


def _sendable(failure: BaseException) -> BaseException | None:
    try:
        pickle.loads(pickle.dumps(failure))  # nosec B301  # noqa: S301 - ours
    except Exception:
        return None
    return failure


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
        except OSError:  # disk full: leave no unfinished file
            self._cache.close()
            raise
        except BaseException:
            self._cache.interrupt()
            raise

    def _tasks(self, entities: Iterable[Entity]) -> Iterator[IssuerTask]:
        numbers_of, accepted = self._ledger.fact_captures(), self._ledger.acceptance_captures()
        written = {number: _write((number, *_said(capture))) for number, capture in self._captures.items()}
        for entity in entities:
            known = [(subject, numbers_of[subject]) for subject in entity.subjects if subject in numbers_of]
            if known:
                known += [(subject, accepted[subject]) for subject in entity.subjects if subject in accepted]
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

    def _take(self, issuer: Issuer, key: bytes) -> None:
        name = issuer.entity.service_id
        if not self._cache.carry(name, key):
            self._cache.put(name, key, make_record(self._makes, issuer))

    def _key(self, entity: Entity, known: list[tuple[str, list[int]]], captures: dict[int, bytes]) -> bytes:
        key = blake2b(code_digest(), digest_size=16)
        placed = places(entity, self._captures)
        identity = (entity.service_id, entity.legal_name, entity.country, placed, known, list(self._makes))
        key.update(_write(identity))
        for number in sorted({number for _, numbers in known for number in numbers}):
            key.update(captures[number])
        return key.digest()


def _said(capture: CaptureInfo) -> tuple[object, ...]:
    return tuple(capture)


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
