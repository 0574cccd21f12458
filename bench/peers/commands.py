"""The commands that start each contender, tuned for speed as its documentation advises."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from bench.load import HOST, Server, serving
from bench.world import ROOT, SANKOFA, environment_of

PEERS = ROOT / ".venv-bench" / "bin"


def sankofa(home: Path, *, keeps_answers: bool = True) -> AbstractContextManager[Server]:
    """The service with its default settings, or without a cache of answers."""
    settings = {} if keeps_answers else {"SANKOFA_ANSWER_CACHE_BYTES": "1"}
    return serving(
        lambda port: [SANKOFA, "serve", "--host", HOST, "--port", str(port), "--workers", "1"],
        environment_of(home) | settings,
        ready="/health",
    )


def static(home: Path, headers: Mapping[str, str]) -> AbstractContextManager[Server]:
    """The bare server, sending the header fields of a real answer."""
    return serving(
        lambda port: [sys.executable, "-m", "bench.peers.static", str(port)],
        {**environment_of(home), "BENCH_HEADERS": json.dumps(list(headers.items()))},
        ready="/1",
    )


def datasette(facts: Path, question: str) -> AbstractContextManager[Server]:
    """Immutable, with a canned query (no counts, no facets), whole answers, and SQL in the serving thread.

    On one core a thread pool only costs: the default of three takes an eighth of its processor time.
    """
    metadata = facts.with_suffix(".metadata.json")
    sql = question % ((":service_id",) + (":day",) * 3)
    metadata.write_text(json.dumps({"databases": {facts.stem: {"queries": {"known": {"sql": sql}}}}}))
    chosen = {
        "num_sql_threads": 0,
        "max_returned_rows": 2000,
        "sql_time_limit_ms": 10_000,
        "cache_size_kb": 200_000,
        "allow_facet": "off",
        "suggest_facets": "off",
        "allow_download": "off",
    }
    settings = [part for name, value in chosen.items() for part in ("--setting", name, str(value))]
    return serving(
        lambda port: [
            *(str(PEERS / "datasette"), "serve", "-i", str(facts), "-m", str(metadata)),
            *("--host", HOST, "--port", str(port), *settings),
        ],
        ready="/-/versions.json",
    )


def fastapi(facts: Path, question: str, columns: Sequence[str]) -> AbstractContextManager[Server]:
    """FastAPI with a response model over SQLite, or with a DuckDB query per request, on uvloop."""
    environment = {"FACTS": str(facts), "QUESTION": question, "COLUMNS_OF_FACTS": " ".join(columns)}
    options = ["--no-access-log", "--loop", "uvloop", "--http", "httptools"]
    app = ["--app-dir", str(Path(__file__).parent), "fastapi_app:app"]
    return serving(
        lambda port: [str(PEERS / "uvicorn"), "--host", HOST, "--port", str(port), *options, *app],
        os.environ | environment,
        ready="/openapi.json",
    )


def roapi(facts: Path, *, in_memory: bool) -> AbstractContextManager[Server]:
    """The table in memory, or read from Parquet by row group, which is as fast and needs no gigabyte."""

    def command(port: int) -> list[str]:
        option = {"format": "parquet", "use_memory_table": in_memory}
        table = {"name": "facts", "uri": str(facts), "option": option}
        config = facts.with_name("roapi.yaml")
        # JSON is YAML; its other listeners get any free port
        listeners = {"http": f"{HOST}:{port}", "postgres": f"{HOST}:0", "flight_sql": f"{HOST}:0"}
        config.write_text(json.dumps({"addr": listeners, "tables": [table]}))
        return [str(PEERS / "roapi"), "-c", str(config)]

    return serving(command, ready="/health")
