"""The harness: servers pinned to one core, load from the others, contenders in turn.

Rates depend on the machine and its other work, so contenders are measured in short interleaved rounds and
compared by the median of the ratios within a round. The processor time of the server per request is reported
beside the rate: it hardly changes on a busy machine, and it shows if the load, not the server, was the limit.
Everything stays on the loopback.
"""

import http.client
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple

import psutil

HOST = "127.0.0.1"
CONNECTIONS = 16
_WRK_SCRIPT = str(Path(__file__).with_name("wrk.lua"))
_PYTHON_LOAD = str(Path(__file__).with_name("python_load.py"))
_START_SECONDS = 180.0
_CORES = sorted(os.sched_getaffinity(0))
SERVER_CORES = {_CORES[0]}
LOAD_CORES = set(_CORES[1:]) or SERVER_CORES


def load_tool() -> str:
    """The load tool, as the report names it."""
    if shutil.which("wrk"):
        return "wrk"
    return "a Python client (no wrk on the PATH; it limits high rates: go by the processor time)"


@dataclass(frozen=True)
class Question:
    """A request: a path and, for a POST, its body (one line)."""

    path: str
    body: str = ""

    def line(self) -> str:
        return f"{self.path}\t{self.body}\n"


class Server:
    """A running server, its process tree pinned to the server's core."""

    def __init__(self, process: subprocess.Popen[bytes], port: int) -> None:
        self.port = port
        self._process = process

    def processes(self) -> list[psutil.Process]:
        root = psutil.Process(self._process.pid)
        return [root, *root.children(recursive=True)]

    def use_all_cores(self) -> None:
        """For all existing threads, from now on."""
        for thread in (thread for process in self.processes() for thread in process.threads()):
            os.sched_setaffinity(thread.id, _CORES)

    def cpu_seconds(self) -> float:
        times = [process.cpu_times() for process in self.processes()]
        return sum(t.user + t.system for t in times)

    def memory(self) -> tuple[int, int]:
        """Resident bytes of the busiest process: its own, and those of mapped files (shared, evictable)."""
        busiest = max(self.processes(), key=lambda p: sum(p.cpu_times()[:2]))
        status = Path(f"/proc/{busiest.pid}/status").read_text()
        fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        own, mapped, shared = (
            int(fields[name].split()[0]) * 1024 for name in ("RssAnon", "RssFile", "RssShmem")
        )
        return own, mapped + shared

    def fetch(self, question: Question, headers: Mapping[str, str] | None = None) -> http.client.HTTPResponse:
        """One answer, to look at. The caller reads it."""
        connection = http.client.HTTPConnection(HOST, self.port, timeout=60)
        connection.request(
            "POST" if question.body else "GET",
            question.path,
            body=question.body.encode() or None,
            headers=dict(headers or {}),
        )
        return connection.getresponse()

    def body(self, question: Question, headers: Mapping[str, str] | None = None) -> bytes:
        with self.fetch(question, headers) as response:
            body = response.read()
        if response.status != 200:
            raise SystemExit(f"{question.path}: status {response.status}: {body[:300]!r}")
        return body


@contextmanager
def serving(
    command: Callable[[int], Sequence[str]], environment: Mapping[str, str] | None = None, ready: str = "/"
) -> Iterator[Server]:
    """Start a server on a free port, wait until it answers, and stop it in the end."""
    port = _free_port()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command(port),
            env=dict(os.environ if environment is None else environment),
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=lambda: os.sched_setaffinity(0, SERVER_CORES),
        )
        try:
            _await_answer(process, port, ready, output)
            yield Server(process, port)
        finally:
            _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """The server has its own session, so the process group holds only the server and its workers."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            continue
        return


def _await_answer(process: subprocess.Popen[bytes], port: int, path: str, output: IO[bytes]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError), closing(http.client.HTTPConnection(HOST, port, timeout=5)) as connection:
            connection.request("GET", path)
            if connection.getresponse().status < 500:
                return
        time.sleep(0.1)
    output.seek(0)
    text = output.read()[-2000:].decode(errors="replace")
    raise SystemExit(f"{process.args!r}: did not come up:\n{text}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


class Round(NamedTuple):
    rate: float
    p50: float
    p99: float
    cpu: float
    """Processor seconds of the server per request."""
    busy: float
    """Share of its core the server used. If it is well below 1, the load or another process was the limit."""


@dataclass
class Contender:
    """A server that answers the same questions."""

    name: str
    server: Server
    questions: Sequence[Question]
    headers: Mapping[str, str] = field(default_factory=dict)
    connections: int = CONNECTIONS
    rounds: list[Round] = field(default_factory=list)
    memory: tuple[int, int] = (0, 0)


def measure(contenders: Sequence[Contender], rounds: int, seconds: float) -> None:
    """All contenders in turn, several times; each records its rounds."""
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for number, contender in enumerate(contenders):
            path = Path(folder) / f"questions-{number}"
            path.write_text("".join(question.line() for question in contender.questions))
            files.append(path)
            run_round(contender, path, 0, min(seconds, 1.0))  # warm: caches, allocators, lazy imports
        for round_number in range(rounds):
            for contender, path in zip(contenders, files, strict=True):
                contender.rounds.append(run_round(contender, path, round_number * 7919, seconds))
                contender.memory = contender.server.memory()


def run_round(
    contender: Contender, questions: Path, offset: int, seconds: float, *, last: bool = False
) -> Round:
    url = f"http://{HOST}:{contender.server.port}"
    headers = [f"{name}: {value}" for name, value in contender.headers.items()]
    if shutil.which("wrk"):
        command = [
            "wrk",
            "-t1",
            f"-c{contender.connections}",
            f"-d{max(1, round(seconds))}s",
            "--timeout",
            "30s",
        ]
        command += [part for header in headers for part in ("-H", header)]
        command += ["-s", _WRK_SCRIPT, url, "--", str(questions), str(offset)]
    else:
        numbers = (str(offset), str(seconds), str(contender.connections))
        command = [sys.executable, _PYTHON_LOAD, url, str(questions), *numbers, *headers]
    before = contender.server.cpu_seconds()
    done = subprocess.run(
        command,
        check=True,
        capture_output=True,
        text=True,
        timeout=seconds + 120,
        preexec_fn=lambda: os.sched_setaffinity(0, LOAD_CORES),
    )
    spent = contender.server.cpu_seconds() - before
    result = json.loads(done.stdout.splitlines()[-1])
    if result["failed"]:
        raise SystemExit(f"{contender.name}: {result['failed']} of {result['requests']} requests failed")
    if not result["requests"]:
        if last:
            raise SystemExit(f"{contender.name}: twice not one answer within {seconds:g} s")
        print(f"note: {contender.name} gave no answer within {seconds:g} s; that round is run again")
        return run_round(contender, questions, offset, seconds, last=True)
    rate = result["requests"] / result["seconds"]
    return Round(rate, result["p50"], result["p99"], spent / result["requests"], spent / result["seconds"])


def ratio(one: Contender, other: Contender) -> float:
    """How many times the rate of the other: the median over the rounds measured together."""
    return statistics.median(a.rate / b.rate for a, b in zip(one.rounds, other.rounds, strict=True))


def cpu_ratio(one: Contender, other: Contender) -> float:
    """The same by processor time per request: the ratio if both had the core for themselves."""
    return statistics.median(b.cpu / a.cpu for a, b in zip(one.rounds, other.rounds, strict=True))


def table(contenders: Sequence[Contender], against: Contender) -> str:
    """One line per contender; the last columns compare it with one of them."""
    lines = [
        f"{'':34}{'req/s':>10}{'p50 ms':>9}{'p99 ms':>9}{'cpu us':>9}{'busy':>6}"
        f"{'own MB':>8}{'mapped':>8}{'rate':>9}{'by cpu':>9}"
    ]
    for one in contenders:
        middle = Round(*(statistics.median(column) for column in zip(*one.rounds, strict=True)))
        lines.append(
            f"{one.name:34}{middle.rate:10,.0f}{middle.p50 * 1e3:9.2f}{middle.p99 * 1e3:9.2f}"
            f"{middle.cpu * 1e6:9.0f}{middle.busy:6.0%}{one.memory[0] / 1e6:8.0f}{one.memory[1] / 1e6:8.0f}"
            f"{ratio(one, against):8.3f}x{cpu_ratio(one, against):8.3f}x"
        )
    return "\n".join(lines)
