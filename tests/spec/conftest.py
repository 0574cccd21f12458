"""The engines that a suite runs on.

Every engine gives the same blocks and answers for the same files; tests/engines checks this for each
endpoint. These suites therefore run on files. Mark a test or its module `both_engines` if the engine matters
to it: it then runs on PostgreSQL too. There it is deep, so a default run leaves it out.
"""

from collections.abc import Iterator

import pytest

from tests.depth import deep_after
from tests.services import PostgresServer

ENGINES = ("sqlite", "postgresql")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marked = metafunc.definition.get_closest_marker("both_engines") is not None
    engines = deep_after(1, ENGINES) if marked else ENGINES[:1]
    if "engine" in metafunc.fixturenames:
        metafunc.parametrize("engine", engines, indirect=True, scope="module")
    if "fresh_engine" in metafunc.fixturenames:
        metafunc.parametrize("fresh_engine", engines, indirect=True)


@pytest.fixture(scope="module")
def engine(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """The settings of an engine; on PostgreSQL with an empty database for the module."""
    yield from _settings(request)


@pytest.fixture
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
