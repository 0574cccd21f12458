"""A server whose clock goes over midnight, the end of a month and a leap day, and backwards."""

import ctypes.util
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.live import COMMAND, LiveServer, _environment, create_key, free_port
from tests.patience import PATIENCE
from tests.services import missing
from tests.spec.test_quotas import POLICY, state
from tests.torture import Trial

ENTITY = "/v1/entities/DC46AF1B1AAA424B58D1368176"
DAY = 86400


class Clocked:
    """A server that believes the time in a file.

    Its log is not looked at: the library breaks short sleeps, of the supervisor among others.
    """

    def __init__(self, home: Path, at: str) -> None:
        self._file = home.parent / "clock"
        self.set(at)
        self._port = free_port()
        library = _faketime()
        environment = {
            **_environment(home, {}),
            "LD_PRELOAD": library,
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            # Else a wait of 5 ms is over at once, which is how the interpreter shares itself among threads.
            "FAKETIME_FORCE_MONOTONIC_FIX": "0",
            "TZ": "UTC",
        }
        self._log = (home.parent / "clocked.log").open("wb")
        command = [str(COMMAND), "serve", "--port", str(self._port)]
        self._process = subprocess.Popen(command, env=environment, stdout=self._log, stderr=self._log)
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{self._port}", timeout=PATIENCE)

    def set(self, at: str) -> None:
        """Let the clock stand at an instant, `YYYY-MM-DD hh:mm:ss`."""
        draft = self._file.with_suffix(".new")
        draft.write_text(f"{at}\n")
        draft.replace(self._file)

    def get(self, path: str, key: str) -> httpx.Response:
        return self.http.get(path, headers={"X-API-Key": key})

    def wait(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                if self.http.get("/v1/status").status_code == 200 and self._has_loaded():
                    return
            except httpx.TransportError:
                pass
            assert time.monotonic() < deadline
            assert self._process.poll() is None
            time.sleep(0.1)

    def _has_loaded(self) -> bool:
        """Whether the thread that loads the MCP SDK is done: the library gives another time now and then
        where two threads ask for it at once."""
        headers = {"Accept": "application/json, text/event-stream", "X-API-Key": "sankofa-sandbox"}
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        return self.http.post("/mcp", json=ping, headers=headers).status_code == 200

    def close(self) -> None:
        self.http.close()
        self._process.terminate()
        self._process.wait(PATIENCE)
        self._log.close()


def _faketime() -> str:
    for folder in Path("/usr/lib").glob("*/faketime"):
        return str(folder / "libfaketime.so.1")
    found = ctypes.util.find_library("faketime")
    if found is None:
        missing("libfaketime, to set the clock of a server")
    return found


@contextmanager
def clocked(home: Path, at: str) -> Iterator[Clocked]:
    server = Clocked(home, at)
    try:
        server.wait()
        yield server
    finally:
        server.close()


@pytest.mark.rule("KEY-6")
def test_quotas_and_days_follow_the_clock_forwards_and_back(home: Path, trial: Trial) -> None:
    key = create_key(home, "starter", "--per-minute", "10", "--per-month", "40")
    with clocked(home, "2027-01-31 23:59:10") as server:
        left = [state(server.get(ENTITY, key))[2] for _ in range(6)]
        assert left == [39, 38, 37, 36, 35, 34]
        assert server.get("/v1/screen?metric=net_margin&as_of=2027-02-01", key).status_code == 400
        server.set("2027-02-01 00:00:02")
        minute, _, month, ends = state(server.get(ENTITY, key))
        assert (minute, month) == (9, 39)
        assert 27 * DAY < ends <= 28 * DAY
        assert server.get("/v1/screen?metric=net_margin&as_of=2027-02-01", key).status_code == 200
        trial.saw("over the end of a month")
        server.set("2027-01-31 23:59:30")  # set back: what was spent stays spent
        assert state(server.get(ENTITY, key))[:3:2] == (2, 32)
        assert server.get("/v1/screen?metric=net_margin&as_of=2027-02-01", key).status_code == 400
        trial.saw("backwards over the end of a month")
        for day, following, length in (
            ("2028-02-28", "2028-02-29", 29),
            ("2028-02-29", "2028-03-01", 31),
            ("2028-12-31", "2029-01-01", 31),
        ):
            server.set(f"{day} 23:59:59")
            today = server.get("/v1/screen?metric=net_margin", key)
            assert today.json()["as_of"] == day
            server.set(f"{following} 00:00:00")
            today = server.get("/v1/screen?metric=net_margin", key)
            assert today.json()["as_of"] == following
            policy = POLICY.fullmatch(today.headers["RateLimit-Policy"])
            assert policy is not None
            assert int(policy[3]) == length * DAY
            assert today.headers["ETag"]
            trial.saw("over midnight")
        assert [server.get(ENTITY, key).status_code for _ in range(12)][-1] == 429
        server.set("2029-01-01 00:01:00")
        assert server.get(ENTITY, key).status_code == 200
        trial.saw("over a minute")


@pytest.mark.deep
def test_a_server_restarted_with_its_clock_a_year_back_serves_on(home: Path, trial: Trial) -> None:
    key = create_key(home, "starter")
    with LiveServer(home) as live:
        assert live.get(ENTITY, key).status_code == 200
    with clocked(home, "2019-06-30 12:00:00") as server:
        answer = server.get(ENTITY, key)
        assert answer.status_code == 200, answer.text
        assert server.get("/v1/screen?metric=net_margin", key).json()["as_of"] == "2019-06-30"
        trial.saw("a clock behind every capture")
