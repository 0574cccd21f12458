"""Where a benchmark has its ledger and editions: in the files of a home, or in a PostgreSQL of their own."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import psutil
import psycopg

from tests.services import PostgresServer, postgres_binaries

_TABLES = """
    SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class AS c
    JOIN pg_namespace AS n ON n.oid = c.relnamespace WHERE n.nspname LIKE 'sankofa\\_e%' AND c.relkind = 'r'
"""


class EditionStore(Protocol):
    """What the editions take, in bytes and in processor time."""

    settings: dict[str, str]
    """Of the commands that work on it."""

    def sizes(self) -> dict[str, int]:
        """Bytes by name of what there is."""

    def cpu_seconds(self) -> float:
        """What its server has spent so far."""

    def told(self, cpu: float) -> str:
        """A remark on what its server spent."""


class _Files(EditionStore):
    """Editions in files."""

    def __init__(self, home: Path) -> None:
        self.settings: dict[str, str] = {}
        self._home = home

    def sizes(self) -> dict[str, int]:
        """The files under `editions`, by inode: a file that two editions share is one."""
        found = [path.stat() for path in (self._home / "editions").rglob("*") if path.is_file()]
        return {str(one.st_ino): one.st_size for one in found}

    def cpu_seconds(self) -> float:
        return 0.0

    def told(self, cpu: float) -> str:
        return ""


class _Database(EditionStore):
    """Ledger and editions in a PostgreSQL of their own."""

    def __init__(self, server: PostgresServer) -> None:
        self.settings = {"SANKOFA_DATASTORE": server.url}
        self._server = server

    def sizes(self) -> dict[str, int]:
        with psycopg.connect(self._server.url) as connection:
            ((size,),) = connection.execute(_TABLES).fetchall()
        return {"tables": int(size)}

    def cpu_seconds(self) -> float:
        """Of the server and of every connection that there is or was."""
        assert self._server.process is not None
        root = psutil.Process(self._server.process.pid)
        times = root.cpu_times()
        own = times.user + times.system + times.children_user + times.children_system
        return own + sum(sum(child.cpu_times()[:2]) for child in root.children())

    def told(self, cpu: float) -> str:
        return f"  (of the cpu s {cpu:.1f} are the server's)"


@contextmanager
def edition_store(home: Path, *, postgres: bool) -> Iterator[EditionStore]:
    if not postgres:
        yield _Files(home)
        return
    binaries = postgres_binaries()
    if binaries is None:
        raise SystemExit("needs PostgreSQL")
    server = PostgresServer(binaries)
    try:
        server.start()
        yield _Database(server)
    finally:
        server.close()
