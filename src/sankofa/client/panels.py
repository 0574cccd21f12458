"""Open panels by their URL, read lazily by Polars or DuckDB."""

from typing import Any, Literal

from sankofa.client.answers import Answer
from sankofa.client.errors import NotOpen
from sankofa.client.frames import library

Engine = Literal["polars", "duckdb"]


def scan(manifest: Answer[Any], name: str, engine: Engine) -> Any:
    """Every file of a panel as one lazy frame or relation. Raises NotOpen.

    Each URL names the edition of the manifest, so that a file published while it is read does not mix
    parts of two editions.
    """
    files = [row for row in manifest.rows if name in (row["signal_key"], row["name"])]
    listed = sorted({row["signal_key"] for row in manifest.rows if row["access"] == "open"} - {None})
    if not files:
        raise NotOpen(f"no panel {name}; open are: {', '.join(listed)}")
    if any(row["access"] != "open" for row in files):
        raise NotOpen(
            f"{name} is licensed: get_licensed_file fetches {files[0]['name']} with a key of its tier"
        )
    urls = [f"{row['url'].partition('?')[0]}?edition={manifest.edition}" for row in files]
    if engine == "polars":
        return library("polars").scan_parquet(urls, glob=False)
    if engine == "duckdb":
        return library("duckdb").read_parquet(urls)
    raise ValueError(f"engine: expected polars or duckdb, not {engine!r}")
