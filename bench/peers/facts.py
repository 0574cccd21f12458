"""The facts of a published edition as one flat table: an SQLite file for Datasette and FastAPI, Parquet for
ROAPI, a DuckDB file.

There is one row per vintage as known in the end, with the fields of our own rows as columns. The SQLite table
is clustered in the order of the question, the Parquet file sorted by issuer: each peer gets its best layout.
"""

import asyncio
import sqlite3
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from sankofa.edition.format.row_blocks import entries_of
from sankofa.engines.edition_reader import EditionReader
from sankofa.model.days import FOREVER
from sankofa.model.rows import FundamentalsRow
from sankofa.replication.stores import open_store
from sankofa.settings import Settings

COLUMNS = tuple(name for name in FundamentalsRow.__struct_fields__)
QUESTION = f"""
SELECT {", ".join(COLUMNS)} FROM facts
WHERE service_id = %s AND period_end <= %s AND available_at <= %s
AND (superseded_at IS NULL OR superseded_at > %s)
ORDER BY period_end DESC, period_type, line_item, vintage
""".replace("\n", " ").strip()
_TYPES = {"value_reported": "NUMERIC", "fiscal_year": "INTEGER", "vintage": "INTEGER", "restated": "INTEGER"}
_PARQUET = Path(__file__).with_name("parquet.py")
_KEY = ("service_id", "period_end", "period_type", "line_item", "vintage")


def current_edition(home: Path) -> str:
    current = open_store(Settings(home=home)).list_editions().current
    if current is None:
        raise SystemExit(f"{home}: nothing is published there")
    return current


def sqlite_file(home: Path, service_ids: Sequence[str]) -> Path:
    """The facts of the current edition, in a file beside it."""
    edition = current_edition(home)
    path = home / f"facts-{edition}.db"
    if path.exists():
        return path
    print("writing the facts for Datasette", flush=True)
    partial = path.with_suffix(".partial")
    partial.unlink(missing_ok=True)
    reader = open_store(Settings(home=home)).open(edition)
    database = sqlite3.connect(partial, isolation_level=None)
    for pragma in ("page_size = 16384", "journal_mode = OFF", "synchronous = OFF"):
        database.execute(f"PRAGMA {pragma}")
    columns = ", ".join(f"{name} {_TYPES.get(name, 'TEXT')}" for name in COLUMNS)
    key = ", ".join(f"{name} DESC" if name == "period_end" else name for name in _KEY)
    database.execute(f"CREATE TABLE facts ({columns}, PRIMARY KEY ({key})) WITHOUT ROWID")
    database.execute("BEGIN")
    marks = ", ".join("?" * len(COLUMNS))
    database.executemany(f"INSERT INTO facts VALUES ({marks})", _rows(reader, sorted(service_ids)))
    database.execute("COMMIT")
    database.execute("ANALYZE")
    database.close()
    partial.rename(path)
    return path


def _rows(reader: EditionReader, service_ids: Sequence[str]) -> Iterator[tuple[object, ...]]:
    decode = msgspec.json.Decoder(dict[str, object]).decode
    with asyncio.Runner() as runner:
        for service_id in service_ids:
            for block in runner.run(reader.blocks("fundamentals", service_id, 0, 2**31 - 1)) or ():
                for entry in entries_of(block):
                    if entry.until == FOREVER:
                        row = decode(entry.row)
                        yield tuple(row[name] for name in COLUMNS)


def parquet_file(facts: Path, python: Path) -> Path:
    """The same facts as Parquet, written by the peers' own Python, which has pyarrow."""
    return _written(facts.with_suffix(".parquet"), facts, [str(python), str(_PARQUET)])


def duckdb_file(parquet: Path, python: Path) -> Path:
    """The same facts as a DuckDB table sorted by issuer, the fastest order for its zone maps."""
    script = (
        "import duckdb, sys\n_, source, target = sys.argv\n"
        "duckdb.connect(target).execute('CREATE TABLE facts AS FROM read_parquet(?)', [source])"
    )
    return _written(parquet.with_suffix(".duckdb"), parquet, [str(python), "-c", script])


def _written(path: Path, source: Path, command: Sequence[str]) -> Path:
    """The file that a command makes from a source; reused once it is complete."""
    if not path.exists():
        print(f"writing {path.name}", flush=True)
        partial = path.with_suffix(".writing")
        partial.unlink(missing_ok=True)
        subprocess.run([*command, source, partial], check=True)
        partial.rename(path)
    return path
