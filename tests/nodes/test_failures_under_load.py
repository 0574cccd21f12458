"""Everything that a service of several machines consists of, killed one by one under steady load."""

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from decimal import Decimal
from http.client import HTTPConnection, HTTPException
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import psycopg
import pytest

from tests.faults.conftest import CORRECTION
from tests.faults.load import Clients
from tests.live import LiveServer, create_key, run, succeed
from tests.nodes.servers import HaProxy
from tests.patience import PATIENCE, Stopwatch, until
from tests.server_groups import DurablyWatched, Primary, Standby
from tests.services import missing, postgres_binaries, redis_binary
from tests.torture import Trial

RETAILER = "DC46AF1B1AAA424B58D1368176"
PATH = f"/v1/fundamentals/{RETAILER}?line_items=revenue&period_type=FY"
CORRECTED = "2020-06-30"


class Outcome(NamedTuple):
    at: float
    kind: str
    """`answered`, `unavailable` (a clean 503), `broken` (no answer), or what was wrong with it."""
    detail: str = ""


class SteadyLoad(Clients):
    """`with SteadyLoad(port, key, expected) as load:`; `expected` holds the figure by edition, and may
    grow.
    """

    def __init__(self, port: int, key: str, expected: dict[str, Decimal], clients: int = 3) -> None:
        super().__init__(clients)
        self.outcomes: list[Outcome] = []
        self._port, self._key, self._expected = port, key, expected
        self._unknown: list[tuple[float, str, Decimal]] = []
        self.clients = clients
        self.events: list[tuple[float, str]] = []
        """When the test did something to the machines, and what."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        for at, edition, value in self._unknown:  # published a moment before the test knew its name
            self.outcomes.append(Outcome(at, self._judged(edition, value)))

    def counts(self) -> Counter[str]:
        return Counter(outcome.kind for outcome in self.outcomes)

    def trouble(self, since: float) -> list[float]:
        """The times, since a moment, at which something other than an answer came."""
        return [outcome.at for outcome in self.outcomes if outcome.at >= since and outcome.kind != "answered"]

    def story(self) -> list[tuple[str, str, str]]:
        """Everything but answers: after which event, what, and why."""
        lines = []
        for outcome in self.outcomes:
            if outcome.kind != "answered":
                before = [what for at, what in self.events if at <= outcome.at]
                lines.append(
                    (before[-1] if before else "", f"{outcome.at:.1f} {outcome.kind}", outcome.detail)
                )
        return lines

    def answers(self, since: float) -> int:
        return sum(outcome.at >= since and outcome.kind == "answered" for outcome in self.outcomes)

    def _run(self, number: int) -> None:
        link = HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        while not self._over.is_set():
            began = time.monotonic()
            try:
                link.request("GET", PATH, headers={"X-API-Key": self._key})
                answer = link.getresponse()
                body = answer.read()
            except (OSError, HTTPException) as failure:
                link.close()
                self.outcomes.append(Outcome(began, "broken", repr(failure)))
            else:
                self._judge(began, answer.status, dict(answer.getheaders()), body)
            time.sleep(0.02)
        link.close()

    def _judge(self, at: float, status: int, headers: dict[str, str], body: bytes) -> None:
        fields = {name.lower(): value for name, value in headers.items()}
        if status == 503 and "retry-after" in fields and "problem+json" in fields.get("content-type", ""):
            self.outcomes.append(Outcome(at, "unavailable", json.loads(body)["detail"]))
        elif status == 502 and "x-request-id" not in fields:  # from the balancer: the node was killed
            self.outcomes.append(Outcome(at, "broken", "502"))
        elif status != 200:
            self.outcomes.append(Outcome(at, f"status {status}: {body[:200]!r}"))
        else:
            document = json.loads(body)
            rows = [row for row in document["data"] if row["period_end"] == CORRECTED]
            value = Decimal(str(rows[0]["value_reported"])) if len(rows) == 1 else Decimal(-1)
            self.editions[document["edition"]] += 1
            if document["edition"] not in self._expected:
                self._unknown.append((at, document["edition"], value))
            else:
                self.outcomes.append(Outcome(at, self._judged(document["edition"], value)))

    def _judged(self, edition: str, value: Decimal) -> str:
        expected = self._expected.get(edition)
        return "answered" if value == expected else f"wrong: {edition} says {value}, not {expected}"


SAMPLE = Path(str(files("sankofa").joinpath("sample")))
LONGEST_OUTAGE = 5.0
NODES = 3


class Estate:
    """Three nodes, their balancer, and the figure that each edition must serve."""

    def __init__(self, folder: Path, stack: ExitStack, datastore: str, keyvalue: str) -> None:
        self._folder = folder
        self.expected: dict[str, Decimal] = {}
        self.published = 0
        self.settings: dict[str, Any] = {
            "datastore": datastore,
            "keystore": keyvalue,
            "usagestore": keyvalue,
            "keys_secret": "keys",
            "gate_secret": "gate",
            "cursor_secret": "cursors",
            "vault": "off",
        }
        self.home = folder / "publisher" / "home"
        self.home.parent.mkdir()
        for source, path in (("sample-lei", "lei"), ("sample-filings", "filings")):
            self._command("ingest", source, SAMPLE / path)
        self.publish()
        self.key = create_key(
            self.home,
            "professional",
            "--per-minute",
            "1000000000",
            "--per-month",
            "1000000000",
            **self.settings,
        )
        self.nodes = [self._node(number, stack) for number in range(NODES)]
        self.balancer = stack.enter_context(HaProxy(folder / "haproxy", [node.port for node in self.nodes]))

    def _node(self, number: int, stack: ExitStack) -> LiveServer:
        home = self._folder / f"node-{number}" / "home"
        home.parent.mkdir()
        return stack.enter_context(LiveServer(home, proxies="127.0.0.1", **self.settings))

    def _command(self, *arguments: str | Path) -> None:
        succeed(self.home, *arguments, **self.settings)

    def publish(self) -> str:
        """Publish one more filing in its own edition."""
        self.published += 1
        value = 1000 + self.published
        filing = self._folder / f"correction-{self.published}.csv"
        filing.write_text(CORRECTION.format(value=value, day=self.published))
        self._command("ingest", "sample-filings", filing)
        self._command("publish")
        edition = self._current()
        self.expected[edition] = Decimal(value)
        return edition

    def _current(self) -> str:
        lines = run(self.home, "editions", **self.settings).stdout.splitlines()
        (name,) = (line.split()[0] for line in lines if line.endswith("current"))
        return name

    def until_served(self, edition: str) -> None:
        for node in self.nodes:
            until(lambda n=node: n.get("/v1/status").json()["edition"] == edition)  # type: ignore[misc]

    def used(self) -> int:
        """The count of the key without this request."""
        answer = until(lambda: self._usage())
        assert answer is not None
        return answer - 1

    def _usage(self) -> int | None:
        response = self.nodes[0].get("/v1/usage", self.key)
        return int(response.json()["data"][0]["month_used"]) if response.status_code == 200 else None


class WatchedEstate(Estate):
    """The same with stores of several servers each."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        binaries, redis = postgres_binaries(), redis_binary()
        if binaries is None or redis is None or not (binaries / "pg_basebackup").exists():
            missing("several machines (no PostgreSQL with pg_basebackup, or no Redis)")
        self.primary = Primary(binaries)
        stack.callback(self.primary.close)
        self.primary.start()
        self.standby = Standby(self.primary)
        stack.callback(self.standby.close)
        self.standby.start()
        self.redis = DurablyWatched(redis)
        stack.callback(self.redis.close)
        self.redis.start()
        hosts = f"127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}"
        super().__init__(folder, stack, f"postgresql://postgres@{hosts}/postgres", self.redis.url)


@pytest.fixture
def estate(tmp_path: Path) -> Iterator[WatchedEstate]:
    with ExitStack() as stack:
        yield WatchedEstate(tmp_path, stack)


def survive(
    load: SteadyLoad, what: str, strike: Callable[[], None], trial: Trial, *, answers: int = 40
) -> None:
    """Cause a failure, wait until clients get answers again, and measure how long they got none."""
    began = time.monotonic()
    with Stopwatch() as watch:
        strike()
        try:
            until(lambda: _answered_in_a_row(load, began) >= answers)
        except AssertionError as still:
            raise AssertionError(f"{what}: {still}; {load.story()[-100:]}") from still
    trouble = load.trouble(began)
    outage = max(trouble) - min(trouble) if trouble else 0.0
    stalled = watch.elapsed - watch.seconds
    trial.measured(f"{what}: seconds without an answer", max(outage - stalled, 0.0))
    assert outage - stalled <= LONGEST_OUTAGE, (
        f"{what}: {outage:.1f} s, of which the machine took {stalled:.1f}; {load.story()}"
    )
    load.events.append((began, what))
    trial.saw(what)


def _answered_in_a_row(load: SteadyLoad, since: float) -> int:
    number = 0
    for outcome in reversed(load.outcomes):
        if outcome.kind != "answered" or outcome.at < since:
            break
        number += 1
    return number


@pytest.mark.rule("NODE-7")
def test_a_killed_node_loses_only_the_requests_it_was_answering(
    tmp_path: Path, postgres_url: str, redis_url: str
):
    with ExitStack() as stack:
        estate = Estate(tmp_path, stack, postgres_url, redis_url)
        until(lambda: _status(estate) == 200)
        before = estate.used()
        with SteadyLoad(estate.balancer.port, estate.key, estate.expected) as load:
            until(lambda: load.answers(0.0) > 20)
            struck = time.monotonic()
            _kill(estate.nodes[1])
            until(lambda: _answered_in_a_row(load, struck) >= 20)
        counts = load.counts()
        answered, broken = counts.pop("answered"), counts.pop("broken", 0)
        assert not counts, f"neither an answer nor cut: {counts}"
        assert broken <= load.clients, load.story()
        counted = estate.used() - before  # the balancer repeats requests that the killed node had counted
        assert answered <= counted <= answered + load.clients, load.story()


@pytest.mark.deep
@pytest.mark.rule("NODE-7")
def test_answers_stay_right_and_counts_exact_whatever_is_killed(estate: WatchedEstate, trial: Trial) -> None:
    rounds = trial.count(1, 3)
    editions = trial.count(4, 11)  # the first figure existed before the load
    until(lambda: _status(estate) == 200)
    before = estate.used()
    with SteadyLoad(estate.balancer.port, estate.key, estate.expected) as load:
        until(lambda: load.answers(0.0) > 50)

        def publish_next() -> None:
            estate.until_served(estate.publish())

        for _ in range(rounds):
            survive(load, "standby killed", estate.standby.kill, trial)
            survive(load, "standby back", estate.standby.start, trial)
            survive(load, "Redis restarted", lambda: _restart(estate), trial)
            survive(load, "API node killed", lambda: _kill(estate.nodes[1]), trial)
            survive(load, "API node back", estate.nodes[1].start, trial)
            survive(load, "edition published", publish_next, trial)
        until(lambda: _is_level(estate))
        survive(load, "primary killed", estate.primary.kill, trial)
        survive(load, "standby promoted", estate.standby.promote, trial)
        until(estate.redis.is_whole)
        survive(load, "Redis failed over", lambda: estate.redis.current().kill(), trial)
        while estate.published < editions:
            survive(load, "edition published", publish_next, trial)
    counts = load.counts()
    answered, unavailable, broken = (counts.pop(kind, 0) for kind in ("answered", "unavailable", "broken"))
    assert not counts, f"neither an answer nor a clean 503: {counts}"
    assert broken <= load.clients * rounds, f"more than was in flight on a killed node: {load.story()}"
    assert set(load.editions) == set(estate.expected)
    counted = estate.used() - before
    assert answered <= counted <= answered + unavailable + broken + 1, (
        answered,
        counted,
        unavailable,
        broken,
    )
    trial.measured("answers", answered)
    trial.measured("clean 503", unavailable)
    trial.measured("cut on a killed node", broken)
    trial.measured("counted above the answers", counted - answered)


def _status(estate: Estate) -> int:
    try:
        return min(node.get(PATH, estate.key).status_code for node in estate.nodes)
    except OSError:
        return 0


def _restart(estate: WatchedEstate) -> None:
    """If a restart takes longer than the sentinels wait, another server becomes the primary."""
    server = estate.redis.current()
    server.kill()
    server.start()


def _kill(node: LiveServer) -> None:
    """Kill the whole process group without warning."""
    os.killpg(node.pid, signal.SIGKILL)
    node.stop()


def _is_level(estate: WatchedEstate) -> bool:
    """Whether the standby has everything that the primary wrote."""
    ask = "SELECT count(*) FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()"
    with psycopg.connect(estate.primary.url, connect_timeout=int(PATIENCE)) as connection:
        row = connection.execute(ask.encode()).fetchone()
    return row == (1,)
