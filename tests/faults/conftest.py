"""A data folder with two editions of the sample world, and servers of the test's own upon a copy of it."""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.live import LiveServer, run

Serve = Callable[..., LiveServer]

CORRECTION = (
    "entity,line_item,value,currency,period_start,period_end,period_type,available_at,document,location,"
    "confidence\nlei:999900SAMPLEZA000189,revenue,{value},ZAR,2019-07-01,2020-06-30,FY,2024-01-{day:02},"
    "correction-{day},p. 1,1.0\n"
)


def publish_another(home: Path, number: int) -> str:
    """Ingest one more filing and publish; returns the id of the new edition."""
    filing = home.parent / f"correction-{number}.csv"
    filing.write_text(CORRECTION.format(value=1000 + number, day=number))
    for command in (("ingest", "sample-filings", filing), ("publish",)):
        done = run(home, *command)
        assert done.returncode == 0, done.stderr
    return current(home)


def current(home: Path) -> str:
    """The id of the current edition, as the command line tells it."""
    lines = run(home, "editions").stdout.splitlines()
    (name,) = (line.split()[0] for line in lines if line.endswith("current"))
    return name


@pytest.fixture(scope="session")
def two_editions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A HOME with two editions. Do not change it: copy it."""
    home = tmp_path_factory.mktemp("faults") / "home"
    published = run(home, "sample")
    assert published.returncode == 0, published.stderr
    time.sleep(1.0)  # an edition is named after the second of its last capture
    publish_another(home, 1)
    return home


@pytest.fixture
def home(two_editions: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(two_editions, tmp_path / "home"))


@pytest.fixture
def serve(home: Path) -> Iterator[Serve]:
    """Starts servers on `home` that are stopped when the test is over."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(LiveServer(home, **options))


@pytest.fixture
def editions(home: Path) -> tuple[str, str]:
    """The previous and the current edition."""
    names = sorted(line.split()[0] for line in run(home, "editions").stdout.splitlines())
    return names[0], names[1]
