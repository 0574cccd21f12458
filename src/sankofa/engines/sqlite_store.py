"""The SQLite datastore: `ledger.sqlite`, and one folder per edition, under HOME.

An edition is a file that is never written again, opened immutable; a small text file names the
current one and is replaced atomically, so switching is one rename.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from sankofa.engines.datastore import Manifest, Row, Shelf
from sankofa.model.errors import EditionError, OperatorError, StoreUnavailable

_BUILDING = ".building-"
_EDITION_ID = re.compile(r"[A-Za-z0-9-]{1,64}\Z")
_EDITION_SCHEMA = """
CREATE TABLE directory (
    kind TEXT NOT NULL, key TEXT NOT NULL, first INTEGER NOT NULL, blocks INTEGER NOT NULL,
    PRIMARY KEY (kind, key)
) WITHOUT ROWID;
CREATE TABLE block (id INTEGER PRIMARY KEY, idx BLOB NOT NULL, rows BLOB NOT NULL);
"""
# One row of nulls where the key is there and the stretch of blocks asked for is empty.
_READ_BLOCKS = """
SELECT b.idx, b.rows FROM directory AS d
LEFT JOIN block AS b ON b.id >= d.first + ? AND b.id < d.first + min(?, d.blocks)
WHERE d.kind = ? AND d.key = ? ORDER BY b.id
"""


class SqliteStore:
    """See `engines.datastore.Datastore`."""

    def __init__(self, home: Path, ledger_schema: str) -> None:
        self._home = home
        self._editions = home / "editions"
        self._pointer = self._editions / "CURRENT"
        self._schema = ledger_schema

    def ledger(self) -> "SqliteLedger":
        self._home.mkdir(parents=True, exist_ok=True)
        return SqliteLedger(self._home / "ledger.sqlite", self._schema)

    def build(self) -> "SqliteEditionWriter":
        with _operator_errors(self._editions):
            self._editions.mkdir(parents=True, exist_ok=True)
            for folder in self._editions.glob(f"{_BUILDING}*"):
                if (lock := _lock(folder)) is not None:  # whoever built it is no more
                    shutil.rmtree(folder, ignore_errors=True)
                    os.close(lock)
        return SqliteEditionWriter(self._editions)

    def open(self, edition: str) -> "SqliteEditionReader":
        if not _EDITION_ID.match(edition):
            raise EditionError(f"edition {edition!r}: not the name of an edition")
        return SqliteEditionReader(self._editions / edition)

    def shelf(self) -> Shelf:
        try:
            current = self._pointer.read_text().strip() or None
        except FileNotFoundError:
            current = None
        except (OSError, UnicodeDecodeError) as failure:
            raise StoreUnavailable("datastore", f"{self._pointer.name}: {failure}") from failure
        names = [
            p.parent.name for p in self._editions.glob("*/manifest.json") if _EDITION_ID.match(p.parent.name)
        ]
        return Shelf(tuple(sorted(names, reverse=True)), current)

    def keep(self, editions: Sequence[str], current: str) -> None:
        partial = self._pointer.with_suffix(f".{os.getpid()}")
        with _operator_errors(self._pointer):
            partial.write_text(current + "\n")
            _sync(partial)
            partial.replace(self._pointer)
            _sync(self._editions)
            for name in self.shelf().editions:
                if name not in editions and name != current:
                    shutil.rmtree(self._editions / name)

    async def ping(self) -> None:
        try:
            current = self.shelf().current
            if current is None:
                raise StoreUnavailable("datastore", "no edition is published")
            with closing(_connect(self._editions / current / "edition.sqlite")) as database:
                database.execute("SELECT first FROM directory LIMIT 1").fetchall()
        except (OSError, sqlite3.Error) as failure:
            raise StoreUnavailable("datastore", str(failure)) from failure

    def close(self) -> None:
        """Nothing is held: every reader has a file of its own."""


class SqliteLedger:
    """See `engines.datastore.LedgerSession`."""

    def __init__(self, path: Path, schema: str) -> None:
        self._path = path
        with _operator_errors(path):
            self._database = sqlite3.connect(path, isolation_level=None, timeout=60)
            path.chmod(0o600)
            self._database.execute("PRAGMA journal_mode = WAL")
            self._database.execute("PRAGMA synchronous = NORMAL")
            self._database.execute("PRAGMA cache_size = -262144")
            self._database.execute("PRAGMA temp_store = MEMORY")
            self._create(schema)

    def _create(self, schema: str) -> None:
        """Create what is missing, and have the store itself refuse every change to what is there.

        REPLACE deletes without firing delete triggers, so a row that is there already is guarded
        before the insert too.
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
        with _operator_errors(self._path):
            self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            with _operator_errors(self._path):
                self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        with _operator_errors(self._path):
            self._database.execute("BEGIN")
        try:
            yield
        finally:
            self._database.execute("COMMIT")

    def query(self, sql: str, parameters: Sequence[object] = ()) -> Iterator[Row]:
        with _operator_errors(self._path):
            return iter(self._database.execute(sql, parameters))

    def stage(self, table: str, rows: Sequence[Row]) -> None:
        if rows:
            marks = ",".join("?" * len(rows[0]))
            with _operator_errors(self._path):
                self._database.executemany(f"INSERT INTO temp.staged_{table} VALUES ({marks})", rows)

    def absorb(self, statement: str) -> int:
        tables = "SELECT name FROM sqlite_temp_schema WHERE type = 'table'"
        with _operator_errors(self._path):
            appended = self._database.execute(statement).rowcount
            for (table,) in self._database.execute(tables).fetchall():
                self._database.execute(f"DELETE FROM temp.{table}")
        return appended

    def close(self) -> None:
        self._database.close()


class SqliteEditionWriter:
    """See `engines.datastore.EditionWriter`."""

    def __init__(self, editions: Path) -> None:
        self._editions = editions
        self._folder = Path(tempfile.mkdtemp(prefix=_BUILDING, dir=editions))
        self._lock = _lock(self._folder)
        self._file = self._folder / "edition.sqlite"
        with _operator_errors(self._file):
            self._database = sqlite3.connect(self._file, isolation_level=None)
            self._database.execute("PRAGMA page_size = 16384")
            self._database.execute("PRAGMA journal_mode = OFF")
            self._database.execute("PRAGMA synchronous = OFF")
            self._database.executescript(_EDITION_SCHEMA)
            self._database.execute("BEGIN")

    def write(self, blocks: Iterable[tuple[int, bytes, bytes]]) -> None:
        with _operator_errors(self._file):
            self._database.executemany("INSERT INTO block VALUES (?, ?, ?)", blocks)

    def register(self, places: Iterable[tuple[str, str, int, int]]) -> None:
        with _operator_errors(self._file):
            self._database.executemany("INSERT INTO directory VALUES (?, ?, ?, ?)", places)

    def finish(self, edition: str, manifest: Manifest) -> None:
        """Where it is there already, whole, with the same content, that one stays: it may be in service."""
        destination = self._editions / edition
        if _is_whole(destination, manifest):
            self.abandon()
            return
        with _operator_errors(self._file):
            self._database.execute("COMMIT")
            self._database.close()
            digest, size = _file_digest(self._file)
            sealed = {**manifest, "edition": edition, "file_sha256": digest, "file_bytes": size}
            (self._folder / "manifest.json").write_text(json.dumps(sealed, indent=1, sort_keys=True) + "\n")
            for path in (self._file, self._folder / "manifest.json"):
                path.chmod(0o444)
                _sync(path)
            self._folder.chmod(0o755)
            _sync(self._folder)
            if destination.exists():
                shutil.rmtree(destination)
            self._folder.rename(destination)
            _sync(self._editions)
        self._unlock()

    def abandon(self) -> None:
        self._database.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        self._unlock()

    def _unlock(self) -> None:
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)


class SqliteEditionReader:
    """See `engines.datastore.EditionReader`. Reads take microseconds, so they run where they are asked."""

    def __init__(self, folder: Path) -> None:
        path = folder / "edition.sqlite"
        try:
            self.manifest: Manifest = json.loads((folder / "manifest.json").read_bytes())
            digest, size = _file_digest(path)
            if size != self.manifest["file_bytes"]:
                raise EditionError(
                    f"edition {folder.name}: incomplete: {size} of {self.manifest['file_bytes']} bytes"
                )
            if digest != self.manifest["file_sha256"]:
                raise EditionError(
                    f"edition {folder.name}: corrupt: its bytes are not the ones that were published"
                )
            self._database = _connect(path)
            self._database.execute("PRAGMA mmap_size = 1099511627776")
        except FileNotFoundError as failure:
            missing = Path(failure.filename).name
            raise EditionError(f"edition {folder.name}: incomplete: {missing} is missing") from None
        except (ValueError, KeyError, TypeError, sqlite3.Error, OSError) as failure:
            raise EditionError(f"edition {folder.name}: corrupt: {failure}") from failure

    async def blocks(self, kind: str, key: str, skip: int, most: int) -> list[tuple[bytes, bytes]] | None:
        try:
            found = self._database.execute(_READ_BLOCKS, (skip, skip + most, kind, key)).fetchall()
        except sqlite3.Error as failure:
            raise StoreUnavailable("datastore", str(failure)) from failure
        if not found:
            return None
        return found if found[0][0] is not None else []

    def close(self) -> None:
        self._database.close()


def _connect(path: Path) -> sqlite3.Connection:
    uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, cached_statements=32)


def _is_whole(folder: Path, manifest: Manifest) -> bool:
    try:
        reader = SqliteEditionReader(folder)
    except EditionError:
        return False
    reader.close()
    return bool(reader.manifest.get("content_sha256") == manifest.get("content_sha256"))


def _lock(folder: Path) -> int | None:
    """A lock on a folder that ends with the process, or None where another holds it."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _file_digest(path: Path) -> tuple[str, int]:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest(), stream.tell()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _operator_errors(path: Path) -> Iterator[None]:
    """A full disk or a damaged file is told to the operator by name, without a traceback."""
    try:
        yield
    except (sqlite3.Error, OSError) as failure:
        raise OperatorError(f"{path.name}: {failure}") from failure
