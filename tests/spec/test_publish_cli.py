"""`sankofa publish`, `editions`, `sample`, `status` and `settings`: decisions.md, section 1."""

import re
import shutil
import sqlite3
from pathlib import Path

import pytest

from sankofa.model.identifiers import service_id
from tests.live import LiveServer, create_key, run

HEADER = "entity,line_item,value,currency,period_start,period_end,available_at,document,location,confidence"
ISSUER = service_id("ticker:JSE:TST")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def add(home: Path, *rows: str) -> None:
    path = home.parent / f"filings-{len(list(home.parent.glob('*.csv')))}.csv"
    path.write_text("\n".join((HEADER, *rows)) + "\n")
    done = run(home, "ingest", "filings", path)
    assert done.returncode == 0, done.stderr


def figure(value: object, *, year: int = 2022, confidence: str = "") -> str:
    return f"ticker:JSE:TST,revenue,{value},ZAR,{year}-01-01,{year}-12-31,2023-03-01,afs-{year},p. 4,{confidence}"


def publish(home: Path, **settings: str) -> str:
    """The id of the edition published."""
    done = run(home, "publish", **settings)
    assert done.returncode == 0, done.stderr
    found = re.fullmatch(r"published edition ([0-9A-Za-z-]+): .+\n", done.stdout)
    assert found, done.stdout
    return found[1]


def editions(home: Path) -> tuple[list[str], str | None]:
    """The editions listed, newest first, and the current one."""
    lines = run(home, "editions").stdout.splitlines()
    current = [line.split()[0] for line in lines if line.endswith("current")]
    return [line.split()[0] for line in lines], current[0] if current else None


def stamp(home: Path, capture: int, instant: str) -> None:
    """A capture of another day, as if it had been made then."""
    with sqlite3.connect(home / "ledger.sqlite") as ledger:
        ledger.execute(
            "INSERT INTO capture SELECT ?, source_id, file_name, content_sha256, ?, license_class, counts "
            "FROM capture WHERE capture_id = 1",
            (capture, instant),
        )
    ledger.close()


def test_an_empty_ledger_is_refused(home: Path) -> None:
    done = run(home, "publish")
    assert (done.returncode, done.stdout) == (1, "")
    assert "nothing to publish: the ledger is empty" in done.stderr
    assert editions(home) == ([], None)


def test_publishing_again_without_news_gives_the_same_edition(home: Path) -> None:
    add(home, figure(1))
    first = publish(home)
    assert publish(home) == first
    assert editions(home) == ([first], first)


def test_the_same_ledger_gives_the_same_edition_on_another_machine(home: Path, tmp_path: Path) -> None:
    add(home, figure(1), figure(2, year=2021))
    other = tmp_path / "elsewhere"
    other.mkdir()
    for path in home.glob("ledger.sqlite*"):
        shutil.copy(path, other)
    assert publish(home) == publish(other)


def test_editions_are_kept_as_many_back_as_set_and_rolled_back_to(home: Path) -> None:
    made = []
    for n in range(1, 5):
        add(home, figure(n, year=2000 + n))
        stamp(
            home, 1000 * n, f"2099-01-0{n}T00:00:00Z"
        )  # a day of its own for each, however fast they are made
        made.append(publish(home, editions_kept="2"))
    kept = list(reversed(made[1:]))
    assert editions(home) == (kept, made[3])

    done = run(home, "editions", "rollback", made[1])
    assert (done.returncode, done.stdout.split()[-1]) == (0, made[1])
    assert editions(home) == (kept, made[1]), "nothing is lost by going back"
    with LiveServer(home) as server:
        body = server.get(f"/v1/fundamentals/{ISSUER}", create_key(home, "starter")).json()
        assert (body["edition"], body["count"]) == (made[1], 2)
    assert publish(home) == made[3], "and forward again"


@pytest.mark.xfail(reason="editions of one second are ordered by their digest")
def test_editions_made_in_one_second_are_listed_newest_first(home: Path) -> None:
    add(home, figure(0))
    stamp(home, 1000, "2099-01-01T00:00:00Z")
    made = []
    for n in range(1, 6):
        add(home, figure(n, year=2000 + n))
        made.append(publish(home))
    assert editions(home)[0] == made[::-1]


@pytest.mark.parametrize("name", ["nosuch", "..", "CURRENT"])
def test_a_rollback_to_an_edition_that_is_not_kept_is_refused(home: Path, name: str) -> None:
    add(home, figure(1))
    current = publish(home)
    done = run(home, "editions", "rollback", name)
    assert done.returncode == 1
    assert name in done.stderr
    assert editions(home)[1] == current


def test_a_rollback_to_a_damaged_edition_is_refused_by_name(home: Path) -> None:
    add(home, figure(1))
    old = publish(home)
    stamp(home, 100, "2099-01-01T00:00:00Z")
    current = publish(home)
    path = home / "editions" / old / "edition.sqlite"
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    done = run(home, "editions", "rollback", old)
    assert done.returncode == 1
    assert f"edition {old}: corrupt" in done.stderr
    assert editions(home)[1] == current


def test_an_edition_that_fails_a_check_is_not_published_and_the_old_one_goes_on(home: Path) -> None:
    add(home, figure(1))
    old = publish(home)
    # Appending is all the store allows: a figure under a licence class that nobody holds.
    with sqlite3.connect(home / "ledger.sqlite") as ledger:
        ledger.execute(
            "INSERT INTO capture SELECT 99, source_id, file_name, content_sha256, observed_at, 'stolen', counts FROM capture"
        )
        ledger.execute(
            "INSERT INTO fact SELECT subject, concept, unit, '2021-12-31', '2021-01-01', available_at, document, "
            "'7', confidence, source_id, location, declared_period, 99 FROM fact"
        )
    ledger.close()
    with LiveServer(home) as server:
        done = run(home, "publish")
        assert done.returncode == 1
        assert "unknown licence class 'stolen'" in done.stderr
        assert "Traceback" not in done.stderr
        body = server.get(f"/v1/fundamentals/{ISSUER}", create_key(home, "starter")).json()
    assert (body["edition"], body["count"]) == (old, 1)
    assert editions(home) == ([old], old)


def test_a_figure_of_low_confidence_is_kept_and_not_published(home: Path) -> None:
    years = {2019: "0.8499999999999999999999", 2020: "0.85", 2021: "0", 2022: ""}
    add(home, *(figure(year, year=year, confidence=confidence) for year, confidence in years.items()))
    publish(home)
    with LiveServer(home) as server:
        body = server.get(f"/v1/fundamentals/{ISSUER}?vintages=all", create_key(home, "starter")).json()
    served = {row["fiscal_year"]: (row["extraction_confidence"], row["method"]) for row in body["data"]}
    assert served == {2020: (0.85, "extracted"), 2022: (None, "structured")}
    with sqlite3.connect(home / "ledger.sqlite") as ledger:
        assert ledger.execute("SELECT count(*) FROM fact").fetchone() == (4,)
    ledger.close()


def test_nonsense_dates_in_one_filing_do_not_stop_the_edition(home: Path) -> None:
    rows = [
        figure(1),
        "ticker:JSE:TST,cash,1,ZAR,,9999-12-31,2023-03-01,d,p. 1,",
        "ticker:JSE:TST,cash,1,ZAR,,0001-01-01,2023-03-01,d,p. 1,",
    ]
    add(home, *rows, "ticker:JSE:TST,revenue,5,ZAR,0001-01-01,0001-09-30,2023-03-01,d,p. 1,")
    publish(home)


def test_the_sample_is_published_once_where_it_is_asked_for_only_if_there_is_nothing(home: Path) -> None:
    done = run(home, "sample", "--if-empty")
    assert done.returncode == 0, done.stderr
    first = editions(home)[1]
    assert first is not None
    assert run(home, "sample", "--if-empty").stdout == ""
    again = run(home, "sample")
    assert "appended 0" in again.stdout
    assert editions(home) == ([first], first)


def test_status_tells_each_dependency_and_fails_when_one_does(home: Path) -> None:
    add(home, figure(1))
    degraded = run(home, "status")
    assert degraded.returncode == 1
    assert re.search(r"^datastore +FAILED: no edition is published", degraded.stdout, re.M)
    publish(home)
    well = run(home, "status")
    assert well.returncode == 0
    for name in ("datastore", "keystore", "usagestore"):
        assert re.search(rf"^{name} +ok", well.stdout, re.M)


SECRETS = {
    "cursor_secret": "hunter2",
    "gate_secret": "hunter7",
    "datastore": "postgresql://me:hunter3@db.example/sankofa?sslpassword=hunter4",
    "keystore": "redis://:hunter5@kv.example:6379/0",
    "usagestore": "redis://me:hun%40ter6@kv.example:6379/1",
}


def test_settings_are_printed_with_their_origin_and_help_and_no_secret(home: Path) -> None:
    done = run(home, "settings", rows_sample="7", **SECRETS)
    assert done.returncode == 0, done.stderr
    assert "SANKOFA_ROWS_SAMPLE=7  (environment)\n    Most rows" in done.stdout
    assert "SANKOFA_ROWS_PAID=10000  (default)" in done.stdout
    assert f"SANKOFA_HOME={home}  (environment)" in done.stdout
    assert "db.example" in done.stdout
    for secret in ("hunter", "hun%40"):
        assert secret not in done.stdout + done.stderr


@pytest.mark.xfail(reason="what is a store's address is told from the value, not from the setting")
@pytest.mark.parametrize("secret", ["hunter8:", "sqlite:hunter8", "hunter8://hunter8"])
def test_a_secret_is_masked_whatever_it_looks_like(home: Path, secret: str) -> None:
    assert "hunter8" not in run(home, "settings", cursor_secret=secret).stdout


@pytest.mark.parametrize(
    ("setting", "value"),
    [("rows_sample", "0"), ("rows_sample", "many"), ("log_level", "loud"), ("datastore", "mysql://x")],
)  # fmt: skip
def test_a_setting_without_a_usable_value_is_named(home: Path, setting: str, value: str) -> None:
    done = run(home, "status", **{setting: value})
    assert done.returncode == 1
    assert f"SANKOFA_{setting.upper()}" in done.stderr
    assert "Traceback" not in done.stderr
