"""Under load: edition switches, stops, killed workers, and a long mixed run."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException, IncompleteRead
from pathlib import Path

import psutil
import pytest

from tests.faults.conftest import Serve
from tests.faults.load import ISSUER, PATIENCE, Load, wait_for_edition, workers
from tests.live import LiveServer, run, succeed
from tests.patience import in_one_minute
from tests.torture import Trial

LIST = "/v1/tenders?limit=3"
TOOL = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "search_tenders", "arguments": {"limit": 2}},
    }
)
MIXED = (
    ("GET", ISSUER),
    ("GET", "/v1/screen?metric=net_margin"),
    ("GET", "/v1/tenders?limit=25"),
    ("GET", "/v1/macro?country=ZA"),
    ("HEAD", "/v1/entities/DC46AF1B1AAA424B58D1368176"),
    ("GET", "/v1/signals/macro-momentum?limit=50"),
    ("GET", "/open/macro-momentum.parquet"),
    ("POST", "/mcp"),
    ("GET", "/v1/status"),
    ("GET", "/v1/entities/DC000000000000000000000000"),
)
_MIXED_REQUESTS = 4_000
"""Half of them fill the caches: on a busy machine, a few seconds are not enough."""


def send(link: HTTPConnection, method: str, path: str, key: str) -> tuple[int, bytes]:
    headers = {"X-API-Key": key}
    body = None
    if method == "POST":
        body = TOOL
        headers |= {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    link.request(method, path, body, headers)
    answer = link.getresponse()
    return answer.status, answer.read()


class Pager(threading.Thread):
    """Pages through tenders; every list must come from one edition, complete and without repetition."""

    def __init__(self, live: LiveServer, key: str) -> None:
        super().__init__()
        self._live, self._key = live, key
        self._over = threading.Event()
        self.lists: Counter[str] = Counter()
        self.failures: list[str] = []

    def run(self) -> None:
        link = HTTPConnection("127.0.0.1", self._live.port, timeout=PATIENCE)
        while not self._over.is_set():
            try:
                self._read_list(link)
            except (OSError, HTTPException, ValueError, KeyError) as failure:
                self.failures.append(repr(failure))
        link.close()

    def stop(self) -> None:
        self._over.set()
        self.join()

    def _read_list(self, link: HTTPConnection) -> None:
        rows, editions, cursor = [], set(), ""
        while True:
            status, body = send(link, "GET", LIST + (f"&cursor={cursor}" if cursor else ""), self._key)
            page = json.loads(body)
            if status != 200:
                self.failures.append(f"status {status}: {page}")
                return
            rows += [json.dumps(row) for row in page["data"]]
            editions.add(page["edition"])
            cursor = page["next_cursor"]
            if cursor is None:
                break
        if len(editions) != 1 or len(rows) != len(set(rows)):
            self.failures.append(f"{editions}, {len(rows)} rows")
        self.lists[f"{len(rows)} rows"] += 1


@pytest.mark.deep
@pytest.mark.rule("PUB-2")
def test_paging_and_requests_continue_through_edition_switches(
    serve: Serve, key: str, home: Path, editions: tuple[str, str], trial: Trial
) -> None:
    live = serve(workers=2)
    pager = Pager(live, key)
    with Load(live, key) as load:
        pager.start()
        try:
            for number in range(trial.count(4, 50)):
                edition = editions[number % 2]
                succeed(home, "editions", "rollback", edition)
                wait_for_edition(live, key, edition)
                trial.saw("switches")
        finally:
            pager.stop()
    assert load.failures == []
    assert pager.failures == []
    assert len(pager.lists) == 1, "every walk has all rows"
    trial.saw("requests", load.editions.total())
    trial.saw("walks to the end", pager.lists.total())


def test_sigterm_under_load_answers_every_counted_request(home: Path, serve: Serve, trial: Trial):
    """Requests that had begun when the signal came are counted, so they must be answered completely."""
    for _ in range(trial.count(1, 20)):
        live = serve(workers=2)
        key = live.key("starter", "--per-minute", "1000000", "--per-month", "100000000")
        outcomes: Counter[str] = Counter()
        broken: list[str] = []
        arguments = (live, key, outcomes, broken)
        clients = [threading.Thread(target=_ask_until_refused, args=arguments) for _ in range(6)]
        for client in clients:
            client.start()
        while outcomes["200"] < 200:
            time.sleep(0.01)
        began = time.monotonic()
        live.stop()
        trial.measured("slowest stop, seconds", time.monotonic() - began)
        for client in clients:
            client.join(PATIENCE)
        assert broken == []
        assert not any(status.startswith("5") for status in outcomes), outcomes
        used = json.loads(run(home, "keys", "usage", key, "--json").stdout)
        assert [line["month_used"] for line in used] == [outcomes["200"]], outcomes
        trial.saw("stops")
        trial.saw("requests answered", outcomes["200"])


def _ask_until_refused(live: LiveServer, key: str, outcomes: Counter[str], broken: list[str]) -> None:
    while True:
        link = HTTPConnection("127.0.0.1", live.port, timeout=PATIENCE)
        try:
            while True:
                status, _ = send(link, "GET", ISSUER, key)
                outcomes[str(status)] += 1
        except IncompleteRead as failure:
            broken.append(repr(failure))
        except ConnectionRefusedError:
            return
        except (OSError, HTTPException):
            outcomes["closed between requests"] += 1
        finally:
            link.close()


@in_one_minute
def test_the_quota_is_exact_over_rest_head_and_mcp_with_a_worker_killed(home: Path, trial: Trial) -> None:
    quota, requests = 120, 300
    with LiveServer(home, workers=4) as live:
        for _ in range(trial.count(1, 20)):
            key = live.key("starter", "--per-minute", str(quota), "--per-month", "100000")
            admitted, failed = _spend(live, key, requests, kill=lambda: workers(live)[0].kill())
            assert quota - failed <= admitted <= quota, (admitted, failed)
            trial.saw("admitted", admitted)
            trial.saw("refused", requests - admitted - failed)
            trial.saw("lost with the worker", failed)
            deadline = time.monotonic() + PATIENCE
            while len(workers(live)) < 4:
                assert time.monotonic() < deadline
                time.sleep(0.05)


def _spend(live: LiveServer, key: str, requests: int, kill: Callable[[], None]) -> tuple[int, int]:
    """The number of admitted requests, and the number without an answer."""
    kinds = (("GET", "/v1/entities/DC46AF1B1AAA424B58D1368176"), ("HEAD", ISSUER), ("POST", "/mcp"))
    began = threading.Event()

    def ask(number: int) -> str:
        if number == requests // 4:
            began.set()
        link = HTTPConnection("127.0.0.1", live.port, timeout=PATIENCE)
        method, path = kinds[number % 3]
        try:
            status, body = send(link, method, path, key)
        except (OSError, HTTPException):
            return "failed"
        finally:
            link.close()
        if method == "POST" and status == 200:
            result = json.loads(body)["result"]
            status = json.loads(result["content"][0]["text"])["status"] if result.get("isError") else 200
        assert status in (200, 429), status
        return str(status)

    with ThreadPoolExecutor(17) as clients:
        killing = clients.submit(_once, began, kill)
        outcomes = Counter(clients.map(ask, range(requests)))
        killing.result()
    return outcomes["200"], outcomes["failed"]


def _once(event: threading.Event, act: Callable[[], None]) -> None:
    event.wait(PATIENCE)
    act()


@pytest.mark.deep
def test_a_long_mixed_load_fails_no_request_and_does_not_grow(serve: Serve, key: str, trial: Trial) -> None:
    live = serve()
    seconds = trial.seconds(4, 600)
    (worker,) = workers(live)
    outcomes: Counter[str] = Counter()
    until = time.monotonic() + seconds

    def ask(first: int) -> None:
        link = HTTPConnection("127.0.0.1", live.port, timeout=PATIENCE)
        number = first
        while time.monotonic() < until or outcomes.total() < _MIXED_REQUESTS:
            method, path = MIXED[number % len(MIXED)]
            status, _ = send(link, method, path, key)
            outcomes[str(status)] += 1
            number += 1
        link.close()

    with ThreadPoolExecutor(4) as clients:
        running = [clients.submit(ask, number * 3) for number in range(4)]
        warm = until - seconds * 0.6
        while time.monotonic() < warm or outcomes.total() < _MIXED_REQUESTS // 2:
            time.sleep(0.05)
        before = _own_memory(worker)
        for client in running:
            client.result()
    growth = _own_memory(worker) / before - 1
    assert set(outcomes) == {"200", "404"}, outcomes
    assert growth < 0.03, growth
    assert workers(live) == [worker]
    for status, count in outcomes.items():
        trial.saw(status, count)
    trial.measured("growth of memory, per cent", growth * 100)
    trial.measured("seconds", seconds)


def _own_memory(process: psutil.Process) -> int:
    """Memory that holds no file, in kB. Pages shared with the process that forked it count from the start."""
    rollup = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
    return int(rollup.partition("\nAnonymous:")[2].split()[0])
