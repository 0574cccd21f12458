"""The ledger in PostgreSQL: a separate schema, append-only by triggers that no session setting skips."""

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from itertools import count
from typing import Final

import msgspec

from sankofa.engines.ledger_store import LedgerSession, LedgerStore, LockName, Row
from sankofa.engines.postgres_server import (
    NO_SUCH_TABLE,
    BoundedConnection,
    Server,
    Unanswered,
    operator_errors,
    psycopg,
)
from sankofa.model.errors import OperatorError, StoreUnavailable
from sankofa.model.limits import limit

LEDGER = "sankofa_ledger"

# Names of advisory locks; they are shared by everything in the database.
_CREATING, _WRITING = 0x53414E4B4F464101, 0x53414E4B4F464102
_LOCKS: Final[dict[LockName, int]] = {"publish": 0x53414E4B4F464103, "switch": 0x53414E4B4F464104}

_PING_SECONDS: Final = limit(
    "answer of PostgreSQL to a status check", 0.8, "seconds", "/v1/status is degraded; data is answered"
)
_CAPTURED_SECONDS: Final = 1.9
_NOT_PERMITTED: Final = "42501"
# The server counts the rows that are written to each table, and gives a table that is rewritten another file.
_WRITES: Final = b"""
    SELECT c.relname, c.oid, pg_relation_filenode(c.oid), pg_stat_get_tuples_inserted(c.oid),
           pg_stat_get_tuples_updated(c.oid), pg_stat_get_tuples_deleted(c.oid)
    FROM pg_class AS c WHERE c.relnamespace = to_regnamespace('sankofa_ledger') AND c.relkind = 'r' ORDER BY 1
"""
# Counters restart at zero after a crash or a manual reset.
_COUNTED_SINCE: Final = b"""
    SELECT oid, pg_stat_get_db_stat_reset_time(oid)::text FROM pg_database WHERE datname = current_database()
"""
_COUNT_AT_COMMIT: Final = b"SELECT pg_stat_force_next_flush()"
_CAN_COUNT_AT_COMMIT: Final = 15_00_00
"""The first server version that counts at once. Older servers count seconds later: the next publication then
compares everything."""

_FETCH = 2_000
_encode = msgspec.json.Encoder().encode
_Status = psycopg.pq.TransactionStatus
_REFUSE = f"""
CREATE OR REPLACE FUNCTION {LEDGER}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'the ledger is append-only: % on % refused', TG_OP, TG_TABLE_NAME; END $$
"""
_GUARDED_TABLES = b"""
SELECT c.relname FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid
WHERE c.relnamespace = to_regnamespace('sankofa_ledger')
AND t.tgname = 'refuses_changes' AND t.tgenabled = 'A'
"""
_COLUMNS = """
SELECT attname FROM pg_attribute
WHERE attrelid = to_regclass(?) AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
# The planner has no statistics for a table filled in this transaction: make it use the keys.
_WRITER_SETTINGS = b"SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; SET LOCAL jit = off"


class PostgresLedger(LedgerSession):
    """Raises OperatorError."""

    def __init__(self, server: Server, schema: str) -> None:
        """Without a schema only to read."""
        self._connection = server.connect()
        self._names = count()
        self._transactions = count(1)
        self._transaction = 0  # number of the current transaction
        self._staged: set[str] = set()
        try:
            with operator_errors():
                if schema:
                    self._create(schema)
                else:
                    self._connection.execute(f"SET search_path = {LEDGER}".encode())
        except BaseException:
            self._connection.close()
            raise

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        with operator_errors(), self._connection.transaction():
            self._connection.execute(b"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            self._transaction = next(self._transactions)
            try:
                yield
            finally:
                self._transaction = 0

    def query(self, sql: str, parameters: Sequence[object] = ()) -> Iterator[Row]:
        """Uses a server-side cursor: answers may be larger than memory, and can be interleaved."""
        name = f"rows_{next(self._names)}"
        hold = "" if self._transaction else " WITH HOLD"
        select = sql.replace("%", "%%").replace("?", "%s")
        statement = f"DECLARE {name} NO SCROLL CURSOR{hold} FOR {select}; FETCH {_FETCH} FROM {name}"
        with operator_errors(), psycopg.ClientCursor(self._connection) as cursor:
            cursor.execute(statement.encode(), parameters)
            cursor.nextset()
            return self._rest(name, cursor.fetchall(), self._transaction)

    def _rest(self, name: str, rows: list[Row], transaction: int) -> Iterator[Row]:
        try:
            while rows:
                yield from rows
                more = len(rows) == _FETCH
                rows = self._on_cursor(f"FETCH {_FETCH} FROM {name}").fetchall() if more else []
        finally:
            usable = self._connection.info.transaction_status in (_Status.IDLE, _Status.INTRANS)
            if usable and transaction in (0, self._transaction):  # otherwise it is closed already
                self._on_cursor(f"CLOSE {name}")

    def _on_cursor(self, statement: str) -> psycopg.Cursor[Row]:
        with operator_errors():
            return self._connection.execute(statement.encode())

    def close(self) -> None:
        self._connection.close()

    def _create(self, schema: str) -> None:
        """Creates missing tables, and the triggers that refuse changes. Does nothing if everything exists:
        another session may be writing, or this account may only append."""
        tables = re.findall(r"CREATE TABLE IF NOT EXISTS (\w+)", schema)
        guarded = {name for (name,) in self._connection.execute(_GUARDED_TABLES)}
        if not guarded.issuperset(tables):
            with self._connection.transaction():
                self._connection.execute(f"SELECT pg_advisory_xact_lock({_CREATING})".encode())
                guarded = {name for (name,) in self._connection.execute(_GUARDED_TABLES)}
                self._connection.execute(f"CREATE SCHEMA IF NOT EXISTS {LEDGER}".encode())
                self._connection.execute(f"SET LOCAL search_path = {LEDGER}".encode())
                self._connection.execute(re.sub(r"\bTEXT\b", 'TEXT COLLATE "C"', schema).encode())
                self._connection.execute(_REFUSE.encode())
                for table in tables:
                    if table not in guarded:
                        self._connection.execute(_guard(table).encode())
        self._connection.execute(f"SET search_path = {LEDGER}".encode())
        for table in tables:
            self._connection.execute(f"CREATE TEMP TABLE staged_{table} (LIKE {LEDGER}.{table})".encode())

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with operator_errors(), self._connection.transaction():
            try:
                self._connection.execute(f"SELECT pg_advisory_xact_lock({_WRITING})".encode())
            except psycopg.errors.LockNotAvailable:
                raise OperatorError(
                    "PostgreSQL: another command is writing to the ledger; try again later"
                ) from None
            self._connection.execute(_WRITER_SETTINGS)
            self._transaction = next(self._transactions)
            try:
                yield
                if self._connection.info.server_version >= _CAN_COUNT_AT_COMMIT:
                    self._connection.execute(_COUNT_AT_COMMIT)
            finally:
                self._transaction = 0

    def encoded_rows(self, table: str, order: str = "") -> Iterator[tuple[int, bytes]]:
        """Reads by a table scan, in any order."""
        names = [name for (name,) in self.query(_COLUMNS, (f"{LEDGER}.{table}",))]
        at = names.index("capture_id") if "capture_id" in names else None
        for row in self.query(f"SELECT {', '.join(names)} FROM {table}"):
            yield 0 if at is None else row[at], _encode(row)

    def append(self, table: str, rows: Sequence[Row]) -> int:
        if not rows:
            return 0
        self.stage(table, rows)
        return self.absorb(f"INSERT INTO {table} SELECT * FROM staged_{table} ON CONFLICT DO NOTHING")

    def stage(self, table: str, rows: Sequence[Row]) -> None:
        with operator_errors(), self._connection.cursor() as cursor:
            self._staged.add(table)
            with cursor.copy(f"COPY staged_{table} FROM STDIN".encode()) as copy:
                for row in rows:
                    copy.write_row(row)

    def run(self, statement: str) -> tuple[int, list[Row]]:
        with operator_errors():
            cursor = self._connection.execute(statement.encode())
            rows = cursor.fetchall() if cursor.description else []
            if self._staged:
                staged = ", ".join(f"staged_{table}" for table in sorted(self._staged))
                self._connection.execute(f"TRUNCATE {staged}".encode())
                self._staged.clear()
        return cursor.rowcount, rows


class PostgresLedgers(LedgerStore):
    """One database, which several machines may share."""

    def __init__(self, url: str, schema: str) -> None:
        self._server = Server(url)
        self._schema = schema
        self._bounded = BoundedConnection(self._server)
        self._thread: ThreadPoolExecutor | None = None
        self._pending_ping: asyncio.Future[list[Row]] | None = None

    def open(self) -> PostgresLedger:
        return PostgresLedger(self._server, self._schema)

    def opener(self) -> Callable[[], PostgresLedger]:
        return partial(PostgresLedger, self._server, "")

    def captured(self) -> list[tuple[str, str]]:
        """A role that may not read the ledger sees no capture."""
        return self._read("SELECT source_id, counts FROM sankofa_ledger.capture", _CAPTURED_SECONDS)

    def written_state(self) -> str:
        """A digest of how often the server wrote to the tables. It does not show bytes lost by a disk."""
        with operator_errors(), self._server.connect() as connection:
            rows = [*connection.execute(_COUNTED_SINCE), *connection.execute(_WRITES)]
        return sha256("\n".join(map(repr, rows)).encode()).hexdigest()

    @contextmanager
    def exclusive(self, lock_name: LockName, waiting: Callable[[], None]) -> Iterator[None]:
        """A session lock: the server releases it when the connection ends, for any reason."""
        with operator_errors():
            connection = self._server.connect()
        try:
            with operator_errors():
                lock = (_LOCKS[lock_name],)
                if connection.execute(b"SELECT pg_try_advisory_lock(%s)", lock).fetchone() != (True,):
                    waiting()
                    connection.execute(b"SET lock_timeout = 0")
                    connection.execute(b"SELECT pg_advisory_lock(%s)", lock)
            yield
        finally:
            connection.close()

    async def ping(self) -> None:
        """Concurrent callers share one answer, in one thread, so a frozen server blocks no other work."""
        loop = asyncio.get_running_loop()
        pending = self._pending_ping
        if pending is None or pending.done() or pending.get_loop() is not loop:
            if self._thread is None:
                self._thread = ThreadPoolExecutor(1, thread_name_prefix="postgresql")
            question = "SELECT capture_id FROM sankofa_ledger.capture LIMIT 1", _PING_SECONDS
            pending = self._pending_ping = loop.run_in_executor(self._thread, self._read, *question)
            # Marks the result as read: an answer without a waiting caller is not an error.
            pending.add_done_callback(lambda ping: ping.cancelled() or ping.exception())
        await asyncio.shield(pending)

    def close(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.shutdown(wait=False, cancel_futures=True)
        self._bounded.close()

    def _read(self, question: str, seconds: float) -> list[Row]:
        """Empty if there is no ledger, or this role may not read it. Raises StoreUnavailable."""
        try:
            return self._bounded.ask(question, seconds=seconds)
        except psycopg.Error as refused:
            if refused.sqlstate in (*NO_SUCH_TABLE, _NOT_PERMITTED):
                return []
            raise StoreUnavailable("datastore", f"refused ({refused.sqlstate})") from None
        except Unanswered as failure:
            raise StoreUnavailable("datastore", str(failure)) from None


def _guard(table: str) -> str:
    """Uses ALWAYS, so that a session cannot skip the trigger by becoming a replica."""
    return f"""
        DROP TRIGGER IF EXISTS refuses_changes ON {table};
        CREATE TRIGGER refuses_changes BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}
        FOR EACH STATEMENT EXECUTE FUNCTION {LEDGER}.refuse();
        ALTER TABLE {table} ENABLE ALWAYS TRIGGER refuses_changes
    """
