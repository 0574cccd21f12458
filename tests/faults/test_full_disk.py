"""A disk that is full while an edition is built: one line, nothing left behind, the old edition serves on."""

import resource
import subprocess
from pathlib import Path

import pytest

from tests.faults.conftest import CORRECTION, Serve
from tests.faults.load import ask
from tests.live import COMMAND, _environment, run


def files(home: Path) -> set[Path]:
    return {path for path in (home / "editions").rglob("*") if path.is_file()}


@pytest.mark.deep
@pytest.mark.parametrize("most_bytes", [100_000, 1_000_000])
def test_a_full_disk_while_publishing_leaves_no_half_built_edition(
    serve: Serve, key: str, home: Path, editions: tuple[str, str], most_bytes: int
) -> None:
    filing = home.parent / "correction.csv"
    filing.write_text(CORRECTION.format(value=77, day=9))
    assert run(home, "ingest", "sample-filings", filing).returncode == 0
    live = serve()
    before = files(home)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, resource.RLIM_INFINITY))

    failed = subprocess.run(
        [COMMAND, "publish"],
        env=_environment(home, {}),
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=False,
    )
    assert failed.returncode == 1
    assert len(failed.stderr.splitlines()) == 1, failed.stderr
    assert "File too large" in failed.stderr
    assert files(home) == before
    assert not list((home / "editions").glob(".*"))
    assert ask(live, key) == (200, editions[1])
    assert live.get("/v1/status").json()["degraded"] == []
    assert run(home, "publish").returncode == 0
