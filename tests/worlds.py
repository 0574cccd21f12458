"""The sample world without its exchange rates: they are most of its rows, and of what publishing it costs."""

from importlib.resources import files
from pathlib import Path

from sankofa.cli.publishing import SAMPLE
from tests.live import run

BUNDLED = Path(str(files("sankofa").joinpath("sample")))


def publish_without_rates(home: Path, **settings: str) -> None:
    """Take it into a HOME, and publish it."""
    for source, path in SAMPLE.files:
        done = run(home, "ingest", source, BUNDLED / path, **settings)
        assert done.returncode == 0, done.stderr
    published = run(home, "publish", **settings)
    assert published.returncode == 0, published.stderr
