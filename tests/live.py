"""A real `sankofa serve` for tests: its own HOME, a free port, the command line that users have."""

import asyncio
import atexit
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from decimal import Decimal
from functools import partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path
from typing import IO, Any
from urllib.parse import parse_qsl

import httpx

from sankofa.access.tiers import Lock
from sankofa.cli.keys import create, opened_keys
from sankofa.settings import load
from tests.commands import Commands, Running
from tests.once import SHARED
from tests.patience import PATIENCE
from tests.services import free_port

__all__ = [
    "PATIENCE",
    "Copies",
    "LiveServer",
    "columns_of",
    "create_key",
    "free_port",
    "publish_files",
    "run",
    "succeed",
]

Copies = Callable[[], Path]
"""Makes a copy of a HOME that the test may change."""
COMMAND = Path(sys.executable).with_name("sankofa")
COMMANDS = Commands()
_EXACT = partial(json.loads, parse_int=Decimal, parse_float=Decimal)
atexit.register(COMMANDS.close)


def run(home: Path, *arguments: str | Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, whatever its exit code; settings by name, e.g. `rows_sample="3"`."""
    return COMMANDS.run([*map(str, arguments)], _environment(home, settings), seconds=5 * PATIENCE)


def succeed(home: Path, *arguments: str | Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Like `run`, but the command must succeed."""
    done = run(home, *arguments, **settings)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def publish_files(home: Path, *files: tuple[str, str | Path], **settings: str) -> None:
    """Ingest files, each under the name of its source, and publish an edition with them."""
    for source, path in files:
        succeed(home, "ingest", source, path, **settings)
    succeed(home, "publish", **settings)


def create_key(home: Path, tier: str, *options: str, **settings: str) -> str:
    """The output of `sankofa keys create`, without a process: the tests create hundreds of keys."""
    _assert_own(home)
    options_ = create.make_context("create", ["--tier", tier, *options]).params
    arguments = [options_[name] for name in ("tier", "label", "per_minute", "per_month", "expires")]
    arguments.append(None if options_["as_of_max"] is None else Lock(options_["as_of_max"]))

    async def issue() -> str:
        async with opened_keys(load(_environment(home, settings))) as (keys, _, _):
            return await keys.create(*arguments)

    # In a thread, which has no event loop even if the caller's does.
    with ThreadPoolExecutor(1) as alone:
        return alone.submit(asyncio.run, issue()).result()


def columns_of(rows: Iterable[Mapping[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    """Some columns of the rows, as tuples that a test can compare."""
    return [tuple(row[name] for name in names) for row in rows]


def _assert_own(home: Path) -> None:
    """A server writes to its HOME too: the sandbox key, counts, its log."""
    assert not (home.parent / SHARED).exists(), "other tests read this HOME too: copy it first"


class LiveServer:
    """`with LiveServer(home) as server: server.get("/health")`."""

    def __init__(self, home: Path, *, workers: int = 1, **settings: str) -> None:
        self.home = home
        self.settings = settings
        self.workers = workers
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log_path = home.parent / f"serve-{self.port}.log"
        self._process: Running | None = None
        self._log: IO[bytes] | None = None
        self.http = self.client()

    def __enter__(self) -> "LiveServer":
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.http.close()

    def start(self) -> None:
        _assert_own(self.home)
        self._log = self.log_path.open("ab")
        arguments = ("serve", "--port", str(self.port), "--workers", str(self.workers))
        environment = _environment(self.home, self.settings)
        self._process = COMMANDS.start(arguments, environment, self._log, self._log)
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                if self.http.get("/health", timeout=5).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.__exit__()
                raise AssertionError(f"the server did not start:\n{self.log}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop it as an operator would; kill it if it does not stop."""
        if self._process is None or self._log is None:
            return
        with suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGTERM)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(PATIENCE)
        self._log.close()
        self._process = None

    def wait(self, seconds: float) -> None:
        """Wait until it has ended. Raises subprocess.TimeoutExpired."""
        assert self._process is not None
        self._process.wait(seconds)

    def client(self) -> httpx.Client:
        """A client with its own connections."""
        return httpx.Client(
            base_url=self.url,
            timeout=PATIENCE,
            verify=False,  # noqa: S501 - no TLS: no trust to load
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),  # otherwise the client would pick one
        )

    def get(self, path: str, key: str | None = None, **headers: str) -> httpx.Response:
        """GET a path without encoding it, with a key and header fields (`if_none_match=...`)."""
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        if key is not None:
            fields["X-API-Key"] = key
        return self.http.get(path, headers=fields)

    def body(self, path: str, key: str | None = None, **query: object) -> dict[str, Any]:
        """The body of a successful answer; parameters by name, `from_` for `from`."""
        return self._checked(path, key, query, json.loads)

    def exact(self, path: str, key: str | None = None, **query: object) -> dict[str, Any]:
        """Like `body`; every number is a Decimal with the digits of the answer."""
        return self._checked(path, key, query, _EXACT)

    def _checked(
        self, path: str, key: str | None, query: Mapping[str, object], parse: Callable[[str], Any]
    ) -> dict[str, Any]:
        parameters = {name.rstrip("_"): str(value) for name, value in query.items() if value is not None}
        fields = {} if key is None else {"X-API-Key": key}
        answer = self.http.get(path, params=parameters or None, headers=fields)
        assert answer.status_code == 200, answer.text
        body: dict[str, Any] = parse(answer.text)
        rows = body.get("data", body.get("observations"))
        assert not isinstance(rows, list) or body["count"] == len(rows)
        return body

    def rows(self, path: str, key: str | None = None, **query: object) -> list[dict[str, Any]]:
        return list(self.body(path, key, **query)["data"])

    def pages(self, path: str, key: str | None = None, **query: object) -> Iterator[dict[str, Any]]:
        """The bodies of all pages of a list, by their cursors."""
        path, _, text = path.partition("?")
        query = dict(parse_qsl(text)) | query
        while True:
            page = self.body(path, key, **query)
            assert page["truncated"] is (page["next_cursor"] is not None)
            yield page
            if not page["truncated"]:
                return
            query["cursor"] = page["next_cursor"]

    def call(self, tool: str, key: str, arguments: Mapping[str, object]) -> dict[str, Any]:
        """The result of a tool, as a client gets it."""
        params = {"name": tool, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        fields = {"X-API-Key": key, "MCP-Protocol-Version": "2025-11-25"}
        fields["Accept"] = "application/json, text/event-stream"
        answer = self.http.post("/mcp", json=message, headers=fields)
        assert answer.status_code == 200, answer.text
        result: dict[str, Any] = answer.json()["result"]
        return result

    def tool(self, name: str, key: str, arguments: Mapping[str, object]) -> dict[str, Any]:
        """The body of a tool's answer, or the problem if it is an error."""
        result = self.call(name, key, arguments)
        text = result["content"][0]["text"]
        body: dict[str, Any] = json.loads(text) if result.get("isError") else result["structuredContent"]
        return body

    def key(self, tier: str, *options: str) -> str:
        return create_key(self.home, tier, *options, **self.settings)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        return self.log_path.read_text(errors="replace")


def _environment(home: Path, settings: Mapping[str, str]) -> dict[str, str]:
    own = {f"SANKOFA_{name.upper()}": value for name, value in settings.items()}
    common = {
        "SANKOFA_HOME": str(home),
        "SANKOFA_USAGE_RESERVE": "1",  # the default would take 32 MiB of memory for every server
        "SANKOFA_PER_MINUTE_VISITOR": "100000",  # all tests come from one address
        "SANKOFA_PER_DAY_VISITOR": "1000000",
    }
    return {**os.environ, **common, **own}
