"""One edition in PostgreSQL: a schema that appears whole, is never changed, and is checked when opened.

The build is one transaction: until it commits nobody sees any of it, and a build that is killed
leaves nothing behind.
"""

import hashlib
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
from sankofa.engines.edition_folder import building_folder, make_private_folder
from sankofa.engines.manifest import open_manifest, seal_manifest
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
# Beside the pointer: the SHA-256 of the manifest of each edition.
_CREATE_SEALS = """
    CREATE SCHEMA IF NOT EXISTS sankofa_shelf;
    CREATE TABLE IF NOT EXISTS sankofa_shelf.seal (edition TEXT PRIMARY KEY, sha256 TEXT NOT NULL)
"""
_SEAL_EDITION = b"""
    INSERT INTO sankofa_shelf.seal VALUES (%s, %s)
    ON CONFLICT (edition) DO UPDATE SET sha256 = excluded.sha256
"""
# The first 60 bits of a digest of each row, summed: the same in whatever order the rows are met.
_SHORT = "('x' || left(encode(sha256({row}), 'hex'), 15))::bit(60)::bigint"
_ROW_OF = {
    "directory": "convert_to(concat_ws(chr(31), kind, key, first, blocks), 'UTF8')",
    "block": "int8send(id) || int4send(octet_length(idx)) || idx || rows",
    "file": "int4send(part) || convert_to(name, 'UTF8') || bytes",
}
PART_BITS = 32
"""The upper bits of the id of a block are the number of its part in the edition."""
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
    """What was written to a table: the same count and sum that the server computes."""

    def __init__(self) -> None:
        self.rows = 0
        self.digest = 0

    def add(self, *parts: bytes) -> None:
        digest = hashlib.sha256()
        for part in parts:
            digest.update(part)
        self.rows += 1
        self.digest += int(digest.hexdigest()[:15], 16)

    def as_dict(self) -> dict[str, Any]:
        return {"rows": self.rows, "digest": str(self.digest)}


class PostgresEditionWriter:
    """See `engines.datastore.EditionWriter`."""

    def __init__(self, server: Server, home: Path, is_whole: Callable[[str, Manifest], bool]) -> None:
        self._is_whole = is_whole
        self._schema = f"sankofa_building_{uuid.uuid4().hex}"
        self._directory, self._block, self._file = _Sum(), _Sum(), _Sum()
        self._part = 0
        self._kinds: set[str] = set()
        make_private_folder(home)
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
            for number, index, rows in blocks:
                number += self._part << PART_BITS
                self._block.add(_BLOCK_HEAD.pack(number, len(index)), index, rows)
                copy.write_row((number, index, rows))

    def register(self, directory: Iterable[tuple[str, str, int, int]]) -> None:
        with self._copy("directory", "text", "text", "int8", "int8") as copy:
            for kind, key, first, count in directory:
                self._kinds.add(kind)
                row = (kind, key, first + (self._part << PART_BITS), count)
                self._directory.add("\x1f".join(map(str, row)).encode())
                copy.write_row(row)

    def end_part(self, content: str) -> None:
        self._part += 1

    def take_over(self, content: str) -> bool:
        """Every edition has rows of its own."""
        return False

    def take_over_file(self, name: str, sha256: str) -> bool:
        return False

    def kept_file(self, sha256: str) -> Path | None:
        return None

    def finish(self, edition: str, manifest: Manifest) -> None:
        """Where it is there already, whole, with the same content, that one stays: it may be in service."""
        schema = schema_of(edition)
        if self._is_whole(edition, manifest):
            self.abandon()
            return
        for file in manifest.get("files", ()):
            self._store(self.files / file["name"])
        tables = {
            "directory": self._directory.as_dict(),
            "block": self._block.as_dict(),
            "file": self._file.as_dict(),
        }
        parts = manifest.get("parts") or [{"kinds": sorted(self._kinds), "first": "", "content": ""}]
        content, seal = seal_manifest({**manifest, "edition": edition, "parts": parts, "tables": tables})
        with operator_errors():
            self._connection.execute(b"INSERT INTO manifest VALUES (%s)", (content.decode(),))
        self._run(_CREATE_SEALS)
        with operator_errors():
            self._connection.execute(_SEAL_EDITION, (edition, seal))
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


def read_manifest(ask: Ask, edition: str) -> dict[str, Any]:
    """The manifest, if it is the one that was sealed. Raises EditionError naming what is wrong."""
    schema = schema_of(edition)
    try:
        contents = ask(f"SELECT json FROM {schema}.manifest")
        if len(contents) != 1 or contents[0][0] is None:
            raise EditionError(f"edition {edition}: incomplete: its manifest is missing")
        seals = _seals(ask, edition)
        if not seals:
            raise EditionError(f"edition {edition}: corrupt: its seal is missing: publish again")
        return open_manifest(contents[0][0].encode(), str(seals[0][0]), edition)
    except Refused as refused:
        raise _edition_error(edition, refused) from None
    except ValueError as failure:
        raise EditionError(f"edition {edition}: corrupt: {failure}") from failure


def _seals(ask: Ask, edition: str) -> list[list[str | None]]:
    try:
        return ask("SELECT sha256 FROM sankofa_shelf.seal WHERE edition = $1", edition)
    except Refused as refused:
        if refused.sqlstate in ("42P01", "3F000"):  # of an older version of this service
            return []
        raise


class TableCheck:
    """Counts and sums the rows of an edition's tables, a stretch of pages at a time, and compares the outcome
    with the manifest: each question must be answered in seconds. Begins again when it is through.
    """

    def __init__(self, ask: Ask, edition: str, manifest: Manifest) -> None:
        self._ask = ask
        self._edition = edition
        self._tables = manifest["tables"]
        self._waiting = list(_ROW_OF)
        self._step = 1
        self._begin()

    def _begin(self) -> None:
        self._page, self._pages = 0, -1
        self._rows = self._digest = 0

    def check(self, seconds: float) -> bool:
        """Go on for so long; whether every table was compared. Raises EditionError or StoreUnavailable."""
        deadline = time.monotonic() + seconds
        while self.step():
            if time.monotonic() >= deadline:
                return False
        return True

    def step(self, most_pages: int = 1 << 31) -> bool:
        """One stretch more; False once the last table was compared."""
        try:
            return self._next_stretch(most_pages)
        except Refused as refused:
            raise _edition_error(self._edition, refused) from None

    def _next_stretch(self, most_pages: int) -> bool:
        table = f"{schema_of(self._edition)}.{self._waiting[0]}"
        if self._pages < 0:
            size = f"pg_relation_size('{table}') / current_setting('block_size')::int"
            self._pages = int(self._ask(f"SELECT {size}")[0][0] or 0)
        if self._page < self._pages:
            self._sum_up(table, min(self._step, most_pages))
            return True
        self._compare(self._waiting.pop(0))
        self._begin()
        if self._waiting:
            return True
        self._waiting = list(_ROW_OF)
        return False

    def _sum_up(self, table: str, pages: int) -> None:
        began = time.monotonic()
        total = f"coalesce(sum({_SHORT.format(row=_ROW_OF[self._waiting[0]])}), 0)"
        stretch = f"ctid >= '({self._page},0)' AND ctid < '({self._page + pages},0)'"
        ((rows, digest),) = self._ask(f"SELECT count(*), {total} FROM {table} WHERE {stretch}")
        self._rows, self._digest = self._rows + int(rows or 0), self._digest + int(digest or 0)
        self._page += pages
        took = time.monotonic() - began
        if took < _QUICK_SECONDS:
            self._step = pages * 2
        elif took > _SLOW_SECONDS:
            self._step = max(1, pages // 2)

    def _compare(self, table: str) -> None:
        sealed = self._tables[table]
        if self._rows != sealed["rows"]:
            counts = f"{self._rows} of {sealed['rows']} rows in {table}"
            raise EditionError(f"edition {self._edition}: incomplete: {counts}")
        if str(self._digest) != sealed["digest"]:
            raise EditionError(f"edition {self._edition}: corrupt: {table} is not what was published")


def _edition_error(edition: str, refused: Refused) -> Exception:
    if refused.sqlstate == "3F000":
        return EditionError(f"edition {edition}: there is no such edition")
    if refused.sqlstate in ("42P01", "42703"):  # no such table, no such column
        return EditionError(f"edition {edition}: incomplete: {refused.message}")
    if refused.sqlstate.startswith("XX"):
        return EditionError(f"edition {edition}: corrupt: {refused.message}")
    return StoreUnavailable("datastore", str(refused))
