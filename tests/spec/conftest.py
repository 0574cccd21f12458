"""The engines, and the sample world served once for each test worker."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live import LiveServer
from tests.services import PostgresServer


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """The settings of each engine; on PostgreSQL an empty database for the module."""
    yield from _settings(request)


@pytest.fixture(params=["sqlite", "postgresql"])
def fresh_engine(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """The same, with a database for each test."""
    yield from _settings(request)


def _settings(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    if request.param == "sqlite":
        yield {}
        return
    server: PostgresServer = request.getfixturevalue("postgres_process")
    server.ensure()
    with server.database() as url:
        yield {"datastore": url}


@pytest.fixture(scope="session")
def server(sample_home: Path) -> Iterator[LiveServer]:
    """The sample world, served. High limits, so that no test spends another's quota."""
    with LiveServer(sample_home, per_minute_sample="100000", per_month_sample="10000000") as live:
        yield live


@pytest.fixture(scope="session")
def sample_key(server: LiveServer) -> str:
    return server.key("sample")


@pytest.fixture(scope="session")
def paid_key(server: LiveServer) -> str:
    return server.key("starter", "--per-minute", "100000")
