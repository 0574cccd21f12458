"""Writes an edition to PostgreSQL: the parts that no kept edition has, and a manifest that names all of them.

The build is one transaction: until it commits nobody sees any of it, and a build that is killed leaves
nothing behind. A part that is taken over is locked until then, so that nobody removes it meanwhile.
"""

import hashlib
import os
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from sankofa.engines.datastore import Manifest
from sankofa.engines.edition_folder import building_folder
from sankofa.engines.manifest import open_manifest, seal_manifest
from sankofa.engines.postgres_check import SUM_BLOCKS, SUM_KEYS
from sankofa.engines.postgres_parts import (
    DELETING,
    FILE_PIECE,
    FILES,
    INSERTING,
    NOTHING,
    SCHEMA,
    Datasets,
    PartStates,
    StoredPart,
    Sum,
    block_digest,
    create_tables,
    key_digest,
    parts_by_content,
    stored_parts,
)
from sankofa.engines.postgres_server import Server, operator_errors, psycopg
from sankofa.engines.postgres_writes import ComparedEdition, count_at_commit, written_state
from sankofa.engines.private_files import make_private_folder
from sankofa.model.errors import EditionError

_EDITION_ID: Final = re.compile(r"[A-Za-z0-9-]{1,64}\Z")
_HELD_BACK: Final = 16 << 20
"""Bytes of a part that are not sent before it is whole: it may come out as one that is there."""
_GROWN: Final = 0.1
"""Of the rows that a table had: then it is looked at for the planner."""
_LOCK: Final = f"SELECT 1 FROM {SCHEMA}.part WHERE id = %s FOR KEY SHARE SKIP LOCKED".encode()
_REFERENCE: Final = f"INSERT INTO {SCHEMA}.edition_part (part, edition) VALUES (%s, %s)".encode()

Block = tuple[int, bytes, bytes, bytes]
"""Its number, digest, index and rows."""


def check_edition_id(edition: str) -> str:
    """Raises EditionError for what cannot be the name of an edition."""
    if not _EDITION_ID.match(edition):
        raise EditionError(f"edition {edition!r}: not the name of an edition")
    return edition


class _Added(NamedTuple):
    """Rows."""

    blocks: int
    keys: int


class PostgresEditionWriter:
    """See `engines.datastore.EditionWriter`."""

    def __init__(
        self,
        server: Server,
        home: Path,
        states: PartStates,
        is_whole: Callable[[str, Manifest], bool],
        compared: ComparedEdition | None = None,
    ) -> None:
        """The parts of `compared` are not compared again, unless somebody wrote to the tables."""
        self._is_whole = is_whole
        self._states = states
        make_private_folder(home)
        self._connection = server.connect()
        self._folder, self._lock = building_folder(home)
        self.files = self._folder / "files"
        self._kinds: set[str] = set()
        self._written: defaultdict[int, _Added] = defaultdict(lambda: _Added(0, 0))
        """By dataset, how much was added."""
        self._held: dict[str, StoredPart] = {}
        """Of this edition: parts by their content, files by their SHA-256."""
        self._kept: dict[str, StoredPart] | None = None
        """Of the editions there are, likewise."""
        self._fetched: dict[str, Path] = {}
        try:
            self.files.mkdir(0o700)
            with operator_errors():
                with self._connection.transaction():
                    create_tables(self._connection)
                self._connection.execute(f"BEGIN; {INSERTING}; SET LOCAL search_path = {SCHEMA}".encode())
                self._datasets = Datasets(self._connection)
                self._compared = self._parts_compared(compared)
            self._begin_part()
        except BaseException:
            self.abandon()
            raise

    def _begin_part(self) -> None:
        self._part = 0
        self._dataset = ""
        self._blocks, self._directory = NOTHING, NOTHING
        self._waiting: list[Block] = []
        self._waiting_bytes = 0
        self._keys: list[tuple[str, str, int, int]] = []

    def write(self, blocks: Iterable[tuple[int, bytes, bytes]], dataset: str = "") -> None:
        self._dataset = self._dataset or dataset
        for number, index, rows in blocks:
            digest = block_digest(index, rows)
            self._blocks = self._blocks.with_block(number, digest)
            self._waiting.append((number, digest, index, rows))
            self._waiting_bytes += len(index) + len(rows)
        if self._waiting_bytes > _HELD_BACK:
            self._send_blocks()

    def register(self, directory: Iterable[tuple[str, str, int, int]]) -> None:
        for row in directory:
            self._kinds.add(row[0])
            self._directory = self._directory.with_key(key_digest(*row))
            self._keys.append(row)

    def end_part(self, content: str) -> None:
        if content and self.take_over(content):  # it came out as it was
            self._drop_sent()
        else:
            self._held[content] = self._send_part(content)
        self._begin_part()

    def take_over(self, content: str) -> bool:
        if content in self._held:
            return True
        if self._kept is None:
            self._kept = self._parts_of_editions()
        part = self._kept.get(content)
        if part is None or not self._lock_whole(part):
            return False
        self._held[content] = part
        return True

    def take_over_file(self, name: str, sha256: str) -> bool:
        return self.take_over(sha256)

    def kept_file(self, sha256: str) -> Path | None:
        if sha256 not in self._fetched and self.take_over(sha256):
            path = self._folder / f"kept-{sha256}"
            if not self._fetch(self._held[sha256], path, sha256):
                return None
            self._fetched[sha256] = path
        return self._fetched.get(sha256)

    def finish(self, edition: str, manifest: Manifest) -> None:
        """Where it is there already, whole, with the same content, that one stays: it may be in service."""
        check_edition_id(edition)
        if self._is_whole(edition, manifest):
            self.abandon()
            return
        parts = manifest.get("parts") or self._only_part()
        stored = [self._held[part["content"]] for part in parts]
        stored += [self._file(file["name"], file["sha256"]) for file in manifest.get("files", ())]
        listed = [part.as_dict() for part in stored]
        content, seal = seal_manifest({**manifest, "edition": edition, "parts": parts, "stored": listed})
        with operator_errors():
            self._connection.execute(DELETING.encode())
            remove_edition(self._connection, edition)
            self._connection.execute(INSERTING.encode())
            add_edition(self._connection, edition, content, seal, stored)
            for dataset in sorted(self._written):
                self._analyse(dataset)
            count_at_commit(self._connection)
            self._connection.execute(b"COMMIT")
        self.abandon()

    def _analyse(self, dataset: int) -> None:
        """Where the planner does not know what is in a table yet, or it has grown by much."""
        for table, added in (
            ("block", self._written[dataset].blocks),
            ("directory", self._written[dataset].keys),
        ):
            ((known,),) = self._run(
                f"SELECT reltuples FROM pg_class WHERE oid = '{table}_{dataset}'::regclass"
            )
            if added > max(known, 0) * _GROWN:
                self._run(f"ANALYZE {table}_{dataset}")

    def abandon(self) -> None:
        """The server rolls back what a closed connection had begun."""
        self._connection.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)

    def _send_blocks(self) -> None:
        if not self._part:
            ((self._part,),) = self._run(f"SELECT nextval('{SCHEMA}.part_number')").fetchall()
        dataset = self._datasets.number(self._dataset)
        blocks, keys = self._written[dataset]
        self._written[dataset] = _Added(blocks + len(self._waiting), keys)
        columns = "part, number, dataset, digest, idx, rows"
        types = ("int8", "int4", "int2", "bytea", "bytea", "bytea")
        with self._copy("block", dataset, columns, types) as copy:
            for number, digest, index, rows in self._waiting:
                copy.write_row((self._part, number, dataset, digest, index, rows))
        self._waiting, self._waiting_bytes = [], 0

    def _send_part(self, content: str) -> StoredPart:
        self._send_blocks()
        dataset = self._datasets.number(self._dataset)
        columns = "part, first, blocks, dataset, digest, kind, key"
        types = ("int8", "int4", "int4", "int2", "bytea", "text", "text")
        with self._copy("directory", dataset, columns, types) as copy:
            for kind, key, first, blocks in self._keys:
                digest = key_digest(kind, key, first, blocks)
                copy.write_row((self._part, first, blocks, dataset, digest, kind, key))
        blocks, keys = self._written[dataset]
        self._written[dataset] = _Added(blocks, keys + len(self._keys))
        with operator_errors():
            add_part(self._connection, self._part, dataset, content)
        return StoredPart(self._part, dataset, self._blocks, self._directory)

    def _drop_sent(self) -> None:
        if self._part:
            dataset = self._datasets.number(self._dataset)
            self._run(f"{DELETING}; DELETE FROM block_{dataset} WHERE part = {self._part}; {INSERTING}")

    def _only_part(self) -> list[dict[str, Any]]:
        """Of what was written without a word of parts."""
        self.end_part("")
        return [{"kinds": sorted(self._kinds), "first": "", "content": ""}]

    def _file(self, name: str, sha256: str) -> StoredPart:
        """One that was taken over, or is written now: in rows of the same size, so that it is known which one
        has a byte."""
        if not self.take_over(sha256):
            self._begin_part()
            with (self.files / name).open("rb") as file:
                for number, piece in enumerate(iter(lambda: file.read(FILE_PIECE), b"")):
                    self.write([(number, b"", piece)], FILES)
            self._dataset = FILES
            self._held[sha256] = self._send_part(sha256)
        return self._held[sha256]

    def _parts_of_editions(self) -> dict[str, StoredPart]:
        """Whatever the kept editions have, under their seals; of two alike the newer one."""
        found: dict[str, StoredPart] = {}
        rows = self._run("SELECT id, manifest, seal FROM edition ORDER BY id").fetchall()
        for edition, text, seal in rows:
            with suppress(ValueError, KeyError):
                manifest = open_manifest(text.encode(), seal, edition)
                found.update(parts_by_content(manifest))
        return found

    def _parts_compared(self, compared: ComparedEdition | None) -> frozenset[StoredPart]:
        if compared is None or compared.written != written_state(self._connection, (SCHEMA,)):
            return frozenset()
        found = "SELECT manifest, seal FROM edition WHERE id = %s"
        for text, seal in self._connection.execute(found.encode(), (compared.edition,)).fetchall():
            with suppress(ValueError, KeyError):
                return frozenset(stored_parts(open_manifest(text.encode(), seal, compared.edition)))
        return frozenset()

    def _lock_whole(self, part: StoredPart) -> bool:
        """Whether it is there, every row as it was published; then nobody removes it before we are done."""
        with operator_errors():
            if self._connection.execute(_LOCK, (part.id,)).fetchone() is None:
                return False
        if part in self._compared:
            self._states.take_over(part)
            return True
        for sealed, text in ((part.blocks, SUM_BLOCKS), (part.keys, SUM_KEYS)):
            text = text.format(dataset=part.dataset, part=part.id)
            ((rows, digest, whole),) = self._run(text).fetchall()
            if not whole or Sum(rows, int(digest)) != sealed:
                return False
        self._states.take_over(part)
        return True

    def _fetch(self, part: StoredPart, path: Path, sha256: str) -> bool:
        """A file of a kept edition as a file here; whether it is the one with this digest."""
        digest = hashlib.sha256()
        with path.open("xb") as file:
            for piece in file_pieces(self._connection, part):
                digest.update(piece)
                file.write(piece)
        return digest.hexdigest() == sha256

    @contextmanager
    def _copy(self, table: str, dataset: int, columns: str, types: Sequence[str]) -> Iterator[psycopg.Copy]:
        """FREEZE, where the table is new: its rows need not be looked over again, neither by a reader nor by
        VACUUM."""
        freeze = ", FREEZE" if dataset in self._datasets.created else ""
        statement = f"COPY {table}_{dataset} ({columns}) FROM STDIN (FORMAT binary{freeze})"
        with operator_errors(), self._connection.cursor() as cursor, cursor.copy(statement.encode()) as copy:
            copy.set_types(types)
            yield copy

    def _run(self, statements: str) -> psycopg.Cursor[Any]:
        with operator_errors():
            return self._connection.execute(statements.encode())


def add_part(connection: psycopg.Connection[Any], part: int, dataset: int, content: str) -> None:
    connection.execute(
        f"INSERT INTO {SCHEMA}.part (id, dataset, content) VALUES (%s, %s, %s)".encode(),
        (part, dataset, content),
    )


def add_edition(
    connection: psycopg.Connection[Any],
    edition: str,
    manifest: bytes,
    seal: str,
    stored: Iterable[StoredPart],
) -> None:
    connection.execute(
        f"INSERT INTO {SCHEMA}.edition (id, seal, manifest) VALUES (%s, %s, %s)".encode(),
        (edition, seal, manifest.decode()),
    )
    with connection.cursor() as cursor:
        cursor.executemany(_REFERENCE, [(part, edition) for part in sorted({part.id for part in stored})])


def remove_edition(connection: psycopg.Connection[Any], edition: str) -> None:
    """What it alone had is removed by `engines.postgres_prune`."""
    for table, column in (("edition_part", "edition"), ("edition", "id")):
        connection.execute(f"DELETE FROM {SCHEMA}.{table} WHERE {column} = %s".encode(), (edition,))


def file_pieces(connection: psycopg.Connection[Any], part: StoredPart) -> Iterator[bytes]:
    statement = f"SELECT rows FROM {SCHEMA}.block_{part.dataset} WHERE part = %s ORDER BY number"
    with operator_errors(), connection.cursor(name="pieces", binary=True) as cursor:
        cursor.itersize = 16
        cursor.execute(statement.encode(), (part.id,))
        for (piece,) in cursor:
            yield piece
