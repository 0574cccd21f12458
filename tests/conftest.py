"""Fixtures for every suite. Each test process starts its own server, when a test first asks for one."""

import gc
import os
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import cast

import hypothesis
import pytest

from tests.depth import Remark, leave_out
from tests.live import COMMANDS, Copies, LiveServer, succeed
from tests.once import made_once
from tests.services import (
    MISSING,
    REPOSITORY,
    PostgresServer,
    RedisServer,
    required_postgres,
    required_redis,
    started,
)
from tests.starter import publish_starter, publish_starter_part, publish_without_rates
from tests.torture import ALL_ROUNDS, remember_outcome, rounds
from tests.torture import trial as trial
from tests.watchdog import pytest_runtest_protocol as pytest_runtest_protocol

# Clear the settings of a developer's own service: they must not reach the service under test or its data.
for name in [name for name in os.environ if name.startswith("SANKOFA_")]:
    del os.environ[name]


# Use the same examples in every run, so that a run fails only for what changed. TEST_RANDOM=1 draws new ones.
# TEST_EXAMPLES asks for fewer, as make test-fast does. No example fails for being slow.
hypothesis.settings.register_profile(
    "tests",
    derandomize=os.environ.get("TEST_RANDOM") != "1",
    max_examples=int(os.environ.get("TEST_EXAMPLES") or rounds(15, 30, 100, here=8)),
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow, hypothesis.HealthCheck.data_too_large],
)
hypothesis.settings.load_profile("tests")


@pytest.fixture(scope="session")
def postgres_process() -> Iterator[PostgresServer]:
    """The worker's PostgreSQL; tests ask for `postgres_server`, which checks it first."""
    with started(PostgresServer(required_postgres())) as server:
        yield server


@pytest.fixture
def postgres_server(postgres_process: PostgresServer) -> Iterator[PostgresServer]:
    """A running PostgreSQL that the test may freeze or kill."""
    postgres_process.ensure()
    yield postgres_process
    postgres_process.ensure()


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A fresh, empty database."""
    with postgres_server.database() as url:
        yield url


@pytest.fixture(scope="session")
def redis_process() -> Iterator[RedisServer]:
    """The worker's Redis; tests ask for `redis_server`, which checks it first."""
    with started(RedisServer(required_redis())) as server:
        yield server


@pytest.fixture
def redis_server(redis_process: RedisServer) -> Iterator[RedisServer]:
    """A running, empty Redis that the test may freeze or kill."""
    redis_process.ensure()
    redis_process.flush()
    yield redis_process
    redis_process.ensure()


@pytest.fixture
def redis_url(redis_server: RedisServer) -> str:
    """An empty key-value store."""
    return redis_server.url


@pytest.fixture(scope="session")
def sample_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A HOME with the sample world, ingested and published. Copy it, do not change it.

    Building it takes seconds, so it is built once, and each worker gets a copy.
    """

    def make(folder: Path) -> None:
        succeed(folder / "home", "sample", "--if-empty")

    folder_ = made_once(tmp_path_factory, "sample", make)
    return Path(shutil.copytree(folder_, tmp_path_factory.mktemp("sample") / "made")) / "home"


@pytest.fixture(scope="session")
def small_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A HOME with the sample world without exchange rates, for tests that publish again.

    It is shared by all workers. Copy it, do not change it.
    """

    def make(folder: Path) -> None:
        publish_without_rates(folder / "home")

    return made_once(tmp_path_factory, "small", make) / "home"


@pytest.fixture(scope="session")
def copy_sample(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Copies:
    return lambda: Path(shutil.copytree(sample_home, tmp_path_factory.mktemp("sample") / "home"))


@pytest.fixture(scope="session")
def copy_small(small_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Copies:
    return lambda: Path(shutil.copytree(small_home, tmp_path_factory.mktemp("small") / "home"))


@pytest.fixture(scope="session")
def starter_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A HOME with the starter world, shared by all workers. Copy it, do not change it.

    Publishing it takes 45 seconds, so only deep tests use it.
    """
    return made_once(tmp_path_factory, "starter", publish_starter) / "home"


@pytest.fixture(scope="session")
def starter_part_home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A part of the starter world, published by the same command; the whole world where every round runs."""
    if ALL_ROUNDS:
        return cast(Path, request.getfixturevalue("starter_home"))
    return made_once(tmp_path_factory, "starter-part", publish_starter_part) / "home"


@pytest.fixture(scope="session")
def server(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server of the sample world. Its limits are high, so that no test spends another's quota."""
    home = Path(shutil.copytree(sample_home, tmp_path_factory.mktemp("served") / "home"))
    with LiveServer(home, per_minute_sample="100000", per_month_sample="10000000") as live:
        yield live


@pytest.fixture(scope="session")
def starter_server(starter_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with served_copy(starter_home, tmp_path_factory) as live:
        yield live


@pytest.fixture(scope="session")
def starter_part_server(
    starter_part_home: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveServer]:
    with served_copy(starter_part_home, tmp_path_factory) as live:
        yield live


def served_copy(home: Path, factory: pytest.TempPathFactory) -> LiveServer:
    return LiveServer(Path(shutil.copytree(home, factory.mktemp("real") / "home")))


@pytest.fixture(scope="session")
def sample_key(server: LiveServer) -> str:
    return server.key("sample")


@pytest.fixture(scope="session")
def paid_key(server: LiveServer) -> str:
    return server.key("starter", "--per-minute", "100000")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real files of publishers: too large to keep in the repository, and not ours."""
    folder = Path(os.environ.get("TEST_SHARED_DATA", REPOSITORY.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"{MISSING}real inputs (no folder {folder}; name one with TEST_SHARED_DATA)")
    return folder


LONG = [
    f"test_{name}.py"
    for name in (
        """starter_world locked_views real_tenders schemathesis docs installing pages_between_editions
        browser guides signed_editions same_everywhere patterns accepted_dates truth inline_xbrl signals
        following failures_under_load edition_log collect pages endpoints slow_publishers as_known
        sample_tier pushing metrics_point_in_time panel publish_cli mcp_http mcp datastore macro openapi
        limits no_person_leaks withdrawing notebook two_publishers sealed_editions licences visitors
        point_in_time editions tender_search party_matching kills backup hostile_clients sample_world
        outbound shared_database domains tender_pages observing shared_facts processes json_stream
        claims terminal publish_processes damaged_keys switching series_kinds status advice tender_files
        quality parameters access hooks withdraw changes"""
    ).split()
]
"""The files that take longest, the longest first, so that no worker is left with one at the end.

The first has the starter world made; others that need it come later, so that no worker waits for it."""


SLOW_FIXTURES = {"shared_data", "postgres_process", "redis_process"}
SLOW_FILES = {
    f"test_{name}.py"
    for name in (
        """annual_series backup changes collect cross_rates docs doctor domains editions_by_id export
        inline_xbrl licences observing quality rooms sample_tier schemathesis series_metadata
        starter_world tender_files tender_search truth withdraw shared_caches"""
    ).split()
}


def pytest_configure(config: pytest.Config) -> None:
    """Load the package for commands once for all test processes, while they start."""
    config.pluginmanager.register(Remark(config))
    if getattr(config.option, "numprocesses", None) and "PYTEST_XDIST_WORKER" not in os.environ:
        COMMANDS.share()


def pytest_unconfigure() -> None:
    COMMANDS.close()


def _has_rounds(item: pytest.Item) -> bool:
    """Whether `make torture` runs it more often than `make test-all`."""
    module, function = getattr(item, "module", None), getattr(item, "obj", None)
    return hasattr(module, "rounds") or getattr(function, "is_hypothesis_test", False)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    leave_out(config, items)
    for item in items:
        if SLOW_FIXTURES.intersection(getattr(item, "fixturenames", ())) or item.path.name in SLOW_FILES:
            item.add_marker("slow")
        if "trial" in getattr(item, "fixturenames", ()) or _has_rounds(item):
            item.add_marker("torture")
    items.sort(key=lambda item: LONG.index(item.path.name) if item.path.name in LONG else len(LONG))


def pytest_collection_finish() -> None:
    """Hide the collected tests from the garbage collector, which would scan them again and again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    remember_outcome(item, report)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print one line for each reason why tests were skipped; a quiet run would hide it among the dots."""
    reasons: dict[str, int] = {}
    for report in terminalreporter.getreports("skipped"):
        text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if MISSING in text:
            reason = text[text.index(MISSING) :]
            reasons[reason] = reasons.get(reason, 0) + 1
    for reason, count in reasons.items():
        terminalreporter.write_line(f"{reason}: {count} tests skipped", red=True, bold=True)
