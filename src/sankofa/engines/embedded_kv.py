"""The default key-value store: files under HOME, no server.

Values are rows of an SQLite file, which is durable and shows every process the last commit.
Counters are a table of their own beside it (counter_file.py): a write transaction per request
costs SQLite twice as much, and its waiting writers sleep for tens of milliseconds.
See docs/decisions/0003-key-value-engines.md.
"""

import asyncio
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from sankofa.engines.counter_file import CounterFile
from sankofa.engines.keyvalue import PROBE, Window
from sankofa.model.errors import StoreUnavailable

_CALL_SECONDS = 0.8
_BUSY_SECONDS = 0.002
_TRIES_BEFORE_SLEEP = 20
_SLEEP_SECONDS = 0.0002
_MOST_KNOWN = 4096

_SCHEMA = "CREATE TABLE IF NOT EXISTS stored (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID"
_GET = "SELECT value FROM stored WHERE name = ?"
_PUT = "INSERT INTO stored VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
_NAMES = "SELECT name FROM stored WHERE name >= ?1 AND name < ?1 || char(0x10FFFF) ORDER BY name"

# A connection inherited through fork must not even be closed in the child (SQLite, "How To Corrupt").
_INHERITED: list[sqlite3.Connection] = []


class EmbeddedKeyValue:
    """A KeyValue in one SQLite file and its table of counters (`<file>-counters`)."""

    def __init__(self, path: str, component: str, clock: Callable[[], float] = time.time) -> None:
        self._path = Path(path)
        self._component = component
        self._clock = clock
        self._values: sqlite3.Connection | None = None
        self._values_process = 0
        self._counters: CounterFile | None = None
        self._known: dict[str, tuple[bytes, bytes]] = {}

    async def get(self, name: str) -> bytes | None:
        """One read of a few bytes tells whether anything was put since the value was last looked up."""
        generation = self._generation()
        known = self._known.get(name)
        if known is not None and known[0] == generation:
            return known[1]
        rows = await self._rows(_GET, (name,))
        value = bytes(rows[0][0]) if rows else None
        if generation is not None and value is not None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[name] = generation, value
        return value

    async def put(self, name: str, value: bytes) -> None:
        await self._rows(_PUT, (name, value))
        try:
            self._open_counters().bump()
        except OSError as error:
            self._drop_counters()
            raise self._unavailable(error) from error

    def _generation(self) -> bytes | None:
        try:
            return self._open_counters().generation()
        except OSError:
            self._drop_counters()
            return None

    async def names(self, prefix: str) -> list[str]:
        return [name for (name,) in await self._rows(_NAMES, (prefix,))]

    async def count(self, name: str, windows: Sequence[Window]) -> tuple[int, ...]:
        """A page is held for microseconds: worth a few yields, then sleeps that leave the loop free."""
        now = int(self._clock())
        tries, deadline = 0, 0.0
        try:
            while (counts := self._open_counters().try_count(name, windows, now)) is None:
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
            raise self._unavailable(error) from error
        return counts

    async def ping(self) -> None:
        await self._rows(_GET, ("",))
        try:
            self._open_counters().check()
        except OSError as error:
            self._drop_counters()
            raise self._unavailable(error) from error

    async def probe_counting(self) -> None:
        """A page more must fit too: the one of the probe itself has its place already."""
        try:
            self._open_counters().check_room()
        except OSError as error:
            self._drop_counters()
            raise self._unavailable(error) from error
        await self.count(*PROBE)

    async def close(self) -> None:
        self._drop_values()
        self._drop_counters()

    async def _rows(self, statement: str, values: tuple[str | bytes, ...]) -> list[Any]:
        deadline = 0.0
        while True:
            try:
                return self._open_values().execute(statement, values).fetchall()
            except (sqlite3.Error, OSError) as error:
                deadline = deadline or time.monotonic() + _CALL_SECONDS
                if not _is_busy(error) or time.monotonic() > deadline:
                    if statement != _PUT:  # on a full disk reading goes on, but opening again would fail
                        self._drop_values()
                    raise self._unavailable(error) from error
            await asyncio.sleep(_BUSY_SECONDS)

    def _open_values(self) -> sqlite3.Connection:
        process = os.getpid()
        if self._values is not None and self._values_process == process:
            return self._values
        self._drop_values()
        self._create_file()
        # No timeout: SQLite would sleep with the whole event loop; _rows waits instead.
        connection = sqlite3.connect(self._path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")  # a revoked key survives a power cut
            connection.execute(_SCHEMA)
        except sqlite3.Error:
            connection.close()
            raise
        self._values, self._values_process = connection, process
        return connection

    def _create_file(self) -> None:
        """SQLite would create it readable by everyone; its companion files take over the mode of this one."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))

    def _open_counters(self) -> CounterFile:
        if self._counters is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._counters = CounterFile(self._path.with_name(self._path.name + "-counters"))
        return self._counters

    def _drop_values(self) -> None:
        """Close what failed, so that the next call opens it afresh: this is how the store recovers."""
        connection, self._values = self._values, None
        if connection is not None and self._values_process != os.getpid():
            _INHERITED.append(connection)
        elif connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    def _drop_counters(self) -> None:
        counters, self._counters = self._counters, None
        if counters is not None:
            counters.close()

    def _unavailable(self, error: Exception) -> StoreUnavailable:
        return StoreUnavailable(self._component, getattr(error, "strerror", None) or str(error))


def _is_busy(error: Exception) -> bool:
    """Another process is writing, or turning a new file to WAL: SQLite says so under several codes."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF == sqlite3.SQLITE_BUSY
