"""The small world of tests/faults, pushed to stores that nodes can follow."""

import shutil
from pathlib import Path

import pytest

from tests.faults.conftest import World
from tests.faults.conftest import editions as editions
from tests.faults.conftest import home as home
from tests.faults.conftest import key as key
from tests.faults.conftest import world as world
from tests.live import succeed
from tests.once import made_once


def push(home: Path, destination: Path | str, *options: str) -> str:
    pushed = succeed(home, "push", str(destination), *options)
    return pushed.stdout


@pytest.fixture(scope="session")
def pushed_world(world: World, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two stores: `first`, which got the first edition, and `both`."""

    def make(folder: Path) -> None:
        home = Path(shutil.copytree(world.home, folder / "home"))
        first, second = world.editions
        shutil.rmtree(home / "editions" / second)
        succeed(home, "editions", "rollback", first)
        push(home, folder / "first")
        shutil.rmtree(home)
        shutil.copytree(folder / "first", folder / "both")
        push(Path(shutil.copytree(world.home, home)), folder / "both")  # a HOME records its destinations

    return made_once(tmp_path_factory, "pushed", make)


@pytest.fixture
def destination(pushed_world: Path, tmp_path: Path) -> Path:
    """A folder to which both editions of the world were pushed."""
    return Path(shutil.copytree(pushed_world / "both", tmp_path / "destination"))


@pytest.fixture
def pushed_first(pushed_world: Path) -> Path:
    """A folder to which the first edition was pushed. Do not change it."""
    return pushed_world / "first"
