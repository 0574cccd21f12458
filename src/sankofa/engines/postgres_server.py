"""The PostgreSQL server: how to reach it, and the messages of its failures.

The driver is imported here only, so that its absence is reported in one place. No text that leaves this
package quotes the URL, which may carry a password, or the address of the server.
"""

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Final

from sankofa.model.errors import OperatorError, SettingsError

try:
    import psycopg as psycopg
    from psycopg.conninfo import conninfo_to_dict
except ImportError as missing:
    raise SettingsError(
        "SANKOFA_DATASTORE: postgresql:// needs a driver: make setup EXTRAS=1, or install sankofa[postgres]"
    ) from missing

LATE = "did not answer in time"
LOST = "connection closed"
UNREACHABLE = "could not be reached"
NO_SUCH_TABLE: Final = ("42P01", "3F000")
_PASSING: Final = ("08", "57P", "26", "40001")
"""Codes where only the connection is at fault: the server restarts, or a standby cancelled the query."""

_COMMAND_CONNECT_SECONDS = 10
_SERVING_CONNECT_SECONDS = 2  # the least that libpq accepts
_COMMAND_SESSION = b"""
    SET client_min_messages = warning; SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0;
    SET lock_timeout = '60s'; SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10;
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'
"""  # a command that reports success must survive a crash of the server


class Unanswered(Exception):
    """The connection is lost or silent. Another may work."""


class _Reading(psycopg.Connection[Any]):
    """Closes with its last reference; the driver's destructor would warn about it."""

    def __del__(self, *_: object) -> None:
        self.close()


class Server:
    """Address and credentials of the server. Never shown."""

    def __init__(self, url: str) -> None:
        try:
            self._options: dict[str, Any] = dict(conninfo_to_dict(url))
        except psycopg.Error:  # its text may quote the URL
            expected = "postgresql://user:password@host:port/database"
            raise SettingsError(f"SANKOFA_DATASTORE: not a PostgreSQL URL: expected {expected}") from None
        self._options = {"application_name": "sankofa", **self._options, "client_encoding": "UTF8"}
        self._reads = self._options.pop("target_session_attrs", "any")
        if self._reads in ("read-write", "primary"):  # the serving side only reads
            self._reads = "any"

    def connect(self) -> psycopg.Connection[Any]:
        """A connection of a command, which may wait as long as its work takes."""
        with operator_errors():
            options = {"connect_timeout": _COMMAND_CONNECT_SECONDS, **self._options}
            if any("," in str(options.get(name, "")) for name in ("host", "hostaddr")):  # a command writes
                options["target_session_attrs"] = "read-write"
            connection = psycopg.connect(autocommit=True, **options)
            encoding = connection.info.parameter_status("server_encoding")
            if encoding != "UTF8":
                connection.close()
                raise OperatorError(f"PostgreSQL: the database is encoded in {encoding}, not UTF8")
            connection.execute(_COMMAND_SESSION)
            return connection

    def connect_to_read(self) -> psycopg.Connection[Any]:
        """A connection of the serving side. Raises Unanswered."""
        own = {"target_session_attrs": self._reads, "connect_timeout": _SERVING_CONNECT_SECONDS}
        try:
            return _Reading.connect(autocommit=True, prepare_threshold=None, **{**self._options, **own})
        except psycopg.Error as failure:
            late = isinstance(failure, psycopg.errors.ConnectionTimeout)
            raise Unanswered(LATE if late else UNREACHABLE) from None


class BoundedConnection:
    """One connection for queries from threads. Each query is answered or given up in time.

    On a timeout the driver asks the server to cancel and waits for its reply, which a frozen server never
    sends. So a separate thread runs the query, and is abandoned if no answer comes. Until it does, every
    other query fails at once.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._connection: psycopg.Connection[Any] | None = None
        self._is_left = False
        """Whether the thread that still waits for the connection must close it."""

    def ask(self, text: str, values: tuple[object, ...] = (), *, seconds: float) -> list[Any]:
        """The rows of a query. Raises Unanswered, or psycopg.Error if the server refuses it."""
        if not self._lock.acquire(timeout=seconds):
            raise Unanswered(LATE)
        answer: Future[list[Any]] = Future()

        def work() -> None:
            try:
                answer.set_result(self._answer(text.encode(), values))
            except BaseException as failure:
                answer.set_exception(failure)
            finally:
                if self._is_left:
                    self._drop()
                self._lock.release()

        threading.Thread(target=work, name="postgresql", daemon=True).start()
        try:
            return answer.result(seconds)
        except TimeoutError:
            raise Unanswered(LATE) from None

    def close(self) -> None:
        """The next query opens it again."""
        self._is_left = True
        if self._lock.acquire(blocking=False):
            self._drop()
            self._lock.release()

    def _drop(self) -> None:
        self._is_left = False
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _answer(self, text: bytes, values: tuple[object, ...]) -> list[Any]:
        was_open = self._connection is not None
        connection = self._connection = self._connection or self._server.connect_to_read()
        try:
            return connection.execute(text, values, binary=True).fetchall()
        except psycopg.Error as failure:
            state = failure.sqlstate or ""
            if state and not state.startswith(_PASSING):
                raise
            self._drop()
            if was_open:  # the connection had died meanwhile
                return self._answer(text, values)
            raise Unanswered(f"refused ({state})" if state else LOST) from None


@contextmanager
def operator_errors() -> Iterator[None]:
    """Report a refusal to the operator in the server's own words, without a traceback."""
    try:
        yield
    except psycopg.Error as failure:
        raise OperatorError(f"PostgreSQL: {message_of(failure)}") from None


def message_of(failure: psycopg.Error) -> str:
    if failure.diag.message_primary:
        return failure.diag.message_primary
    if isinstance(failure, psycopg.errors.ConnectionTimeout):
        return LATE
    text = str(failure)
    if "resolve host" in text:
        return "the name of its host cannot be resolved"
    _, mark, reason = text.partition(" failed: ")
    while " failed: " in reason:
        reason = reason.partition(" failed: ")[2]
    lines = reason.removeprefix("FATAL:").strip().splitlines()
    return lines[0] if mark and lines else LOST
