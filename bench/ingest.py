"""Ingest and publish by the real commands: facts per second on one core, memory, and where the time goes.

    python -m bench.ingest [--scale 300k|3m|small] [FILE...]

Rates are given twice: by the clock, and by processor time, which is the rate of one core alone. FILEs (of the
same format) are measured besides the generated ones.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.history import report
from bench.load import SERVER_CORES
from bench.peers.facts import current_edition
from bench.world import CACHE, SANKOFA, SCALES, SOURCE, environment_of, files

_TARGET = 50_000
_PARSE = """
import sys
from pathlib import Path
from sankofa.model.records import (Fact)
from sankofa.sources.base import InputFile, adapters
read = adapters()["edgar-companyfacts"].read
facts = sum(type(record) is Fact for path in sys.argv[1:] for record in read(InputFile(Path(path))))
print(f"parse: read {facts},")
"""


class Cost(NamedTuple):
    """The cost of a command, whether or not it had its core for itself."""

    output: str
    seconds: float
    cpu: float
    peak: int

    def line(self, what: str, rows: int) -> str:
        rates = f"{rows / self.seconds:12,.0f}{rows / self.cpu:12,.0f}"
        return f"{what:36}{rows:12,}{rates}{self.peak / 1e6:10.0f}"


def cost(command: Sequence[str], environment: dict[str, str], cores: Iterable[int] = SERVER_CORES) -> Cost:
    """Run a command, pinned to one core unless others are given. The peak is that of its largest process."""
    with tempfile.TemporaryFile("w+") as output:
        began = time.perf_counter()
        process = subprocess.Popen(
            command,
            env=environment,
            stdout=output,
            preexec_fn=lambda: os.sched_setaffinity(0, cores),
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - began
        output.seek(0)
        text = output.read()
    if process.returncode:
        raise SystemExit(f"{' '.join(command[:3])} failed: {text}")
    return Cost(text, seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.ingest")
    parser.add_argument("--scale", choices=SCALES, default="300k")
    parser.add_argument("files", nargs="*", metavar="FILE")
    options = parser.parse_args()
    bulk = [str(path) for path in files(SCALES[options.scale])]
    print(f"{'':36}{'rows':>12}{'rows/s':>12}{'per cpu s':>12}{'peak MB':>10}")
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        home = Path(folder) / "home"
        rate = _bulk(home, bulk)
        _publish(home)
        single = _unpacked(bulk, Path(folder) / "single")
        _ingest("one document per file", Path(folder) / "single-home", single)
        if options.files:
            _ingest("files given", Path(folder) / "given-home", options.files)
    report("facts ingested on one core", rate, unit="facts/s", least=_TARGET)


def _bulk(home: Path, paths: Sequence[str]) -> float:
    """Bulk zips: the whole, parsing alone, and again with nothing new."""
    parsed = cost([sys.executable, "-c", _PARSE, *paths], environment_of(home))
    print(parsed.line("parse alone", _count(parsed.output, "read")))
    whole = _ingest("ingest, bulk zips", home, paths)
    again = _ingest("the same again, nothing new", home, paths)
    print(
        f"{'':4}of the ingest {parsed.cpu / whole.cpu:.0%} is parsing; the ledger is"
        f" {sum(p.stat().st_size for p in home.glob('ledger.sqlite*')) / 1e6:,.0f} MB"
    )
    assert not _count(again.output, "appended")
    return _count(whole.output, "read") / whole.cpu


def _ingest(what: str, home: Path, paths: Sequence[str]) -> Cost:
    spent = cost([SANKOFA, "ingest", "--strict", SOURCE, *paths], environment_of(home))
    print(spent.line(what, _count(spent.output, "read")), flush=True)
    return spent


def _publish(home: Path) -> None:
    spent = cost([SANKOFA, "publish"], environment_of(home))
    rows = int(spent.output.rpartition("fundamentals ")[2].split(",")[0])
    print(spent.line("publish", rows))
    parts = (home / "editions" / current_edition(home) / "parts").iterdir()
    size = sum(path.stat().st_size for path in parts)
    report("rows published on one core", rows / spent.cpu, unit="rows/s")
    report("publish, peak memory of the largest process", spent.peak / 1e6, unit="MB")
    report("size of the edition for each row", size / rows, unit="bytes")


def _count(output: str, name: str) -> int:
    """`read 300, appended 12, ...`: the number after a name."""
    return int(output.rpartition(f"{name} ")[2].split(",")[0])


def _unpacked(archives: Sequence[str], folder: Path) -> list[str]:
    for path in archives:
        with zipfile.ZipFile(path) as archive:
            archive.extractall(folder)
    return [str(folder)]


if __name__ == "__main__":
    main()
