"""Objects in two tables of a PostgreSQL database. See `engines.object_store`.

    sankofa_objects.object   path, id, size, time of writing
    sankofa_objects.chunk    (id, number) -> 1 MiB of the content, not compressed again

Writers use one connection and one transaction (`batch`), so an edition appears with its note or not at all.
Readers request one chunk at a time and give up on a silent server.
"""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Final

from sankofa.engines.object_store import (
    CHUNK,
    READ_SECONDS,
    ObjectDestination,
    ObjectError,
    ObjectMissing,
    StoredObject,
)
from sankofa.engines.postgres_server import (
    NO_SUCH_TABLE,
    BoundedConnection,
    Server,
    Unanswered,
    message_of,
    psycopg,
)
from sankofa.model.errors import OperatorError

_CREATING: Final = 0x53414E4B4F464105
_IS_THERE: Final = b"SELECT to_regclass('sankofa_objects.chunk') IS NOT NULL"
_CREATE: Final = b"""
    CREATE SCHEMA IF NOT EXISTS sankofa_objects;
    CREATE TABLE IF NOT EXISTS sankofa_objects.object (
        path TEXT COLLATE "C" PRIMARY KEY, id BIGINT GENERATED ALWAYS AS IDENTITY UNIQUE,
        size BIGINT NOT NULL, modified TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
    );
    CREATE TABLE IF NOT EXISTS sankofa_objects.chunk (
        object BIGINT NOT NULL REFERENCES sankofa_objects.object (id) ON DELETE CASCADE,
        number INT NOT NULL, content BYTEA NOT NULL, PRIMARY KEY (object, number)
    );
    ALTER TABLE sankofa_objects.chunk ALTER content SET STORAGE EXTERNAL
"""
_INSERT: Final = b"INSERT INTO sankofa_objects.object (path, size) VALUES (%s, %s) RETURNING id"
_DELETE: Final = b"DELETE FROM sankofa_objects.object WHERE path = ANY (%s)"
_COPY: Final = b"COPY sankofa_objects.chunk FROM STDIN (FORMAT BINARY)"
_SIZE: Final = "SELECT size FROM sankofa_objects.object WHERE path = %s"
_RANGE: Final = f"""
    SELECT substr(c.content, %s, {CHUNK}) FROM sankofa_objects.object AS o
    JOIN sankofa_objects.chunk AS c ON c.object = o.id WHERE o.path = %s AND c.number = %s
"""
_LIST: Final = """
    SELECT path, size, modified FROM sankofa_objects.object WHERE starts_with(path, %s) ORDER BY path
"""


class PostgresObjects(ObjectDestination):
    def __init__(self, url: str) -> None:
        self._server = Server(url)
        self._idle: list[BoundedConnection] = []
        self._lock = threading.RLock()
        self._writing: psycopg.Connection[Any] | None = None

    def read(self, path: str, most: int) -> bytes:
        size = self._rows(path, _SIZE, path)
        if not size:
            raise ObjectMissing(f"{path}: not there")
        if size[0][0] > most:
            raise ObjectError(f"{path}: more than {most} bytes")
        return b"".join(self._chunks(path, 0, size[0][0]))

    @contextmanager
    def stream(self, path: str, start: int, size: int) -> Iterator[Iterator[bytes]]:
        yield self._chunks(path, start, size)

    def _chunks(self, path: str, start: int, size: int) -> Iterator[bytes]:
        while start < size:
            number, offset = divmod(start, CHUNK)
            rows = self._rows(path, _RANGE, offset + 1, path, number)
            if not rows or not (content := rows[0][0]):
                if not start:
                    raise ObjectMissing(f"{path}: not there")
                return
            yield content
            start += len(content)

    def write(self, path: str, content: bytes, *, immutable: bool) -> None:
        self._put(path, BytesIO(content), len(content))

    def upload(self, path: str, file: Path) -> None:
        try:
            with file.open("rb") as stream:
                self._put(path, stream, file.stat().st_size)
        except OSError as failure:
            raise ObjectError(f"{path}: {failure.strerror or failure}") from failure

    def _put(self, path: str, content: BinaryIO, size: int) -> None:
        with self._lock, self._transaction() as connection, _object_errors(path):
            connection.execute(_DELETE, ([path],))
            ((number,),) = connection.execute(_INSERT, (path, size)).fetchall()
            with connection.cursor() as cursor, cursor.copy(_COPY) as copy:
                copy.set_types(["int8", "int4", "bytea"])
                for chunk_number in range((size + CHUNK - 1) // CHUNK):
                    copy.write_row((number, chunk_number, content.read(CHUNK)))

    def objects(self, prefix: str) -> Iterator[StoredObject]:
        try:
            rows = self._rows(prefix, _LIST, prefix)
        except ObjectMissing:
            return
        for path, size, modified in rows:
            yield StoredObject(path, size, modified.astimezone(UTC))

    def delete(self, paths: Iterable[str]) -> None:
        if listed := list(paths):
            with self._lock, self._transaction() as connection, _object_errors("delete"):
                connection.execute(_DELETE, (listed,))

    @contextmanager
    def batch(self) -> Iterator[None]:
        with self._transaction():
            yield

    @contextmanager
    def _transaction(self) -> Iterator[psycopg.Connection[Any]]:
        """A nested transaction joins the outer one."""
        if self._writing is not None:
            yield self._writing
            return
        try:
            connection = self._writing = self._server.connect()
        except OperatorError as failure:
            raise ObjectError(str(failure)) from None
        try:
            with _object_errors("write"), connection, connection.transaction():
                if connection.execute(_IS_THERE).fetchone() != (True,):
                    connection.execute(f"SELECT pg_advisory_xact_lock({_CREATING})".encode())
                    connection.execute(_CREATE)
                yield connection
        finally:
            self._writing = None

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _rows(self, name: str, question: str, *values: object) -> list[Any]:
        """Uses an idle connection; a connection that does not answer is not used again."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = BoundedConnection(self._server)
        try:
            rows = connection.ask(question, values, seconds=READ_SECONDS)
        except psycopg.Error as refused:
            if refused.sqlstate in NO_SUCH_TABLE:
                raise ObjectMissing(f"{name}: not there") from None
            raise ObjectError(f"{name}: PostgreSQL: {message_of(refused)}") from None
        except Unanswered as failure:
            raise ObjectError(f"{name}: PostgreSQL {failure}") from None
        self._idle.append(connection)
        return rows


@contextmanager
def _object_errors(path: str) -> Iterator[None]:
    try:
        yield
    except psycopg.Error as failure:
        raise ObjectError(f"{path}: PostgreSQL: {message_of(failure)}") from None
