"""granian's supervisor, with what it leaves out: sockets that outlive a worker, and workers that are watched.

The supervisor opens one listening socket per worker and keeps it: what the kernel queued for a worker that
died is answered by its successor. Each worker beats in shared memory; one that stops beating is killed, and
granian starts it anew. A worker whose supervisor is gone ends at once and lets the port go.

The supervisor has no thread. It forks, and a fork copies the locks that other threads hold at that moment, so
a worker could wait for one for ever. It looks after its processes between two waits of its main loop instead,
and what needs threads runs in a process of its own.
"""

import asyncio
import ctypes
import logging
import multiprocessing
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, MutableSequence, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final

from granian._granian import SocketHolder
from granian.server.mp import MPServer

from sankofa.cli.application import Duty, application
from sankofa.cli.guard import ConnectionLimits, shed_connections
from sankofa.cli.process import STOP_SECONDS, SignalSafeEvent
from sankofa.operations.service import Application

_log = logging.getLogger("sankofa.serving")

BEAT_SECONDS: Final = 0.5
SILENT_SECONDS: Final = 4.0
"""A worker whose event loop stood still for so long is replaced."""
_START_SECONDS: Final = 120.0
_AGAIN_SECONDS: Final = 1.0
_PR_SET_PDEATHSIG: Final = 1
_DESCRIPTORS: Final = 4096


class _Interrupt(SignalSafeEvent):
    """The event that granian's main loop waits for. The supervisor watches its processes meanwhile."""

    def __init__(self, watch: Callable[[], list[int]]) -> None:
        """`watch` returns descriptors that become readable when there is something to look at."""
        super().__init__()
        self._watch = watch

    def wait(self, timeout: float | None = None) -> bool:
        while not super().wait(0):
            wait([self._reader, *self._watch()], BEAT_SECONDS)
        return True


class Companion:
    """A process beside the workers, started again where it ends."""

    def __init__(
        self,
        run: Callable[[], None],
        needs: Sequence[int] = (),
        wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        """`needs`: descriptors that it inherits; `wanted`: whether it has work to do."""
        self._wanted = wanted
        self._target = partial(_run_companion, os.getpid(), run, needs)
        self._process: BaseProcess | None = None
        self._not_before = 0.0

    def watch(self, now: float) -> list[int]:
        """Starts it unless it runs; returns a descriptor that becomes readable when it ends."""
        if self._process is not None and not self._process.is_alive():
            self._process = None
            self._not_before = now + _AGAIN_SECONDS
        if self._process is None and now >= self._not_before and self._wanted():
            self._process = multiprocessing.Process(target=self._target, daemon=True)
            self._process.start()
        return [] if self._process is None else [self._process.sentinel]

    def terminate(self) -> None:
        if self._process is not None:
            self._process.terminate()

    def end(self, deadline: float) -> None:
        """Waits for its end until a deadline, then kills it."""
        if self._process is not None:
            self._process.join(max(0.0, deadline - time.monotonic()))
            self._process.kill()
            self._process.join()


class Supervisor(MPServer):
    """Runs the workers. On other systems than Linux it is granian's own, without sockets of ours."""

    def __init__(
        self,
        *arguments: Any,
        limits: ConnectionLimits,
        companions: Sequence[Companion] = (),
        metrics: tuple[Path, socket.socket] | None = None,
        **options: Any,
    ) -> None:
        """`metrics`: the folder in which workers tell their counts, and the socket they are served on."""
        super().__init__(*arguments, **options)
        self.main_loop_interrupt = _Interrupt(self._watch)
        self._companions = companions
        self._worker_metrics = metrics
        self._looked = self._patient_until = 0.0
        self._limits = limits
        self._family = socket.AF_INET6 if ":" in self.bind_addr else socket.AF_INET
        self._listeners: list[socket.socket] = []
        # Of the start method granian uses, so that it reaches the workers either way.
        self._beats = multiprocessing.get_context("spawn").RawArray("d", self.workers)

    def _init_shared_socket(self) -> None:
        """One socket per worker, all on the one port: the kernel spreads connections over them."""
        super()._init_shared_socket()  # type: ignore[no-untyped-call]
        if sys.platform == "linux":
            self._ssp = None
            self._listeners = [self._listener() for _ in range(self.workers)]
        self._watch()

    def _listener(self) -> socket.socket:
        listener = socket.socket(self._family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._limits.apply(listener)  # accepted connections inherit all of it
        listener.bind((self.bind_addr, self.bind_port))
        listener.listen(self.backlog)
        listener.set_inheritable(True)
        return listener

    def _drop_shared_socket(self) -> None:
        super()._drop_shared_socket()  # type: ignore[no-untyped-call]
        for listener in self._listeners:
            listener.close()

    def _spawn_worker(self, idx: int, target: Any, callback_loader: Any) -> Any:  # type: ignore[override]
        self._beats[idx] = 0.0
        others: Sequence[int] = ()
        if self._listeners:
            listener = self._listeners[idx]
            self._sso = listener
            hold: Any = SocketHolder  # its stub knows no arguments
            self._shd = hold(listener.fileno(), False, self.backlog)
            others = [other.fileno() for other in self._listeners if other is not listener]
        beating = partial(_beat, self._beats, idx, os.getpid())
        shedding = partial(shed_connections, self._limits, self._family, self.bind_port)
        folder = None
        if self._worker_metrics is not None:
            folder, served_on = self._worker_metrics
            others = [*others, served_on.fileno()]
        load = partial(_load, os.getpid(), others, (beating, shedding), folder)
        worker = super()._spawn_worker(idx, target, load)
        worker._watch = lambda: None  # type: ignore[method-assign]  # granian's is a thread
        self._sso: Any = None  # otherwise granian would close the shared socket
        return worker

    def _stop_workers(self) -> None:
        """The companions too, at the same time. At its exit, Python would wait for them without an end."""
        deadline = time.monotonic() + STOP_SECONDS
        for companion in self._companions:
            companion.terminate()
        super()._stop_workers()  # type: ignore[no-untyped-call]
        for companion in self._companions:
            companion.end(deadline)

    def _watch(self) -> list[int]:
        """Look after every process; the descriptors that tell when one ends."""
        now = time.monotonic()
        if now - self._looked > SILENT_SECONDS / 2:  # this process was stopped; the workers too, perhaps
            self._patient_until = now + SILENT_SECONDS
        self._looked = now
        ends = [end for companion in self._companions for end in companion.watch(now)]
        for worker in list(self.wrks):
            if worker.is_alive():  # type: ignore[no-untyped-call]
                ends.append(worker.inner.sentinel)
                self._end_if_silent(worker, now)
            elif worker.idx not in self.interrupt_children:
                _log.error("worker-%d ended; starting another", worker.idx + 1)
                self.interrupt_children.append(worker.idx)
                self.main_loop_interrupt.set()
        return ends

    def _end_if_silent(self, worker: Any, now: float) -> None:
        last = self._beats[worker.idx]
        allowed = SILENT_SECONDS if last else _START_SECONDS
        if now < self._patient_until or now - (last or worker.birth) <= allowed:
            return
        _log.error("worker-%d does not answer; replacing it", worker.idx + 1)
        self._beats[worker.idx] = now
        with suppress(ProcessLookupError):
            os.kill(worker.inner.pid, signal.SIGKILL)


async def _beat(beats: MutableSequence[Any], index: int, supervisor: int, _known: object) -> None:
    """In the worker: record that the event loop turns; end the process when the supervisor is gone."""
    while True:
        beats[index] = time.monotonic()
        if os.getppid() != supervisor:
            os._exit(1)
        await asyncio.sleep(BEAT_SECONDS)


def _load(
    supervisor: int, others: Sequence[int], duties: Sequence[Duty], metrics_folder: Path | None
) -> Application:
    """Runs in the worker: ends with the supervisor, closes the sockets of other workers and creates the
    application."""
    _end_with(supervisor, signal.SIGKILL)
    if _is_forked():
        for descriptor in others:
            with suppress(OSError):
                os.close(descriptor)
    return application(duties, metrics_folder)


def _run_companion(supervisor: int, run: Callable[[], None], needs: Sequence[int]) -> None:
    """In the process of a companion: it ends with the supervisor, and holds none of its sockets."""
    _end_with(supervisor, signal.SIGTERM)
    if _is_forked():
        first = 3
        for descriptor in (*sorted(needs), _DESCRIPTORS):
            os.closerange(first, descriptor)
            first = descriptor + 1
    run()


def _end_with(supervisor: int, how: signal.Signals) -> None:
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, how, 0, 0, 0)
    if os.getppid() != supervisor:
        os._exit(1)


def _is_forked() -> bool:
    return multiprocessing.get_start_method(allow_none=True) in (None, "fork")
