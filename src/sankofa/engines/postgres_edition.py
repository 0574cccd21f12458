"""One edition in PostgreSQL: a schema that appears whole, is never changed, and is checked when opened.

The build is one transaction: until it commits nobody sees any of it, and a build that is killed
leaves nothing behind.
"""

import hashlib
import json
import os
import re
import shutil
import struct
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from sankofa.engines.datastore import Manifest
from sankofa.engines.edition_folder import building_folder
from sankofa.engines.postgres_server import Refused, Server, operator_errors, psycopg
from sankofa.model.errors import EditionError, StoreUnavailable

_PREFIX = "sankofa_e_"

_EDITION_ID = re.compile(r"[A-Za-z0-9-]{1,53}\Z")  # with the prefix, the longest name PostgreSQL keeps whole
_QUICK_SECONDS, _SLOW_SECONDS = 0.1, 0.4

_TABLES = """
    CREATE TABLE directory (kind TEXT COLLATE "C" NOT NULL, key TEXT COLLATE "C" NOT NULL,
                            first BIGINT NOT NULL, blocks BIGINT NOT NULL);
    CREATE TABLE block (id BIGINT NOT NULL, idx BYTEA NOT NULL, rows BYTEA NOT NULL);
    CREATE TABLE file (name TEXT COLLATE "C" NOT NULL, part INTEGER NOT NULL, bytes BYTEA NOT NULL);
    ALTER TABLE file ALTER bytes SET STORAGE EXTERNAL;
    CREATE TABLE manifest (json TEXT NOT NULL);
"""
# Blocks are compressed: unpacking 64 KB costs less than fetching it from thirty-three places of a heap.
_LZ4 = "ALTER TABLE block ALTER idx SET COMPRESSION lz4, ALTER rows SET COMPRESSION lz4"
_HAS_LZ4 = "SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression'"
_SEAL = """
    ALTER TABLE directory ADD PRIMARY KEY (kind, key);
    ALTER TABLE block ADD PRIMARY KEY (id);
    ALTER TABLE file ADD PRIMARY KEY (name, part);
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'an edition never changes: % on % refused', TG_OP, TG_TABLE_NAME; END $$;
"""
_SEAL_TABLE = """
    CREATE TRIGGER refuses_changes BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION refuse();
    ALTER TABLE {table} ENABLE ALWAYS TRIGGER refuses_changes;
    ANALYZE {table};
"""
# The first 60 bits of a digest of each row, summed: the same in whatever order the rows are met.
_SHORT = "('x' || left(encode(sha256({row}), 'hex'), 15))::bit(60)::bigint"
_ROW_OF = {
    "directory": "convert_to(concat_ws(chr(31), kind, key, first, blocks), 'UTF8')",
    "block": "int8send(id) || int4send(octet_length(idx)) || idx || rows",
    "file": "int4send(part) || convert_to(name, 'UTF8') || bytes",
}
FILE_PART = 256 * 1024
"""Bytes of a file that are one row: few enough to answer a small range without reading much more."""
_BLOCK_HEAD = struct.Struct(">qi")


class Ask(Protocol):
    """`engines.postgres_link.Enquiry.rows`."""

    def __call__(self, text: str, *values: str) -> list[list[str | None]]: ...


def schema_of(edition: str) -> str:
    """The quoted name of its schema. Raises EditionError for what cannot be one."""
    if not _EDITION_ID.match(edition):
        raise EditionError(f"edition {edition!r}: not the name of an edition")
    return f'"{_PREFIX}{edition}"'


class _Sum:
    """What was written to a table, told by the same count and sum that the server tells."""

    def __init__(self) -> None:
        self.rows = 0
        self.digest = 0

    def add(self, *parts: bytes) -> None:
        digest = hashlib.sha256()
        for part in parts:
            digest.update(part)
        self.rows += 1
        self.digest += int(digest.hexdigest()[:15], 16)

    def told(self) -> dict[str, Any]:
        return {"rows": self.rows, "digest": str(self.digest)}


class PostgresEditionWriter:
    """See `engines.datastore.EditionWriter`."""

    def __init__(self, server: Server, home: Path, is_whole: Callable[[str, Manifest], bool]) -> None:
        self._is_whole = is_whole
        self._schema = f"sankofa_building_{uuid.uuid4().hex}"
        self._directory, self._block, self._file = _Sum(), _Sum(), _Sum()
        home.mkdir(parents=True, exist_ok=True)
        self._connection = server.connect()
        self.files, self._lock = building_folder(home)
        try:
            self._run(f"BEGIN; CREATE SCHEMA {self._schema}; SET LOCAL search_path = {self._schema}")
            self._run(_TABLES)
            if self._run(_HAS_LZ4).fetchone() == (True,):
                self._run(_LZ4)
        except BaseException:
            self.abandon()
            raise

    def write(self, blocks: Iterable[tuple[int, bytes, bytes]]) -> None:
        with self._copy("block", "int8", "bytea", "bytea") as copy:
            for block in blocks:
                number, index, rows = block
                self._block.add(_BLOCK_HEAD.pack(number, len(index)), index, rows)
                copy.write_row(block)

    def register(self, places: Iterable[tuple[str, str, int, int]]) -> None:
        with self._copy("directory", "text", "text", "int8", "int8") as copy:
            for place in places:
                self._directory.add("\x1f".join(map(str, place)).encode())
                copy.write_row(place)

    def finish(self, edition: str, manifest: Manifest) -> None:
        """Where it is there already, whole, with the same content, that one stays: it may be in service."""
        schema = schema_of(edition)
        if self._is_whole(edition, manifest):
            self.abandon()
            return
        for one in manifest.get("files", ()):
            self._store(self.files / one["name"])
        tables = {
            "directory": self._directory.told(),
            "block": self._block.told(),
            "file": self._file.told(),
        }
        sealed = json.dumps({**manifest, "edition": edition, "tables": tables}, sort_keys=True)
        with operator_errors():
            self._connection.execute(b"INSERT INTO manifest VALUES (%s)", (sealed,))
        self._run(_SEAL + "".join(_SEAL_TABLE.format(table=table) for table in (*_ROW_OF, "manifest")))
        self._run(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        self._run(f"ALTER SCHEMA {self._schema} RENAME TO {schema}; COMMIT")
        self.abandon()

    def abandon(self) -> None:
        """The server rolls back what a closed connection had begun."""
        self._connection.close()
        shutil.rmtree(self.files, ignore_errors=True)
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)

    def _store(self, path: Path) -> None:
        """A file as rows of the same size, so that the one that has a byte is known."""
        name = path.name.encode()
        with path.open("rb") as file, self._copy("file", "text", "int4", "bytea") as copy:
            for part, chunk in enumerate(iter(lambda: file.read(FILE_PART), b"")):
                self._file.add(part.to_bytes(4), name, chunk)
                copy.write_row((path.name, part, chunk))

    @contextmanager
    def _copy(self, table: str, *types: str) -> Iterator[psycopg.Copy]:
        """FREEZE: the rows are never to be looked over again, neither by a reader nor by VACUUM."""
        statement = f"COPY {table} FROM STDIN (FORMAT binary, FREEZE)"
        with operator_errors(), self._connection.cursor() as cursor, cursor.copy(statement.encode()) as copy:
            copy.set_types(types)
            yield copy

    def _run(self, statements: str) -> psycopg.Cursor[Any]:
        with operator_errors():
            return self._connection.execute(statements.encode())


def verified_manifest(ask: Ask, edition: str, *, verified: bool = False) -> dict[str, Any]:
    """The manifest, after every row was counted and read. Raises EditionError naming what is wrong.

    Where that was `verified` before, the manifest only.
    """
    schema = schema_of(edition)
    try:
        found = ask(f"SELECT json FROM {schema}.manifest")
        if len(found) != 1 or found[0][0] is None:
            raise EditionError(f"edition {edition}: incomplete: its manifest is missing")
        manifest: dict[str, Any] = json.loads(found[0][0])
        for table, row in () if verified else _ROW_OF.items():
            sealed = manifest["tables"][table]
            rows, digest = _summed(ask, f"{schema}.{table}", row)
            if rows != (due := sealed["rows"]):
                raise EditionError(f"edition {edition}: incomplete: {rows} of {due} rows in {table}")
            if str(digest) != sealed["digest"]:
                raise EditionError(f"edition {edition}: corrupt: {table} is not what was published")
    except Refused as refused:
        raise _edition_error(edition, refused) from None
    except (ValueError, KeyError, TypeError) as failure:
        raise EditionError(f"edition {edition}: corrupt: its manifest is damaged: {failure!r}") from failure
    return manifest


def _summed(ask: Ask, table: str, row: str) -> tuple[int, int]:
    """Count and sum of a table, a stretch of pages at a time: each question must be answered in seconds."""
    size = f"pg_relation_size('{table}') / current_setting('block_size')::int"
    pages = int(ask(f"SELECT {size}")[0][0] or 0)
    rows = digest = page = 0
    step = 1
    select = f"SELECT count(*), coalesce(sum({_SHORT.format(row=row)}), 0) FROM {table}"
    while page < pages:
        began = time.monotonic()
        ((counted, summed),) = ask(f"{select} WHERE ctid >= '({page},0)' AND ctid < '({page + step},0)'")
        rows, digest, page = rows + int(counted or 0), digest + int(summed or 0), page + step
        took = time.monotonic() - began
        if took < _QUICK_SECONDS:
            step *= 2
        elif took > _SLOW_SECONDS:
            step = max(1, step // 2)
    return rows, digest


def _edition_error(edition: str, refused: Refused) -> Exception:
    if refused.sqlstate == "3F000":
        return EditionError(f"edition {edition}: there is no such edition")
    if refused.sqlstate in ("42P01", "42703"):  # no such table, no such column
        return EditionError(f"edition {edition}: incomplete: {refused.message}")
    if refused.sqlstate.startswith("XX"):
        return EditionError(f"edition {edition}: corrupt: {refused.message}")
    return StoreUnavailable("datastore", str(refused))
