"""Runs the tests in several processes that are forked once the tests are collected.

Collecting costs seconds of processor. pytest-xdist does it again in every process; here it is done once.
TEST_PROCESSES=3 says how many; each takes the next file as soon as it is done with one, in the order of the
collection. A process keeps the fixtures of the session until it has taken its last file.
"""

import json
import os
import random
import selectors
import signal
import socket
import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any, NoReturn

import pytest

NAME = "TEST_PROCESS"
"""The variable that tells a test in which process it runs, where there are several."""
_NUMBER = 4
Location = tuple[str, int | None, str]
_AT_THE_END: tuple[str, Location] = ("tests::the end of a process", ("tests", None, ""))


def processes() -> int:
    """How many there are to be; 1 is this one alone. More than nine take more memory than they save time."""
    return min(9, int(os.environ.get("TEST_PROCESSES") or 1))


def run_forked(session: pytest.Session) -> bool:
    """Run what was collected; False where it is to be run in this process, as pytest does by itself."""
    files = [list(items) for _, items in groupby(session.items, key=lambda item: item.path)]
    count = min(processes(), len(files))
    if count < 2 or session.testsfailed or session.config.option.collectonly:
        return False
    with _Processes(session, files, count) as running:
        running.report()
    return True


class _Process:
    """A forked process, seen from the one that reports."""

    def __init__(self, number: int, line: socket.socket) -> None:
        self.number = number
        self.line = line
        self.received = b""
        self.running: tuple[str, Location] | None = None
        self.done = False


class _Processes:
    """The processes and the queue of files that they share."""

    def __init__(self, session: pytest.Session, files: list[list[pytest.Item]], count: int) -> None:
        self._session = session
        self._files = files
        self._queue, queue_end = os.pipe()
        numbers = b"".join(number.to_bytes(_NUMBER, "little") for number in range(len(files)))
        os.write(queue_end, numbers)  # a few hundred files: far less than a pipe holds
        os.close(queue_end)
        self._base = session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        sys.stdout.flush()
        sys.stderr.flush()
        self._forked: list[_Process] = []
        for number in range(count):
            self._forked.append(self._fork(number))

    def __enter__(self) -> "_Processes":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._empty_queue()
        for process in self._forked:
            if kind is not None and not process.done:
                with suppress(ProcessLookupError):
                    os.kill(process.number, signal.SIGINT)  # it ends the test, and what its fixtures began
            process.line.close()
        for process in self._forked:
            with suppress(ChildProcessError):
                os.waitpid(process.number, 0)
        os.close(self._queue)

    def report(self) -> None:
        """Tell pytest what the processes tell, until the last has ended."""
        with selectors.DefaultSelector() as selector:
            for process in self._forked:
                selector.register(process.line, selectors.EVENT_READ, process)
            while selector.get_map():
                for key, _ in selector.select():
                    if not self._take(key.data):
                        selector.unregister(key.fileobj)
        if self._session.shouldfail:
            raise self._session.Failed(self._session.shouldfail)

    def _take(self, process: _Process) -> bool:
        """Whatever has come from a process; False at the end."""
        received = process.line.recv(1 << 16)
        if not received:
            if not process.done:
                self._report_death(process)
            return False
        *lines, process.received = (process.received + received).split(b"\n")
        for line in lines:
            self._pass_on(process, json.loads(line))
        if self._session.shouldfail or self._session.shouldstop:
            self._empty_queue()
        return True

    def _pass_on(self, process: _Process, message: dict[str, Any]) -> None:
        hook = self._session.config.hook
        match message["what"]:
            case "start":
                process.running = (message["nodeid"], tuple(message["location"]))
                hook.pytest_runtest_logstart(nodeid=message["nodeid"], location=process.running[1])
            case "report":
                config = self._session.config
                report = hook.pytest_report_from_serializable(config=config, data=message["data"])
                hook.pytest_runtest_logreport(report=report)
            case "finish":
                process.running = None
                hook.pytest_runtest_logfinish(nodeid=message["nodeid"], location=tuple(message["location"]))
            case "done":
                process.done = True
                if message["error"]:
                    self._report_failure(*_AT_THE_END, message["error"])

    def _report_death(self, process: _Process) -> None:
        nodeid, location = process.running or _AT_THE_END
        text = f"the test process {process.number} died; what was left of the file is not tested"
        self._report_failure(nodeid, location, text)

    def _report_failure(self, nodeid: str, location: Location, text: str) -> None:
        report = pytest.TestReport(nodeid, location, {}, "failed", text, "call")
        self._session.config.hook.pytest_runtest_logreport(report=report)

    def _empty_queue(self) -> None:
        while os.read(self._queue, _NUMBER * 1024):
            pass

    def _fork(self, number: int) -> _Process:
        ours, theirs = socket.socketpair()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # threads of libraries, which expect it
            child = os.fork()
        if child == 0:
            for line in (ours, *(other.line for other in self._forked)):
                line.close()
            _Worker(self._session, f"fork-{number}", theirs).run(self._taken(), self._base)
        theirs.close()
        return _Process(child, ours)

    def _taken(self) -> Iterator[list[pytest.Item]]:
        """Within a forked process: the files that it is given, one after another."""
        while number := os.read(self._queue, _NUMBER):
            yield self._files[int.from_bytes(number, "little")]


class _Worker:
    """A forked process, seen from within."""

    def __init__(self, session: pytest.Session, name: str, line: socket.socket) -> None:
        self._session = session
        self._name = name
        self._line = line

    def run(self, files: Iterator[list[pytest.Item]], base: Path) -> NoReturn:
        code = 1
        try:
            self._become_its_own(base)
            error = self._work(files)
            self._tell(what="done", error=error)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _become_its_own(self, base: Path) -> None:
        """Part with whatever two processes must not share."""
        os.setpgid(0, 0)  # Ctrl-C reaches the process that reports, which passes it on, once
        os.environ[NAME] = self._name
        random.seed()
        config = self._session.config
        plugins = config.pluginmanager
        plugins.unregister(name="terminalreporter")
        plugins.register(self, "forked-reporter")
        capture = plugins.getplugin("capturemanager")
        capture.stop_global_capturing()
        capture.start_global_capturing()
        capture.suspend_global_capture()
        own = base / self._name
        own.mkdir(mode=0o700)
        config._tmp_path_factory._basetemp = own  # type: ignore[attr-defined]

    def _work(self, files: Iterator[list[pytest.Item]]) -> str:
        """Returns what went wrong with the fixtures of the session at the end, if anything did."""
        between = _BetweenFiles(self._session)
        try:
            for items in files:
                for item, following in zip(items, [*items[1:], between], strict=True):
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                    if self._session.shouldfail or self._session.shouldstop:
                        return ""
        finally:
            error = self._end_session()
        return error

    def _end_session(self) -> str:
        try:
            self._session._setupstate.teardown_exact(None)
        except Exception:
            return traceback.format_exc()
        return ""

    def pytest_runtest_logstart(self, nodeid: str, location: Location) -> None:
        self._tell(what="start", nodeid=nodeid, location=location)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        config = self._session.config
        data = config.hook.pytest_report_to_serializable(config=config, report=report)
        self._tell(what="report", data=data)

    def pytest_runtest_logfinish(self, nodeid: str, location: Location) -> None:
        self._tell(what="finish", nodeid=nodeid, location=location)

    def _tell(self, **message: Any) -> None:
        self._line.sendall(json.dumps(message, default=str).encode() + b"\n")


class _BetweenFiles:
    """Stands for the next test where it is not known yet: it needs the fixtures of the session alone."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session

    def listchain(self) -> list[object]:
        return [self._session]
