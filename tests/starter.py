"""The starter world for tests, published by its own command.

Whole it takes three quarters of a minute of processor. `make test` has the command take a few countries of
the World Bank's widest tables: it runs from a copy of the package in which nothing else differs. Wherever
every round is tried, as in .ci/run, the world is the one that users get.
"""

import csv
import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

import sankofa
from tests.live import run
from tests.torture import ALL_ROUNDS

_PACKAGE = Path(sankofa.__file__).parent
_COUNTRIES = ("EGY", "KEN", "NGA", "ZAF")
"""Those that the README, the examples and the pictures of the documentation look at, and two more."""


def publish_starter(folder: Path) -> None:
    """Publish the starter world in a new HOME in the folder, and write down beside it what was printed."""
    home = folder / "home"
    whole = ALL_ROUNDS or os.environ.get("UPDATE_PICTURES") == "1"
    published = run(home, "starter") if whole else _publish_part(home, folder / "package")
    assert published.returncode == 0, published.stderr
    (folder / "printed").write_text(published.stdout)


def annual_figures(printed: str) -> int:
    """How many figures of the World Bank the command says that it took in."""
    (count,) = re.findall(r"^worldbank: read \d+, appended (\d+),", printed, re.MULTILINE)
    return int(count)


def _publish_part(home: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    package = folder / "sankofa"
    whole, part = _PACKAGE / "starter", package / "starter"
    _link(_PACKAGE, package, without=["starter"])
    _link(whole, part, without=["macro"])
    _link(whole / "macro", part / "macro", without=["*-wdi.csv.gz"])
    for table in (whole / "macro").glob("*-wdi.csv.gz"):
        _cut(table, part / "macro" / table.name)
    return subprocess.run(
        [sys.executable, "-c", "from sankofa.cli.main import main; main()", "starter"],
        env={**os.environ, "SANKOFA_HOME": str(home), "PYTHONPATH": str(folder)},
        check=False,
        capture_output=True,
        text=True,
    )


def _link(folder: Path, to: Path, without: list[str]) -> None:
    """Make a folder of links to what is in another."""
    to.mkdir(parents=True)
    for path in folder.iterdir():
        if not any(path.match(pattern) for pattern in without):
            (to / path.name).symlink_to(path)


def _cut(table: Path, to: Path) -> None:
    """Write the rows of a few countries."""
    with gzip.open(table, "rt", newline="") as whole, gzip.open(to, "wt", newline="") as part:
        rows = csv.DictReader(whole)
        writer = csv.DictWriter(part, rows.fieldnames or ())
        writer.writeheader()
        writer.writerows(row for row in rows if row["Country Code"] in _COUNTRIES)
