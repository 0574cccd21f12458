"""R and LibreOffice read answers as docs/how-to/excel-r-stata.md shows; skipped loudly where absent."""

import csv
import shutil
import subprocess
import zipfile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from sankofa.client import Client
from tests.live import LiveServer
from tests.services import MISSING, REPOSITORY
from tests.unit.test_docs import blocks

QUESTION = "/v1/macro?series=CPI.ZA&as_of=2024-07-01&limit=5&format=csv"
GUIDE = REPOSITORY / "docs" / "how-to" / "excel-r-stata.md"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"


def _run_r(folder: Path, *lines: str) -> list[dict[str, str]]:
    """The rows of the CSV file that an R script writes."""
    if shutil.which("Rscript") is None:
        pytest.skip(f"{MISSING}R (no Rscript in PATH)")
    script = folder / "read.R"
    script.write_text("\n".join(lines))
    done = subprocess.run(["Rscript", "--vanilla", str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(csv.DictReader(done.stdout.splitlines()))


def _rates(client: Client, **arguments: Any) -> list[tuple[str, float]]:
    rows: list[Any] = list(client.get_macro(**arguments).rows)
    return [(str(row["date"]), float(row["value"])) for row in rows]


@pytest.mark.ci
def test_r_reads_a_link_as_the_guide_shows(client: Client, tmp_path: Path) -> None:
    read = _run_r(
        tmp_path,
        f'rates <- read.csv("{client.link(QUESTION)}")',
        'write.csv(rates[, c("date", "value")], row.names = FALSE)',
    )
    rows = _rates(client, series="CPI.ZA", as_of="2024-07-01", limit=5)
    assert [(row["date"], float(row["value"])) for row in read] == rows


@pytest.mark.ci
def test_r_runs_the_steps_of_the_guide(client: Client, server: LiveServer, tmp_path: Path) -> None:
    rates, vintages = (
        block.text.replace("http://127.0.0.1:8000", server.url)
        for block in blocks(GUIDE)
        if block.language == "r"
    )
    read = _run_r(tmp_path, rates, 'write.csv(rates[, c("date", "value")], row.names = FALSE)')
    rows = _rates(client, series="FX.EUR.ZAR", as_of="2024-07-01", limit=25)
    assert [(row["date"], float(row["value"])) for row in read] == rows
    (row, *_) = _run_r(tmp_path, vintages, "write.csv(vintages, row.names = FALSE)")
    assert row["date"].startswith("2024-01")
    assert len(row) > 2, "a column for each release day"


@pytest.mark.ci
def test_libreoffice_opens_the_answer_of_a_link_as_a_table(
    client: Client, server: LiveServer, tmp_path: Path
) -> None:
    if shutil.which("soffice") is None:
        pytest.skip(f"{MISSING}LibreOffice (no soffice in PATH)")
    answer = server.http.get(client.link(QUESTION).removeprefix(server.url))
    (tmp_path / "rates.csv").write_bytes(answer.content)
    done = subprocess.run(
        [
            "soffice",
            f"-env:UserInstallation=file://{tmp_path}/profile",
            "--headless",
            "--convert-to",
            "ods",
            "--outdir",
            str(tmp_path),
            str(tmp_path / "rates.csv"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(tmp_path / "rates.ods") as opened:
        cells = list(ElementTree.fromstring(opened.read("content.xml")).iter())  # noqa: S314 - just written
    days = [cell.get(f"{_OFFICE}date-value") for cell in cells]
    values = [float(cell.get(f"{_OFFICE}value", "nan")) for cell in cells]
    for day, value in _rates(client, series="CPI.ZA", as_of="2024-07-01", limit=5):
        assert day in days
        assert value in values
