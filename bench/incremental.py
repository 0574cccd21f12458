"""Publishing after a small change: a full publication, one changed issuer, and nothing changed.

    python -m bench.incremental [--facts 300000] [--observations 100000] [--releases 20000] [--leis 50000]
                                [--postgres] [--starter]

The world has all kinds of data. Each publication is the real command in its own process, measured in
processor time. The files of two editions show what they share. `--postgres` starts a server for ledger and
editions: its processor time counts too, and the growth of its tables is the size of an edition. `--starter`
measures the starter world instead: from nothing, and after one added macro row.
"""

import argparse
import csv
import json
import shutil
from datetime import date, timedelta
from pathlib import Path
from typing import NamedTuple

from bench.edition_store import EditionStore, edition_store
from bench.history import report
from bench.identifiers import write_files
from bench.ingest import cost
from bench.tenders import release
from bench.world import CACHE, SANKOFA, SOURCE, Scale, Shape, document, environment_of, files

_SOURCES = """
[sources.bench-tenders]
adapter = "ocds"
sku = "AF-TENDER"
country = "ZA"
license_class = "synthetic"
commercial_redistribution = true

[sources.bench-series]
adapter = "series-csv"
sku = "AF-MACRO"
license_class = "synthetic"
commercial_redistribution = true
"""
_VALUES_PER_SERIES = 100
_FULL_SHARE, _IDLE_SECONDS = 0.10, 2.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.incremental")
    parser.add_argument("--facts", type=int, default=300_000)
    parser.add_argument("--observations", type=int, default=100_000)
    parser.add_argument("--releases", type=int, default=20_000)
    parser.add_argument("--leis", type=int, default=50_000)
    parser.add_argument("--postgres", action="store_true", help="ledger and editions in PostgreSQL")
    parser.add_argument("--starter", action="store_true", help="the starter world instead")
    parser.add_argument("--keep", action="store_true", help="leave the home there")
    options = parser.parse_args()
    home = CACHE / "home-incremental"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    (home / "sources.toml").write_text(_SOURCES)
    with edition_store(home, postgres=options.postgres) as editions:
        environment = {**environment_of(home), **editions.settings}
        if options.starter:
            _starter(home, environment, editions)
        else:
            for source, path in _inputs(options.facts, options.observations, options.releases, options.leis):
                cost([SANKOFA, "ingest", source, str(path)], environment)
            _compare(home, environment, editions)
    if not options.keep:
        shutil.rmtree(home)


def _compare(home: Path, environment: dict[str, str], editions: EditionStore) -> None:
    print(f"{'publish':36}{'seconds':>12}{'cpu s':>12}{'peak MB':>10}{'new MB':>10}{'of MB':>10}")
    full = _published("everything", environment, editions)
    changed = home / "changed"
    changed.mkdir()
    number = 100_000
    (changed / f"CIK{number:010d}.json").write_bytes(_restated(number))
    cost([SANKOFA, "ingest", SOURCE, str(changed)], environment)
    small = _published("after one issuer changed", environment, editions)
    idle = _published("after nothing changed", environment, editions)
    share = small.cpu / full.cpu * 100
    report(
        "publish after one changed issuer, processor time to a full one",
        share,
        unit="%",
        most=_FULL_SHARE * 100,
    )
    report("publish after no change, processor time", idle.cpu, unit="s", most=_IDLE_SECONDS)


def _starter(home: Path, environment: dict[str, str], editions: EditionStore) -> None:
    whole = cost([SANKOFA, "starter"], environment)
    report("starter world ingested and published from nothing, processor time", whole.cpu, unit="s")
    row = home / "row.csv"
    row.write_text(
        "series,series_type,frequency,country,date,value,unit,release_date\n"
        "FX.USD.ZAR.H10,fx,monthly,ZA,2026-07-01,16.3,ZAR per USD,2026-08-03\n"
    )
    cost([SANKOFA, "ingest", "starter-h10", str(row)], environment)
    small = _published("after one macro row", environment, editions)
    report("publish the starter world after one macro row, processor time", small.cpu, unit="s", most=2)


class _Spent(NamedTuple):
    seconds: float
    cpu: float


def _published(what: str, environment: dict[str, str], editions: EditionStore) -> _Spent:
    before, cpu = editions.sizes(), editions.cpu_seconds()
    spent = cost([SANKOFA, "publish"], environment)
    own = editions.cpu_seconds() - cpu
    after = editions.sizes()
    new = sum(size - before.get(name, 0) for name, size in after.items())
    print(
        f"{what:36}{spent.seconds:12.1f}{spent.cpu + own:12.1f}{spent.peak / 1e6:10.0f}"
        f"{new / 1e6:10.1f}{sum(after.values()) / 1e6:10.1f}{editions.remark(own)}",
        flush=True,
    )
    return _Spent(spent.seconds, spent.cpu + own)


def _restated(number: int) -> bytes:
    """The document of an issuer with one figure restated."""
    content = json.loads(document(number, 50))
    rows = next(iter(content["facts"]["us-gaap"].values()))["units"]["USD"]
    rows.append({**rows[0], "val": 12_345_000, "filed": "2025-11-03", "accn": f"{number:010d}-25-000307"})
    return json.dumps(content).encode()


def _inputs(facts: int, observations: int, releases: int, leis: int) -> list[tuple[str, Path]]:
    """The files of the world by source; missing ones are written."""
    small, large = facts * 2 // 3 // 50, facts // 3 // 1000
    shapes = Shape("50 rows", small, 50, 100_000), Shape("1,000 rows", large, 1_000, 900_000)
    scale = Scale(f"{facts}", shapes)
    inputs = [(SOURCE, files(scale)[0].parent)]
    folder = CACHE / "files-incremental"
    folder.mkdir(parents=True, exist_ok=True)
    tenders = folder / f"tenders-{releases}.jsonl"
    if not tenders.exists():
        tenders.write_text("".join(json.dumps(release(n)) + "\n" for n in range(releases)))
    series = folder / f"series-{observations}.csv"
    if not series.exists():
        _write_series(series, observations)
    golden, _ = write_files(CACHE / f"files-identifiers-{leis}", leis)
    return [*inputs, ("bench-series", series), ("bench-tenders", tenders), ("gleif-lei", golden)]


def _write_series(path: Path, observations: int) -> None:
    with path.open("w", newline="") as stream:
        rows = csv.writer(stream)
        rows.writerow("series series_type frequency country date value unit release_date".split())
        for number in range(observations // _VALUES_PER_SERIES):
            country = ("ZA", "NG", "KE", "EG", "GH")[number % 5]
            for month in range(_VALUES_PER_SERIES):
                day = date(2015 + month // 12, month % 12 + 1, 1)
                value = (number * 31 + month * 17) % 10_000 / 100
                fields = f"CPI.{number:05d}", "price_index", "monthly", country, day, value, "index"
                rows.writerow((*fields, day + timedelta(40)))


if __name__ == "__main__":
    main()
