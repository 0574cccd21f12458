"""The ledger of a benchmark: a file of its home, or a PostgreSQL server started for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import psutil

from tests.services import PostgresServer, postgres_binaries


class EditionStore(Protocol):
    """The cost of editions in bytes and processor time."""

    settings: dict[str, str]
    """Environment for commands that use it."""

    def sizes(self) -> dict[str, int]:
        """Sizes in bytes, by name."""

    def cpu_seconds(self) -> float:
        """Processor time of its server so far."""

    def remark(self, cpu: float) -> str:
        """A remark on the processor time of its server."""


class _Files(EditionStore):
    def __init__(self, home: Path, editions: str = "editions") -> None:
        self.settings: dict[str, str] = {}
        self._editions = home / editions

    def sizes(self) -> dict[str, int]:
        """The files of editions by inode: a file that two editions share counts once."""
        files = [path.stat() for path in self._editions.rglob("*") if path.is_file()]
        return {str(one.st_ino): one.st_size for one in files}

    def cpu_seconds(self) -> float:
        return 0.0

    def remark(self, cpu: float) -> str:
        return ""


class _Database(_Files):
    """The ledger in a PostgreSQL of its own."""

    def __init__(self, home: Path, server: PostgresServer) -> None:
        super().__init__(home, "shared/editions")
        self.settings = {"SANKOFA_DATASTORE": server.url}
        self._server = server

    def cpu_seconds(self) -> float:
        """Processor time of the server and all its connections, closed ones too."""
        assert self._server.process is not None
        root = psutil.Process(self._server.process.pid)
        times = root.cpu_times()
        own = times.user + times.system + times.children_user + times.children_system
        return own + sum(sum(child.cpu_times()[:2]) for child in root.children())

    def remark(self, cpu: float) -> str:
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
        yield _Database(home, server)
    finally:
        server.close()
