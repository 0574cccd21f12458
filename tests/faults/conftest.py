"""A data folder with two editions, and servers for a test on a copy of it."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.live import LiveServer, create_key, run, succeed
from tests.once import made_once

Serve = Callable[..., LiveServer]

CORRECTION = (
    "entity,line_item,value,currency,period_start,period_end,period_type,available_at,document,location,"
    "confidence\nlei:999900SAMPLEZA000189,revenue,{value},ZAR,2019-07-01,2020-06-30,FY,2024-01-{day:02},"
    "correction-{day},p. 1,1.0\n"
)


@pytest.fixture(scope="module", autouse=True)
def without_answer_cache() -> Iterator[None]:
    """Each request reads the edition: a cached answer would hide damage to the files."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SANKOFA_ANSWER_CACHE_BYTES", "1")
        yield


def publish_another(home: Path, number: int) -> str:
    """Ingest one more filing and publish; returns the id of the new edition."""
    filing = home.parent / f"correction-{number}.csv"
    filing.write_text(CORRECTION.format(value=1000 + number, day=number))
    for command in (("ingest", "sample-filings", filing), ("publish",)):
        succeed(home, *command)
    return current(home)


def current(home: Path) -> str:
    """The id of the current edition, as the command line prints it."""
    lines = run(home, "editions").stdout.splitlines()
    (name,) = (line.split()[0] for line in lines if line.endswith("current"))
    return name


class World(NamedTuple):
    """A HOME with two editions, and a key without limits."""

    home: Path
    editions: tuple[str, str]
    key: str


@pytest.fixture(scope="session")
def world(small_home: Path, tmp_path_factory: pytest.TempPathFactory) -> World:
    """The sample world without its exchange rates, with two editions.

    It is built once for all workers. Copy it, do not change it.
    """

    def make(folder: Path) -> None:
        home = Path(shutil.copytree(small_home, folder / "home"))
        first = current(home)
        second = publish_another(home, 1)
        key = create_key(home, "professional", "--per-minute", "1000000000", "--per-month", "1000000000")
        (folder / "world.json").write_text(json.dumps([first, second, key]))

    folder_ = made_once(tmp_path_factory, "faults", make)
    first, second, key = json.loads((folder_ / "world.json").read_text())
    return World(folder_ / "home", (first, second), key)


@pytest.fixture
def home(world: World, tmp_path: Path) -> Path:
    return Path(shutil.copytree(world.home, tmp_path / "home"))


@pytest.fixture
def key(world: World) -> str:
    return world.key


@pytest.fixture
def editions(world: World) -> tuple[str, str]:
    return world.editions


@pytest.fixture
def serve(home: Path) -> Iterator[Serve]:
    """Starts servers on `home` and stops them after the test."""
    with ExitStack() as stack:
        yield lambda **options: stack.enter_context(LiveServer(home, **options))
