"""The PostgreSQL datastore: the ledger and every edition in a schema of its own, in one database.

A table of one row names the current edition, so switching is one statement. Commands talk to the
server through the driver and may wait; the serving side has a clock of its own (postgres_link.py).
"""

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sankofa.engines.datastore import BLOCK_BITS, ByteRange, EditionList, Manifest, NeedsRows, Turn
from sankofa.engines.postgres_edition import (
    FILE_PART,
    PART_BITS,
    PostgresEditionWriter,
    TableCheck,
    read_manifest,
    schema_of,
)
from sankofa.engines.postgres_ledger import PostgresLedger
from sankofa.engines.postgres_link import Enquiry, Links, Statement
from sankofa.engines.postgres_server import Refused, Server, operator_errors, pq, psycopg
from sankofa.model.errors import EditionError, StoreUnavailable

# Names of advisory locks, beside those of the ledger; they are shared by everything in the database.
_TURNS: Final[dict[Turn, int]] = {"publish": 0x53414E4B4F464103, "switch": 0x53414E4B4F464104}
_READ_SECONDS = 1.8
_PING_SECONDS = 0.8
_EVICT_SECONDS = 0.5
_CHECKED_AT_OPENING_SECONDS = 0.5
_PAGE = 8192

_CREATE_POINTER = b"""
    CREATE SCHEMA IF NOT EXISTS sankofa_shelf;
    CREATE TABLE IF NOT EXISTS sankofa_shelf.current (
        single BOOLEAN PRIMARY KEY DEFAULT true CHECK (single), edition TEXT NOT NULL
    )
"""
_POINT = b"""
    INSERT INTO sankofa_shelf.current (edition) VALUES (%s)
    ON CONFLICT (single) DO UPDATE SET edition = excluded.edition
"""
_POINTER = "SELECT edition FROM sankofa_shelf.current"
_CREATE_PUBLISHED = b"CREATE TABLE IF NOT EXISTS sankofa_shelf.published (edition TEXT PRIMARY KEY)"
_LIST_AS_PUBLISHED = b"INSERT INTO sankofa_shelf.published VALUES (%s) ON CONFLICT DO NOTHING"
_REMOVE_SEAL = b"DELETE FROM sankofa_shelf.seal WHERE edition = %s"
_WITHDRAWN = "withdrawn "
_PUBLISHED = "SELECT edition FROM sankofa_shelf.published"
_EDITIONS = """
    SELECT substr(n.nspname, 11) FROM pg_namespace AS n
    JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = 'manifest'
    WHERE left(n.nspname, 10) = 'sankofa_e_' ORDER BY n.nspname COLLATE "C" DESC
"""
# One row of nulls where the key is there and the stretch of blocks asked for is empty.
READ_BLOCKS = """
    SELECT b.idx, b.rows FROM {schema}.directory AS d
    LEFT JOIN {schema}.block AS b
      ON b.id >= d.first + $3::bigint AND b.id < d.first + least($4::bigint, d.blocks)
    WHERE d.kind = $1 AND d.key = $2 ORDER BY b.id
"""
READ_PIECES = """
    SELECT substr(b.rows, p.start + 1, p.size)
    FROM unnest($1::bigint[], $2::int[], $3::int[]) WITH ORDINALITY AS p (id, start, size, n)
    JOIN {schema}.block AS b ON b.id = p.id ORDER BY p.n
"""
READ_FILE = """
    SELECT bytes FROM {schema}.file
    WHERE name = $1 AND part >= $2::int AND part < $3::int ORDER BY part
"""
# Of a key with very many blocks there is none: they could not all be read in the time a question has.
READ_DIGESTS = """
    SELECT d.key, CASE WHEN d.blocks <= 16 THEN (
        SELECT sha256(string_agg(sha256(b.idx) || sha256(b.rows), ''::bytea ORDER BY b.id))
        FROM {schema}.block AS b WHERE b.id >= d.first AND b.id < d.first + d.blocks) END
    FROM (SELECT * FROM {schema}.directory
          WHERE kind = $1 AND key > $2 ORDER BY key LIMIT $3::bigint) AS d ORDER BY d.key
"""
_DIGESTS_AT_ONCE = 64
_NO_SUCH_TABLE = ("42P01", "3F000")
_NOT_PERMITTED = "42501"


class PostgresStore:
    """See `engines.datastore.Datastore`."""

    def __init__(self, url: str, home: Path, ledger_schema: str) -> None:
        self._server = Server(url)
        self._home = home
        self._schema = ledger_schema
        self._links = Links(self._server)
        self._enquiry = Enquiry(self._server)
        self._checked: dict[str, str] = {}  # by edition, the identity of what this process has compared
        self._damage: dict[str, tuple[str, str]] = {}  # by edition, the identity and what is wrong with it

    def ledger(self) -> PostgresLedger:
        return PostgresLedger(self._server, self._schema)

    def ledger_tables(self) -> frozenset[str]:
        with operator_errors(), self._server.connect() as connection:
            statement = b"SELECT tablename FROM pg_tables WHERE schemaname = 'sankofa_ledger'"
            return frozenset(name for (name,) in connection.execute(statement))

    def captured(self) -> list[tuple[str, str]]:
        """A role that may not read the ledger is told that there is nothing in it."""
        try:
            rows = self._enquiry.rows("SELECT source_id, counts FROM sankofa_ledger.capture")
        except Refused as refused:
            if refused.sqlstate not in (*_NO_SUCH_TABLE, _NOT_PERMITTED):
                raise StoreUnavailable("datastore", str(refused)) from None
            return []
        return [(str(source), str(counts)) for source, counts in rows]

    def build(self) -> PostgresEditionWriter:
        return PostgresEditionWriter(self._server, self._home, self._is_whole)

    def open(self, edition: str, *, check_all: bool = False) -> "PostgresEditionReader":
        manifest = read_manifest(self._enquiry.rows, edition)
        identity = self._identity(edition)
        check = TableCheck(self._enquiry.rows, edition, manifest)
        if check_all:
            check.check(float("inf"))
        elif self._checked.get(edition) != identity:
            known, damage = self._damage.get(edition, ("", ""))
            if known == identity:
                raise EditionError(damage)
            try:
                if check.check(_CHECKED_AT_OPENING_SECONDS):
                    self._checked[edition] = identity
            except EditionError as failure:
                self._damage[edition] = identity, str(failure)
                raise
        self._damage.pop(edition, None)

        def report(damage: str) -> None:
            self._checked.pop(edition, None)
            self._damage[edition] = identity, damage

        return PostgresEditionReader(edition, manifest, self._links, check, report)

    def _identity(self, edition: str) -> str:
        """The number of its schema: one that is published again under the same name has another."""
        try:
            numbers = self._enquiry.rows(
                "SELECT oid FROM pg_namespace WHERE oid = to_regnamespace($1)", schema_of(edition)
            )
        except Refused as refused:
            raise StoreUnavailable("datastore", str(refused)) from None
        return str(numbers[0][0]) if numbers else ""

    def list_editions(self) -> EditionList:
        try:
            editions = tuple(str(name) for (name,) in self._enquiry.rows(_EDITIONS))
            try:
                pointer = self._enquiry.rows(_POINTER)
            except Refused as refused:
                if refused.sqlstate not in _NO_SUCH_TABLE:
                    raise
                pointer = []
        except Refused as refused:
            raise StoreUnavailable("datastore", str(refused)) from None
        return EditionList(editions, pointer[0][0] if pointer else None)

    @contextmanager
    def exclusive(self, turn: Turn, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
        """A lock of a session: the server lets go of it when the connection ends, however it ends."""
        with operator_errors():
            connection = self._server.connect()
        try:
            with operator_errors():
                lock = (_TURNS[turn],)
                if connection.execute(b"SELECT pg_try_advisory_lock(%s)", lock).fetchone() != (True,):
                    waiting()
                    connection.execute(b"SET lock_timeout = 0")
                    connection.execute(b"SELECT pg_advisory_lock(%s)", lock)
            yield
        finally:
            connection.close()

    def set_current_and_prune(self, editions: Sequence[str], current: str) -> None:
        """An edition that is being read at this very moment is left for the next time."""
        with operator_errors(), self._server.connect() as connection:
            if connection.execute(b"SELECT to_regclass('sankofa_shelf.current')").fetchone() == (None,):
                connection.execute(_CREATE_POINTER)
            if connection.execute(b"SELECT to_regclass('sankofa_shelf.published')").fetchone() == (None,):
                connection.execute(_CREATE_PUBLISHED)
            kept = self.list_editions()  # what was there before the list was is put on it too
            for edition in {*kept.editions, *filter(None, [kept.current]), current}:
                connection.execute(_LIST_AS_PUBLISHED, (edition,))
            connection.execute(_POINT, (current,))
            connection.execute(f"SET lock_timeout = '{_EVICT_SECONDS}s'".encode())
            for (name,) in connection.execute(_EDITIONS.encode()).fetchall():
                if name not in editions and name != current:
                    try:
                        connection.execute(f"DROP SCHEMA {schema_of(name)} CASCADE".encode())
                        connection.execute(_REMOVE_SEAL, (name,))
                    except psycopg.errors.LockNotAvailable:
                        continue

    def list_as_published(self, editions: Collection[str]) -> None:
        if editions:
            with operator_errors(), self._server.connect() as connection:
                if connection.execute(b"SELECT to_regclass('sankofa_shelf.current')").fetchone() == (None,):
                    connection.execute(_CREATE_POINTER)
                connection.execute(_CREATE_PUBLISHED)
                for edition in sorted(editions):
                    connection.execute(_LIST_AS_PUBLISHED, (edition,))

    def published(self) -> frozenset[str]:
        """Those kept and the current one too: an older version of this service wrote no list."""
        kept = self.list_editions()
        listed = {name for name in self._list_rows() if not name.startswith(_WITHDRAWN)}
        return frozenset({*listed, *kept.editions, *filter(None, [kept.current])})

    def _list_rows(self) -> list[str]:
        try:
            return [str(name) for (name,) in self._enquiry.rows(_PUBLISHED)]
        except Refused as refused:
            if refused.sqlstate not in _NO_SUCH_TABLE:
                raise StoreUnavailable("datastore", str(refused)) from None
            return []

    def withdraw(self, editions: Collection[str]) -> None:
        if editions:
            with operator_errors(), self._server.connect() as connection:
                connection.execute(_CREATE_PUBLISHED)
                for edition in sorted(editions):
                    connection.execute(_LIST_AS_PUBLISHED, (f"{_WITHDRAWN}{edition}",))

    def withdrawn(self) -> frozenset[str]:
        listed = self._list_rows()
        return frozenset(name.removeprefix(_WITHDRAWN) for name in listed if name.startswith(_WITHDRAWN))

    async def ping(self) -> None:
        """Reads the pointer, then a row of the edition it names."""
        deadline = time.monotonic() + _PING_SECONDS
        try:
            pointer = await self._links.ask(Statement(b"pointer", _POINTER.encode()), (), _PING_SECONDS)
            edition = pointer.get_value(0, 0) if pointer.ntuples else None
            if edition is None:
                raise StoreUnavailable("datastore", "no edition is published")
            if (damage := self._damage.get(edition.decode())) is not None:
                raise StoreUnavailable("datastore", damage[1])
            text = f"SELECT first FROM {schema_of(edition.decode())}.directory LIMIT 1"
            await self._links.ask(
                Statement(b"ping:" + edition, text.encode()), (), deadline - time.monotonic()
            )
        except Refused as refused:
            missing = refused.sqlstate in _NO_SUCH_TABLE
            raise StoreUnavailable(
                "datastore", "no edition is published" if missing else str(refused)
            ) from None

    def close(self) -> None:
        self._links.close()
        self._enquiry.close()

    def _is_whole(self, edition: str, manifest: Manifest) -> bool:
        try:
            reader = self.open(edition, check_all=True)
        except EditionError:
            return False
        return bool(reader.manifest.get("content_sha256") == manifest.get("content_sha256"))


class PostgresEditionReader:
    """See `engines.datastore.EditionReader`."""

    def __init__(
        self,
        edition: str,
        manifest: Manifest,
        links: Links,
        check: TableCheck,
        report: Callable[[str], None],
    ) -> None:
        self.manifest = manifest
        self.damage: str | None = None
        self._links = links
        self._check = check
        self._report = report
        self._parts: dict[str, list[int]] = {}
        """By kind, the numbers of the parts that have keys of it."""
        for number, part in enumerate(manifest["parts"]):
            for kind in part["kinds"]:
                self._parts.setdefault(kind, []).append(number)
        text = READ_BLOCKS.format(schema=schema_of(edition))
        self._statement = Statement(b"blocks:" + edition.encode(), text.encode())
        text = READ_PIECES.format(schema=schema_of(edition))
        self._pieces = Statement(b"pieces:" + edition.encode(), text.encode())
        text = READ_FILE.format(schema=schema_of(edition))
        self._file = Statement(b"file:" + edition.encode(), text.encode())
        text = READ_DIGESTS.format(schema=schema_of(edition))
        self._digests = Statement(b"digests:" + edition.encode(), text.encode())

    async def blocks(
        self, kind: str, key: str, skip: int, most: int, needs_rows: NeedsRows | None = None
    ) -> list[tuple[bytes, bytes]] | None:
        if "\0" in key:  # no text, and it would end there on its way to the server
            return None
        values = (kind.encode(), key.encode(), b"%d" % skip, b"%d" % (skip + most))
        result = await self._ask(self._statement, values)
        if not result.ntuples:
            return None
        blocks = []
        for row in range(result.ntuples):
            index, rows = result.get_value(row, 0), result.get_value(row, 1)
            if index is not None and rows is not None:
                blocks.append((index, rows))
        return blocks

    async def pieces(self, kind: str, ranges: Sequence[ByteRange]) -> list[bytes]:
        if not ranges:
            return []
        parts = self._parts[kind]
        columns = zip(
            *((_block_id(parts, block), start, end - start) for block, start, end in ranges), strict=True
        )
        values = [b"{%b}" % ",".join(map(str, column)).encode() for column in columns]
        result = await self._ask(self._pieces, values)
        pieces = [result.get_value(row, 0) or b"" for row in range(result.ntuples)]
        if list(map(len, pieces)) != [end - start for _, start, end in ranges]:
            raise self._incomplete("block")
        return pieces

    async def file_bytes(self, name: str, start: int, end: int) -> bytes:
        first, last = start // FILE_PART, -(-end // FILE_PART)
        result = await self._ask(self._file, (name.encode(), b"%d" % first, b"%d" % last))
        parts = [result.get_value(row, 0) or b"" for row in range(result.ntuples)]
        content = b"".join(parts)[start - first * FILE_PART : end - first * FILE_PART]
        if len(content) != end - start:
            raise self._incomplete("file")
        return content

    async def digests(self, kind: str, after: str, most: int) -> list[tuple[str, bytes]]:
        digests: list[tuple[str, bytes]] = []
        while len(digests) < most:
            asked = min(most - len(digests), _DIGESTS_AT_ONCE)
            values = (kind.encode(), after.encode(), b"%d" % asked)
            result = await self._ask(self._digests, values)
            for row in range(result.ntuples):
                after = (result.get_value(row, 0) or b"").decode()
                digests.append((after, result.get_value(row, 1) or b""))
            if result.ntuples < asked:
                break
        return digests

    def scrub(self, most: int) -> None:
        if most:
            try:
                self._check.step(max(most // _PAGE, 1))
            except EditionError as damage:
                self.damage = str(damage)
                self._report(self.damage)

    def _incomplete(self, table: str) -> StoreUnavailable:
        """A row is missing, or shorter than it was."""
        self.damage = f"incomplete: {table} is not what was published"
        self._report(self.damage)
        return StoreUnavailable("datastore", self.damage)

    async def _ask(self, statement: Statement, values: Sequence[bytes]) -> pq.abc.PGresult:
        try:
            return await self._links.ask(statement, values, _READ_SECONDS)
        except Refused as refused:
            raise StoreUnavailable("datastore", str(refused)) from None

    def close(self) -> None:
        """The connections belong to the store."""


def _block_id(parts: Sequence[int], address: int) -> int:
    """Of a block by its address: see `engines.datastore.BLOCK_BITS`."""
    return (parts[address >> BLOCK_BITS] << PART_BITS) + (address & ((1 << BLOCK_BITS) - 1))
