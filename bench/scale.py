"""A world as large as many filers of the SEC: ingested and published by the real commands, on all cores.

    python -m bench.scale [--issuers 1500] [--processes N] [--postgres] [--keep]

Every issuer has 5,000 facts. Reported are elapsed and processor seconds, the memory of the largest process of
each command, and the size of the edition. `--postgres` starts a server for ledger and editions, and its
processor time is reported too. The last line is a second publication with nothing changed.
"""

import argparse
import os
import shutil
from pathlib import Path

from bench.edition_store import EditionStore, edition_store
from bench.ingest import Cost, cost
from bench.world import CACHE, FILERS, SANKOFA, SOURCE, Scale, environment_of, files

_ROWS = FILERS.shapes[0].rows


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.scale")
    parser.add_argument("--issuers", type=int, default=FILERS.shapes[0].issuers)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--postgres", action="store_true", help="ledger and editions in PostgreSQL")
    parser.add_argument("--keep", action="store_true", help="leave the home there")
    options = parser.parse_args()
    shape = FILERS.shapes[0]._replace(issuers=options.issuers)
    bulk = [str(path) for path in files(Scale(FILERS.name, (shape,)))]
    home = CACHE / "home-scale"
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    print(f"{options.issuers * _ROWS:,} facts of {options.issuers:,} issuers, {options.processes} processes")
    print(f"{'':28}{'seconds':>10}{'cpu s':>10}{'server s':>10}{'peak MB':>10}{'edition MB':>12}", flush=True)
    with edition_store(home, postgres=options.postgres) as store:
        processes = {"SANKOFA_PUBLISH_PROCESSES": str(options.processes)}
        environment = {**environment_of(home), **store.settings, **processes}
        _run("ingest", ["ingest", SOURCE, *bulk], environment, store)
        _run("publish", ["publish"], environment, store)
        _run("nothing changed", ["publish"], environment, store)
    print(f"kept beside the edition: {_bytes_in(home / 'derived') / 1e6:,.0f} MB")
    if not options.keep:
        shutil.rmtree(home)


def _run(what: str, arguments: list[str], environment: dict[str, str], store: EditionStore) -> Cost:
    before = store.cpu_seconds()
    spent = cost([SANKOFA, *arguments], environment, cores=range(os.cpu_count() or 1))
    own = store.cpu_seconds() - before
    size = sum(store.sizes().values()) / 1e6
    print(
        f"{what:28}{spent.seconds:10.1f}{spent.cpu:10.1f}{own:10.1f}{spent.peak / 1e6:10.0f}{size:12,.0f}",
        flush=True,
    )
    return spent


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    main()
