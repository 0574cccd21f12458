"""The PostgreSQL datastore: the ledger in a schema of its own, and the editions in tables that they share.

A table of one row names the current edition, so switching is one transaction. Commands talk to the
server through the driver and may wait; the serving side has a clock of its own (postgres_link.py).
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from sankofa.engines.datastore import EditionList, Manifest, Turn
from sankofa.engines.postgres_check import OLD_PREFIX, PartsCheck, read_manifest
from sankofa.engines.postgres_edition import PostgresEditionWriter, check_edition_id, remove_edition
from sankofa.engines.postgres_export import EditionExport
from sankofa.engines.postgres_ledger import LEDGER, PostgresLedger, PostgresRows
from sankofa.engines.postgres_link import Enquiry, Links, Statement
from sankofa.engines.postgres_migrate import drop_old_edition, migrate_editions
from sankofa.engines.postgres_parts import DELETING, SCHEMA, PartStates, create_tables, stored_parts
from sankofa.engines.postgres_prune import remove_unused_parts
from sankofa.engines.postgres_reader import PostgresEditionReader
from sankofa.engines.postgres_server import Refused, Server, operator_errors, psycopg
from sankofa.engines.postgres_writes import (
    ComparedEdition,
    count_at_commit,
    read_compared_edition,
    write_compared_edition,
    written_state,
)
from sankofa.engines.publication import signers_to_sign
from sankofa.model.errors import EditionError, StoreUnavailable
from sankofa.model.signed_notes import Signer

# Names of advisory locks, beside those of the ledger; they are shared by everything in the database.
_TURNS: Final[dict[Turn, int]] = {"publish": 0x53414E4B4F464103, "switch": 0x53414E4B4F464104}
_PING_SECONDS = 0.8
_CHECKED_AT_OPENING_SECONDS = 0.5

_CREATE_POINTER = """
    CREATE SCHEMA IF NOT EXISTS sankofa_shelf;
    CREATE TABLE IF NOT EXISTS sankofa_shelf.current (
        single BOOLEAN PRIMARY KEY DEFAULT true CHECK (single), edition TEXT NOT NULL
    );
    CREATE TABLE IF NOT EXISTS sankofa_shelf.published (edition TEXT PRIMARY KEY)
"""
_HAS_POINTER = (
    "SELECT to_regclass('sankofa_shelf.current') IS NOT NULL "
    "AND to_regclass('sankofa_shelf.published') IS NOT NULL"
)
_POINT = b"""
    INSERT INTO sankofa_shelf.current (edition) VALUES (%s)
    ON CONFLICT (single) DO UPDATE SET edition = excluded.edition
"""
_POINTER = "SELECT edition FROM sankofa_shelf.current"
_LIST_AS_PUBLISHED = b"INSERT INTO sankofa_shelf.published VALUES (%s) ON CONFLICT DO NOTHING"
_WITHDRAWN = "withdrawn "
_PUBLISHED = "SELECT edition FROM sankofa_shelf.published"
_OLD_EDITIONS = f"""
    SELECT substr(n.nspname, {len(OLD_PREFIX) + 1}) FROM pg_namespace AS n
    JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = 'manifest'
    WHERE starts_with(n.nspname, '{OLD_PREFIX}')
"""
_EDITIONS = f"SELECT id FROM {SCHEMA}.edition UNION {_OLD_EDITIONS}"
_LOOK = Statement(
    b"look",
    f"""
    SELECT c.edition, e.seal, (SELECT p.part FROM {SCHEMA}.edition_part AS p WHERE p.edition = e.id LIMIT 1)
    FROM sankofa_shelf.current AS c LEFT JOIN {SCHEMA}.edition AS e ON e.id = c.edition
    """.encode(),
)
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
        self._states = PartStates()
        self._compared = home / "derived" / "compared-edition.json"
        self._export = EditionExport(self._server, home / "exported")
        self._damage: dict[str, tuple[str, str]] = {}
        """By edition, its seal and what is wrong with it."""

    def ledger(self) -> PostgresLedger:
        return PostgresLedger(self._server, self._schema)

    def ledger_opener(self) -> Callable[[], PostgresRows]:
        return partial(PostgresRows.open, self._server)

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
        with operator_errors(), self._server.connect() as connection:
            migrate_editions(connection)
        compared = read_compared_edition(self._compared)
        return PostgresEditionWriter(self._server, self._home, self._states, self._is_whole, compared)

    def open(self, edition: str, *, check_all: bool = False) -> PostgresEditionReader:
        manifest, seal = read_manifest(self._enquiry.rows, check_edition_id(edition))
        parts = stored_parts(manifest)
        self._states.see(edition, parts)
        check = PartsCheck(self._enquiry.rows, edition, parts, self._states)

        def report(damage: str) -> None:
            self._damage[edition] = seal, damage

        try:
            check.check(float("inf") if check_all else _CHECKED_AT_OPENING_SECONDS, again=check_all)
        except EditionError as failure:
            report(str(failure))
            raise
        self._damage.pop(edition, None)
        return PostgresEditionReader(edition, manifest, self._links, self._states, check, report)

    def manifest(self, edition: str) -> Manifest:
        return read_manifest(self._enquiry.rows, check_edition_id(edition))[0]

    def written_state(self, edition: str) -> str:
        """Of all editions: they share their tables."""
        with operator_errors(), self._server.connect() as connection:
            return written_state(connection, (LEDGER, SCHEMA))

    def edition_folder(self, edition: str) -> Path:
        """Written to HOME, and kept there for as long as the edition is kept here."""
        manifest, _ = read_manifest(self._enquiry.rows, check_edition_id(edition))
        self._export.forget_all_but(self.list_editions().editions)
        return self._export.edition_folder(edition, manifest)

    def list_editions(self) -> EditionList:
        try:
            editions = self._rows_if_any(_EDITIONS) or self._enquiry.rows(_OLD_EDITIONS)
            pointer = self._rows_if_any(_POINTER)
        except Refused as refused:
            raise StoreUnavailable("datastore", str(refused)) from None
        names = sorted((str(name) for (name,) in editions), reverse=True)
        return EditionList(tuple(names), pointer[0][0] if pointer else None)

    def _rows_if_any(self, text: str) -> list[list[str | None]]:
        """None where there is no such table yet."""
        try:
            return self._enquiry.rows(text)
        except Refused as refused:
            if refused.sqlstate not in _NO_SUCH_TABLE:
                raise
            return []

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
        """Whoever reads a part that is removed goes on with what it has begun, and is then told."""
        with operator_errors(), self._server.connect() as connection:
            with connection.transaction():
                _create_pointer(connection)
                create_tables(connection)
            kept = self.list_editions()  # what was there before the list was is put on it too
            removed = [name for name in kept.editions if name not in editions and name != current]
            with connection.transaction():
                for edition in {*kept.editions, *filter(None, [kept.current]), current}:
                    connection.execute(_LIST_AS_PUBLISHED, (edition,))
                connection.execute(_POINT, (current,))
                connection.execute(DELETING.encode())
                for edition in removed:
                    remove_edition(connection, edition)
                count_at_commit(connection)
            remove_unused_parts(connection)
            old = {str(name) for (name,) in connection.execute(_OLD_EDITIONS.encode()).fetchall()}
            for edition in old.intersection(removed):
                drop_old_edition(connection, edition)
            self._remember_compared(connection, current)

    def _remember_compared(self, connection: psycopg.Connection[Any], edition: str) -> None:
        """For the next build, where all of it was compared by this process."""
        try:
            parts = stored_parts(self.manifest(edition))
        except EditionError:
            return
        if all(self._states.state(part).complete for part in parts):
            written = written_state(connection, (SCHEMA,))
            write_compared_edition(self._compared, ComparedEdition(edition, written))

    def list_as_published(self, editions: Collection[str]) -> None:
        if editions:
            with operator_errors(), self._server.connect() as connection, connection.transaction():
                _create_pointer(connection)
                for edition in sorted(editions):
                    connection.execute(_LIST_AS_PUBLISHED, (edition,))

    def published(self) -> frozenset[str]:
        """Those kept and the current one too: an older version of this service wrote no list."""
        kept = self.list_editions()
        listed = {name for name in self._list_rows() if not name.startswith(_WITHDRAWN)}
        return frozenset({*listed, *kept.editions, *filter(None, [kept.current])})

    def _list_rows(self) -> list[str]:
        try:
            return [str(name) for (name,) in self._rows_if_any(_PUBLISHED)]
        except Refused as refused:
            raise StoreUnavailable("datastore", str(refused)) from None

    def withdraw(self, editions: Collection[str]) -> None:
        if editions:
            with operator_errors(), self._server.connect() as connection, connection.transaction():
                _create_pointer(connection)
                for edition in sorted(editions):
                    connection.execute(_LIST_AS_PUBLISHED, (f"{_WITHDRAWN}{edition}",))

    def withdrawn(self) -> frozenset[str]:
        listed = self._list_rows()
        return frozenset(name.removeprefix(_WITHDRAWN) for name in listed if name.startswith(_WITHDRAWN))

    def publication(self) -> None:
        """Whoever may write to the database decides what is served: it is signed when it is pushed."""

    def signers(self) -> tuple[Signer, ...]:
        return signers_to_sign(self._home, signed_before=False)

    async def ping(self) -> None:
        """Reads the pointer and a row of the edition it names."""
        try:
            found = await self._links.ask(_LOOK, (), _PING_SECONDS)
        except Refused as refused:
            missing = refused.sqlstate in _NO_SUCH_TABLE
            raise StoreUnavailable(
                "datastore", "no edition is published" if missing else str(refused)
            ) from None
        if not found.ntuples:
            raise StoreUnavailable("datastore", "no edition is published")
        edition, seal = ((found.get_value(0, column) or b"").decode() for column in (0, 1))
        if found.get_value(0, 2) is None:
            raise StoreUnavailable("datastore", f"edition {edition} is not there")
        known, damage = self._damage.get(edition, ("", ""))
        if damage and known == seal:
            raise StoreUnavailable("datastore", damage)

    def close(self) -> None:
        self._links.close()
        self._enquiry.close()

    def _is_whole(self, edition: str, manifest: Manifest) -> bool:
        try:
            reader = self.open(edition, check_all=True)
        except EditionError:
            return False
        return bool(reader.manifest.get("content_sha256") == manifest.get("content_sha256"))


def _create_pointer(connection: psycopg.Connection[Any]) -> None:
    if connection.execute(_HAS_POINTER.encode()).fetchone() != (True,):
        connection.execute(_CREATE_POINTER.encode())
