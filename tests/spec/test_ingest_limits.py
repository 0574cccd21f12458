"""Ingest refuses inputs that are too large, and a clock that cannot be right."""

import gzip
import json
import os
import sqlite3
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sankofa.ledger.store import refuse_doubtful_clock
from sankofa.model.errors import OperatorError
from tests.depth import deep_after
from tests.live import run, succeed

HEADER = (
    "entity,line_item,value,currency,period_start,period_end,period_type,available_at,document,location,"
    "confidence\n"
)
ROW = "lei:999900SAMPLEZA000189,revenue,1000,ZAR,2019-07-01,2020-06-30,FY,2024-01-01,report,p. 1,1.0\n"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def rejects(home: Path) -> list[str]:
    files = (home / "rejects").iterdir()
    return [json.loads(line)["reason"] for file in files for line in file.read_text().splitlines()]


@pytest.mark.parametrize(
    "source", ["sample-filings", "sample-lei", "sample-isin", "sample-worldbank", "sample-series"]
)
def test_an_endless_line_is_refused_by_name(home: Path, tmp_path: Path, source: str) -> None:
    file = tmp_path / "endless.csv.gz"
    file.write_bytes(gzip.compress(b"a," * 4_000_000))
    done = run(home, "ingest", source, file, ingest_line_bytes="1000000")
    assert done.returncode == 1
    assert "endless.csv.gz" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("lines.jsonl", b'{"ocid":"a","tag":[],"x":"' + b"x" * 2_000_000 + b'"}\n'),
        ("list.json", b'{"releases":[' + b'{"x":"' + b"x" * 40_000_000 + b'"}]}'),
    ],
)
def test_an_endless_value_among_tenders_is_refused_by_name(
    home: Path, tmp_path: Path, name: str, content: bytes
) -> None:
    file = tmp_path / f"{name}.gz"
    file.write_bytes(gzip.compress(content, 1))
    done = run(home, "ingest", "sample-tenders-ke", file, ingest_line_bytes="1000000")
    assert done.returncode == 1
    assert "(SANKOFA_INGEST_LINE_BYTES)" in done.stderr


@pytest.mark.parametrize(
    "source",
    "sample-companyfacts sample-lei sample-isin sample-openfigi sample-worldbank sample-tenders-ke".split(),
)
@pytest.mark.parametrize("opening", deep_after(1, [b"[", b'{"facts":', b'{"releases":[']))
def test_deep_nesting_is_refused_in_one_line(home: Path, tmp_path: Path, source: str, opening: bytes) -> None:
    file = tmp_path / "deep.json"
    file.write_bytes(opening * 200_000)
    done = run(home, "ingest", source, file)
    assert done.returncode == 1
    assert "deep.json" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_clock_far_ahead_of_all_evidence_is_refused_unless_confirmed(home: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    first.write_text(HEADER + ROW)
    second.write_text(HEADER + ROW.replace("1000", "1001"))
    succeed(home, "ingest", "sample-filings", first)
    long_ago = time.time() - 3 * 86_400
    _move_newest_capture(home, long_ago)
    for path in (second, *home.iterdir()):
        os.utime(path, (long_ago, long_ago))
    refused = run(home, "ingest", "sample-filings", second)
    assert refused.returncode == 1
    assert "the clock says" in refused.stderr
    assert "--clock-is-right" in refused.stderr
    succeed(home, "ingest", "--clock-is-right", "sample-filings", second)


def test_a_weekly_ingest_is_not_refused(home: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    first.write_text(HEADER + ROW)
    succeed(home, "ingest", "sample-filings", first)
    _move_newest_capture(home, time.time() - 7 * 86_400)
    second.write_text(HEADER + ROW.replace("1000", "1001"))
    succeed(home, "ingest", "sample-filings", second)


@pytest.mark.parametrize(
    ("ahead", "doubtful"),
    [
        (timedelta(days=-2), True),
        (timedelta(hours=-23), False),
        (timedelta(0), False),
        (timedelta(days=400), True),
    ],
)
def test_a_clock_behind_the_newest_capture_or_a_year_ahead_is_doubtful(
    tmp_path: Path, ahead: timedelta, doubtful: bool
) -> None:
    now = datetime.now(UTC)
    if not doubtful:
        refuse_doubtful_clock(now, now - ahead, [tmp_path])
        return
    with pytest.raises(OperatorError, match="the clock says"):
        refuse_doubtful_clock(now, now - ahead, [tmp_path])


def _move_newest_capture(home: Path, to: float) -> None:
    """Change the time of the newest capture."""
    with closing(sqlite3.connect(home / "ledger.sqlite", isolation_level=None)) as database:
        database.execute("DROP TRIGGER capture_refuses_update")
        moved = datetime.fromtimestamp(to, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        database.execute("UPDATE capture SET observed_at = ?", (moved,))
