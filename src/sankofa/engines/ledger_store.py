"""The ledger's store: SQLite in one file here, PostgreSQL in `engines.postgres_ledger`; a URL picks one.

Statements are written once, with `?` for parameters, in the SQL both understand.
"""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol

from sankofa.engines.private_files import locked, make_private_folder, operator_errors
from sankofa.model.errors import SettingsError

Row = tuple[Any, ...]
Saw = Callable[[str, Sequence[Row]], None]
LockName = Literal["publish", "switch"]
"""Locks: one command at a time builds an edition; one at a time moves the pointer or removes editions."""


class LedgerRows(Protocol):
    """The rows of a ledger, to be read by one thread."""

    def snapshot(self) -> AbstractContextManager[None]:
        """Queries inside see the ledger as of the first query; writers do not wait."""

    def query(self, sql: str, parameters: Sequence[object] = ()) -> Iterator[Row]:
        """The rows of a SELECT, streamed."""

    def close(self) -> None: ...


class LedgerSession(LedgerRows, Protocol):
    """One connection to the ledger, for one thread."""

    _saw: Saw | None = None

    def transaction(self) -> AbstractContextManager[None]:
        """All or nothing; one process writes at a time."""

    def encoded_rows(self, table: str, order: str = "") -> Iterator[tuple[int, bytes]]:
        """Every row of a table: its capture_id (0 if the table has none), and its columns as a JSON
        array as msgspec writes it; `order` is an ORDER BY, to read through an index."""

    def watch(self, saw: Saw | None) -> None:
        """Calls a function with the table and the rows of every later append; None stops that."""
        self._saw = saw

    def append(self, table: str, rows: Sequence[Row]) -> int:
        """Append the rows that are not there yet; returns how many were new."""

    def stage(self, table: str, rows: Sequence[Row]) -> None:
        """Bulk-load rows into the empty staging copy of a table, private to this session."""

    def absorb(self, statement: str) -> int:
        """Append the rows that the statement selects from the staging copies, and empty these; returns how
        many were new."""
        if self._saw is None:
            return self.run(statement)[0]
        appended, rows = self.run(f"{statement} RETURNING *")
        if rows:
            self._saw(statement.split()[2], rows)
        return appended

    def run(self, statement: str) -> tuple[int, list[Row]]:
        """Run a statement on the staging copies, and empty them; returns the number of rows and the
        result."""


class LedgerStore(Protocol):
    """The ledger's store, SQLite or PostgreSQL. No call needs an edition."""

    def open(self) -> LedgerSession: ...

    def opener(self) -> Callable[[], LedgerRows]:
        """A picklable function that opens the ledger for reading in another process."""

    def captured(self) -> list[tuple[str, str]]:
        """(source id, counts as JSON) for every capture; may be empty.

        Raises OperatorError or StoreUnavailable, and never waits for long.
        """

    def written_state(self) -> str:
        """A text that changes with every write to the ledger, and not when a ledger is opened."""

    def exclusive(self, lock_name: LockName, waiting: Callable[[], None]) -> AbstractContextManager[None]:
        """Runs one command at a time on all machines that share this ledger; `waiting` is called if this
        one must wait. The lock ends with the process that holds it.

        For one machine the lock of the datastore in the same folder is enough.
        """
        return nullcontext()

    async def ping(self) -> None:
        """A real read, if requests depend on a server. Raises StoreUnavailable."""
        return

    def close(self) -> None:
        """Close the connections of the serving side."""
        return


class SqliteLedger(LedgerSession):
    """Raises OperatorError."""

    def __init__(self, path: Path, schema: str) -> None:
        """Without a schema only to read, while another process has the ledger open."""
        self._path = path
        if not schema:
            with operator_errors(path):
                self._database = sqlite3.connect(path, isolation_level=None, timeout=60)
                self._database.execute("PRAGMA query_only = ON")
            return
        # One process at a time: turning a new file to WAL fails at once where another does the same.
        with operator_errors(path), locked(path.parent):
            self._database = sqlite3.connect(path, isolation_level=None, timeout=60)
            path.chmod(0o600)
            self._database.execute("PRAGMA page_size = 8192")  # new files: tenders have rows of 2 to 4 kB
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._database.execute("PRAGMA cache_size = -131072")
            self._database.execute("PRAGMA temp_store = MEMORY")
            self._create(schema)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        with operator_errors(self._path):
            self._database.execute("BEGIN")
        try:
            yield
        finally:
            with suppress(sqlite3.Error):  # nothing was written; damage was reported before
                self._database.execute("COMMIT")

    def query(self, sql: str, parameters: Sequence[object] = ()) -> Iterator[Row]:
        with operator_errors(self._path):
            cursor = self._database.execute(sql, parameters)
        return self._rows_of(cursor)

    def _rows_of(self, cursor: sqlite3.Cursor) -> Iterator[Row]:
        with operator_errors(self._path):  # a damaged page shows when it is read
            for row in cursor:  # noqa: UP028 - a `yield from` closes it, which fails after its connection
                yield row

    def close(self) -> None:
        self._database.close()

    def _create(self, schema: str) -> None:
        """Creates missing tables, and the triggers that refuse changes. REPLACE deletes without firing delete
        triggers, so a row that is there already is guarded before the insert too.
        """
        self._database.executescript(schema.replace("\n) /* clustered */", "\n) WITHOUT ROWID"))
        for (table,) in self._database.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table'"
        ).fetchall():
            columns = self._database.execute(f"PRAGMA table_info({table})").fetchall()
            key = " AND ".join(f"{column[1]} = NEW.{column[1]}" for column in columns if column[5])
            for verb in ("UPDATE", "DELETE"):
                self._database.execute(
                    f"CREATE TRIGGER IF NOT EXISTS {table}_refuses_{verb.lower()} BEFORE {verb} ON {table} "
                    f"BEGIN SELECT RAISE(ABORT, 'the ledger is append-only: {verb} on {table} refused'); END"
                )
            self._database.execute(
                f"CREATE TRIGGER IF NOT EXISTS {table}_keeps_rows BEFORE INSERT ON {table} "
                f"WHEN EXISTS (SELECT 1 FROM {table} WHERE {key}) BEGIN SELECT RAISE(IGNORE); END"
            )
            self._database.execute(f"CREATE TEMP TABLE staged_{table} AS SELECT * FROM {table} WHERE 0")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with operator_errors(self._path):
            self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            with operator_errors(self._path):
                self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                with suppress(sqlite3.Error):  # report the failure that led here
                    self._database.execute("ROLLBACK")
            raise

    def encoded_rows(self, table: str, order: str = "") -> Iterator[tuple[int, bytes]]:
        """SQLite writes the JSON, which is cheaper than an object per value. The type is bytes, because
        damaged text may not be UTF-8."""
        with operator_errors(self._path):
            names = [row[1] for row in self._database.execute(f"PRAGMA table_info({table})")]
        capture = "capture_id" if "capture_id" in names else "0"
        statement = f"SELECT {capture}, CAST(json_array({', '.join(names)}) AS BLOB) FROM {table}"
        return self.query(f"{statement} ORDER BY {order}" if order else statement)

    def append(self, table: str, rows: Sequence[Row]) -> int:
        """Appends in key order; the trigger skips existing rows. If there is a watcher, the statement
        returns the new rows. (A plain insert behind a savepoint costs more with every row: SQLite searches
        its journal from the start.)"""
        if not rows:
            return 0
        rows = sorted(rows)
        if self._saw is not None:
            self.stage(table, rows)
            return self.absorb(f"INSERT INTO {table} SELECT * FROM staged_{table} WHERE true")
        marks = ",".join("?" * len(rows[0]))
        with operator_errors(self._path):
            return self._database.executemany(f"INSERT INTO {table} VALUES ({marks})", rows).rowcount

    def stage(self, table: str, rows: Sequence[Row]) -> None:
        if rows:
            marks = ",".join("?" * len(rows[0]))
            with operator_errors(self._path):
                self._database.executemany(f"INSERT INTO temp.staged_{table} VALUES ({marks})", rows)

    def run(self, statement: str) -> tuple[int, list[Row]]:
        tables = "SELECT name FROM sqlite_temp_schema WHERE type = 'table'"
        with operator_errors(self._path):
            cursor = self._database.execute(statement)
            rows = cursor.fetchall()
            for (table,) in self._database.execute(tables).fetchall():
                self._database.execute(f"DELETE FROM temp.{table}")
        return len(rows) or cursor.rowcount, rows


class SqliteLedgers(LedgerStore):
    """One file, for one machine. Each session has its own connection."""

    def __init__(self, folder: Path, schema: str) -> None:
        self._path = folder / "ledger.sqlite"
        self._schema = schema

    def open(self) -> SqliteLedger:
        make_private_folder(self._path.parent)
        return SqliteLedger(self._path, self._schema)

    def opener(self) -> Callable[[], SqliteLedger]:
        return partial(SqliteLedger, self._path, "")

    def captured(self) -> list[tuple[str, str]]:
        if not self._path.exists():
            return []
        with operator_errors(self._path), closing(sqlite3.connect(self._path, timeout=1)) as database:
            if not database.execute("SELECT 1 FROM sqlite_schema WHERE name = 'capture'").fetchone():
                return []
            return database.execute("SELECT source_id, counts FROM capture").fetchall()

    def written_state(self) -> str:
        """The inode, size and time of writing of the file, and the size of the log beside it.

        An empty log counts as missing, because opening a ledger creates it.
        """
        with operator_errors(self._path):
            if not self._path.exists():
                return ""
            known = self._path.stat()
            state = f"{self._path.name} {known.st_ino} {known.st_size} {known.st_mtime_ns}"
            with suppress(FileNotFoundError):
                if waiting := self._path.with_name("ledger.sqlite-wal").stat().st_size:
                    state += f" {waiting}"
        return state


def open_ledgers(url: str, home: Path, schema: str) -> LedgerStore:
    """`sqlite:` (a file in HOME), `sqlite:FOLDER`, or `postgresql://...`."""
    scheme, _, rest = url.partition(":")
    if scheme == "sqlite":
        return SqliteLedgers(Path(rest) if rest else home, schema)
    if scheme in ("postgresql", "postgres"):
        from sankofa.engines.postgres_ledger import PostgresLedgers

        return PostgresLedgers(url, schema)
    raise SettingsError("SANKOFA_DATASTORE: expected sqlite: or postgresql://...")
