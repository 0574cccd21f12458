"""A damaged edition is refused with its id, and the previous one is served."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.depth import deep_after
from tests.faults.conftest import Serve
from tests.faults.load import ask
from tests.live import run
from tests.tampering import part_of


def flip_one_bit(edition: Path) -> None:
    path = part_of(edition)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    _replace(path, bytes(content))


def truncate(edition: Path) -> None:
    path = part_of(edition)
    _replace(path, path.read_bytes()[:-5000])


def delete_file(edition: Path) -> None:
    part_of(edition).unlink()


def garble_manifest(edition: Path) -> None:
    _replace(edition / "manifest.json", b'{"format": 1, "edition"')


def another_layout(edition: Path) -> None:
    path = edition / "manifest.json"
    _replace(path, path.read_bytes().replace(b'"format": ', b'"format": 999'))


def delete_folder(edition: Path) -> None:
    shutil.rmtree(edition)


def _replace(path: Path, content: bytes) -> None:
    path.unlink()  # open files stay as they are, as on a disk that fails after the file was read
    path.write_bytes(content)


DAMAGES = [
    flip_one_bit,
    truncate,
    delete_file,
    garble_manifest,
    another_layout,
    delete_folder,
]


@pytest.mark.rule("PUB-7")
@pytest.mark.parametrize("damage", [flip_one_bit, truncate, delete_folder])
def test_if_the_current_edition_is_damaged_the_previous_one_is_served(
    serve: Serve, key: str, home: Path, editions: tuple[str, str], damage: Callable[[Path], None]
) -> None:
    damage(home / "editions" / editions[1])
    live = serve()
    assert ask(live, key) == (200, editions[0])
    assert f"refused: edition {editions[1]}" in live.log


@pytest.mark.parametrize("damage", deep_after(4, DAMAGES))
def test_rolling_back_to_a_damaged_edition_is_refused_by_name(
    home: Path, editions: tuple[str, str], damage: Callable[[Path], None]
) -> None:
    damage(home / "editions" / editions[0])
    refused = run(home, "editions", "rollback", editions[0])
    assert refused.returncode == 1
    assert editions[0] in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert (home / "editions" / "CURRENT").read_text().strip() == editions[1]
