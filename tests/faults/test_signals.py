"""SIGTERM and SIGINT end every command, whatever its peer does: frozen servers, sockets that never answer.

The promise is five seconds. Tests allow three times as long on busy machines. They expect that the process
ends by itself, leaves no process or lock behind, and that the next command works.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

import sankofa
from tests.depth import deep_after
from tests.faults.conftest import Serve
from tests.live import COMMAND, COMMANDS, LiveServer, _environment, succeed
from tests.patience import until
from tests.services import PostgresServer, RedisServer, missing

BOUND = 15
SIGNALS = [signal.SIGINT, signal.SIGTERM]
FILING = sorted((Path(sankofa.__file__).parent / "sample" / "filings").glob("*.csv"))[0]


def words(command: str, folder: Path) -> list[str]:
    """A command line; FILE is a new file, FILING one to ingest."""
    values = {"FILE": str(folder / "file"), "FILING": str(FILING)}
    return [values.get(word, word) for word in command.split()]


class Ended(NamedTuple):
    code: int
    printed: str


def ended_by_signal(
    home: Path,
    arguments: list[str],
    number: signal.Signals,
    waits: Callable[[int], object],
    *,
    may_give_up: bool = False,
    **settings: str,
) -> Ended:
    """Start a command, signal it once it waits, and return how it ended.

    `may_give_up`: it may have ended by itself before the signal came.
    """
    with tempfile.TemporaryFile() as out:
        running = COMMANDS.start(arguments, _environment(home, settings), out, out)
        try:
            until(lambda: running.poll() is not None or waits(running.pid))
            time.sleep(0.2)  # about to wait
            out.seek(0)
            assert may_give_up or running.poll() is None, out.read().decode()
            if running.poll() is None:
                os.kill(running.pid, number)
            code = running.wait(BOUND)
            assert not _alive(running.pid), "no process of it is left"
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
            raise
        out.seek(0)
        return Ended(code, out.read().decode())


def _alive(session: int) -> list[psutil.Process]:
    """Processes of the command's session, which a process leaves only on purpose. Ending ones may take a
    moment.
    """

    def members() -> list[psutil.Process]:
        processes = []
        for process in psutil.process_iter():
            with suppress(psutil.NoSuchProcess, ProcessLookupError):
                if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                    processes.append(process)
        return processes

    with suppress(AssertionError):
        until(lambda: not members(), seconds=2)
    return members()


def connected_to(port: int) -> Callable[[int], bool]:
    """Whether a process or one of its children has a connection there."""

    def look(pid: int) -> bool:
        with suppress(psutil.NoSuchProcess):
            parent = psutil.Process(pid)
            for process in (parent, *parent.children(recursive=True)):
                for link in process.net_connections("tcp"):
                    if link.status == psutil.CONN_ESTABLISHED and link.raddr.port == port:
                        return True
        return False

    return look


@pytest.mark.rule("CLI-11")
@pytest.mark.parametrize("number", deep_after(1, SIGNALS))
@pytest.mark.parametrize(
    "command",
    deep_after(
        1,
        [
            "keys list",
            "status",
            "keys create --tier sample",
            "doctor",
            "keys usage",
            "keys revoke nobody",
            "domains list",
            "backup FILE",
        ],
    ),
)
def test_a_command_that_waits_for_a_frozen_redis_ends(
    home: Path, tmp_path: Path, redis_server: RedisServer, command: str, number: signal.Signals
) -> None:
    stores = {"keystore": redis_server.url, "usagestore": redis_server.url}
    redis_server.freeze()
    waits = connected_to(redis_server.port)
    ended_by_signal(home, words(command, tmp_path), number, waits, may_give_up=True, **stores)
    assert not (tmp_path / "file").exists()
    redis_server.thaw()
    succeed(home, "keys", "create", "--tier", "sample", **stores)


@pytest.mark.rule("CLI-11")
@pytest.mark.parametrize("number", deep_after(1, SIGNALS))
@pytest.mark.parametrize(
    "command",
    deep_after(
        1,
        [
            "publish",
            "ingest sample-filings FILING",
            "status",
            "doctor",
            "collect",
            "ledger verify",
            "ledger captures",
            "withdraw sample-filings --reason test",
            "editions",
            "show Anybody",
            "vault replay",
            "backup FILE",
            "sample",
        ],
    ),
)
def test_a_command_that_waits_for_a_frozen_postgresql_ends(
    home: Path,
    tmp_path: Path,
    postgres_server: PostgresServer,
    postgres_url: str,
    command: str,
    number: signal.Signals,
) -> None:
    postgres_server.freeze()
    waits = connected_to(postgres_server.port)
    ended_by_signal(home, words(command, tmp_path), number, waits, datastore=postgres_url)
    postgres_server.thaw()
    succeed(home, "ingest", "sample-filings", FILING, datastore=postgres_url)
    succeed(home, "ledger", "verify", datastore=postgres_url)


@pytest.mark.rule("CLI-11")
@pytest.mark.parametrize("number", deep_after(1, SIGNALS))
def test_ingest_from_a_silent_pipe_ends(home: Path, tmp_path: Path, number: signal.Signals):
    pipe = tmp_path / "filing.csv"
    os.mkfifo(pipe)
    writer = os.open(pipe, os.O_RDWR)

    def is_open(pid: int) -> bool:
        with suppress(psutil.NoSuchProcess, FileNotFoundError):  # a file may be closed meanwhile
            return any(
                os.path.realpath(link) == str(pipe.resolve()) for link in Path(f"/proc/{pid}/fd").iterdir()
            )
        return False

    ended_by_signal(home, ["ingest", "sample-filings", str(pipe)], number, is_open)
    os.close(writer)
    succeed(home, "ingest", "sample-filings", FILING)


def ended(server: LiveServer, number: signal.Signals) -> float:
    """The seconds that a server took to end by itself."""
    began = time.monotonic()
    os.kill(server.pid, number)
    server.wait(BOUND)
    took = time.monotonic() - began
    assert not _alive(server.pid)
    return took


@pytest.mark.rule("CLI-11")
@pytest.mark.parametrize("number", deep_after(1, SIGNALS))
def test_a_server_ends_whatever_its_clients_do(serve: Serve, key: str, number: signal.Signals) -> None:
    server = serve(workers=2)
    requests = (
        b"",
        b"GET /v1/status HTTP/1.1\r\nHost: x\r\nX-Slow: ",
        b"POST /mcp HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n{",
        b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 500,
    )
    clients = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(5 * len(requests))]
    for at, client in enumerate(clients):
        client.sendall(requests[at % len(requests)])
    time.sleep(0.5)
    ended(server, number)
    for client in clients:
        client.close()
    again = serve()
    assert again.get("/v1/screen?metric=net_margin", key).status_code == 200


@pytest.mark.rule("CLI-11")
def test_a_server_that_has_just_started_ends_at_once(serve: Serve) -> None:
    """It once waited for modules that load in the background, and was killed after five seconds."""
    server = serve()
    assert ended(server, signal.SIGTERM) < 4
    assert "refused to gracefully stop" not in server.log


@pytest.mark.rule("CLI-11")
def test_the_first_process_of_a_container_handles_sigterm(
    home: Path, postgres_server: PostgresServer
) -> None:
    """The kernel does not deliver signals to it that it does not handle."""
    if shutil.which("unshare") is None:
        missing("unshare, to be the first process")
    namespace = ["unshare", "-rpf", "--kill-child", "--mount-proc"]
    if subprocess.run([*namespace, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine gives no process namespace")
    postgres_server.freeze()
    environment = _environment(home, {"datastore": postgres_server.url})
    with subprocess.Popen([*namespace, COMMAND, "publish"], env=environment) as outside:
        try:
            until(lambda: connected_to(postgres_server.port)(outside.pid))
            (first,) = psutil.Process(outside.pid).children()
            first.send_signal(signal.SIGTERM)
            assert outside.wait(BOUND) != 0
        finally:
            outside.kill()
