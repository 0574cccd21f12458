from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.engines.datastores import Engine


@pytest.fixture(params=["sqlite", "postgres"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """An empty store of each engine."""
    home = tmp_path / "a home #1? 100%"  # an awkward name, which a URL would have to escape
    home.mkdir()
    url = request.getfixturevalue("postgres_url") if request.param == "postgres" else "sqlite:"
    engine = Engine(request.param, url, home)
    yield engine
    engine.store.close()
