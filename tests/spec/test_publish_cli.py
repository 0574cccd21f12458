"""`sankofa publish`, `editions`, `sample`, `status` and `settings`."""

import re
import shutil
import sqlite3
from contextlib import closing
from datetime import date
from pathlib import Path

import pytest

from sankofa.model.identifiers import service_id
from sankofa.model.records import Fact
from tests.live import LiveServer, create_key, run, succeed
from tests.tampering import part_of
from tests.world.desk import Desk

ISSUER = service_id("ticker:JSE:TST")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "home", date(2024, 1, 1))


@pytest.fixture
def home(desk: Desk) -> Path:
    return desk.home


def add(desk: Desk, *rows: list[str]) -> None:
    summary = desk.filings(f"{len(list(desk.inbox.iterdir()))}.csv", rows)
    assert (summary.failures, summary.rejects) == ([], None)


def figure(value: object, *, year: int = 2022, confidence: str = "") -> list[str]:
    period = [f"{year}-01-01", f"{year}-12-31"]
    return ["ticker:JSE:TST", "revenue", str(value), "ZAR", *period, "2023-03-01", "afs", "p. 4", confidence]


def publish(home: Path, **settings: str) -> str:
    """The id of the edition published."""
    done = succeed(home, "publish", **settings)
    match = re.search(r"^published edition ([0-9A-Za-z-]+): .+\n\Z", done.stdout, re.MULTILINE)
    assert match, done.stdout
    return match[1]


def editions(home: Path) -> tuple[list[str], str | None]:
    """The listed editions, newest first, and the current one."""
    lines = run(home, "editions").stdout.splitlines()[1:]
    current = [line.split()[0] for line in lines if line.endswith("current")]
    return [line.split()[0] for line in lines], current[0] if current else None


def test_an_empty_ledger_is_refused(home: Path) -> None:
    done = run(home, "publish")
    assert (done.returncode, done.stdout) == (1, "")
    assert "nothing to publish: the ledger is empty" in done.stderr
    assert editions(home) == ([], None)


@pytest.mark.rule("PUB-4")
def test_the_same_ledger_gives_the_same_edition_on_another_machine(desk: Desk, home: Path, tmp_path: Path):
    add(desk, figure(1), figure(2, year=2021))
    other = tmp_path / "elsewhere"
    shutil.copytree(home, other)
    assert publish(home) == publish(other)


@pytest.mark.slow
@pytest.mark.rule("PUB-6", "PUB-8")
def test_the_configured_number_of_editions_is_kept_for_rollback(desk: Desk, home: Path) -> None:
    published = []
    for n in range(1, 5):
        desk.set_day(date(2024, 1, n))
        add(desk, figure(n, year=2000 + n))
        published.append(publish(home, editions_kept="2") if n == 4 else desk.publish().id)
    retained = list(reversed(published[1:]))
    assert editions(home) == (retained, published[3])

    done = run(home, "editions", "rollback", published[1])
    assert (done.returncode, done.stdout.split()[-1]) == (0, published[1])
    assert editions(home) == (retained, published[1]), "nothing is lost by going back"
    with LiveServer(home) as server:
        body = server.get(f"/v1/fundamentals/{ISSUER}", create_key(home, "starter")).json()
        assert (body["edition"], body["count"]) == (published[1], 2)
    assert publish(home) == published[3], "and forward again"


@pytest.mark.rule("PUB-6")
@pytest.mark.parametrize("name", ["nosuch", "..", "CURRENT"])
def test_a_rollback_to_a_removed_edition_is_refused(desk: Desk, home: Path, name: str) -> None:
    add(desk, figure(1))
    current = desk.publish().id
    done = run(home, "editions", "rollback", name)
    assert done.returncode == 1
    assert name in done.stderr
    assert desk.store.list_editions().current == current


@pytest.mark.slow
@pytest.mark.rule("PUB-1")
@pytest.mark.parametrize("processes", ["1", "2"])
def test_an_edition_that_fails_a_check_is_not_published_and_the_old_one_stays(
    desk: Desk, home: Path, processes: str
) -> None:
    add(desk, figure(1), ["ticker:JSE:TWO", *figure(1)[1:]])
    old = desk.publish().id
    # A figure under an unknown licence class.
    subjects = (figure(1)[0], "ticker:JSE:TWO")
    with closing(desk.ledger()) as ledger, ledger.capture("filings", "stolen", "f", "0") as capture:
        for subject in subjects:
            capture.fact(Fact(subject, "revenue", "ZAR", "2021-01-01", "2021-12-31", "", "d", "7", "x"))
    with LiveServer(home) as server:
        done = run(home, "publish", publish_processes=processes)
        assert done.returncode == 1
        assert "unknown licence class 'stolen'" in done.stderr
        assert "Traceback" not in done.stderr
        body = server.get(f"/v1/fundamentals/{ISSUER}", create_key(home, "starter")).json()
    assert (body["edition"], body["count"]) == (old, 1)
    assert desk.store.list_editions() == ((old,), old)


@pytest.mark.rule("FIG-5")
def test_a_figure_of_low_confidence_is_kept_and_not_published(desk: Desk, home: Path) -> None:
    years = {2019: "0.8499999999999999999999", 2020: "0.85", 2021: "0", 2022: ""}
    add(desk, *(figure(year, year=year, confidence=confidence) for year, confidence in years.items()))
    desk.publish().close()
    with LiveServer(home) as server:
        body = server.get(f"/v1/fundamentals/{ISSUER}?vintages=all", create_key(home, "starter")).json()
    served = {row["fiscal_year"]: (row["extraction_confidence"], row["method"]) for row in body["data"]}
    assert served == {2020: (0.85, "extracted"), 2022: (None, "structured")}
    with sqlite3.connect(home / "ledger.sqlite") as ledger:
        assert ledger.execute("SELECT sum(facts) FROM fact").fetchone() == (4,)
    ledger.close()


@pytest.mark.rule("CLI-3")
def test_status_lists_each_dependency_and_fails_when_one_does(desk: Desk, home: Path) -> None:
    add(desk, figure(1))
    degraded = run(home, "status")
    assert degraded.returncode == 1
    assert re.search(r"^datastore +FAILED: .*no edition is published", degraded.stdout, re.M)
    desk.publish().close()
    well = succeed(home, "status")
    for name in ("datastore", "keystore", "usagestore"):
        assert re.search(rf"^{name} +ok", well.stdout, re.M)


SECRETS = {
    "cursor_secret": "hunter2",
    "gate_secret": "hunter7",
    "datastore": "postgresql://me:hunter3@db.example/sankofa?sslpassword=hunter4",
    "keystore": "redis://:hunter5@kv.example:6379/0",
    "usagestore": "redis://me:hun%40ter6@kv.example:6379/1",
}


@pytest.mark.rule("SET-1")
def test_settings_are_printed_with_their_origin_and_help_and_no_secret(home: Path) -> None:
    done = succeed(home, "settings", rows_sample="7", **SECRETS)
    assert "SANKOFA_ROWS_SAMPLE=7  (environment)\n    Most rows" in done.stdout
    assert "SANKOFA_ROWS_PAID=10000  (default)" in done.stdout
    assert "SANKOFA_ROWS_DEFAULT=100  (default)" in done.stdout
    assert f"SANKOFA_HOME={home}  (environment)" in done.stdout
    assert "db.example" in done.stdout
    for secret in ("hunter", "hun%40"):
        assert secret not in done.stdout + done.stderr


@pytest.mark.rule("SET-1")
@pytest.mark.parametrize("secret", ["hunter8:", "sqlite:hunter8", "hunter8://hunter8"])
def test_a_secret_is_masked_whatever_it_looks_like(home: Path, secret: str) -> None:
    assert "hunter8" not in run(home, "settings", cursor_secret=secret).stdout


@pytest.mark.rule("SET-2")
@pytest.mark.parametrize(
    ("setting", "value"),
    [("rows_sample", "0"), ("rows_sample", "many"), ("log_level", "loud"), ("datastore", "mysql://x")],
)  # fmt: skip
def test_a_setting_with_a_bad_value_is_named(home: Path, setting: str, value: str) -> None:
    done = run(home, "status", **{setting: value})
    assert done.returncode == 1
    assert f"SANKOFA_{setting.upper()}" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.rule("SET-2")
def test_an_unknown_setting_is_a_warning(home: Path) -> None:
    done = succeed(home, "settings", base_ulr="http://127.0.0.1:9")
    assert done.stderr == "Warning: SANKOFA_BASE_ULR is not a setting; see `sankofa settings`.\n"


def test_publishing_when_nothing_changed_says_so_and_builds_nothing(desk: Desk, home: Path) -> None:
    add(desk, figure(1))
    first = publish(home)
    before = {path: path.stat().st_mtime_ns for path in home.rglob("*") if "editions" in path.parts}
    again = run(home, "publish")
    assert f"nothing changed since edition {first} was published\n" in again.stdout
    assert again.stdout.splitlines()[-1].startswith(f"published edition {first}: ")
    after = {path: path.stat().st_mtime_ns for path in home.rglob("*") if "editions" in path.parts}
    assert after == before
    add(desk, figure(2))
    changed = run(home, "publish")
    assert "nothing changed" not in changed.stdout
    assert f"edition {first}" not in changed.stdout


@pytest.mark.slow
def test_publish_builds_again_after_a_rollback_or_damage(desk: Desk, home: Path) -> None:
    add(desk, figure(1))
    first = publish(home)
    add(desk, figure(2))
    second = publish(home)
    succeed(home, "editions", "rollback", first)
    assert "nothing changed" not in run(home, "publish").stdout
    assert editions(home)[1] == second
    assert "nothing changed" in run(home, "publish").stdout
    path = part_of(home / "editions" / second)
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:-1])
    assert "nothing changed" not in run(home, "publish").stdout
    assert "nothing changed" in run(home, "publish").stdout
    with sqlite3.connect(home / "ledger.sqlite") as ledger:
        ledger.execute("DROP TRIGGER fact_refuses_update")
        ledger.execute("UPDATE fact SET told = replace(told, '1', '9')")
    ledger.close()
    refused = run(home, "publish")
    assert refused.returncode == 1
    assert "the ledger is damaged" in refused.stderr
