"""Everything under HOME belongs to its owner alone, whatever the umask."""

import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.depth import deep_after
from tests.live import LiveServer, succeed
from tests.publisher import Publisher

FILING = (
    "entity,line_item,value,currency,period_end,available_at,document\n"
    "ticker:JSE:ABC,revenue,{value},ZAR,2023-12-31,2024-03-01,report.pdf\n"
    "ticker:JSE:ABC,revenue,many,ZAR,2022-12-31,2023-03-01,report.pdf\n"
)
SOURCE = """
[sources.{name}]
adapter = "filings-csv"
sku = "AF-FUND"
license_class = "cc-by"
commercial_redistribution = true
"""
COLLECT = 'collect = {{ urls = ["{url}/filing.csv"], every = "1d", allow_private = true }}\n'
OWN = ("sources.toml",)
"""Files that the operator writes."""


def open_to_others(*folders: Path) -> list[str]:
    paths = []
    for folder in folders:
        for path in (folder, *folder.rglob("*")):
            mode = stat.S_IMODE(path.lstat().st_mode)
            if mode != (0o700 if path.is_dir() else 0o600) and path.name not in OWN:
                paths.append(f"{path.relative_to(folder)} {mode:04o}")
    return paths


@pytest.mark.rule("CLI-9")
@pytest.mark.parametrize("umask", deep_after(1, [0o000, 0o077]))
def test_only_the_owner_can_read_files_under_home(
    tmp_path: Path, umask: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "above" / "home"
    monkeypatch.setenv("TEST_UMASK", f"{umask:o}")  # of every command and server

    def sankofa(*arguments: str, at: Path = home) -> None:
        succeed(at, *arguments)

    check: Callable[[], list[str]] = lambda: open_to_others(home.parent)  # noqa: E731
    with Publisher() as publisher:
        publisher.put("/filing.csv", FILING.format(value=8))
        sankofa("keys", "create", "--tier", "starter")
        assert check() == [], "the first command makes HOME and the folder above it"
        (home / "sources.toml").write_text(
            SOURCE.format(name="desk") + SOURCE.format(name="fetched") + COLLECT.format(url=publisher.url)
        )
        filing = tmp_path / "filing.csv"
        filing.write_text(FILING.format(value=7))
        filing.chmod(0o644)
        sankofa("ingest", "desk", str(filing))
        sankofa("collect", "fetched")
        assert len(list((home / "rejects").iterdir())) == 2
        assert check() == []
        sankofa("publish")
        assert check() == []
    with LiveServer(home, workers=2) as live:
        live.log_path.chmod(0o600)  # set for the test, not for the service
        assert live.get("/v1/issuers", "sankofa-sandbox").status_code == 200
        assert live.get("/companies").status_code == 200
        sankofa("keys", "create", "--tier", "professional")
        saved = tmp_path / "saved"
        sankofa("backup", str(saved))
        assert check() == [], "while it is served: the files of SQLite beside its own, sockets, locks"
    assert check() == []
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600
    for name, arguments in {"restored": ("restore", str(saved)), "replayed": ()}.items():
        other = tmp_path / f"above-{name}" / "home"
        if arguments:
            sankofa(*arguments, at=other)
        else:
            sankofa("vault", "replay", "--into", str(other))
        assert open_to_others(other.parent) == []


@pytest.mark.rule("CLI-9")
def test_files_pushed_for_a_web_server_follow_the_umask(sample_home: Path, tmp_path: Path) -> None:
    pushed = tmp_path / "www"
    succeed(Path(shutil.copytree(sample_home, tmp_path / "home")), "push", str(pushed))
    modes = {stat.S_IMODE(path.stat().st_mode) for path in pushed.rglob("*")}
    assert modes == {0o755, 0o644}
