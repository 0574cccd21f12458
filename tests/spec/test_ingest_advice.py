"""Messages of `ingest` about faulty files, and the limits of the rejects file."""

import gzip
import json
import zipfile
from pathlib import Path

import pytest

from tests.live import run, succeed
from tests.spec.ingesting import GOOD, HEADER, counts, ledger_facts, rejects, source_entry, write
from tests.spec.ingesting import home as home

BAD = GOOD.format("{}").replace("afs-2022", "afs-2021")


@pytest.fixture
def source(home: Path) -> Path:
    (home / "sources.toml").write_text(source_entry("own", "filings-csv"))
    return home


@pytest.mark.rule("ING-11")
def test_a_file_without_accepted_rows_is_an_error_with_its_first_reasons(
    source: Path, tmp_path: Path
) -> None:
    values = ["abc", '"1.234,56"', '"1,234,567"', "Sipho Zulu", "nan"]
    done = run(source, "ingest", "own", write(tmp_path / "bad.csv", *(BAD.format(one) for one in values)))
    assert done.returncode == 1
    assert counts(done)["rejected"] == 5
    messages = done.stderr.splitlines()
    assert messages[0] == "rejected: bad.csv, row 2: value: not a number ('abc')"
    assert "row 3: value: not a number: a decimal comma" in messages[1]
    assert "'1.234,56'" in messages[1]
    assert "separators of thousands" in messages[2]
    assert "Sipho" not in done.stderr + done.stdout, "it may be somebody's name"
    assert "bad.csv: none of its 5 rows was accepted" in messages[-1]
    assert len(rejects(done)) == 5
    good = write(tmp_path / "good.csv", GOOD.format(1), BAD.format("abc"))
    succeed(source, "ingest", "own", good)
    succeed(source, "ingest", "own", good)
    empty = run(source, "ingest", "own", write(tmp_path / "empty.csv"))
    assert (empty.returncode, "empty.csv: it has no rows" in empty.stderr) == (1, True)


@pytest.mark.rule("ING-12")
def test_a_dry_run_counts_everything_and_stores_nothing(source: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", GOOD.format(1), BAD.format("abc"))
    before = sorted(source.rglob("*"))
    tried = succeed(source, "ingest", "--dry-run", "own", file)
    assert (counts(tried)["appended"], counts(tried)["rejected"]) == (1, 1)
    assert "row 3: value: not a number ('abc')" in tried.stderr
    assert sorted(source.rglob("*")) == before
    succeed(source, "ingest", "own", file)
    stored = [path for path in sorted(source.rglob("*")) if "sqlite-" not in path.name]
    more = write(tmp_path / "b.csv", GOOD.format(2), GOOD.format(1))
    tried = run(source, "ingest", "--dry-run", "own", more)
    assert (counts(tried)["appended"], counts(tried)["unchanged"]) == (1, 1)
    assert ledger_facts(source) == 1
    assert [path for path in sorted(source.rglob("*")) if "sqlite-" not in path.name] == stored
    assert (
        run(source, "ingest", "--dry-run", "own", write(tmp_path / "c.csv", BAD.format("x"))).returncode == 1
    )


@pytest.mark.rule("ING-11")
def test_a_missing_column_and_a_workbook_of_another_kind_are_named(source: Path, tmp_path: Path):
    renamed = tmp_path / "renamed.csv"
    renamed.write_text(HEADER.replace("value", "amount") + "\n" + GOOD.format(1) + "\n")
    refused = run(source, "ingest", "own", renamed)
    assert refused.returncode == 1
    assert "the required column value is missing" in refused.stderr
    assert "'amount'" in refused.stderr
    old = tmp_path / "figures.xls"
    old.write_bytes(bytes.fromhex("d0cf11e0a1b11ae1") + bytes(512))
    refused = run(source, "ingest", "own", old)
    assert refused.returncode == 1
    assert "figures.xls: an old Excel workbook (xls), or a workbook with a password" in refused.stderr
    book = tmp_path / "figures.ods"
    with zipfile.ZipFile(book, "w") as archive:
        archive.writestr("content.xml", "<content/>")
    refused = run(source, "ingest", "own", book)
    assert refused.returncode == 1
    assert "figures.ods: an OpenDocument file (ods): save the sheet as CSV" in refused.stderr


@pytest.mark.rule("ING-11")
def test_a_period_that_ends_after_its_publication_is_a_warning_and_stays(source: Path, tmp_path: Path):
    early = GOOD.format(1).replace("2023-03-01", "2022-11-30")
    done = succeed(source, "ingest", "own", write(tmp_path / "a.csv", early, GOOD.format(2)))
    assert "own: warnings 1" in done.stderr
    assert "the period ends after its available_at (2022-11-30)" in done.stderr
    assert ledger_facts(source) == 2


@pytest.mark.deep
@pytest.mark.rule("ING-13")
@pytest.mark.limit(
    "rejected rows that are listed", "rejected rows before the first accepted one", "list of rejected rows"
)
def test_a_reply_with_only_rejects_is_abandoned_and_its_rejects_file_is_bounded(home: Path, tmp_path: Path):
    (home / "sources.toml").write_text(source_entry("own", "ocds", country="ZA"))
    few = tmp_path / "few.json.gz"
    good = {"ocid": "ocds-1", "id": "1", "date": "2024-01-01T00:00:00Z", "tag": ["tender"]}
    few.write_bytes(gzip.compress(json.dumps({"releases": [good, *([{}] * 5_000)]}).encode()))
    done = succeed(home, "ingest", "own", few)
    lines = rejects(done)
    assert len([line for line in lines if "count" not in line]) == 1_000
    assert sum(int(line["count"]) for line in lines if "count" in line) == counts(done)["rejected"] - 1_000
    many = tmp_path / "many.json.gz"
    many.write_bytes(gzip.compress(json.dumps({"releases": [{}] * 150_000}).encode()))
    done = run(home, "ingest", "own", many)
    assert done.returncode == 1
    assert "none of its first 100,000 rows can be used" in done.stderr
    assert sum(path.stat().st_size for path in (home / "rejects").iterdir()) < 1_000_000
