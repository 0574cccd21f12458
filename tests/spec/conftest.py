"""The engines on which a suite is run."""

from collections.abc import Iterator

import pytest

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
