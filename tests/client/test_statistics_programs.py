"""Links in R and LibreOffice, as docs/how-to/excel-r-stata.md shows them; skipped loudly where absent."""

import csv
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sankofa.client import Client
from tests.live import LiveServer
from tests.services import MISSING

QUESTION = "/v1/macro?series=CPI.ZA&as_of=2024-07-01&limit=5&format=csv"


@pytest.mark.ci
def test_r_reads_a_link_as_the_guide_shows(client: Client, server: LiveServer, tmp_path: Path) -> None:
    if shutil.which("Rscript") is None:
        pytest.skip(f"{MISSING}R (no Rscript in PATH)")
    script = tmp_path / "read.R"
    script.write_text(
        f'rates <- read.csv("{client.link(QUESTION)}")\n'
        'write.csv(rates[, c("date", "value")], row.names = FALSE)\n'
    )
    done = subprocess.run(["Rscript", "--vanilla", str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    read = [(row["date"], float(row["value"])) for row in csv.DictReader(done.stdout.splitlines())]
    rows: list[Any] = list(client.get_macro(series="CPI.ZA", as_of="2024-07-01", limit=5).rows)
    assert read == [(str(row["date"]), float(row["value"])) for row in rows]


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
    assert (tmp_path / "rates.ods").stat().st_size > 1000
