"""`sankofa publish` where nothing changed, with ledger and editions in PostgreSQL."""

from pathlib import Path

import pytest

from tests.engines.datastores import Engine
from tests.live import run
from tests.patience import until

HEADER = "entity,line_item,value,currency,period_start,period_end,available_at,document,location,confidence\n"
ROW = "ticker:JSE:TST,revenue,{value},ZAR,2022-01-01,2022-12-31,2023-03-01,afs-{value},p. 4,\n"
SOURCE = """
[sources.filings]
adapter = "filings-csv"
sku = "AF-FUND"
license_class = "synthetic"
commercial_redistribution = true
"""
NOTHING = "nothing changed since edition"


@pytest.fixture
def engine(postgres_url: str, tmp_path: Path) -> Engine:
    engine = Engine("postgres", postgres_url, tmp_path / "home")
    engine.home.mkdir()
    (engine.home / "sources.toml").write_text(SOURCE)
    ingest(engine, 1)
    return engine


def ingest(engine: Engine, value: int) -> None:
    path = engine.home.parent / f"{value}.csv"
    path.write_text(HEADER + ROW.format(value=value))
    done = run(engine.home, "ingest", "filings", path, datastore=engine.url)
    assert "appended 1" in done.stdout, done.stderr


def published(engine: Engine) -> str:
    done = run(engine.home, "publish", datastore=engine.url)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows_read(engine: Engine) -> int:
    """How many figures of the ledger were read so far, once everybody has left."""
    engine.store.close()
    others = "datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
    until(lambda: engine.raw(f"SELECT count(*) FROM pg_stat_activity WHERE {others}") == [(0,)])
    ((rows,),) = engine.raw(
        "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_user_tables "
        "WHERE schemaname = 'sankofa_ledger' AND relname ~ '^fact'"
    )
    return int(rows)


@pytest.mark.deep
def test_rows_that_somebody_wrote_to_are_compared(engine: Engine) -> None:
    published(engine)
    engine.damage(str(engine.store.list_editions().current), "change part")
    assert NOTHING not in published(engine)
    assert NOTHING in published(engine)
    engine.raw("ALTER TABLE fact DISABLE TRIGGER ALL; UPDATE fact SET value = '9'")
    rows_read(engine)
    refused = run(engine.home, "publish", datastore=engine.url)
    assert refused.returncode == 1
    assert "the ledger is damaged" in refused.stderr


def test_where_the_counts_begin_again_all_is_compared_once(engine: Engine) -> None:
    published(engine)
    engine.raw("SELECT pg_stat_reset()")
    before = rows_read(engine)
    assert NOTHING in published(engine)
    compared = rows_read(engine)
    assert compared > before
    assert NOTHING in published(engine)
    assert rows_read(engine) == compared
