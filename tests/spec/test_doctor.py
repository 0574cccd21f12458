"""`sankofa doctor` and `sankofa upgrade-check`."""

import json
from pathlib import Path

import pytest

from tests.live import Copies, free_port, run, succeed
from tests.spec.ingesting import GOOD, source_entry, write
from tests.tampering import point_at


@pytest.fixture
def home(copy_sample: Copies) -> Path:
    return copy_sample()


def findings(home: Path, command: str = "doctor", **settings: str) -> tuple[int, dict[str, list[str]]]:
    """The exit code, and the messages with their remedies by status."""
    done = run(home, command, "--json", **settings)
    by_status: dict[str, list[str]] = {"ok": [], "warning": [], "error": []}
    for finding in json.loads(done.stdout):
        by_status[finding["status"]].append(f"{finding['message']}; {finding['remedy']}")
    return done.returncode, by_status


def test_a_sound_installation_exits_0_and_names_its_edition(home: Path) -> None:
    done = succeed(home, "doctor")
    assert "is whole, and current" in done.stdout
    assert "ERROR" not in done.stdout


def test_checking_a_missing_home_creates_nothing(tmp_path: Path) -> None:
    code, by_level = findings(tmp_path / "home")
    assert code == 1
    assert ["does not exist" in message for message in by_level["error"]] == [True]
    assert any("none is published" in line for line in by_level["warning"])
    assert list(tmp_path.iterdir()) == []


def test_checking_an_empty_home_creates_nothing(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    assert findings(home)[0] == 0
    assert list(home.iterdir()) == []


@pytest.mark.rule("ERR-9")
def test_the_command_it_recommends_without_an_edition_works(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "sankofa publish" not in run(empty, "doctor").stdout, "there is nothing to publish"
    assert run(empty, "publish").returncode == 1
    (empty / "sources.toml").write_text(source_entry("own", "filings-csv"))
    succeed(empty, "ingest", "own", write(tmp_path / "a.csv", GOOD.format(1)))
    advice = run(empty, "doctor").stdout
    assert "none is published; run: sankofa publish" in advice
    assert "sankofa starter" not in advice
    succeed(empty, "publish")


def test_a_missing_wrong_or_readable_gate_secret_must_be_fixed(home: Path) -> None:
    secret = home / "gate-secret"
    secret.chmod(0o644)
    assert any(f"chmod 600 {secret}" in line for line in findings(home)[1]["error"])
    secret.write_text("another\n")
    code, by_level = findings(home)
    assert code == 1
    assert any("not the one this ledger was created with" in line for line in by_level["error"])
    secret.unlink()
    code, by_level = findings(home)
    assert code == 1
    assert any("gate-secret is missing beside a ledger; restore it" in line for line in by_level["error"])
    assert not secret.exists()


def test_a_missing_or_wrong_keys_secret_must_be_fixed(home: Path) -> None:
    succeed(home, "keys", "create", "--tier", "sample")
    assert findings(home)[0] == 0
    (home / "keys-secret").write_text("another\n")
    assert any("SANKOFA_KEYS_SECRET" in line for line in findings(home)[1]["error"])
    (home / "keys-secret").unlink()
    code, by_level = findings(home)
    assert code == 1
    assert any("keys-secret is missing beside the key records" in line for line in by_level["error"])
    assert not (home / "keys-secret").exists()


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("PROXIES", "10.0.0.1,caddy", "'caddy' is not an address: expected 10.0.0.1 or 10.42.0.0/16"),
        ("BASE_URL", "api.example.org", "expected http://... or https://..., not 'api.example.org'"),
        ("MCP_URL", "https://", "expected http://... or https://..., not 'https://'"),
    ],
)
def test_an_invalid_setting_is_named(tmp_path: Path, variable: str, value: str, expected: str):
    code, by_level = findings(tmp_path / "home", **{variable.lower(): value})
    assert code == 1
    assert by_level["error"] == [f"SANKOFA_{variable}: {expected}; see `sankofa settings`"]


def test_an_unreachable_ledger_is_not_reported_as_damaged(home: Path) -> None:
    """Restoring a backup over a sound ledger would lose later data."""
    address = f"postgresql://nobody@127.0.0.1:{free_port()}/none"
    (line,) = [line for line in findings(home, datastore=address)[1]["error"] if "PostgreSQL" in line]
    assert line.endswith("; check that the server answers, and check SANKOFA_DATASTORE")
    ledger = home / "ledger.sqlite"
    ledger.rename(home / "aside")
    ledger.mkdir(mode=0o700)
    (line,) = [line for line in findings(home)[1]["error"] if "ledger.sqlite" in line]
    assert "backup" not in line
    assert line.endswith("; give the user who runs this read and write access to HOME")
    ledger.rmdir()
    ledger.write_bytes(b"no ledger" * 1000)
    ledger.chmod(0o600)
    (line,) = [line for line in findings(home)[1]["error"] if "ledger.sqlite" in line]
    assert line.endswith("; restore it from a backup: docs/how-to/operating.md, Damage")


def test_a_store_that_does_not_answer_must_be_fixed(home: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    urls = {"keystore": f"redis://{address}", "datastore": f"postgresql://user:hidden@{address}/db"}
    code, by_level = findings(home, **urls)
    assert code == 1
    assert any("SANKOFA_KEYSTORE" in line for line in by_level["error"])
    assert "hidden" not in str(by_level)


def test_a_broken_setting_or_sources_file_is_a_finding(home: Path) -> None:
    assert findings(home, rows_paid="many")[0] == 1
    (home / "sources.toml").write_text("[sources")
    code, by_level = findings(home)
    assert code == 1
    assert any("sources.toml: not TOML" in line for line in by_level["error"])


def test_an_edition_of_another_layout_is_refused_with_the_command_to_run(home: Path) -> None:
    code, by_level = findings(home, "upgrade-check")
    assert (code, by_level["error"]) == (0, [])
    _of_layout(home, 4)
    code, by_level = findings(home, "upgrade-check")
    assert code == 1
    assert any("has layout 4, but" in line and "run: sankofa publish" in line for line in by_level["error"])
    succeed(home, "publish")
    assert findings(home, "upgrade-check")[0] == 0


def test_make_serve_rebuilds_the_edition_of_an_older_version(home: Path) -> None:
    _of_layout(home, 4)
    done = run(home, "sample", "--if-empty")
    assert done.returncode == 0, done.stderr
    assert "published edition " in done.stdout
    assert run(home, "sample", "--if-empty").stdout == ""


def _of_layout(home: Path, layout: int) -> None:
    """Give the current edition another layout: complete and sealed, as another version publishes it."""

    path = next(home.glob("editions/*/manifest.json"))
    path.chmod(0o600)
    manifest = json.loads(path.read_text()) | {"format": layout, "content_sha256": "0" * 64}
    content = (json.dumps(manifest, indent=1, sort_keys=True) + "\n").encode()
    path.write_bytes(content)
    point_at(home, path.parent.name)
