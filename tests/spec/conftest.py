"""The sample world, served once for each test worker."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live import LiveServer


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
