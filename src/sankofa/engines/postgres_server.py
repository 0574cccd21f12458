"""The PostgreSQL server: how to reach it, and the messages of its failures.

The driver is imported here and handed on, so that its absence is reported in one place. No text that leaves
this package quotes the URL, which may carry a password; nor the server's address, which is nobody's
business on a public surface.
"""

import select
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from sankofa.model.errors import OperatorError, SettingsError

try:
    import psycopg
    from psycopg import pq
    from psycopg.conninfo import conninfo_to_dict
except ImportError as missing:
    raise SettingsError(
        "SANKOFA_DATASTORE: postgresql:// needs a driver: make setup EXTRAS=1, or install sankofa[postgres]"
    ) from missing

__all__ = [
    "LATE",
    "LOST",
    "NO_SUCH_TABLE",
    "BoundedConnection",
    "Refused",
    "Server",
    "Unanswered",
    "message_of",
    "operator_errors",
    "pq",
    "psycopg",
]

LATE = "did not answer in time"
LOST = "connection closed"
UNREACHABLE = "could not be reached"
NO_SUCH_TABLE: Final = ("42P01", "3F000")

_COMMAND_CONNECT_SECONDS = 10
_SERVING_CONNECT_SECONDS = 2  # the least that libpq accepts
# What the serving side asks of a server, by the target_session_attrs of the URL: it only reads.
_READS = {
    "standby": ("standby",),
    "read-only": ("read-only",),
    "prefer-standby": ("standby", "any"),
}
_COMMAND_SESSION = b"""
    SET client_min_messages = warning; SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0;
    SET lock_timeout = '60s'; SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10;
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'
"""  # a command that reports success must survive a crash of the server


class Unanswered(Exception):
    """The connection is lost or silent. Another may work."""


class Refused(Exception):
    """The server answered with an error."""

    def __init__(self, sqlstate: str, message: str) -> None:
        super().__init__(f"refused ({sqlstate})")
        self.sqlstate = sqlstate
        self.message = message

    @classmethod
    def by(cls, result: pq.abc.PGresult) -> "Refused":
        state = result.error_field(pq.DiagnosticField.SQLSTATE) or b""
        message = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or b""
        return cls(state.decode(), message.decode(errors="replace"))

    @property
    def passing(self) -> bool:
        """True if only this connection is at fault: the server restarts, lost a statement, or is a standby
        that cancelled the query."""
        return self.sqlstate.startswith(("08", "57P", "26")) or self.sqlstate == "40001"


class _Opened(psycopg.Connection[Any]):
    """A connection opened by the driver that we drive ourselves; the driver's destructor would warn about
    it."""

    def __del__(self, *_: object) -> None:
        pass


class Server:
    """Address and credentials of the server. Never shown."""

    def __init__(self, url: str) -> None:
        try:
            self._options: dict[str, Any] = dict(conninfo_to_dict(url))
        except psycopg.Error:  # its text may quote the URL
            expected = "postgresql://user:password@host:port/database"
            raise SettingsError(f"SANKOFA_DATASTORE: not a PostgreSQL URL: expected {expected}") from None
        self._options = {"application_name": "sankofa", **self._options, "client_encoding": "UTF8"}
        self._hosts = _hosts(self._options)
        self._reads = _READS.get(self._options.pop("target_session_attrs", "any"), ("any",))
        self._last: dict[str, Any] = {}  # the host that answered last is asked first

    def connect(self) -> psycopg.Connection[Any]:
        """A connection of a command, which may wait as long as its work takes."""
        with operator_errors():
            options = {"connect_timeout": _COMMAND_CONNECT_SECONDS, **self._options}
            if len(self._hosts) > 1:  # a command writes
                options["target_session_attrs"] = "read-write"
            connection = psycopg.connect(autocommit=True, **options)
            encoding = connection.info.parameter_status("server_encoding")
            if encoding != "UTF8":
                connection.close()
                raise OperatorError(f"PostgreSQL: the database is encoded in {encoding}, not UTF8")
            connection.execute(_COMMAND_SESSION)
            return connection

    def connect_within_seconds(self) -> pq.abc.PGconn:
        """A bare connection of the serving side, from a thread. Raises Unanswered."""
        reason = UNREACHABLE
        for host in self._attempts():
            try:
                options = {**self._options, **host, "connect_timeout": _SERVING_CONNECT_SECONDS}
                connection = _Opened.connect(**options).pgconn
            except psycopg.Error as failure:
                reason = _why_not(failure)
                failure.__traceback__ = None  # it leads to the driver's socket
            else:
                self._last = host
                return connection
        raise Unanswered(reason)

    def _attempts(self) -> list[dict[str, Any]]:
        """Each host of the URL, in the order in which reads may use it."""
        wanted = [{**host, "target_session_attrs": kind} for kind in self._reads for host in self._hosts]
        return sorted(wanted, key=lambda attempt: attempt != self._last)


class BoundedConnection:
    """One connection for questions from threads. Each is answered or given up in time.

    The driver answers a timeout by asking the server to cancel, and waits for it to agree, which a frozen
    server never does. So this waits itself, on libpq's non-blocking calls, and closes what stays silent.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._connection: pq.abc.PGconn | None = None

    def ask(
        self, text: str, values: Sequence[str] = (), *, seconds: float, binary: bool = False
    ) -> list[list[bytes | None]]:
        """The rows of a query. Raises Unanswered or Refused."""
        was_open = self._connection is not None
        if not self._lock.acquire(timeout=seconds):
            raise Unanswered(LATE)
        try:
            if was_open and self._connection is None:  # the previous query found the server silent
                raise Unanswered(LATE)
            was_open = self._connection is not None
            try:
                return self._ask(text, values, seconds, binary)
            except Unanswered as failure:
                if not was_open or str(failure) == LATE:
                    raise
                return self._ask(text, values, seconds, binary)  # the open connection had died meanwhile
        finally:
            self._lock.release()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.finish()

    def _ask(
        self, text: str, values: Sequence[str], seconds: float, binary: bool
    ) -> list[list[bytes | None]]:
        if self._connection is None:
            self._connection = self._server.connect_within_seconds()
        form = pq.Format.BINARY if binary else pq.Format.TEXT
        try:
            self._connection.send_query_params(
                text.encode(), [value.encode() for value in values], result_format=form
            )
            result = _answer(self._connection, time.monotonic() + seconds)
        except (psycopg.Error, Unanswered) as failure:
            self.close()
            raise Unanswered(str(failure) if isinstance(failure, Unanswered) else LOST) from None
        if result.status != pq.ExecStatus.TUPLES_OK:
            refused = Refused.by(result)
            if refused.passing:
                self.close()
                raise Unanswered(str(refused))
            raise refused
        columns = range(result.nfields)
        return [[result.get_value(row, column) for column in columns] for row in range(result.ntuples)]


def _answer(connection: pq.abc.PGconn, deadline: float) -> pq.abc.PGresult:
    poll = select.poll()
    last: pq.abc.PGresult | None = None
    while True:
        poll.register(connection.socket, select.POLLIN | (select.POLLOUT if connection.flush() else 0))
        while not connection.is_busy():
            result = connection.get_result()
            if result is None:
                if last is None:
                    raise Unanswered(LOST)
                return last
            last = result
        left = deadline - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            raise Unanswered(LATE)
        connection.consume_input()


def _hosts(options: dict[str, Any]) -> list[dict[str, Any]]:
    """The hosts of a URL with several. Options that apply to all of them stay in the options."""
    named = {
        name: str(options[name]).split(",") for name in ("host", "hostaddr", "port") if options.get(name)
    }
    number = max((len(values) for values in named.values()), default=1)
    if number == 1:
        return [{}]
    return [
        {name: values[at] if len(values) > 1 else values[0] for name, values in named.items()}
        for at in range(number)
    ]


def _why_not(failure: psycopg.Error) -> str:
    return LATE if isinstance(failure, psycopg.errors.ConnectionTimeout) else UNREACHABLE


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
