"""The page of every limit on outside input."""

import importlib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Final

import sankofa
from sankofa.model.limits import Limit, declared
from sankofa.operations.contract import operations
from sankofa.settings import PREFIX, Settings
from tools.reference_pages.markdown import code, page, table

_PARTS: Final = {
    "Requests": ("operations", "rest", "mcp", "web", "dialects", "access", "cli", "edition"),
    "Files and publishers": ("model", "sources", "ledger", "collect"),
    "Stores and backups": ("engines", "replication", "cli.backup"),
}
"""The packages that declare the limits of each part; the longest name decides."""
BEYOND_SETTINGS: Final = {
    "rows_sample": "402",
    "rows_paid": "the first rows, and `truncated` is true",
    "per_minute_sample": "429",
    "per_minute_starter": "429",
    "per_minute_professional": "429",
    "per_month_sample": "429",
    "per_month_starter": "429",
    "per_month_professional": "429",
    "per_minute_visitor": "429",
    "per_day_visitor": "429",
    "ingest_file_bytes": "the file is refused",
    "ingest_document_bytes": "the file is refused",
    "ingest_line_bytes": "the file is refused",
    "ingest_text_length": "the row is rejected",
    "ingest_xbrl_seconds": "the file is refused",
    "ingest_xbrl_memory_bytes": "the file is refused",
    "mcp_answer_bytes": "the other rows are behind `next_cursor`",
    "collect_attempts": "the source has failed",
    "connections": "the slowest are closed",
    "connections_per_address": "those that stand still are closed",
    "stall_seconds": "the connection is closed",
}
NO_BOUNDS: Final = {
    "usage_reserve", "editions_poll_seconds", "rows_default", "editions_kept", "block_cache_bytes",
    "answer_cache_bytes", "vault_retention_days", "match_threshold",
}  # fmt: skip
"""Numeric settings that limit nothing that comes from outside."""


def all_limits() -> dict[str, Limit]:
    """Every declared limit by its name: the modules that declare one are imported."""
    folder = Path(sankofa.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        if "model.limits import" in path.read_text(encoding="utf-8"):
            importlib.import_module(".".join(("sankofa", *path.relative_to(folder).with_suffix("").parts)))
    return declared


def limits_page() -> str:
    parts: list[str] = []
    for heading in _PARTS:
        rows = [
            (one.name, f"{one.value:,} {one.unit}".replace(".0 ", " "), one.beyond)
            for one in sorted(all_limits().values())
            if _part(one) == heading
        ]
        parts += [f"## {heading}", table(("limit", "value", "beyond"), rows)]
    settings = [
        (code(PREFIX + f.name.upper()), f"{f.default:,}", f.metadata["help"], BEYOND_SETTINGS[f.name])
        for f in fields(Settings)
        if f.name in BEYOND_SETTINGS
    ]
    return page(
        "Limits",
        "Every limit on input from outside. A value at the limit is accepted.",
        *parts,
        "The HTTP server itself refuses a head beyond 64 KiB or 100 header fields, without a body.",
        "## Settings",
        "What you can change; the values are the defaults.",
        table(("variable", "default", "meaning", "beyond"), settings),
        "## Parameters",
        "A value beyond the limit is a 400 that names the parameter.",
        table(("parameter", "at most"), sorted({*_parameters()})),
    )


def _part(one: Limit) -> str:
    names = {name: heading for heading, packages in _PARTS.items() for name in packages}
    return names[max((n for n in names if one.module.startswith(f"sankofa.{n}")), key=len)]


def _parameters() -> Iterator[tuple[str, str]]:
    for operation in operations():
        for parameter in operation.parameters.values():
            schema = parameter.kind.schema()
            each = schema.get("items", {})
            if "maxItems" in schema:
                longest = f" of {each['maxLength']} characters" if "maxLength" in each else ""
                yield code(parameter.name), f"{schema['maxItems']} names{longest}"
            elif "maxLength" in schema:
                yield code(parameter.name), f"{schema['maxLength']} characters"
            elif "maximum" in schema:
                yield code(parameter.name), f"{schema['maximum']}"
