"""granian's supervisor, with what it leaves out: sockets that outlive a worker, and workers that are watched.

The supervisor opens one listening socket per worker and keeps it: what the kernel queued for a worker that
died is answered by its successor. Each worker beats in shared memory; one that stops beating is killed, and
granian starts it anew. A worker whose supervisor is gone ends at once and lets the port go.
"""

import asyncio
import ctypes
import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import MutableSequence, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from granian._granian import SocketHolder
from granian.server.mp import MPServer

from sankofa.cli.application import Duty, application
from sankofa.cli.connections import ConnectionLimits, shed_connections
from sankofa.cli.stopping import SignalSafeEvent
from sankofa.rest.app import Application

_log = logging.getLogger("sankofa.serving")

BEAT_SECONDS: Final = 0.5
SILENT_SECONDS: Final = 4.0
"""A worker that did not turn its event loop for so long is replaced."""
_START_SECONDS: Final = 120.0
_PR_SET_PDEATHSIG: Final = 1


class Supervisor(MPServer):
    """Runs the workers. On other systems than Linux it is granian's own, without sockets of ours."""

    def __init__(
        self,
        *arguments: Any,
        limits: ConnectionLimits,
        telemetry: tuple[Path, int] | None = None,
        **options: Any,
    ) -> None:
        """`telemetry`: the folder that workers tell their counts in, and the descriptor it is served on."""
        super().__init__(*arguments, **options)
        self.main_loop_interrupt = SignalSafeEvent()  # which granian's handlers set
        self._telemetry = telemetry
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
        threading.Thread(target=self._watch_beats, name="watch-workers", daemon=True).start()

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
        if self._telemetry is not None:
            folder, descriptor = self._telemetry
            others = [*others, descriptor]
        load = partial(_load, os.getpid(), others, (beating, shedding), folder)
        worker = super()._spawn_worker(idx, target, load)
        self._sso: Any = None  # else granian would close it as the one socket of all
        return worker

    def _watch_beats(self) -> None:
        looked = time.monotonic()
        while True:
            time.sleep(BEAT_SECONDS)
            now = time.monotonic()
            if now - looked > SILENT_SECONDS / 2:  # this process was stopped itself: the workers too, perhaps
                looked = now
                time.sleep(SILENT_SECONDS)
                continue
            looked = now
            for worker in list(self.wrks):
                last = self._beats[worker.idx]
                allowed = SILENT_SECONDS if last else _START_SECONDS
                if now - (last or worker.birth) > allowed and worker.is_alive():  # type: ignore[no-untyped-call]
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
    """In the worker: end with the supervisor, let go of the others' sockets, and make the application."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != supervisor:
        os._exit(1)
    if multiprocessing.get_start_method(allow_none=True) in (None, "fork"):
        for descriptor in others:
            with suppress(OSError):
                os.close(descriptor)
    return application(duties, metrics_folder)
