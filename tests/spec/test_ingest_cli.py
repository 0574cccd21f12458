"""`sankofa ingest`, and the registry of sources."""

import gzip
import json
import re
import sqlite3
import zipfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sankofa.model.errors import SourceError
from sankofa.sources.registry import load_sources
from tests.live import run
from tests.spec.ingesting import (
    GOOD,
    HEADER,
    LEI_FILE,
    OWN_SOURCE,
    assert_one_line_error,
    counts,
    ingest,
    rejects,
    write,
)
from tests.spec.ingesting import home as home
from tests.world.desk import Desk


@pytest.mark.rule("ING-3", "ING-6")
def test_a_file_is_read_once_and_reading_it_again_changes_nothing(home: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", GOOD.format(1), GOOD.format(2), GOOD.format("2.0"))
    first, second = ingest(home, path), ingest(home, path)
    assert (first.returncode, second.returncode) == (0, 0)
    assert first.stdout.startswith("filings: ")
    assert counts(first) == {"read": 3, "appended": 2, "unchanged": 1, "withheld": 0, "rejected": 0}
    assert counts(second) == {"read": 3, "appended": 0, "unchanged": 3, "withheld": 0, "rejected": 0}
    assert first.stderr == second.stderr == ""
    assert not (home / "rejects").exists()


@pytest.mark.rule("ING-5")
def test_plain_gz_and_zip_files_and_folders_of_them_hold_the_same_rows(home: Path, tmp_path: Path) -> None:
    plain = write(tmp_path / "box" / "plain.csv", GOOD.format(1)).read_bytes()
    inside = tmp_path / "box" / "deeper"
    inside.mkdir()
    (inside / "packed.csv.gz").write_bytes(gzip.compress(plain))
    with zipfile.ZipFile(inside / "packed.zip", "w") as archive:
        archive.writestr("folder/a.csv", plain)
        archive.writestr("b.csv", f"{HEADER}\n{GOOD.format(2)}\n")
    done = ingest(home, tmp_path / "box")
    assert done.returncode == 0, done.stderr
    assert counts(done) == {"read": 4, "appended": 2, "unchanged": 2, "withheld": 0, "rejected": 0}


@pytest.mark.rule("ING-1", "ING-8")
@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (GOOD.format("NaN"), "value"),
        (GOOD.format(1).replace("ZAR", "ZZZ"), "currency"),
        (GOOD.format(1).replace("2023-03-01", f"{datetime.now(UTC) + timedelta(days=2):%Y-%m-%d}"), "future"),
        (GOOD.format(1).replace("ticker:JSE:TST", "lei:999900SAMPLEZA000180"), "entity"),
        ('"', "quote"),
    ],
)
def test_a_bad_row_is_rejected_with_position_and_reason_and_other_rows_are_read(
    tmp_path: Path, row: str, reason: str
) -> None:
    desk = Desk(tmp_path / "home", datetime.now(UTC).date())
    path = write(tmp_path / "mixed.csv", GOOD.format(1), row, GOOD.format(2))
    summary = desk.take("filings", path)
    assert (summary.failures, summary.counts.read, summary.counts.appended, summary.counts.rejected) == (
        [],
        3,
        2,
        1,
    )
    assert summary.rejects is not None
    (reject,) = [json.loads(line) for line in summary.rejects.read_text().splitlines()]
    assert (set(reject), reject["file"]) == ({"file", "position", "reason"}, "mixed.csv")
    assert reason in reject["reason"]
    assert reject["position"]


@pytest.mark.rule("ING-1", "ING-7")
def test_rejects_fail_only_with_strict_and_the_summary_names_their_file(home: Path, tmp_path: Path):
    path = write(tmp_path / "mixed.csv", GOOD.format("NaN"), GOOD.format(1))
    done = ingest(home, path)
    assert done.returncode == 0
    assert counts(done)["rejected"] == 1
    (reject,) = rejects(done)
    assert (reject["file"], reject["position"]) == ("mixed.csv", "row 2")
    strict = run(home, "ingest", "--strict", "filings", path)
    assert strict.returncode != 0
    assert counts(strict) == {"read": 2, "appended": 0, "unchanged": 1, "withheld": 0, "rejected": 1}
    assert len(list((home / "rejects").iterdir())) == 2, "each run keeps its own"
    assert all(path.stat().st_mode & 0o077 == 0 for path in (home / "rejects").iterdir())


def test_a_reject_is_named_by_its_path_inside_the_folder_or_archive(home: Path, tmp_path: Path) -> None:
    for year in ("2022", "2023"):
        (tmp_path / "inbox" / year).mkdir(parents=True)
        write(tmp_path / "inbox" / year / "same.csv", GOOD.format("NaN" if year == "2023" else 1))
    (reject,) = rejects(ingest(home, tmp_path / "inbox"))
    assert (reject["file"], reject["position"]) == ("2023/same.csv", "row 2")
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.write(tmp_path / "inbox" / "2023" / "same.csv", "2023/same.csv")
    (reject,) = rejects(ingest(home, tmp_path / "all.zip"))
    assert reject["file"] == "all.zip"
    assert "2023/same.csv" in reject["position"]


@pytest.mark.rule("ING-2")
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty.csv", b""),
        ("other.csv", b"a,b,c\n1,2,3\n"),
        ("column-missing.csv", HEADER.replace("document,", "").encode()),
        ("utf16.csv", HEADER.encode("utf-16")),
        ("picture.csv", bytes(range(256))),
        ("damaged.csv.gz", gzip.compress(f"{HEADER}\n{GOOD.format(9)}\n".encode() * 50)[:-20]),
        ("not-gz.csv.gz", f"{HEADER}\n".encode()),
        ("not-zip.zip", b"PK\x03\x04 and nothing else"),
        ("report.json", b'{"facts": {}}'),
    ],
)
def test_a_file_of_another_format_is_named_and_other_files_are_read(
    tmp_path: Path, name: str, content: bytes
):
    desk = Desk(tmp_path / "home")
    (tmp_path / name).write_bytes(content)
    files = [
        write(tmp_path / "before.csv", GOOD.format(1)),
        tmp_path / name,
        write(tmp_path / "z.csv", GOOD.format(2)),
    ]
    summary = desk.take("filings", *files)
    assert len(summary.failures) == 1
    assert name in summary.failures[0]
    assert (summary.counts.read, summary.counts.appended, summary.rejects) == (2, 2, None)


def test_a_damaged_or_encrypted_zip_is_reported_and_other_files_are_read(home: Path, tmp_path: Path):
    cut, locked = tmp_path / "cut.zip", tmp_path / "locked.zip"
    for path in (cut, locked):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a.csv", f"{HEADER}\n{GOOD.format(1)}\n")
    whole = cut.read_bytes()
    cut.write_bytes(whole[:-30])
    flagged = bytearray(whole)
    flagged[6] |= 1
    flagged[whole.index(b"PK\x01\x02") + 8] |= 1
    locked.write_bytes(flagged)
    done = ingest(home, cut, locked, write(tmp_path / "good.csv", GOOD.format(2)))
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert re.search(r"cut\.zip: damaged", done.stderr), done.stderr
    assert re.search(r"locked\.zip: a\.csv is encrypted", done.stderr), done.stderr
    assert (counts(done)["read"], counts(done)["appended"]) == (1, 1)


def test_files_that_macos_adds_to_a_zip_are_skipped(home: Path, tmp_path: Path) -> None:
    path = tmp_path / "from-a-mac.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("figures/a.csv", f"{HEADER}\n{GOOD.format(1)}\n")
        archive.writestr("__MACOSX/figures/._a.csv", b"\x00\x05\x16\x07")
        archive.writestr("figures/._a.csv", b"\x00\x05\x16\x07")
    done = ingest(home, path)
    assert (done.returncode, counts(done)["appended"]) == (0, 1), done.stderr


def test_a_missing_file_is_named(home: Path, tmp_path: Path) -> None:
    done = ingest(home, tmp_path / "nowhere.csv")
    assert_one_line_error(done, "nowhere.csv", "no such file")


def test_an_unknown_source_is_an_error_that_lists_the_known_ones(home: Path, tmp_path: Path) -> None:
    done = ingest(home, write(tmp_path / "a.csv"), source="filing")
    assert_one_line_error(done, "'filing'", "filings", "sec-companyfacts")
    assert not (home / "ledger.sqlite").exists()


@pytest.mark.rule("PROV-5")
@pytest.mark.parametrize("more", ["", "commercial_redistribution = false"])
def test_a_source_not_licensed_for_redistribution_is_refused_by_name(home: Path, tmp_path: Path, more: str):
    (home / "sources.toml").write_text(OWN_SOURCE.format(id="closed-exchange", more=more))
    done = ingest(home, write(tmp_path / "a.csv", GOOD.format(1)), source="closed-exchange")
    assert_one_line_error(done, "closed-exchange", "commercial redistribution")
    assert not (home / "ledger.sqlite").exists()
    assert "REFUSED" in run(home, "sources").stdout


@pytest.mark.rule("SRC-2")
def test_an_operators_source_is_listed_and_read_under_its_licence(home: Path, tmp_path: Path) -> None:
    more = "commercial_redistribution = true\ntitle = 'Our own'\ncountry = 'ZA'\nfloors = { issuers = 3 }"
    (home / "sources.toml").write_text(OWN_SOURCE.format(id="own", more=more))
    listed = run(home, "sources")
    assert re.search(r"^own +filings-csv +AF-FUND +cc-by$", listed.stdout, re.M), listed.stdout
    assert "sec-companyfacts" in listed.stdout
    done = ingest(home, write(tmp_path / "a.csv", GOOD.format(1)), source="own")
    assert (done.returncode, counts(done)["appended"]) == (0, 1)
    with sqlite3.connect(home / "ledger.sqlite") as ledger:
        assert ledger.execute("SELECT source_id, license_class FROM capture").fetchall() == [("own", "cc-by")]
    ledger.close()


@pytest.mark.rule("PROV-9", "SRC-1")
@pytest.mark.parametrize(
    ("toml", "parts"),
    [
        ("[sources.x", ["not TOML"]),
        ("sources = 3", ["[sources.<id>]"]),
        ("sources.x = 3", ["source x"]),
        ('[sources.x]\nadapter = "filings-csv"', ["source x", "license_class"]),
        ('[sources.x]\nlicense_class = "cc0"', ["source x", "adapter"]),
        (OWN_SOURCE.format(id="x", more="colour = 1"), ["source x", "colour"]),
        (
            OWN_SOURCE.format(id="x", more="commercial_redistribution = 'yes'"),
            ["source x", "commercial_redistribution"],
        ),
        (OWN_SOURCE.format(id="x", more="country = 'ZZ'"), ["source x", "ZZ"]),
        (OWN_SOURCE.format(id="x", more="").replace("filings-csv", "magic"), ["source x", "magic"]),
        (OWN_SOURCE.format(id="x", more="").replace("cc-by", "mine"), ["source x", "mine", "public-domain"]),
        (OWN_SOURCE.format(id="x", more="").replace("AF-FUND", "AF-X"), ["source x", "AF-X"]),
        (OWN_SOURCE.format(id="x", more="").replace('sku = "AF-FUND"', ""), ["source x", "sku"]),
        (OWN_SOURCE.format(id='"../x"', more=""), ["../x"]),
        ("# caf\xe9".encode("latin-1"), ["sources.toml", "UTF-8"]),
    ],
)
def test_an_error_in_the_registry_names_file_source_and_field(
    tmp_path: Path, toml: str | bytes, parts: Sequence[str]
) -> None:
    (tmp_path / "sources.toml").write_bytes(toml if isinstance(toml, bytes) else toml.encode())
    with pytest.raises(SourceError) as refusal:
        load_sources(tmp_path)
    for part in ("sources.toml", *parts):
        assert part in str(refusal.value)


@pytest.mark.rule("SRC-1")
def test_a_malformed_registry_stops_the_command_with_one_line(home: Path, tmp_path: Path) -> None:
    (home / "sources.toml").write_text("[sources.x")
    assert_one_line_error(ingest(home, write(tmp_path / "a.csv")), "sources.toml", "not TOML")
    assert_one_line_error(run(home, "sources"), "sources.toml", "not TOML")


def test_a_withheld_person_is_never_written_to_disk(home: Path, tmp_path: Path) -> None:
    (tmp_path / "lei.csv").write_text(LEI_FILE)
    person = "lei:999900SAMPLEZA000383"
    tomorrow = f"{datetime.now(UTC) + timedelta(days=2):%Y-%m-%d}"
    filings = write(
        tmp_path / "filings.csv",
        GOOD.format(4242424242).replace("ticker:JSE:TST", person),
        GOOD.format(4242424242).replace("ticker:JSE:TST", person).replace("2023-03-01", tomorrow)
        .replace("afs-2022", "accounts of Zorblatt Quimbyson"),
        f"{person},revenue,Zorblatt Quimbyson,ZAR,2022-01-01,2022-12-31,FY,2023-03-01,d,p. 1,",
        GOOD.format(1),
    )  # fmt: skip
    assert counts(ingest(home, tmp_path / "lei.csv", source="gleif-lei"))["withheld"] == 1
    done = ingest(home, filings)
    assert counts(done) == {"read": 4, "appended": 1, "unchanged": 0, "withheld": 2, "rejected": 1}
    for text in ("Zorblatt", "Quimbyson", "999900SAMPLEZA000383", "4242424242"):
        holding = [
            path.name for path in home.rglob("*") if path.is_file() and text.encode() in path.read_bytes()
        ]
        assert holding == [], text
        assert text not in done.stdout + done.stderr


def test_every_command_has_a_help_text(home: Path) -> None:
    helped = run(home, "--help").stdout
    for name in ("serve", "ingest", "publish", "sample", "keys", "sources", "editions", "status", "settings"):
        assert re.search(rf"^  {name} +\w", helped, re.M), name
