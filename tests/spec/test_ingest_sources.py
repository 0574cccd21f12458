"""`sankofa ingest`: sources, persons, and processes that are killed or meet."""

import re
import sqlite3
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sankofa.model.errors import SourceError
from sankofa.sources.registry import load_sources
from tests.live import run
from tests.spec.ingesting import (
    GOOD,
    LEI_FILE,
    OWN_SOURCE,
    assert_one_line_error,
    counts,
    ingest,
    write,
)
from tests.spec.ingesting import home as home


def test_an_unknown_source_is_named_with_those_there_are(home: Path, tmp_path: Path) -> None:
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
def test_a_source_of_the_operator_is_listed_and_read_under_its_licence(home: Path, tmp_path: Path) -> None:
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
    ("toml", "named"),
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
def test_a_malformed_registry_is_told_by_file_source_and_field(
    tmp_path: Path, toml: str | bytes, named: Sequence[str]
) -> None:
    (tmp_path / "sources.toml").write_bytes(toml if isinstance(toml, bytes) else toml.encode())
    with pytest.raises(SourceError) as refusal:
        load_sources(tmp_path)
    for part in ("sources.toml", *named):
        assert part in str(refusal.value)


@pytest.mark.rule("SRC-1")
def test_a_malformed_registry_stops_the_command_with_one_line(home: Path, tmp_path: Path) -> None:
    (home / "sources.toml").write_text("[sources.x")
    assert_one_line_error(ingest(home, write(tmp_path / "a.csv")), "sources.toml", "not TOML")
    assert_one_line_error(run(home, "sources"), "sources.toml", "not TOML")


def test_a_person_is_withheld_at_the_door_and_nothing_of_them_is_written(home: Path, tmp_path: Path) -> None:
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


def test_the_help_of_every_command_says_what_it_does(home: Path) -> None:
    helped = run(home, "--help").stdout
    for name in ("serve", "ingest", "publish", "sample", "keys", "sources", "editions", "status", "settings"):
        assert re.search(rf"^  {name} +\w", helped, re.M), name
