"""Run commands in separate processes, forked from one that has loaded the package already.

Loading the package costs up to a second of processor time, and the tests call hundreds of commands. Each
command still runs as a user's would: its own environment, streams, exit code and process. `Commands` starts
`python -m tests.commands SOCKET` and sends it requests. With several test workers, the process that started
them runs one for all.

A command that `start` begins has a process of its own. Commands that `run` waits for share one process per
test worker, which is replaced from time to time: a fork copies the pages that it touches, and that is a third
of the cost of a small command.
"""

import gc
import io
import os
import pkgutil
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from importlib import import_module
from pathlib import Path
from typing import IO

import msgspec

import sankofa
from tests.patience import PATIENCE

_LONGEST = 1 << 17
_SHARED = "TEST_COMMANDS_SOCKET"
"""The variable that tells a test worker where commands are run for all of them."""


_IN_ONE_PROCESS = 25
"""How many commands run one after the other before the process is replaced; one in `make torture`."""


class _Call(msgspec.Struct):
    arguments: list[str]
    environment: dict[str, str]
    lasting: bool = False
    """Whether the process is to go on with the calls that follow on the same line."""


class _Lasting:
    """A process that runs commands one after the other and leads its own process group."""

    def __init__(self, address: str) -> None:
        from tests.torture import rounds  # pytest plays no part in the forked process

        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._line.connect(address)
        self._send(_Call([], {}, lasting=True), [1, 2])
        self.pid = int(_received(self._line))
        self.commands_left = rounds(_IN_ONE_PROCESS, _IN_ONE_PROCESS, 1)

    def run(self, call: _Call, out: IO[bytes], err: IO[bytes], seconds: float) -> int:
        """Return the exit code. On timeout, kill the process and raise subprocess.TimeoutExpired."""
        self.commands_left -= 1
        self._send(call, [out.fileno(), err.fileno()])
        self._line.settimeout(seconds)
        try:
            code, _, defect = _received(self._line).partition(b" ")
        except BaseException as failure:
            self.commands_left = 0
            if not isinstance(failure, TimeoutError):
                raise
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired("sankofa", seconds) from None
        if defect or int(code) < 0:  # the process that forked it reports that it was killed
            self.commands_left = 0
        return int(code)

    def close(self) -> None:
        """The process ends once nobody can call it."""
        self._line.close()

    def _send(self, call: _Call, streams: list[int]) -> None:
        socket.send_fds(self._line, [msgspec.json.encode(call)], streams)


class Running:
    """A running command with the interface of `subprocess.Popen`."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._code: int | None = None
        self.pid = int(_received(line))

    def wait(self, seconds: float | None = None) -> int:
        """Return the exit code. Raises subprocess.TimeoutExpired."""
        if self._code is None:
            self._line.settimeout(seconds)
            try:
                self._code = int(_received(self._line))
            except TimeoutError:
                raise subprocess.TimeoutExpired("sankofa", seconds or 0) from None
            self._line.close()
        return self._code

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            return self.wait(0.001)
        return None


class Commands:
    """Runs commands; one instance is enough for all test workers.

    `before` holds the words of a command that wraps it, for example one that enters a namespace.
    """

    def __init__(self, before: Sequence[str] = ()) -> None:
        self._before = before
        self._lock = threading.Lock()
        self._folder = Path()
        self._process: subprocess.Popen[bytes] | None = None
        self._running = threading.Lock()
        self._lasting: _Lasting | None = None

    def start(
        self, arguments: Sequence[str], environment: dict[str, str], out: IO[bytes], err: IO[bytes]
    ) -> Running:
        """Start a command as the leader of its own process group."""
        line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        line.connect(self._listening())
        call = msgspec.json.encode(_Call(list(arguments), environment))
        socket.send_fds(line, [call], [out.fileno(), err.fileno()])
        return Running(line)

    def run(
        self, arguments: Sequence[str], environment: dict[str, str], seconds: float
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end. On timeout, kill it and raise subprocess.TimeoutExpired."""
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            code = self._code_of(arguments, environment, out, err, seconds)
            texts = [_written(stream) for stream in (out, err)]
        return subprocess.CompletedProcess(list(arguments), code, *texts)

    def _code_of(
        self,
        arguments: Sequence[str],
        environment: dict[str, str],
        out: IO[bytes],
        err: IO[bytes],
        seconds: float,
    ) -> int:
        if not self._running.acquire(blocking=False):  # another thread: it gets its own process
            running = self.start(arguments, environment, out, err)
            try:
                return running.wait(seconds)
            except subprocess.TimeoutExpired:
                os.killpg(running.pid, signal.SIGKILL)
                running.wait()
                raise
        try:
            if self._lasting is None:
                self._lasting = _Lasting(self._listening())
            return self._lasting.run(_Call(list(arguments), environment), out, err, seconds)
        finally:
            if self._lasting is not None and not self._lasting.commands_left:
                self._lasting.close()
                self._lasting = None
            self._running.release()

    def share(self) -> None:
        """Start the process for later workers, without waiting for it."""
        self._begin()
        os.environ[_SHARED] = str(self._folder / "socket")

    def close(self) -> None:
        if self._lasting is not None:
            self._lasting.close()
            self._lasting = None
        if self._process is not None:
            if not self._before:
                os.environ.pop(_SHARED, None)
            self._process.terminate()  # also ends commands that still run
            self._process.wait(PATIENCE)
            shutil.rmtree(self._folder)
            self._process = None

    def _listening(self) -> str:
        with self._lock:
            shared = None if self._before else os.environ.get(_SHARED)
            if shared is None and self._process is None:
                self._begin()
            address = Path(shared) if shared else self._folder / "socket"
            deadline = time.monotonic() + PATIENCE
            while not address.exists():
                assert shared or self._process is None or self._process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.02)
        return str(address)

    def _begin(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="sankofa-commands-"))
        self._process = subprocess.Popen(
            [*self._before, sys.executable, "-m", __name__, self._folder / "socket"],
            cwd=Path(__file__).parents[1],
        )


def _received(line: socket.socket) -> bytes:
    answer = line.recv(16)
    assert answer, "the process that runs commands is gone"
    return answer


def _written(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode()


def _listen(address: str) -> None:
    """Fork a command for each connection and report how it ended.

    The commands are waited for, not ignored, so their processor time counts to this process.
    """
    parent = os.getppid()
    ending = False

    def end(*_: object) -> None:
        nonlocal ending
        ending = True

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ended this process or has gone
    _load()
    running: dict[int, socket.socket] = {}
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)  # one byte for each command that ended
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(f"{address}.new")
        listening.listen(64)
        Path(f"{address}.new").rename(address)  # the socket exists once it listens
        while os.getppid() == parent and not ending:
            ready, _, _ = select.select([listening.fileno(), ended], [], [], 5.0)
            if ended in ready:
                os.read(ended, 4096)
                _report_ended(running)
            if listening.fileno() in ready:
                _begin(listening.accept()[0], running)
    for command in running:
        with suppress(ProcessLookupError):
            os.killpg(command, signal.SIGKILL)  # its servers would run on


def _begin(line: socket.socket, running: dict[int, socket.socket]) -> None:
    text, streams, _, _ = socket.recv_fds(line, _LONGEST, 2)
    if not text:
        line.close()
        return
    call = msgspec.json.decode(text, type=_Call)
    command = os.fork()
    if command == 0:
        _become(call, line, *streams)
    for stream in streams:
        os.close(stream)
    running[command] = line
    with suppress(OSError):  # the caller may have gone
        line.send(b"%d" % command)


def _report_ended(running: dict[int, socket.socket]) -> None:
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            line = running.pop(ended[0])
            with suppress(OSError):
                line.send(b"%d" % os.waitstatus_to_exitcode(ended[1]))
            line.close()


def _load() -> None:
    """Load everything a command or a server may need, so that no fork loads it again.

    A rehearsal fills the caches of the process. Then all objects are hidden from the garbage collector: a
    fork that scanned them would copy their pages.
    """
    for module in pkgutil.walk_packages(sankofa.__path__, "sankofa."):
        import_module(module.name)
    for name in ("pandas", "anyio._backends._asyncio"):
        import_module(name)
    with tempfile.TemporaryDirectory(prefix="sankofa-rehearsal-") as home:
        _rehearse(Path(home))
    gc.collect()
    gc.freeze()


def _rehearse(home: Path) -> None:
    """Ingest and publish files of every kind in the process that every command is forked from.

    Exchange rates are left out: publishing them starts more processes.
    """
    from sankofa.cli.main import main
    from sankofa.cli.publishing import SAMPLE

    bundled = Path(sankofa.__file__).parent / "sample"
    os.environ["SANKOFA_HOME"] = str(home)
    files = [one for one in SAMPLE.files if one[0] != "ecb-fx"]
    ingests = [["ingest", source, str(bundled / path)] for source, path in files]
    for arguments in (*ingests, ["publish"], ["openapi"]):
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            main(arguments, standalone_mode=False)
    del os.environ["SANKOFA_HOME"]


def _become(call: _Call, line: socket.socket, out: int, err: int) -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored if the tests run in the background
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    _direct(out, err)
    if call.lasting:
        os.dup2(line.fileno(), 3, inheritable=False)
        os.closerange(4, 256)
    else:
        os.closerange(3, 256)
    os.setsid()
    if call.lasting:
        _go_on(socket.socket(fileno=3))
    os._exit(_run(call)[0])


def _go_on(line: socket.socket) -> None:
    """Run requests until the caller hangs up."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    while True:
        text, streams, _, _ = socket.recv_fds(line, _LONGEST, 2)
        if not text:
            os._exit(0)
        _direct(*streams)
        for stream in streams:
            os.close(stream)
        code, defect = _run(msgspec.json.decode(text, type=_Call))
        _direct(nowhere, nowhere)
        gc.collect()  # releases what an ending process would: locks and connections to a ledger
        line.send(b"%d defect" % code if defect else b"%d" % code)


def _direct(out: int, err: int) -> None:
    os.dup2(out, 1)
    os.dup2(err, 2)


def _run(call: _Call) -> tuple[int, bool]:
    """The exit code of a command, and whether an uncaught exception ended it."""
    from sankofa.cli.main import main  # loaded above

    os.environ.clear()
    os.environ.update(call.environment)
    os.umask(int(os.environ.pop("TEST_UMASK", "022"), 8))
    tempfile.tempdir = None
    sys.argv = ["sankofa", *call.arguments]
    code: object = 1
    defect = False
    try:
        main()
    except SystemExit as stopped:
        code = stopped.code
    except BaseException:
        traceback.print_exc()
        defect = True
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return (code if isinstance(code, int) else int(code is not None)), defect


if __name__ == "__main__":
    _listen(sys.argv[1])
