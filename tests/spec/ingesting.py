"""Small files for `sankofa ingest`, and its output."""

import json
import re
import sqlite3
import subprocess
from pathlib import Path

import pytest

from tests.live import run

HEADER = (
    "entity,line_item,value,currency,period_start,period_end,period_type,"
    "available_at,document,location,confidence"
)
GOOD = "ticker:JSE:TST,revenue,{},ZAR,2022-01-01,2022-12-31,FY,2023-03-01,afs-2022,p. 4,"
COUNTS = ("read", "appended", "unchanged", "withheld", "rejected")
OWN_SOURCE = """
[sources.{id}]
adapter = "filings-csv"
sku = "AF-FUND"
license_class = "cc-by"
{more}
"""
_SKUS = {
    "ocds": "AF-TENDER",
    "filings-csv": "AF-FUND",
    "ixbrl": "AF-FUND",
    "series-csv": "AF-MACRO",
    "worldbank": "AF-MACRO",
}
LEI_FILE = """LEI,Entity.LegalName,Entity.EntityCategory
999900SAMPLEZA000383,Zorblatt Quimbyson,SOLE_PROPRIETOR
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


def source_entry(name: str, adapter: str, *, redistributable: bool = True, **fields: str) -> str:
    """An entry of `sources.toml`."""
    values = {"adapter": adapter, "license_class": "cc-by", **fields}
    if adapter in _SKUS:
        values["sku"] = _SKUS[adapter]
    lines = [f'{key} = "{value}"' for key, value in values.items()]
    lines.append(f"commercial_redistribution = {str(redistributable).lower()}")
    return "\n".join([f"[sources.{name}]", *lines, "", ""])


def write(path: Path, *rows: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join((HEADER, *rows)) + "\n")
    return path


def ingest(home: Path, *paths: str | Path, source: str = "filings") -> subprocess.CompletedProcess[str]:
    return run(home, "ingest", source, *paths)


def counts(done: subprocess.CompletedProcess[str]) -> dict[str, int]:
    """The counts of the summary line, which is all of stdout."""
    (line,) = done.stdout.splitlines()
    numbers = {name: int(number) for name, number in re.findall(r"(\w+) (\d+)", line.partition(":")[2])}
    assert set(COUNTS) <= set(numbers), line
    return {name: numbers[name] for name in COUNTS}


def rejects(done: subprocess.CompletedProcess[str]) -> list[dict[str, str]]:
    """The content of the rejects file that the summary names."""
    match = re.search(r"\(rejects: (.+)\)", done.stdout)
    assert match, done.stdout
    return [json.loads(line) for line in Path(match[1]).read_text().splitlines()]


def ledger_facts(home: Path) -> int:
    with sqlite3.connect(home / "ledger.sqlite") as ledger:
        ((count,),) = ledger.execute("SELECT coalesce(sum(facts), 0) FROM fact")
    ledger.close()
    return int(count)


def assert_one_line_error(done: subprocess.CompletedProcess[str], *parts: str) -> None:
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    for part in parts:
        assert part in done.stderr
