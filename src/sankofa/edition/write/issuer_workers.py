"""Issuers derived by several processes at a time.

Each process reads the facts of the issuers that it is given through a connection of its own, makes their
parts and sends them back, one issuer after the other: none has more than one of them in memory. What they
read is what the build reads, though something may be ingested meanwhile (`leaving_out.CaptureFilter`).
"""

import gc
import multiprocessing
import pickle  # nosec B403
import signal
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from itertools import islice
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Final, NamedTuple

from sankofa.derive.issuers import Issuer
from sankofa.edition.write.failures import refuse_issuer
from sankofa.edition.write.issuer_cache import PackedRecord, pack_record
from sankofa.edition.write.pyarrow_alone import keep_pandas_out
from sankofa.engines.datastore import LedgerRows
from sankofa.ledger.entities import Entity
from sankofa.ledger.generations import CaptureFilter
from sankofa.ledger.reader import CaptureInfo, FactReader
from sankofa.model.errors import OperatorError, SankofaError

_AT_ONCE: Final = 16
"""Issuers that a process is given at a time: enough that it seldom waits for more."""
_SECONDS_TO_END: Final = 10

Make = Callable[[Issuer], bytes]
Makes = Mapping[str, Make]
"""By kind, what makes the part of an issuer."""


class IssuerTask(NamedTuple):
    """An issuer to be derived."""

    entity: Entity
    key: bytes


class DerivedIssuer(NamedTuple):
    """What was made of one."""

    service_id: str
    key: bytes
    record: PackedRecord


class IssuerProcesses(NamedTuple):
    """How many processes derive issuers, where at least so many are to be derived."""

    number: int
    least_issuers: int
    open_ledger: Callable[[], LedgerRows]
    """`Datastore.ledger_opener`."""


class WorkerSetup(NamedTuple):
    """What a process is to know."""

    open_ledger: Callable[[], LedgerRows]
    capture_filter: CaptureFilter
    captures: Mapping[int, CaptureInfo]
    kinds: list[str]


class _Failure(NamedTuple):
    error: BaseException | None
    """None where it cannot be sent."""
    trace: str


class _Worker(NamedTuple):
    process: SpawnProcess
    connection: Connection


def make_record(makes: Makes, issuer: Issuer) -> PackedRecord:
    """Raises BuildFailed, which names a capture, where one of its rows cannot be derived."""

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
    """In the order in which they are done. Raises what a process failed with; OperatorError where one died.

    None of the processes is left when this ends, however it ends; who leaves it early has to close it.
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
    """Spawned, not forked: this process has threads and connections that none may share with it."""
    context = multiprocessing.get_context("spawn")
    workers: list[_Worker] = []
    try:
        resource_tracker.ensure_running()  # or it would be started with the first, and unblock the signal
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
    """Whatever is started inside never hears of an interrupt of the terminal, not even before it runs any of
    our code: the command ends its processes itself. Its own interrupt comes a moment later."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _give(worker: _Worker, tasks: Iterator[IssuerTask]) -> int:
    """The next issuers; how many. A process is given more only once it has sent all that it had: neither side
    ever waits for the other to read."""
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
    """In the process. It ends with the connection, so it outlives no build."""
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
    # Each dataset declares the parts that it has in an issuer.
    from sankofa.edition.write.dataset import datasets
    from sankofa.edition.write.issuer_parts import declared_parts

    datasets()
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
