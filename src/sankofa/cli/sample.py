"""`sankofa sample`: the bundled world, ingested by the same pipeline as everything else."""

import csv
import io
import zipfile
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sankofa.cli.publishing import ingest_files, publish_edition, shelf
from sankofa.ledger.ingest import Summary
from sankofa.settings import Settings

_SAMPLE = (
    *("lei", "identifiers", "isin", "openfigi", "filings", "companyfacts", "worldbank", "series"),
    *("tenders-za", "tenders-ke", "tenders-ng"),
)
"""Folders of the sample world in the order they are ingested, each the source `sample-<name>`."""
_RATES = ("currency_converter", "eurofxref-hist.zip")
"""The one part of the sample that is real: the history of ECB rates that comes with this package."""
_RATED = ("USD", "GBP", "ZAR")
"""The currencies of it that the sample takes: all forty would make it slow to build."""


def publish_sample(settings: Settings, *, if_empty: bool) -> tuple[dict[str, Any] | None, list[Summary]]:
    """Ingest the bundled sample world by the same pipeline as everything else, and publish it."""
    if if_empty and shelf(settings).current is not None:
        return None, []
    summaries = []
    with as_file(files("sankofa").joinpath("sample")) as folder:
        for name in _SAMPLE:
            summaries.append(ingest_files(settings, f"sample-{name}", [folder / name]))
    with TemporaryDirectory() as folder:
        summaries.append(ingest_files(settings, "ecb-fx", [_rates(Path(folder))]))
    return publish_edition(settings), summaries


def _rates(folder: Path) -> Path:
    """The ECB's file with a few of its columns."""
    package, archive = _RATES
    with as_file(files(package).joinpath(archive)) as path, zipfile.ZipFile(path) as inside:
        (name,) = inside.namelist()
        lines = io.TextIOWrapper(inside.open(name), "utf-8")
        few = folder / name
        with few.open("w", newline="") as stream:
            written = csv.DictWriter(stream, ["Date", *_RATED], extrasaction="ignore")
            written.writeheader()
            written.writerows(csv.DictReader(lines, skipinitialspace=True))
    return few
