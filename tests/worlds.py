"""The sample world without its exchange rates: they are most of its rows, and of what publishing it costs."""

from importlib.resources import files
from pathlib import Path

from sankofa.cli.publishing import SAMPLE
from tests.live import publish_files

BUNDLED = Path(str(files("sankofa").joinpath("sample")))


def publish_without_rates(home: Path, **settings: str) -> None:
    """Take it into a HOME, and publish it."""
    publish_files(home, *((source, BUNDLED / path) for source, path in SAMPLE.files), **settings)
