"""The bundled worlds, ingested by the same pipeline as everything else.

The starter world is real and openly licensed; the sample world is fictional. The two never share an edition.
"""

import csv
import io
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import click

from sankofa import settings as environment
from sankofa.cli.ledger import ingest_files, open_ledger
from sankofa.cli.publishing import print_published, publish_edition
from sankofa.ledger.ingest import Summary
from sankofa.model.errors import OperatorError
from sankofa.replication.stores import open_fresh_store
from sankofa.settings import Settings

_RATES_FILE: Final = ("currency_converter", "eurofxref-hist.zip")
"""The one part of the sample that is real: the history of ECB rates that comes with this package."""
_CURRENCIES: Final = ("USD", "GBP", "ZAR")
"""The currencies that the sample takes: all forty would make it slow to build."""


@dataclass(frozen=True, slots=True)
class BundledWorld:
    """A data folder of the package: pairs of source and path, in the order they are ingested."""

    name: str
    files: tuple[tuple[str, str], ...]
    with_ecb_rates: bool = False

    @property
    def sources(self) -> frozenset[str]:
        rates = ("ecb-fx",) if self.with_ecb_rates else ()
        return frozenset((*(source for source, _ in self.files), *rates))


SAMPLE: Final = BundledWorld(
    "sample",
    tuple(
        (f"sample-{name}", name)
        for name in (
            *("lei", "identifiers", "isin", "openfigi", "filings", "companyfacts", "worldbank", "series"),
            *("tenders-za", "tenders-ke", "tenders-ng"),
        )
    ),
    with_ecb_rates=True,
)
STARTER: Final = BundledWorld(
    "starter",
    (
        ("gleif-lei", "identifiers/lei-africa.csv.gz"),
        ("gleif-lei", "identifiers/lei-issuers-abroad.csv"),
        ("starter-cik-lei", "identifiers/cik-lei.csv"),
        ("starter-sec-tickers", "identifiers/sec-tickers.csv"),
        ("starter-sec-covers", "identifiers/sec-covers.csv"),
        ("sec-companyfacts", "filings/companyfacts"),
        ("worldbank", "macro"),
        ("starter-fx", "fx/usd-rates-daily.csv.gz"),
        ("starter-h10", "fx/zar-usd-monthly-h10.csv"),
        ("ecb-fx", "fx/ecb-eurofxref-hist.csv.gz"),
        ("us-treasury-fx", "fx/us-treasury-reporting-rates.csv.gz"),
        ("imf-ifs", "fx/imf-fx-monthly-2026-01-21.csv.gz"),
        ("imf-ifs", "series/imf-cpi-monthly-2026-05-18.csv.gz"),
        ("imf-ifs", "series/imf-policy-rates-2026-01-21.csv.gz"),
        ("imf-weo", "series/imf-weo-actuals.csv.gz"),
        ("worldbank-commodities", "series/worldbank-commodities-monthly.csv.gz"),
        ("za-etenders", "tenders/za-etenders-2026-08-14.json"),
        ("za-etenders", "tenders/za-etenders-open-2026-08-22.json.gz"),
        ("ng-nocopo", "tenders/ng-nocopo-2021-07-12.json.gz"),
    ),
)


def publish_world(
    settings: Settings, world: BundledWorld, *, if_empty: bool
) -> tuple[dict[str, Any] | None, list[Summary]]:
    """Ingest a bundled world and publish it; nothing where an edition is there and `if_empty` is given."""
    if if_empty and open_fresh_store(settings).list_editions().current is not None:
        return None, []
    _refuse_to_mix(settings, world)
    with ExitStack() as stack:
        folder = stack.enter_context(as_file(files("sankofa").joinpath(world.name)))
        summaries = [ingest_files(settings, source, [folder / path]) for source, path in world.files]
        if world.with_ecb_rates:
            scratch = Path(stack.enter_context(TemporaryDirectory()))
            summaries.append(ingest_files(settings, "ecb-fx", [_ecb_rates(scratch)]))
    return publish_edition(settings), summaries


def _refuse_to_mix(settings: Settings, world: BundledWorld) -> None:
    """Fictional and real figures in one edition could be taken for each other."""
    with open_ledger(settings) as ledger:
        captured = ledger.holdings().keys()
    for other in (SAMPLE, STARTER):
        if (other.sources - world.sources) & captured:
            raise OperatorError(
                f"HOME ({settings.home}) holds data of the {other.name} world: "
                f"use another SANKOFA_HOME for the {world.name} world"
            )


def _ecb_rates(folder: Path) -> Path:
    """The ECB's file with a few of its columns."""
    package, archive = _RATES_FILE
    with as_file(files(package).joinpath(archive)) as path, zipfile.ZipFile(path) as archive_file:
        (name,) = archive_file.namelist()
        rows: Iterator[dict[str, str]] = csv.DictReader(
            io.TextIOWrapper(archive_file.open(name), "utf-8"), skipinitialspace=True
        )
        target = folder / name
        with target.open("w", newline="") as stream:
            writer = csv.DictWriter(stream, ["Date", *_CURRENCIES], extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)
    return target


_if_empty = click.option("--if-empty", is_flag=True, help="Do nothing if an edition is already published.")


@click.command()
@_if_empty
def starter(if_empty: bool) -> None:
    """Ingest the bundled starter world, real African data under open licences, and publish it."""
    _print_world(STARTER, if_empty)


@click.command()
@_if_empty
def sample(if_empty: bool) -> None:
    """Ingest the bundled sample world, which is fictional, and publish it."""
    _print_world(SAMPLE, if_empty)


def _print_world(world: BundledWorld, if_empty: bool) -> None:
    manifest, summaries = publish_world(environment.load(), world, if_empty=if_empty)
    for summary in summaries:
        click.echo(summary.line())
    if manifest is not None:
        print_published(manifest)
