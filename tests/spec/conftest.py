"""The sample world, published and served once for each test worker."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live import LiveServer, run


@pytest.fixture(scope="session")
def sample_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A HOME in which the sample world is ingested and published. Do not change it: copy it."""
    home = tmp_path_factory.mktemp("sample") / "home"
    published = run(home, "sample")
    assert published.returncode == 0, published.stderr
    return home


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
