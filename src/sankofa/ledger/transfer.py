"""The rows of a ledger, out of one store and into another: for backups, whatever the engine."""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from sankofa.engines.datastore import LedgerSession
from sankofa.ledger.store import SCHEMA
from sankofa.model.errors import OperatorError

_CHUNK_BYTES: Final = 8 << 20
_decode = msgspec.json.Decoder(list[str | int | None]).decode


def table_names() -> list[str]:
    """Every table of the ledger, seals included."""
    return re.findall(r"CREATE TABLE IF NOT EXISTS (\w+)", SCHEMA)


def dump_rows(session: LedgerSession) -> Iterator[tuple[str, int, bytes]]:
    """(table, number of rows, the rows as lines of JSON), a few megabytes at a time."""
    for table in table_names():
        lines: list[bytes] = []
        size = 0
        for _, line in session.encoded_rows(table):
            lines.append(line)
            size += len(line) + 1
            if size >= _CHUNK_BYTES:
                yield table, len(lines), b"\n".join(lines)
                lines, size = [], 0
        if lines:
            yield table, len(lines), b"\n".join(lines)


def load_rows(session: LedgerSession, table: str, lines: bytes) -> int:
    """Append rows that `dump_rows` wrote; how many. Raises OperatorError for those of another layout."""
    if table not in table_names():
        raise OperatorError(f"its ledger has a table {table!r}, which a later version made: upgrade first")
    try:
        rows = [tuple(_decode(line)) for line in lines.split(b"\n")]
    except msgspec.DecodeError as failure:
        raise OperatorError(f"its table {table} cannot be read: {failure}") from failure
    appended = session.append(table, rows)
    if appended != len(rows):
        raise OperatorError(f"its table {table} has rows twice, or the ledger is not empty")
    return appended
