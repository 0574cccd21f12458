"""An old and a new version side by side on the same editions."""

import json
import shutil
from pathlib import Path

import pytest

from tests.faults.conftest import Serve
from tests.faults.conftest import serve as serve
from tests.faults.load import Load, ask
from tests.live import LiveServer
from tests.patience import until
from tests.tampering import point_at


def publish_by_a_newer_version(home: Path, edition: str) -> str:
    """Publish an edition with an unknown layout, and make it current."""
    name = f"29991231T000000Z-{edition.split('-', 1)[1]}"
    folder = home / "editions" / name
    shutil.copytree(home / "editions" / edition, folder)
    manifest = json.loads((folder / "manifest.json").read_text()) | {"edition": name, "format": 99}
    content = json.dumps(manifest).encode()
    (folder / "manifest.json").chmod(0o600)
    (folder / "manifest.json").write_bytes(content)
    point_at(home, name)
    return name


@pytest.mark.rule("NODE-5")
def test_an_older_version_keeps_serving_its_edition_when_a_newer_one_publishes(
    serve: Serve, home: Path, key: str, editions: tuple[str, str]
) -> None:
    live = serve()
    until(lambda: ask(live, key) == (200, editions[1]))
    with Load(live, key, clients=2) as load:
        newer = publish_by_a_newer_version(home, editions[1])
        until(lambda: f"refused: edition {newer}: has layout 99, but this version reads" in live.log)
        assert "a newer version published it, install that one" in live.log
        assert live.get("/v1/status").json()["edition"] == editions[1]
    assert load.failures == []
    assert set(load.editions) == {editions[1]}
    with LiveServer(home) as restarted:  # and one that is restarted in between
        until(lambda: ask(restarted, key) == (200, editions[1]))
