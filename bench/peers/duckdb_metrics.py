"""DuckDB on the same facts: deriving as one query, screening by grouping. Run by `bench.metrics`.

    python duckdb_metrics.py derive|screen HOME < question

Uses one thread. The table is in DuckDB's own format; loading it is not timed. Deriving gives the same as
Sankofa: for each issuer, metric and full year the value with its valid days and its inputs (line item,
period_end, value, vintage, source_ref), or the reason why there is none. Three simplifications favour DuckDB:
figures are doubles, an instant's year follows only from durations with the same end, and there is one
currency.
"""

import csv
import json
import re
import resource
import sqlite3
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import duckdb

_COLUMNS = (
    "subject, concept, unit, period_end, period_start, available_at, document, value, location, capture_id"
)
_FACTS = """
    reported AS (
        SELECT *, lag(value) OVER (
            PARTITION BY subject, concept, unit, period_end, period_start ORDER BY available_at, document
        ) AS before
        FROM fact
        WHERE period_start IS NULL OR date_diff('day', period_start, period_end) + 1 BETWEEN 345 AND 385
    ),
    facts AS (
        SELECT subject, concept, period_end, period_start,
            min(greatest(available_at, period_end)) AS first_known,
            struct_pack(
                value := arg_max(value, (available_at, document)),
                period_end := period_end,
                vintage := count(*),
                first_known := min(greatest(available_at, period_end)),
                known_from := max(greatest(available_at, period_end)),
                source_ref := arg_max(concat_ws('#', document, location), (available_at, document)),
                available_at := max(available_at),
                capture_id := arg_max(capture_id, (available_at, document))
            ) AS figure
        FROM reported WHERE before IS NULL OR before <> value
        GROUP BY subject, concept, unit, period_end, period_start
    ),
    years AS (
        SELECT subject, period_end, min(first_known) AS published FROM facts
        WHERE period_start IS NOT NULL GROUP BY subject, period_end
    ),
    mapped AS (
        SELECT subject, period_end, any_value(published) AS published,
            map(list(concept), list(figure)) AS figures
        FROM facts JOIN years USING (subject, period_end) GROUP BY subject, period_end
    ),
    inputs AS (SELECT subject, period_end, published, {pivot} FROM mapped),
    windows AS (
        SELECT *, coalesce(min(published) OVER (
            PARTITION BY subject ORDER BY period_end ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING
        ), DATE '9999-12-31') AS until FROM inputs
    ),
    paired AS (
        SELECT i.*, {prior} FROM windows AS i LEFT JOIN inputs AS p ON p.subject = i.subject
        AND p.period_end BETWEEN i.period_end - INTERVAL 1 YEAR - INTERVAL 10 DAY
                             AND i.period_end - INTERVAL 1 YEAR + INTERVAL 10 DAY
    )
"""


def main() -> None:
    what, home = sys.argv[1], Path(sys.argv[2])
    task = json.load(sys.stdin)
    database = duckdb.connect(":memory:" if what == "screen" else str(home / "peer.duckdb"))
    database.execute("SET threads = 1")
    _load(database, home)
    query = _query(task["formulas"], task["candidates"])
    print(json.dumps(derive(database, query) if what == "derive" else screen(database, query, task)))


def derive(database: duckdb.DuckDBPyConnection, query: str) -> dict[str, float]:
    began = time.process_time()
    database.execute(f"CREATE OR REPLACE TEMP TABLE derived AS {query}")
    spent = time.process_time() - began
    counted = database.execute("SELECT count(*) FROM derived WHERE reason IS NULL AND first < until")
    ((rows,),) = counted.fetchall()
    return {"rows": rows, "cpu": spent, "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}


def screen(database: duckdb.DuckDBPyConnection, query: str, task: dict[str, Any]) -> dict[str, float]:
    columns = "subject, metric, period_end, published, value, first, until"
    database.execute(f"CREATE TABLE derived AS SELECT {columns} FROM ({query}) WHERE reason IS NULL")
    database.execute("CREATE TABLE listed AS SELECT * FROM derived ORDER BY metric, published")
    question = """
        SELECT subject, value FROM (
            SELECT subject, arg_max(value, period_end) AS value, arg_max(first, period_end) AS first
            FROM listed WHERE metric = ? AND published <= ?::DATE GROUP BY subject
        ) WHERE first <= ?::DATE ORDER BY value DESC LIMIT 50
    """
    for (metric, day), expected in zip(task["questions"], task["expected"], strict=False):
        values = [value for _, value in database.execute(question, [metric, day, day]).fetchall()]
        if len(values) != len(expected) or any(
            abs(a / b - 1) > 1e-9 for a, b in zip(values, expected, strict=True)
        ):
            raise SystemExit(f"DuckDB answers otherwise to {metric} on {day}")
    repeated = task["questions"][:200]
    began = time.process_time()
    for metric, day in repeated:
        database.execute(question, [metric, day, day]).fetchall()
    return {"cpu": (time.process_time() - began) / len(repeated)}


def _query(formulas: dict[str, str], candidates: dict[str, list[str]]) -> str:
    """Every metric as its page writes it, over one pivot of the facts."""
    pivot = []
    for item, concepts in candidates.items():
        columns = ", ".join(f"figures['{c}']" for c in concepts)
        pivot.append(f"coalesce({columns}) AS {item}")
    prior = [f"p.{item} AS prior_{item}" for item in candidates]
    parts = [_part(slug, formula) for slug, formula in formulas.items()]
    facts = _FACTS.format(pivot=", ".join(pivot), prior=", ".join(prior))
    return f"WITH {facts} SELECT * FROM ({' UNION ALL '.join(parts)})"


def _part(slug: str, formula: str) -> str:
    """One metric: a row for each full year, with a value or the reason why there is none."""
    names = sorted(set(re.findall(r"[a-z_]{2,}", formula)))
    figures = re.sub(r"[a-z_]{2,}", r"\g<0>.value", formula)
    below = figures.split(" / ", 1)[1].removesuffix(" - 1")
    there = " AND ".join(f"{name} IS NOT NULL" for name in names)
    settled, completed, available, captured = (
        ", ".join(f"{name}.{field}" for name in names)
        for field in ("known_from", "first_known", "available_at", "capture_id")
    )
    inputs = ", ".join(
        f"{{'line_item': '{name.removeprefix('prior_')}', 'period_end': {name}.period_end, "
        f"'value': {name}.value, 'vintage': {name}.vintage, 'source_ref': {name}.source_ref}}"
        for name in names
    )
    return f"""
        SELECT subject, '{slug}' AS metric, period_end, published, until,
            CASE WHEN NOT ({there}) THEN 'input_absent' WHEN {below} <= 0 THEN 'denominator_not_positive'
            END AS reason,
            {figures} AS exact, round(exact, (9 - floor(log10(abs(nullif(exact, 0)))))::INTEGER) AS value,
            greatest(published, {completed}) AS completed, greatest(published, {settled}) AS first,
            greatest({available}) AS available_at, greatest({captured}) AS captured, [{inputs}] AS inputs
        FROM paired
    """


def _load(database: duckdb.DuckDBPyConnection, home: Path) -> None:
    if database.execute("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'fact'").fetchone() == (1,):
        return
    ledger = sqlite3.connect(home / "ledger.sqlite")
    with tempfile.NamedTemporaryFile("w", suffix=".csv", newline="", delete=False) as file:
        writer = csv.writer(file)
        writer.writerow(_COLUMNS.split(", "))
        writer.writerows(ledger.execute(f"SELECT {_COLUMNS} FROM fact"))
    kinds = (
        "{'subject': 'VARCHAR', 'concept': 'VARCHAR', 'unit': 'VARCHAR', 'period_end': 'DATE', "
        "'period_start': 'DATE', 'available_at': 'DATE', 'document': 'VARCHAR', 'value': 'DOUBLE', "
        "'location': 'VARCHAR', 'capture_id': 'BIGINT'}"
    )
    database.execute(
        f"CREATE TABLE fact AS SELECT * FROM read_csv('{file.name}', header = true, columns = {kinds})"
    )
    Path(file.name).unlink()


if __name__ == "__main__":
    main()
