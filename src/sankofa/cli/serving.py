"""`sankofa serve`: granian, one process per worker; and `sankofa open`, which opens the pages."""

import asyncio
import ctypes
import logging
import multiprocessing
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import webbrowser
from collections.abc import Callable, MutableSequence, Sequence
from contextlib import suppress
from functools import partial
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import click
from granian._granian import SocketHolder
from granian.constants import HTTPModes, Interfaces, RuntimeModes
from granian.http import HTTP1Settings
from granian.log import LogLevels
from granian.server.mp import MPServer

from sankofa.access.owner import SIGN_IN, Owner
from sankofa.cli.application import Duty, application  # before the fork, so that the workers share it
from sankofa.cli.guard import ConnectionLimits, shed_connections
from sankofa.cli.keys import opened_keys
from sankofa.cli.metrics import serve_metrics
from sankofa.cli.output import to_have_an_edition
from sankofa.cli.process import STOP_SECONDS, SignalSafeEvent, configure, end_soon_after_signals, now
from sankofa.engines.private_files import replace_file
from sankofa.model.errors import OperatorError, StoreUnavailable
from sankofa.model.limits import limit
from sankofa.operations.service import Application
from sankofa.replication.stores import followed_address, only_follows, open_store, shares_ledger
from sankofa.settings import Settings, load, without_credentials

_log = logging.getLogger("sankofa.serving")

BEAT_SECONDS: Final = 0.5
SILENT_SECONDS: Final = 4.0
"""A worker whose event loop is stuck for this long is replaced."""
_START_SECONDS: Final = 120.0
_AGAIN_SECONDS: Final = 1.0
_PR_SET_PDEATHSIG: Final = 1
_DESCRIPTORS: Final = 4096


class _Interrupt(SignalSafeEvent):
    """The event that granian's main loop waits for. The supervisor watches its processes meanwhile."""

    def __init__(self, watch: Callable[[], list[int]]) -> None:
        """`watch` returns descriptors that become readable when a process needs attention."""
        super().__init__()
        self._watch = watch

    def wait(self, timeout: float | None = None) -> bool:
        while not super().wait(0):
            wait([self._reader, *self._watch()], BEAT_SECONDS)
        return True


class Companion:
    """A process beside the workers, restarted when it ends."""

    def __init__(
        self, run: Callable[[], None], needs: Sequence[int] = (), has_work: Callable[[], bool] = lambda: True
    ) -> None:
        """`needs`: descriptors that the process inherits; `has_work`: whether there is work to do."""
        self._has_work = has_work
        self._target = partial(_run_companion, os.getpid(), run, needs)
        self._process: BaseProcess | None = None
        self._not_before = 0.0

    def watch(self, now: float) -> list[int]:
        """Starts the process unless it runs; returns a descriptor that becomes readable when it ends."""
        if self._process is not None and not self._process.is_alive():
            self._process = None
            self._not_before = now + _AGAIN_SECONDS
        if self._process is None and now >= self._not_before and self._has_work():
            self._process = multiprocessing.Process(target=self._target, daemon=True)
            self._process.start()
        return [] if self._process is None else [self._process.sentinel]

    def terminate(self) -> None:
        if self._process is not None:
            self._process.terminate()

    def end(self, deadline: float) -> None:
        """Waits for the process to end until a deadline, then kills it."""
        if self._process is not None:
            self._process.join(max(0.0, deadline - time.monotonic()))
            self._process.kill()
            self._process.join()


class Supervisor(MPServer):
    """Runs the workers. On systems other than Linux this is granian's own server, without our sockets."""

    def __init__(
        self,
        *arguments: Any,
        limits: ConnectionLimits,
        companions: Sequence[Companion] = (),
        metrics: tuple[Path, socket.socket] | None = None,
        **options: Any,
    ) -> None:
        """`metrics`: the folder where workers write their counts, and the socket that serves them."""
        super().__init__(*arguments, **options)
        self.main_loop_interrupt = _Interrupt(self._watch)
        self._companions = companions
        self._worker_metrics = metrics
        self._looked = self._patient_until = 0.0
        self._limits = limits
        self._family = socket.AF_INET6 if ":" in self.bind_addr else socket.AF_INET
        self._listeners: list[socket.socket] = []
        # From granian's start method, so that it reaches the workers with either method.
        self._beats = multiprocessing.get_context("spawn").RawArray("d", self.workers)

    def _init_shared_socket(self) -> None:
        """One socket per worker on the same port: the kernel spreads connections over them."""
        super()._init_shared_socket()  # type: ignore[no-untyped-call]
        if sys.platform == "linux":
            self._ssp = None
            self._listeners = [self._listener() for _ in range(self.workers)]
        self._watch()

    def _listener(self) -> socket.socket:
        listener = socket.socket(self._family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self._limits.apply(listener)  # accepted connections inherit these options
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
            hold: Any = SocketHolder  # its stub declares no arguments
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
        """Stops the companions too, at the same time. At exit, Python would wait for them without a limit."""
        deadline = time.monotonic() + STOP_SECONDS
        for companion in self._companions:
            companion.terminate()
        super()._stop_workers()  # type: ignore[no-untyped-call]
        for companion in self._companions:
            companion.end(deadline)

    def _watch(self) -> list[int]:
        """Restart processes as needed. Returns the descriptors that show when one ends."""
        now = time.monotonic()
        if now - self._looked > SILENT_SECONDS / 2:  # this process was suspended, perhaps the workers too
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
    """In the worker: record that the event loop runs; end the process when the supervisor is gone."""
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
    """In a companion's process: end with the supervisor, and close its sockets."""
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


_APPLICATION = "sankofa.cli.application:application"
_EVERYWHERE = ("0.0.0.0", "::")  # nosec B104  # noqa: S104 - recognised, never a default
_FIRST_PULL_SECONDS = 20.0
_BACKLOG = 4096  # the kernel's own limit on most systems
_HEAD_SECONDS = limit("time for the head of a request", 10.0, "seconds", "the connection is closed")
_HTTP1 = HTTP1Settings(
    header_read_timeout=int(1000 * _HEAD_SECONDS),  # disconnects a client that sends its request too slowly
    keep_alive=True,
    max_buffer_size=64 * 1024,  # the server itself refuses endless headers and URLs
    pipeline_flush=False,
)


def run_server(settings: Settings, host: str, port: int, workers: int, *, sign_in: bool) -> None:
    """Print where the service is and how to try it, then serve until told to stop."""
    _refuse_read_only_home(settings)
    settings.cursor_secrets(), settings.keys_secrets()  # checked here: a worker could not report the problem
    _refuse_used_port(host, port)
    address = f"http://{'127.0.0.1' if host in _EVERYWHERE else host}:{port}"
    try:
        current = _current_edition(settings)
    except StoreUnavailable as failure:
        click.echo(
            f"Warning: the datastore does not answer ({failure.cause}); serving 503 until it does.", err=True
        )
        current = None
    else:
        if current is None and not only_follows(settings):
            advice = to_have_an_edition(settings)
            click.echo(f"Warning: no edition is published; serving 503 until one is ({advice}).", err=True)
    serving = f"edition {current}" if current else "no edition yet"
    click.echo(f"Sankofa at {address} (MCP at {address}/mcp), {serving}")
    if settings.sandbox_key:
        click.echo(f"Sandbox key: {settings.sandbox_key}")
        # Every edition can answer this.
        click.echo(
            f"Try: curl -H 'X-API-Key: {settings.sandbox_key}' '{address}/v1/screen?metric=net_margin'"
        )
    if settings.base_url == Settings.base_url:  # not set: links use the address it listens on
        os.environ["SANKOFA_BASE_URL"] = address
        with suppress(OSError):  # for `sankofa open`; a read-only HOME does not stop the server
            replace_file(settings.home / _ADDRESS, f"{address}\n".encode(), durable=False)
    if sign_in:
        public = address if settings.base_url == Settings.base_url else settings.base_url
        try:
            click.echo(f"Sign in as the owner, once, within ten minutes: {sign_in_address(settings, public)}")
        except (OSError, StoreUnavailable) as failure:
            click.echo(f"Warning: no sign-in address could be made: {failure}", err=True)
    companions: list[Companion] = []
    metrics: tuple[Path, socket.socket] | None = None
    if settings.metrics_port:
        listener = _listen_for_metrics(settings)
        metrics = Path(tempfile.mkdtemp(prefix="sankofa-metrics-")), listener
        companions.append(Companion(partial(serve_metrics, *metrics), (listener.fileno(),)))
        click.echo(f"Metrics at http://{settings.metrics_host}:{settings.metrics_port}/metrics")
    if address_followed := followed_address(settings):
        from sankofa.cli.replicating import check_followed, follow_beside

        check_followed(settings)
        companions.append(Companion(follow_beside))
        click.echo(f"Following editions from {without_credentials(address_followed)}")
    hooks = settings.home / "hooks"
    companions.append(Companion(_deliver_hooks, has_work=lambda: any(hooks.glob("*.json"))))
    limits = ConnectionLimits.of(settings)
    server = Supervisor(
        _APPLICATION,
        address=host,
        port=port,
        interface=Interfaces.ASGI,
        http=HTTPModes.http1,  # to detect the version, granian would wait for a silent client for ever
        factory=True,
        workers=workers,
        runtime_mode=RuntimeModes.st,
        http1_settings=_HTTP1,
        limits=limits,
        companions=companions,
        metrics=metrics,
        backlog=_BACKLOG,
        backpressure=limits.connections,
        log_level=LogLevels.warning if settings.log_level != "debug" else LogLevels.debug,
        websockets=False,
        respawn_failed_workers=True,
        workers_kill_timeout=STOP_SECONDS,
    )
    # Otherwise a worker stopped during its start would run the inherited handler and never end.
    os.register_at_fork(after_in_child=lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL))
    logging.captureWarnings(True)
    try:
        server.serve()
    finally:
        if metrics is not None:
            shutil.rmtree(metrics[0], ignore_errors=True)


def _current_edition(settings: Settings) -> str | None:
    """The edition in HOME. A new node of a shared database first tries to pull one, within a short time.

    Raises StoreUnavailable.
    """
    store = open_store(settings)
    current = store.list_editions().current
    if current is None and shares_ledger(settings):
        store.ledgers.captured()  # raises if the server does not answer
        # In a separate process: pulling uses threads, and this process forks.
        command = [sys.executable, "-c", "from sankofa.cli.main import main; main()", "follow", "--once"]
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(  # noqa: S603 - of this program, with constant arguments
                command, timeout=_FIRST_PULL_SECONDS, capture_output=True, check=False
            )
        current = store.list_editions().current
    return current


def _listen_for_metrics(settings: Settings) -> socket.socket:
    """Raises OperatorError."""
    address = settings.metrics_host, int(settings.metrics_port)
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    try:
        return socket.create_server(address, family=family)
    except OSError as failure:
        reason = f"cannot serve metrics on {address[0]}:{address[1]}: {failure.strerror}"
        raise OperatorError(reason) from failure


def _deliver_hooks() -> None:
    """Runs in a separate process while there are hooks that no other process delivers."""
    from sankofa.cli.hooks import deliver

    settings = load()
    configure(settings)
    with end_soon_after_signals(), suppress(OperatorError):
        deliver(settings)


def _refuse_read_only_home(settings: Settings) -> None:
    """Raises OperatorError if HOME is read-only and this server must write to it."""
    written = {
        "keys (SANKOFA_KEYSTORE)": settings.keystore == "embedded:",
        "quotas (SANKOFA_USAGESTORE)": settings.usagestore == "embedded:",
        "cursor-secret (SANKOFA_CURSOR_SECRET)": not settings.cursor_secret
        and not (settings.home / "cursor-secret").exists(),
        "editions (SANKOFA_EDITIONS)": settings.editions,
    }
    needed = ", ".join(name for name, in_home in written.items() if in_home)
    if needed and settings.home.is_dir() and not os.access(settings.home, os.W_OK):
        raise OperatorError(f"HOME ({settings.home}) is read-only for this user, but it stores {needed}")


def _refuse_used_port(host: str, port: int) -> None:
    """Report a port that is in use before any worker starts."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as failure:
            raise OperatorError(f"cannot listen on {host}:{port}: {failure.strerror}") from failure


@click.command("serve")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(1, 65535), help="Port to listen on."
)
@click.option("--workers", default=1, show_default=True, type=click.IntRange(1, 64), help="Worker processes.")
@click.option("--sign-in", is_flag=True, help="Print a one-time address that signs the owner's browser in.")
def serve_command(host: str, port: int, workers: int, sign_in: bool) -> None:
    """Serve the current edition, and switch to each newer one as soon as it is published."""
    run_server(load(), host, port, workers, sign_in=sign_in)


_ADDRESS: Final = "address"
"""The file in HOME with the address of the last server started."""


@click.command("open")
@click.argument("path", default="/")
@click.option("--print", "only_print", is_flag=True, help="Print the address; start no browser.")
def open_pages(path: str, only_print: bool) -> None:
    """Open the pages of the running service at PATH in the browser, signed in as the owner.

    Prints the address, which works once and for ten minutes.
    """
    current = load()
    base_url = current.base_url
    if base_url == Settings.base_url:
        with suppress(OSError):
            base_url = (current.home / _ADDRESS).read_text(encoding="latin-1").strip() or base_url
    address = sign_in_address(current, base_url, path)
    click.echo(address)
    if not only_print and not webbrowser.open(address):
        click.echo("No browser could be opened; open the address above yourself.", err=True)


def sign_in_address(current: Settings, base_url: str, path: str = "/") -> str:
    """An address that signs a browser in once. Raises OperatorError, OSError or StoreUnavailable."""

    async def code() -> str:
        async with opened_keys(current) as (keys, _, records):
            return await Owner(current.home, keys, records, now).new_code()

    query = {"code": asyncio.run(code())} | ({"next": f"/{path.lstrip('/')}"} if path != "/" else {})
    return f"{base_url}{SIGN_IN}?{urlencode(query)}"
