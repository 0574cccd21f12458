"""The starter world for tests, published by its own command.

The whole takes 45 seconds of processor time, so tests of a default run publish a part: the command runs from
a copy of the package in which only the data differs. Where every round runs, as in `make test-all`, tests use
the world that users get.
"""

import csv
import gzip
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

import sankofa
from sankofa.cli.publishing import SAMPLE
from tests.live import publish_files, run

_PACKAGE = Path(sankofa.__file__).parent
_COUNTRIES = ("NGA", "ZAF")
_SOME = ("", "NG", "ZA")
_SINCE = "2023"
_RATES_SINCE = "2025-06"
_DEVALUATION = ("2024-02-2", "2024-04")
"""The weeks around that of the Egyptian pound."""
_RATES_OF = (*_SOME, "EG", "KE", "GH")
"""Every pair of them is a file of cross rates: all forty took half of the publication."""
ISSUERS = ("1172724", "1576914", "1067428")
"""The CIKs of Gold Fields, MiX Telematics and AngloGold Ashanti."""


def publish_starter(folder: Path) -> None:
    """Publish the starter world in a new HOME in the folder."""
    _succeeded(run(folder / "home", "starter"))


def publish_starter_part(folder: Path) -> None:
    """Publish a part of it in the same way."""
    _succeeded(_publish_part(folder / "home", folder / "package"))


def _succeeded(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr


def _publish_part(home: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    package = folder / "sankofa"
    whole, part = _PACKAGE / "starter", package / "starter"
    _link(_PACKAGE, package, without=["starter"])
    cut = ["macro", "filings", "series", "fx", "*.csv.gz", "*.json.gz", "identifiers"]
    for name in ("", "macro", "filings/companyfacts", "identifiers", "series", "fx"):
        _link(whole / name, part / name, without=cut)
    for table in (whole / "series").iterdir():
        _cut(table, part / "series" / table.name, lambda row: row["country"] in _SOME and _day(row) > _SINCE)
    for table in (whole / "fx").glob("*.gz"):
        _cut(table, part / "fx" / table.name, _is_included_rate)
    for table in (whole / "macro").iterdir():
        _cut(table, part / "macro" / table.name, lambda row: row["Country Code"] in _COUNTRIES)
    for issuer in ISSUERS:
        name = f"filings/companyfacts/CIK{issuer:0>10}.json.gz"
        (part / name).symlink_to(whole / name)
    crosswalk = (whole / "identifiers" / "cik-lei.csv").read_text()
    name = "identifiers/lei-africa.csv.gz"
    _cut(whole / name, part / name, lambda row: row["LEI"] in crosswalk or row["LEI"].endswith("00"))
    return subprocess.run(
        [sys.executable, "-c", "from sankofa.cli.main import main; main()", "starter"],
        env={**os.environ, "SANKOFA_HOME": str(home), "PYTHONPATH": str(folder)},
        check=False,
        capture_output=True,
        text=True,
    )


def _is_included_rate(row: dict[str, str]) -> bool:
    day = _day(row)
    if row.get("country", "") not in _RATES_OF:
        return False
    return day > _RATES_SINCE or _DEVALUATION[0] < day < _DEVALUATION[1]


def _day(row: dict[str, str]) -> str:
    return row.get("date") or row["Date"]


def _link(folder: Path, to: Path, without: list[str]) -> None:
    """Make a folder of links to the entries of another."""
    to.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if not any(path.match(pattern) for pattern in without):
            (to / path.name).symlink_to(path)


def _cut(table: Path, to: Path, is_included: Callable[[dict[str, str]], bool]) -> None:
    """Write some rows of a compressed table."""
    with gzip.open(table, "rt", newline="") as whole, gzip.open(to, "wt", newline="") as part:
        rows = csv.DictReader(whole)
        writer = csv.DictWriter(part, rows.fieldnames or ())
        writer.writeheader()
        writer.writerows(row for row in rows if is_included(row))


BUNDLED = Path(str(files("sankofa").joinpath("sample")))


def publish_without_rates(home: Path, **settings: str) -> None:
    """Ingest it into a HOME, and publish it."""
    bundled = [(source, BUNDLED / path) for source, path in SAMPLE.files if source != "ecb-fx"]
    publish_files(home, *bundled, **settings)
