"""The seals of the ledger, on both engines: an altered value of any table is found, with its capture."""

from contextlib import closing

import pytest

from sankofa.ledger.seals import TABLES, LedgerDamaged
from sankofa.ledger.store import Ledger
from tests.engines.datastores import NOW, Engine, ingest_sample
from tests.torture import Trial

SOURCES = (
    ("sample-lei", "lei"),
    ("sample-filings", "filings"),
    ("sample-isin", "isin"),
    ("sample-tenders-ke", "tenders-ke"),
    ("sample-worldbank", "worldbank"),
    ("sample-series", "series"),
)


def unguard(engine: Engine, table: str) -> None:
    """Remove the guards of the table; opening the ledger restores them."""
    if engine.name == "postgres":
        engine.raw(f"ALTER TABLE {table} DISABLE TRIGGER refuses_changes")
        return
    for (name,) in engine.raw(
        f"SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = '{table}'"
    ):
        engine.raw(f"DROP TRIGGER {name}")


@pytest.mark.deep
def test_every_kind_of_row_is_sealed_and_an_altered_one_is_found(engine: Engine, trial: Trial) -> None:
    picked = trial.chance
    with closing(ingest_sample(engine, SOURCES)) as ledger:
        whole = ledger.verify()
    tables = [table for table in TABLES if engine.raw(f"SELECT 1 FROM {table} LIMIT 1")]
    assert whole.rows == sum(engine.raw(f"SELECT count(*) FROM {table}")[0][0] for table in tables)
    for table in tables * trial.count(1, 10):
        row, column, before = _some_value(engine, table, picked)
        unguard(engine, table)
        engine.raw(f"UPDATE {table} SET {column} = {_literal(_altered(before))} WHERE {row}")
        with closing(Ledger(engine.store, b"a key of the tests", lambda: NOW)) as ledger:
            with pytest.raises(LedgerDamaged, match=table) as refused:
                ledger.verify()
            assert table == "withheld" or "capture " in str(refused.value)
        altered = row.replace(f"{column} = {_literal(before)}", f"{column} = {_literal(_altered(before))}")
        unguard(engine, table)
        engine.raw(f"UPDATE {table} SET {column} = {_literal(before)} WHERE {altered}")
        with closing(Ledger(engine.store, b"a key of the tests", lambda: NOW)) as ledger:
            assert ledger.verify() == whole
        trial.saw(table)


def _some_value(engine: Engine, table: str, picked) -> tuple[str, str, object]:
    columns = _columns(engine, table)
    rows = engine.raw(f"SELECT {', '.join(columns)} FROM {table}")
    row = dict(zip(columns, picked.choice(rows), strict=True))
    column = picked.choice([c for c in columns if c != "capture_id"])
    where = " AND ".join(f"{name} = {_literal(value)}" for name, value in row.items())
    return where, column, row[column]


def _columns(engine: Engine, table: str) -> list[str]:
    if engine.name == "postgres":
        listed = engine.raw(
            f"SELECT column_name FROM information_schema.columns WHERE table_schema = 'sankofa_ledger' "
            f"AND table_name = '{table}' ORDER BY ordinal_position"
        )
    else:
        listed = engine.raw(f"SELECT name FROM pragma_table_info('{table}')")
    return [name for (name,) in listed]


def _altered(value: object) -> object:
    return value + 1 if isinstance(value, int) else f"{value}x"


def _literal(value: object) -> str:
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"
