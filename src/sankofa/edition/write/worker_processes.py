"""Worker processes of a publication: they derive issuers and macro columns, and hash rows.

They start once, for the first task that is large enough or before it, and always end with the publication. A
worker is given a few tasks at a time and sends back one result for each.
"""

import gc
import multiprocessing
import pickle  # nosec B403
import signal
import sys
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import chain, islice
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import ModuleType
from typing import Any, Final, NamedTuple, TypeVar

from sankofa.edition.write.dataset import load_declarations
from sankofa.engines.ledger_store import LedgerRows
from sankofa.model.errors import OperatorError, SankofaError

T = TypeVar("T")
R = TypeVar("R")
_AT_ONCE: Final = 2
"""Small tasks given to a process at a time."""
_SECONDS_TO_END: Final = 10

Job = Callable[[], AbstractContextManager[Callable[[Any], Any]]]
"""Opened in each process; returns the function to call for each task. Picklable."""


class _Failure(NamedTuple):
    error: BaseException | None
    """None if it cannot be pickled."""
    trace: str


class _Worker(NamedTuple):
    process: SpawnProcess
    connection: Connection


class WorkerProcesses:
    """Some processes, which are started for work of at least `least_figures`."""

    def __init__(self, number: int, least_figures: int, open_ledger: Callable[[], LedgerRows]) -> None:
        self.open_ledger = open_ledger
        """`LedgerStore.opener`."""
        self._number = number
        self._least_figures = least_figures
        self._workers: list[_Worker] = []
        self._thread = ThreadPoolExecutor(1, "deriving")
        self._failed = False

    def __enter__(self) -> "WorkerProcesses":
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        if failure is not None:  # the work in the background ends with its processes
            self._failed = True
            for worker in self._workers:
                worker.process.terminate()
        self._thread.shutdown(cancel_futures=True)
        self.close()

    def expect(self, figures: int) -> None:
        """Start the processes now if there will be enough work. Each imports the package for a second."""
        if self._number > 1 and figures >= self._least_figures and not self._workers:
            self._start()

    def in_background(self, work: Callable[[], None]) -> Future[None]:
        """Do work that uses the processes while this thread goes on; it must not use them until the end."""
        return self._thread.submit(work)

    def derive(
        self,
        job: Job,
        alone: Callable[[T], R],
        tasks: Iterable[T],
        figures: Callable[[T], int],
        at_once: int = _AT_ONCE,
    ) -> Generator[R, None, None]:
        """The result of each task when done; `alone` computes it in this process if there is little to do.
        A process is given `at_once` tasks at a time.

        Raises the error of a process; OperatorError if one died. Close it to end it early.
        """
        tasks = iter(tasks)
        if self._number < 2:  # do not hold tasks back to count them
            yield from map(alone, tasks)
        waiting: list[T] = []
        total = 0
        for task in tasks:
            waiting.append(task)
            total += figures(task)
            if (self._workers or total >= self._least_figures) and len(waiting) > 1:
                try:
                    yield from self._derived(job, chain(waiting, tasks), at_once)
                except BaseException:
                    self.close(at_once=True)
                    raise
                return
        yield from map(alone, waiting)

    def _derived(self, job: Job, tasks: Iterator[T], at_once: int) -> Iterator[Any]:
        if not self._workers:
            self._start()
        for worker in self._workers:
            _send(worker, job)
        tasks_left = {worker.connection: _give(worker, tasks, at_once) for worker in self._workers}
        while busy := [connection for connection, count in tasks_left.items() if count]:
            if self._failed:
                raise OperatorError("the publication failed, so its work in the background ended")
            ready = wait(busy)
            for worker in self._workers:
                if worker.connection not in ready:
                    continue
                yield _received(worker)
                tasks_left[worker.connection] -= 1
                if not tasks_left[worker.connection]:
                    tasks_left[worker.connection] = _give(worker, tasks, at_once)

    def _start(self) -> None:
        """Spawns processes instead of forking: this one has threads and connections."""
        context = multiprocessing.get_context("spawn")
        resource_tracker.ensure_running()  # started later, it would unblock the signal
        with _interrupts_held_back():
            for _ in range(self._number):
                own, other = context.Pipe()
                process = context.Process(target=_work, args=(other,), daemon=True)
                process.start()
                other.close()
                self._workers.append(_Worker(process, own))

    def close(self, *, at_once: bool = False) -> None:
        workers, self._workers = self._workers, []
        for worker in workers:
            if at_once:
                worker.process.terminate()
            worker.connection.close()  # the process reads the end of the connection and exits
        for worker in workers:
            worker.process.join(_SECONDS_TO_END)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()


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


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Processes started inside ignore a terminal interrupt; this process ends them itself."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _give(worker: _Worker, tasks: Iterator[object], at_once: int) -> int:
    """Send the next tasks; returns their number. A process gets more only after it sent all results, so
    neither side waits for the other to read."""
    some = list(islice(tasks, at_once))
    if some:
        _send(worker, some)
    return len(some)


def _send(worker: _Worker, message: object) -> None:
    try:
        worker.connection.send(message)
    except OSError:
        raise _died(worker) from None


def _received(worker: _Worker) -> object:
    try:
        message = worker.connection.recv()
    except (EOFError, OSError):
        raise _died(worker) from None
    if isinstance(message, _Failure):
        if message.error is None:
            raise OperatorError(f"a process that derives rows failed: {message.trace}")
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
            how += ", perhaps because memory ran out"
    return OperatorError(
        f"a process that derives rows was ended {how}: nothing is published. `sankofa publish` continues "
        "where it stopped; SANKOFA_PUBLISH_PROCESSES=1 takes the least memory"
    )


def _work(connection: Connection) -> None:
    """Runs in the worker process. It ends with the connection, so it does not outlive the build."""
    gc.disable()  # as the build does
    keep_pandas_out()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError), connection:
        try:
            _derive(connection)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise
        except BaseException as failure:
            connection.send(_Failure(_sendable(failure), traceback.format_exc()))


def _derive(connection: Connection) -> None:
    load_declarations()  # each dataset declares its parts of an issuer or a macro column
    message = connection.recv()
    while True:
        with message() as make:
            while isinstance(message := connection.recv(), list):
                for task in message:
                    connection.send(make(task))


def _sendable(failure: BaseException) -> BaseException | None:
    try:
        pickle.loads(pickle.dumps(failure))  # nosec B301  # noqa: S301 - ours
    except Exception:
        return None
    return failure
