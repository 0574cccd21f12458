"""A server whose clock passes midnight, the end of a month and a leap day, and moves backwards."""

import shutil
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from tests.live import COMMAND, LiveServer, _environment, create_key, free_port
from tests.patience import PATIENCE, until
from tests.services import missing
from tests.spec.test_quotas import POLICY, state
from tests.torture import Trial

ENTITY = "/v1/entities/DC46AF1B1AAA424B58D1368176"
DAY = 86400


class Clocked:
    """A server that reads its clock from a file."""

    def __init__(self, home: Path, library: Path, at: str, **settings: str) -> None:
        self._file = home.parent / "clock"
        self.set(at)
        port = free_port()
        clock = {"LD_PRELOAD": str(library), "CLOCK_FILE": str(self._file)}
        with (home.parent / "clocked.log").open("wb") as log:
            self._process = subprocess.Popen(
                [COMMAND, "serve", "--port", str(port)],
                env={**_environment(home, settings), **clock},
                stdout=log,
                stderr=log,
            )
        self._http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE)

    def set(self, at: str) -> None:
        """Set the clock to `YYYY-MM-DD hh:mm:ss`."""
        seconds = int(datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp())
        with self._file.open("r+b" if self._file.exists() else "wb", buffering=0) as file:
            file.write(struct.pack("=q", seconds))

    def get(self, path: str, key: str = "") -> httpx.Response:
        return self._http.get(path, headers={"X-API-Key": key} if key else {})

    def answers(self) -> bool:
        assert self._process.poll() is None
        with suppress(httpx.TransportError):
            return self._http.get("/v1/status").status_code == 200
        return False

    def close(self) -> None:
        self._http.close()
        self._process.terminate()
        self._process.wait(PATIENCE)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        missing("a C compiler, to set the clock of a server")
    path = tmp_path_factory.mktemp("library") / "clock.so"
    source = Path(__file__).with_name("clock.c")
    command = [compiler, "-Wall", "-Werror", "-shared", "-fPIC", "-o", str(path), str(source)]
    subprocess.run(command, check=True, timeout=PATIENCE)
    return path


@contextmanager
def clocked(home: Path, library: Path, at: str, **settings: str) -> Iterator[Clocked]:
    server = Clocked(home, library, at, **settings)
    try:
        until(server.answers)
        yield server
    finally:
        server.close()


@pytest.mark.rule("KEY-6")
def test_quotas_and_days_follow_the_clock_forwards_and_back(home: Path, library: Path, trial: Trial) -> None:
    key = create_key(home, "starter", "--per-minute", "10", "--per-month", "40")
    with clocked(home, library, "2027-01-31 23:59:10") as server:
        month_left = [state(server.get(ENTITY, key))[2] for _ in range(6)]
        assert month_left == [39, 38, 37, 36, 35, 34]
        assert server.get("/v1/screen?metric=net_margin&as_of=2027-02-01", key).status_code == 400
        server.set("2027-02-01 00:00:02")
        minute, _, month, ends = state(server.get(ENTITY, key))
        assert (minute, month) == (9, 39)
        assert 27 * DAY < ends <= 28 * DAY
        assert server.get("/v1/screen?metric=net_margin&as_of=2027-02-01", key).status_code == 200
        trial.saw("over the end of a month")
        server.set("2027-01-31 23:59:30")  # after the clock goes back, used requests stay used
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
def test_a_server_restarted_with_its_clock_a_year_back_still_serves(home: Path, library: Path, trial: Trial):
    key = create_key(home, "starter")
    with LiveServer(home) as live:
        assert live.get(ENTITY, key).status_code == 200
    with clocked(home, library, "2019-06-30 12:00:00") as server:
        answer = server.get(ENTITY, key)
        assert answer.status_code == 200, answer.text
        assert server.get("/v1/screen?metric=net_margin", key).json()["as_of"] == "2019-06-30"
        trial.saw("a clock behind every capture")
