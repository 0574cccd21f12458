"""The usual FastAPI service over the flat facts, in an SQLite file or with a DuckDB query per request.

    FACTS=facts.db QUESTION=... COLUMNS_OF_FACTS=... uvicorn --app-dir bench/peers fastapi_app:app

SQLite answers through a response model, as in FastAPI's documentation. DuckDB's rows are sent without a
model, so that its figure is the cost of the query. Both query in the serving thread: on one core a thread
pool only costs.
"""

import json
import os
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

import duckdb
from fastapi import FastAPI, Response
from pydantic import create_model

_FACTS = os.environ["FACTS"]
_QUESTION = os.environ["QUESTION"] % (("?",) * 4)


def _sqlite() -> Callable[[Sequence[str]], list[dict[str, Any]]]:
    database = sqlite3.connect(f"file:{_FACTS}?mode=ro&immutable=1", uri=True, check_same_thread=False)
    database.row_factory = sqlite3.Row
    database.execute("PRAGMA cache_size = -200000")
    return lambda values: [dict(row) for row in database.execute(_QUESTION, values)]


def _duckdb() -> Callable[[Sequence[str]], list[dict[str, Any]]]:
    database = duckdb.connect(_FACTS, read_only=True, config={"threads": 1})

    def rows(values: Sequence[str]) -> list[dict[str, Any]]:
        result = database.execute(_QUESTION, list(values))
        names = [column[0] for column in result.description]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]

    return rows


_NUMBERS: dict[str, Any] = {
    "value_reported": float | None, "split_ratio": float | None, "extraction_confidence": float | None,
    "fiscal_year": int | None, "vintage": int | None, "restated": bool | None,
}  # fmt: skip


def _model() -> Any:
    columns = os.environ["COLUMNS_OF_FACTS"].split()
    fields: dict[str, Any] = {name: (_NUMBERS.get(name, str | None), None) for name in columns}
    row: Any = create_model("Row", **fields)
    return list[row]


async def with_model(service_id: str, day: str) -> list[dict[str, Any]]:
    return _ask((service_id, day, day, day))


async def without_model(service_id: str, day: str) -> Response:
    rows = _ask((service_id, day, day, day))
    return Response(json.dumps(rows, separators=(",", ":")), media_type="application/json")


app = FastAPI()
if _FACTS.endswith(".duckdb"):
    _ask = _duckdb()
    app.add_api_route("/facts/{service_id}", without_model)
else:
    _ask = _sqlite()
    app.add_api_route("/facts/{service_id}", with_model, response_model=_model())
