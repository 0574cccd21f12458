"""Reads the ledger in an SQLite file."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from sankofa.engines.datastore import Row
from sankofa.engines.private_files import operator_errors

_listed = msgspec.json.Decoder(list[Any]).decode


class SqliteRows:
    """See `engines.datastore.LedgerRows`."""

    def __init__(self, path: Path, database: sqlite3.Connection) -> None:
        self._path = path
        self._database = database
        self._first: dict[str, str] = {}  # by table, the first column of its key

    @classmethod
    def open(cls, path: Path) -> "SqliteRows":
        """Only to read, while another process has the ledger open. Raises OperatorError."""
        with operator_errors(path):
            database = sqlite3.connect(path, isolation_level=None, timeout=60)
            database.execute("PRAGMA query_only = ON")
        return cls(path, database)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        with operator_errors(self._path):
            self._database.execute("BEGIN")
        try:
            yield
        finally:
            with suppress(sqlite3.Error):  # nothing was written; a damaged file was told of before
                self._database.execute("COMMIT")

    def query(self, sql: str, parameters: Sequence[object] = ()) -> Iterator[Row]:
        with operator_errors(self._path):
            cursor = self._database.execute(sql, parameters)
        return self._rows_of(cursor)

    def _rows_of(self, cursor: sqlite3.Cursor) -> Iterator[Row]:
        with operator_errors(self._path):  # a damaged page shows when it is read
            yield from cursor

    def columns(self, table: str, names: Sequence[str], key: str) -> list[list[Any]]:
        """One text of JSON for each column: half the cost of a tuple for each row.

        The table is kept in the order of its key, and so it is read.
        """
        if table not in self._first:
            columns = self._database.execute(f"PRAGMA table_info({table})")
            self._first[table] = next(name for _, name, _, _, _, position in columns if position == 1)
        listed = ", ".join(f"json_group_array({name})" for name in names)
        with operator_errors(self._path):
            statement = f"SELECT {listed} FROM {table} WHERE {self._first[table]} = ?"
            (row,) = self._database.execute(statement, (key,))
        return [_listed(text) for text in row]

    def close(self) -> None:
        self._database.close()
