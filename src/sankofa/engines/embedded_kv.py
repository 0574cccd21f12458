"""The default key-value store: files under HOME, no server.

Values are rows of an SQLite file, which is durable and shows every process the last commit. Counters are in a
separate table file (counter_file.py): a SQLite write transaction per request costs twice as much, and waiting
writers sleep for tens of milliseconds. See docs/decisions/key-value-store.md.
"""

import asyncio
import ctypes
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

from sankofa.engines.counter_file import CounterFile
from sankofa.engines.keyvalue import PROBE, Window
from sankofa.engines.private_files import SQLITE_FAILURES, try_lock
from sankofa.model.errors import StoreUnavailable
from sankofa.model.limits import limit

_CALL_SECONDS = limit("call of an embedded store", 0.8, "seconds", "503")
_BUSY_SECONDS = 0.002
_TRIES_BEFORE_SLEEP = 20
_SLEEP_SECONDS = 0.0002
_MOST_KNOWN = 4096
_MOST_UNCOUNTED = 64
_SAME_FILES_SECONDS = 0.25
"""How long open files are used without checking that they were not replaced; see `_notice_other_files`."""

_SCHEMA = "CREATE TABLE IF NOT EXISTS stored (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"
_GET = "SELECT value FROM stored WHERE name = ?"
_PUT = "INSERT INTO stored VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
_REPLACE = "UPDATE stored SET value = ?3 WHERE name = ?1 AND value = ?2 RETURNING name"
_NAMES = "SELECT name FROM stored WHERE name >= ?1 AND name < ?1 || char(0x10FFFF) ORDER BY name"


class EmbeddedKeyValue:
    """A KeyValue in one SQLite file and its table of counters (`<file>-counters`)."""

    def __init__(
        self, path: str, component: str, clock: Callable[[], float] = time.time, *, reserve: int = 0
    ) -> None:
        """`reserve`: bytes of disk to take in advance for the counters."""
        self._reserve = reserve
        self._path = Path(path)
        self._component = component
        self._clock = clock
        self._values: sqlite3.Connection | None = None
        self._values_process = 0
        self._values_identity: tuple[int, int] | None = None
        self._counters: CounterFile | None = None
        self._counters_path = self._path.with_name(self._path.name + "-counters")
        self._known: dict[str, tuple[bytes, bytes]] = {}
        self._look_at_files_again = 0.0
        self._uncounted: set[str] = set()
        """Names that could not be counted since the last probe that found all well."""

    async def get(self, name: str) -> bytes | None:
        """One read of a few bytes shows whether anything was put since the value was last looked up."""
        if time.monotonic() >= self._look_at_files_again:
            self._notice_other_files()
        known = self._known.get(name)
        if known is not None and self._counters is not None and known[0] == self._counters.generation():
            return known[1]
        generation = self._generation()
        self._notice_other_files()
        rows = await self._rows(_GET, (name,))
        # The value of a damaged row may have any type; such a value was never written.
        value = (rows[0][0] if isinstance(rows[0][0], bytes) else b"") if rows else None
        if generation is not None and value is not None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[name] = generation, value
        return value

    async def put(self, name: str, value: bytes) -> None:
        """Safe against a kill at any instruction: cached values are invalid during the write, and one process
        writes at a time."""
        await self._change(_PUT, (name, value))

    async def replace(self, name: str, expected: bytes, value: bytes) -> bool:
        return bool(await self._change(_REPLACE, (name, expected, value)))

    async def _change(self, statement: str, values: tuple[str | bytes, ...]) -> list[Any]:
        async with self._writing():
            self._notice_other_files()
            with self._counters_in_use() as counters:
                counters.begin_change()
            try:
                return await self._rows(statement, values)
            finally:
                with suppress(OSError):  # every get then looks the value up again
                    self._open_counters().end_change()

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[None]:
        """Takes the write lock of all processes; it ends with the process."""
        descriptor = -1
        deadline = time.monotonic() + _CALL_SECONDS
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = self._path.with_name(self._path.name + "-lock")
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            while not try_lock(descriptor):
                if time.monotonic() > deadline:
                    raise TimeoutError(0, "another process is writing")
                await asyncio.sleep(_BUSY_SECONDS)
        except OSError as error:
            if descriptor >= 0:
                os.close(descriptor)
            raise self._unavailable(error) from error
        try:
            yield
        finally:
            os.close(descriptor)

    def _generation(self) -> bytes | None:
        try:
            return self._open_counters().generation()
        except OSError:
            self._drop_counters()
            return None

    async def names(self, prefix: str) -> list[str]:
        return [name for (name,) in await self._rows(_NAMES, (prefix,)) if isinstance(name, str)]

    async def count(self, name: str, windows: Sequence[Window]) -> tuple[int, ...]:
        """A page is locked for microseconds, so this yields a few times, then sleeps without blocking the
        loop."""
        now = int(self._clock())
        tries, deadline = 0, 0.0
        try:
            while (counts := (self._counters or self._open_counters()).try_count(name, windows, now)) is None:
                tries += 1
                if tries < _TRIES_BEFORE_SLEEP:
                    os.sched_yield()
                    continue
                deadline = deadline or time.monotonic() + _CALL_SECONDS
                if time.monotonic() > deadline:
                    raise TimeoutError(0, "another process holds the counters")
                await asyncio.sleep(_SLEEP_SECONDS)
        except OSError as error:
            self._drop_counters()
            if len(self._uncounted) < _MOST_UNCOUNTED:
                self._uncounted.add(name)
            raise self._unavailable(error) from error
        return counts

    async def counts(self, name: str, windows: Sequence[Window]) -> tuple[int, ...]:
        with self._counters_in_use() as counters:
            return counters.counts(name, windows, int(self._clock()))

    async def ping(self) -> None:
        await self._rows(_GET, ("",))
        with self._counters_in_use() as counters:
            counters.check()

    async def probe_counting(self) -> None:
        """Probes the writes of requests: there must be room for the names that failed, and for one more page.
        The probe's page is already allocated."""
        with self._counters_in_use() as counters:
            counters.check_room(self._uncounted)
        await self.count(*PROBE)
        self._uncounted.clear()

    async def close(self) -> None:
        self._drop_values()
        self._drop_counters()

    async def _rows(self, statement: str, values: tuple[str | bytes, ...]) -> list[Any]:
        deadline = 0.0
        while True:
            try:
                return self._open_values().execute(statement, values).fetchall()
            except (*SQLITE_FAILURES, OSError) as error:
                deadline = deadline or time.monotonic() + _CALL_SECONDS
                # Another process is writing, or turning a new file to WAL: SQLite has several codes for it.
                is_busy = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY
                if not is_busy or time.monotonic() > deadline:
                    # On a full disk reading goes on, but opening again would fail.
                    if statement not in (_PUT, _REPLACE):
                        self._drop_values()
                    raise self._unavailable(error) from error
            await asyncio.sleep(_BUSY_SECONDS)

    def _open_values(self) -> sqlite3.Connection:
        process = os.getpid()
        if self._values is not None and self._values_process == process:
            return self._values
        self._drop_values()
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Private: SQLite would make it readable by everyone. Companion files get the same mode.
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        identity = _identity(self._path)
        # No timeout: SQLite would sleep with the whole event loop; _rows waits instead.
        connection = sqlite3.connect(self._path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")  # a revoked key survives a power cut
            connection.execute(_SCHEMA)
        except SQLITE_FAILURES:
            connection.close()
            raise
        self._values, self._values_process, self._values_identity = connection, process, identity
        return connection

    def _notice_other_files(self) -> None:
        """Reopens files that an operator has replaced, for example with a restored file. Runs before each
        value is read, and often otherwise; it takes one or two system calls."""
        self._look_at_files_again = time.monotonic() + _SAME_FILES_SECONDS
        if self._counters is not None and _identity(self._counters_path) != self._counters.identity:
            self._drop_counters()
            self._known.clear()
        if self._values is not None and _identity(self._path) != self._values_identity:
            _never_close(self._values)
            self._values = None
            self._known.clear()

    def _open_counters(self) -> CounterFile:
        if self._counters is None:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._counters = CounterFile(self._counters_path, self._reserve)
        return self._counters

    @contextmanager
    def _counters_in_use(self) -> Iterator[CounterFile]:
        """Close the counters on a failure, and raise StoreUnavailable."""
        try:
            yield self._open_counters()
        except OSError as error:
            self._drop_counters()
            raise self._unavailable(error) from error

    def _drop_values(self) -> None:
        """Close the failed files. The next call opens them again: this is how the store recovers."""
        connection, self._values = self._values, None
        if connection is not None and self._values_process != os.getpid():
            _never_close(connection)  # inherited through fork (SQLite, "How To Corrupt")
        elif connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def _drop_counters(self) -> None:
        counters, self._counters = self._counters, None
        if counters is not None:
            counters.close()

    def _unavailable(self, error: Exception) -> StoreUnavailable:
        return StoreUnavailable(self._component, getattr(error, "strerror", None) or str(error))


class EmptyKeyValue:
    """A KeyValue without files, for a command that only reads: it creates none."""

    async def get(self, name: str) -> bytes | None:
        return None

    async def put(self, name: str, value: bytes) -> None:
        raise StoreUnavailable("key-value store", "a command that only reads stores nothing")

    async def replace(self, name: str, expected: bytes, value: bytes) -> bool:
        return False

    async def names(self, prefix: str) -> list[str]:
        return []

    async def count(self, name: str, windows: Sequence[Window]) -> tuple[int, ...]:
        return (1,) * len(windows)

    async def counts(self, name: str, windows: Sequence[Window]) -> tuple[int, ...]:
        return (0,) * len(windows)

    async def ping(self) -> None:
        """There is nothing to read."""

    async def probe_counting(self) -> None:
        """There is nothing to count in."""

    async def close(self) -> None:
        """Nothing is open."""


def _identity(path: Path) -> tuple[int, int] | None:
    """Identifies the file at a path; None if there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _never_close(connection: sqlite3.Connection) -> None:
    """Keeps the connection open until the process ends: closing it would remove the `-wal` file, whose name
    now belongs to another file."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
