"""`sankofa serve`: granian, one process per worker."""

import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path

import click
from granian.constants import HTTPModes, Interfaces, RuntimeModes
from granian.http import HTTP1Settings
from granian.log import LogLevels

from sankofa.cli.guard import ConnectionLimits
from sankofa.cli.output import to_have_an_edition
from sankofa.cli.process import STOP_SECONDS, configure, end_soon_after_signals
from sankofa.cli.running import note_address, sign_in_address
from sankofa.cli.supervisor import Companion, Supervisor
from sankofa.model.errors import OperatorError, StoreUnavailable
from sankofa.model.limits import limit
from sankofa.replication.stores import followed_address, only_follows, open_store, shares_ledger
from sankofa.settings import Settings, load, without_credentials

_APPLICATION = "sankofa.cli.application:application"
_EVERYWHERE = ("0.0.0.0", "::")  # nosec B104  # noqa: S104 - recognised, never a default
_FIRST_PULL_SECONDS = 20.0
_BACKLOG = 4096  # the kernel's own limit on most systems
_HEAD_SECONDS = limit("time for the head of a request", 10.0, "seconds", "the connection is closed")
_HTTP1 = HTTP1Settings(
    header_read_timeout=int(1000 * _HEAD_SECONDS),  # a client that dribbles its request is cut off
    keep_alive=True,
    max_buffer_size=64 * 1024,  # an endless header or URL is refused by the server itself
    pipeline_flush=False,
)


def serve(settings: Settings, host: str, port: int, workers: int, *, sign_in: bool = False) -> None:
    """Print where the service is and how to try it, then serve until told to stop."""
    _refuse_read_only_home(settings)
    settings.cursor_secrets(), settings.keys_secrets()  # a worker could not say what is wrong with one
    _refuse_taken_port(host, port)
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
        # Answered by every edition, whatever is in it.
        click.echo(
            f"Try: curl -H 'X-API-Key: {settings.sandbox_key}' '{address}/v1/screen?metric=net_margin'"
        )
    if settings.base_url == Settings.base_url:  # not set: links point to where it really listens
        os.environ["SANKOFA_BASE_URL"] = address
        note_address(settings.home, address)
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
        companions.append(Companion(partial(_serve_metrics, *metrics), (listener.fileno(),)))
        click.echo(f"Metrics at http://{settings.metrics_host}:{settings.metrics_port}/metrics")
    if address_followed := followed_address(settings):
        from sankofa.cli.replicating import check_followed, follow_beside

        check_followed(settings)
        companions.append(Companion(follow_beside))
        click.echo(f"Following editions from {without_credentials(address_followed)}")
    hooks = settings.home / "hooks"
    companions.append(Companion(_deliver_hooks, wanted=lambda: any(hooks.glob("*.json"))))
    limits = ConnectionLimits.of(settings)
    server = Supervisor(
        _APPLICATION,
        address=host,
        port=port,
        interface=Interfaces.ASGI,
        http=HTTPModes.http1,  # to tell the version, granian would wait for a silent client for ever
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
    # Otherwise a worker that is stopped while it starts would run the inherited handler and never end.
    os.register_at_fork(after_in_child=lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL))
    logging.captureWarnings(True)
    import_module(_APPLICATION.partition(":")[0])  # what is loaded before the fork, the workers share
    try:
        server.serve()
    finally:
        if metrics is not None:
            shutil.rmtree(metrics[0], ignore_errors=True)


def _current_edition(settings: Settings) -> str | None:
    """The edition in HOME. A new node of a shared database pulls one first, for as long as that is quick.

    Raises StoreUnavailable.
    """
    store = open_store(settings)
    current = store.list_editions().current
    if current is None and shares_ledger(settings):
        store.ledgers.captured()  # raises where the server does not answer
        # In a process of its own: pulling takes threads, and this one forks.
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


def _serve_metrics(folder: Path, listener: socket.socket) -> None:
    """In a process of its own, which alone loads what it needs."""
    from sankofa.cli.metrics import serve_metrics

    serve_metrics(folder, listener)


def _deliver_hooks() -> None:
    """In a process of its own, while there are hooks and no other process delivers them."""
    from sankofa.cli.delivering import deliver

    settings = load()
    configure(settings)
    with end_soon_after_signals(), suppress(OperatorError):
        deliver(settings)


def _refuse_read_only_home(settings: Settings) -> None:
    """A server that keeps nothing in HOME needs only to read there. Raises OperatorError for any other."""
    written = {
        "keys (SANKOFA_KEYSTORE)": settings.keystore == "embedded:",
        "quotas (SANKOFA_USAGESTORE)": settings.usagestore == "embedded:",
        "cursor-secret (SANKOFA_CURSOR_SECRET)": not settings.cursor_secret
        and not (settings.home / "cursor-secret").exists(),
        "editions (SANKOFA_EDITIONS)": settings.editions,
    }
    needed = ", ".join(name for name, in_home in written.items() if in_home)
    if needed and settings.home.is_dir() and not os.access(settings.home, os.W_OK):
        raise OperatorError(f"HOME ({settings.home}) is read-only for this user, and it keeps {needed}")


def _refuse_taken_port(host: str, port: int) -> None:
    """Say plainly that a port is taken, before any worker is started."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as failure:
            raise OperatorError(f"cannot listen on {host}:{port}: {failure.strerror}") from failure
