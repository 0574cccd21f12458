"""A flipped bit in the ledger gives the same next edition, or none."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.depth import deep_after
from tests.faults.conftest import current
from tests.faults.load import flip_a_bit
from tests.live import run, succeed
from tests.torture import Trial, rounds


def change(home: Path, statement: str) -> None:
    """Change the file past the product; its triggers are dropped first."""
    with closing(sqlite3.connect(home / "ledger.sqlite", isolation_level=None)) as database:
        triggers = database.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall()
        for (trigger,) in triggers:
            database.execute(f"DROP TRIGGER {trigger}")
        database.execute(statement)


@pytest.mark.deep
def test_a_flipped_bit_in_the_ledger_never_makes_another_edition(
    home: Path, editions: tuple[str, str], trial: Trial
) -> None:
    whole = home / "ledger.sqlite"
    saved = whole.read_bytes()
    for _ in range(trial.count(rounds(3, 6), 200)):
        for companion in home.glob("ledger.sqlite-*"):
            companion.unlink()
        whole.write_bytes(saved)
        flipped = flip_a_bit(whole, trial.chance)
        verified = run(home, "ledger", "verify")
        published = run(home, "publish")
        print(flipped, verified.stderr, published.stderr)  # noqa: T201 - told where the test fails
        assert verified.returncode == published.returncode
        assert "Traceback" not in verified.stderr + published.stderr
        if published.returncode:
            assert verified.stderr.count("\n") == 1
        assert current(home) == editions[1]
        assert list((home / "editions").glob("*/manifest.json"))
        trial.saw("refused" if published.returncode else "the same edition")


@pytest.mark.parametrize(
    ("statement", "message"),
    deep_after(
        4,
        [
            ("UPDATE fact SET told = replace(told, '0', '1') WHERE capture_id = 12", "capture 12 (sample-"),
            ("UPDATE release SET body = replace(body, 'a', 'b')", "rows of release"),
            ("UPDATE series SET told = replace(told, '1', '2')", "rows of series"),
            ("UPDATE withheld SET subject_hmac = 'x' WHERE source_id <> ''", "rows of withheld"),
            (
                "UPDATE withheld SET subject_hmac = 'x' WHERE source_id = ''",
                "withheld that belong to no capture",
            ),
            (
                "UPDATE capture SET observed_at = '2020-01-01T00:00:00Z' WHERE capture_id = 3",
                "capture 3 (sample-",
            ),
            ("DELETE FROM capture WHERE capture_id = 3", "capture 3: rows of capture"),
            ("DELETE FROM seal WHERE position = 4", "seal 4 is missing"),
            ("UPDATE seal SET capture_id = 99 WHERE capture_id = 3", "the seal of capture 99"),
            ("DELETE FROM seal WHERE capture_id = (SELECT max(capture_id) FROM capture) - 1", "is missing"),
        ],
    ),
)
def test_an_altered_ledger_is_refused_with_the_name_of_the_capture(home: Path, statement: str, message: str):
    change(home, statement)
    for command in (("ledger", "verify"), ("publish",)):
        refused = run(home, *command)
        assert refused.returncode == 1, refused.stdout
        assert message in refused.stderr
        assert "Restore the ledger from a backup" in refused.stderr
        assert refused.stderr.count("\n") == 1


def test_damage_to_the_name_of_a_table_is_one_line(home: Path) -> None:
    """SQLite repeats the name in its message, which is then not valid text."""
    whole = home / "ledger.sqlite"
    for companion in home.glob("ledger.sqlite-*"):
        companion.unlink()
    content = whole.read_bytes()
    assert b"tablecapturecapture" in content
    whole.write_bytes(content.replace(b"tablecapturecapture", b"table\xd5apturecapture"))
    for command in (("ledger", "verify"), ("publish",)):
        refused = run(home, *command)
        assert refused.returncode == 1
        assert "ledger.sqlite: " in refused.stderr
        assert refused.stderr.count("\n") == 1


def test_parts_reused_from_the_previous_edition_are_verified_too(home: Path) -> None:
    assert (home / "derived" / "issuers").exists()
    succeed(home, "publish")
    change(home, "UPDATE fact SET told = replace(told, '2024-', '2001-') WHERE capture_id = 12")
    assert "capture 12" in run(home, "publish").stderr


def test_missing_seals_do_not_hide_damage_to_sealed_rows(home: Path) -> None:
    change(home, "DELETE FROM seal WHERE position > 10")
    change(home, "UPDATE capture SET file_name = 'x' WHERE capture_id = 3")
    refused = run(home, "publish")
    assert refused.returncode == 1
    assert "capture 3" in refused.stderr
