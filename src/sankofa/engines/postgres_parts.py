"""The parts of editions in PostgreSQL: each is stored once, whatever editions have it.

An edition is a manifest and the numbers of its parts. A part is rows of two tables, blocks and keys; a
Parquet file is a part of blocks alone, its pieces. Both tables are partitioned by dataset, and a part is some
keys of one dataset, so its number is what a distributed database would place rows by. Every row has a digest
that a reader compares, and the manifest has the sum of those of a part, under its seal.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from functools import cache
from struct import Struct
from typing import Any, Final, NamedTuple
from weakref import WeakValueDictionary

from sankofa.engines.datastore import Manifest
from sankofa.engines.postgres_link import Statement
from sankofa.engines.postgres_server import psycopg
from sankofa.model.errors import OperatorError

SCHEMA: Final = "sankofa_editions"
VERSION: Final = 1
"""Of these tables. A later one is refused, an earlier one is brought up to date by the next publish."""
FILES: Final = "file"
"""The dataset of Parquet files."""
FILE_PIECE: Final = 256 * 1024
"""Bytes of a file that are one row: few enough to answer a small range without reading much more."""
DIGEST: Final = 16
_EDITIONS_REMEMBERED: Final = 32
_KEYS_REMEMBERED: Final = 16_384
"""Some 5 MB in each worker."""
_CREATING: Final = 0x53414E4B4F464105
"""The name of an advisory lock, shared by everything in the database."""
_LENGTH: Final = Struct(">i")
_PLACE: Final = Struct(">i")

_CREATE: Final = f"""
    CREATE SCHEMA IF NOT EXISTS {SCHEMA};
    SET LOCAL search_path = {SCHEMA};
    CREATE TABLE version (single BOOLEAN PRIMARY KEY DEFAULT true CHECK (single), number INTEGER NOT NULL);
    CREATE TABLE dataset (id SMALLINT PRIMARY KEY, name TEXT COLLATE "C" NOT NULL UNIQUE);
    CREATE SEQUENCE part_number;
    CREATE TABLE part (id BIGINT PRIMARY KEY, dataset SMALLINT NOT NULL REFERENCES dataset,
                       content TEXT COLLATE "C" NOT NULL);
    CREATE TABLE edition (id TEXT COLLATE "C" PRIMARY KEY, seal TEXT NOT NULL, manifest TEXT NOT NULL);
    CREATE TABLE edition_part (edition TEXT COLLATE "C" NOT NULL REFERENCES edition,
                               part BIGINT NOT NULL REFERENCES part, PRIMARY KEY (edition, part));
    CREATE INDEX ON edition_part (part);
    CREATE TABLE block (part BIGINT NOT NULL, number INTEGER NOT NULL, dataset SMALLINT NOT NULL,
                        digest BYTEA NOT NULL, idx BYTEA NOT NULL, rows BYTEA NOT NULL,
                        PRIMARY KEY (part, number, dataset)) PARTITION BY LIST (dataset);
    CREATE TABLE directory (part BIGINT NOT NULL, first INTEGER NOT NULL, blocks INTEGER NOT NULL,
                            dataset SMALLINT NOT NULL, digest BYTEA NOT NULL,
                            kind TEXT COLLATE "C" NOT NULL, key TEXT COLLATE "C" NOT NULL,
                            PRIMARY KEY (part, kind, key, dataset)) PARTITION BY LIST (dataset);
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF current_setting('sankofa.editions', true) = lower(TG_OP) THEN RETURN NULL; END IF;
        RAISE EXCEPTION 'an edition never changes: % on % refused', TG_OP, TG_TABLE_NAME;
    END $$;
    INSERT INTO version (number) VALUES ({VERSION});
"""
_VERSION_TABLE: Final = f"SELECT to_regclass('{SCHEMA}.version')".encode()
_GUARD: Final = f"""
    CREATE TRIGGER refuses_changes BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON {SCHEMA}.{{table}}
    FOR EACH STATEMENT EXECUTE FUNCTION {SCHEMA}.refuse();
    ALTER TABLE {SCHEMA}.{{table}} ENABLE ALWAYS TRIGGER refuses_changes;
"""
_GUARDED: Final = ("edition", "edition_part", "part", "block", "directory")
INSERTING: Final = "SET LOCAL sankofa.editions = 'insert'"
DELETING: Final = "SET LOCAL sankofa.editions = 'delete'"
# What is deleted of a part that no edition has any more makes room for the next: the sooner the better.
_PARTITION: Final = f"""
    CREATE TABLE {SCHEMA}.{{table}} (LIKE {SCHEMA}.{{parent}} INCLUDING ALL);
    ALTER TABLE {SCHEMA}.{{table}} SET (autovacuum_vacuum_scale_factor = 0.05);
    ALTER TABLE {SCHEMA}.{{parent}} ATTACH PARTITION {SCHEMA}.{{table}} FOR VALUES IN ({{dataset}});
"""
# Blocks are compressed: unpacking 64 KB costs less than fetching it from thirty-three places of a heap.
_LZ4: Final = "ALTER TABLE {table} ALTER idx SET COMPRESSION lz4, ALTER rows SET COMPRESSION lz4"
_HAS_LZ4: Final = b"SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression'"
_PLAIN: Final = "ALTER TABLE {table} ALTER rows SET STORAGE EXTERNAL"
_TOAST: Final = "ALTER TABLE {table} SET (toast.autovacuum_vacuum_scale_factor = 0.05)"

# As Python computes them below. The first 60 bits of the digest of each row are summed: the same in whatever
# order the rows are met.
BLOCK_DIGEST: Final = f"substr(sha256(int4send(octet_length(idx)) || idx || rows), 1, {DIGEST})"
KEY_DIGEST: Final = (
    f"substr(sha256(convert_to(concat_ws(chr(31), kind, key, first, blocks), 'UTF8')), 1, {DIGEST})"
)
_SHORT: Final = "('x' || left(encode({digest}, 'hex'), 15))::bit(60)::bigint"
BLOCK_SUM: Final = f"coalesce(sum({_SHORT.format(digest='sha256(int4send(number) || digest)')}), 0)"
KEY_SUM: Final = f"coalesce(sum({_SHORT.format(digest='digest')}), 0)"


class Sum(NamedTuple):
    """Of the rows of a part in one table: how many there are, and the sum of their digests."""

    rows: int
    digest: int

    @classmethod
    def of(cls, sealed: Mapping[str, Any]) -> "Sum":
        return cls(sealed["rows"], int(sealed["digest"]))

    def as_dict(self) -> dict[str, Any]:
        return {"rows": self.rows, "digest": str(self.digest)}

    def with_block(self, number: int, digest: bytes) -> "Sum":
        return Sum(self.rows + 1, self.digest + _short(hashlib.sha256(_PLACE.pack(number) + digest).digest()))

    def with_key(self, digest: bytes) -> "Sum":
        return Sum(self.rows + 1, self.digest + _short(digest))


NOTHING: Final = Sum(0, 0)


class StoredPart(NamedTuple):
    """A part, or a file, as the manifest has it under its seal."""

    id: int
    dataset: int
    blocks: Sum
    keys: Sum

    @classmethod
    def of(cls, sealed: Mapping[str, Any]) -> "StoredPart":
        return cls(sealed["id"], sealed["dataset"], Sum.of(sealed["blocks"]), Sum.of(sealed["keys"]))

    def as_dict(self) -> dict[str, Any]:
        sums = {"blocks": self.blocks.as_dict(), "keys": self.keys.as_dict()}
        return {"id": self.id, "dataset": self.dataset, **sums}


def stored_parts(manifest: Manifest) -> list[StoredPart]:
    """The parts of an edition in the order of its manifest, then its files in theirs."""
    return [StoredPart.of(sealed) for sealed in manifest["stored"]]


def parts_by_content(manifest: Manifest) -> dict[str, StoredPart]:
    """The parts and files of an edition by the digest of what is in them, where it is known."""
    contents = [part["content"] for part in manifest["parts"]]
    contents += [file["sha256"] for file in manifest.get("files", ())]
    parts = dict(zip(contents, stored_parts(manifest), strict=True))
    parts.pop("", None)
    return parts


def block_digest(index: bytes, rows: bytes) -> bytes:
    digest = hashlib.sha256(_LENGTH.pack(len(index)))
    digest.update(index)
    digest.update(rows)
    return digest.digest()[:DIGEST]


def key_digest(kind: str, key: str, first: int, blocks: int) -> bytes:
    return hashlib.sha256(f"{kind}\x1f{key}\x1f{first}\x1f{blocks}".encode()).digest()[:DIGEST]


def _short(digest: bytes) -> int:
    return int.from_bytes(digest[:8]) >> 4


class PartState:
    """What this process knows of a part: it is the same for every edition that has the part."""

    def __init__(self, part: StoredPart) -> None:
        self.compared = bytearray(part.blocks.rows + 1)
        """By number of a block, whether it was compared with its digest."""
        self.complete = False
        self.damage: str | None = None
        self.taken_over = False
        """Whether a build compared it, and nobody asked for it to be compared once more since."""


class PartStates:
    """The states of the parts of the editions opened last, and of those that a build took over."""

    def __init__(self) -> None:
        self._editions: OrderedDict[str, list[PartState]] = OrderedDict()
        self._states: WeakValueDictionary[StoredPart, PartState] = WeakValueDictionary()
        self._damaged: dict[StoredPart, PartState] = {}
        self._extents: dict[tuple[int, str, str], tuple[int, int]] = {}
        self._taken_over: list[PartState] = []

    def see(self, edition: str, parts: Iterable[StoredPart]) -> None:
        """Its parts are about to be read: what is known of them is kept while it is among the last opened."""
        self._editions[edition] = [self.state(part) for part in parts]
        self._editions.move_to_end(edition)
        if len(self._editions) > _EDITIONS_REMEMBERED:
            self._editions.popitem(last=False)

    def state(self, part: StoredPart) -> PartState:
        state = self._states.get(part)
        if state is None:
            state = self._states[part] = PartState(part)
        return state

    def extent(self, part: StoredPart, kind: str, key: str) -> tuple[int, int] | None:
        """The first block of a key and how many it has, where it was read lately. It never changes."""
        return self._extents.get((part.id, kind, key))

    def remember(self, part: StoredPart, kind: str, key: str, extent: tuple[int, int]) -> None:
        if len(self._extents) >= _KEYS_REMEMBERED:
            self._extents.clear()
        self._extents[part.id, kind, key] = extent

    def report(self, part: StoredPart, damage: str) -> None:
        """It is not read again until it was compared as a whole: one that is published again has another
        number."""
        state = self._damaged[part] = self.state(part)
        state.damage = damage

    def complete(self, part: StoredPart) -> PartState:
        """All of it was compared."""
        state = self.state(part)
        state.complete, state.damage = True, None
        state.compared = bytearray(b"\1" * len(state.compared))
        self._damaged.pop(part, None)
        return state

    def take_over(self, part: StoredPart) -> None:
        """All of it was compared a moment ago, by a build."""
        state = self.complete(part)
        state.taken_over = True
        self._taken_over.append(state)


def create_tables(connection: psycopg.Connection[Any]) -> None:
    """Create what is missing, in the transaction under way. Raises OperatorError for a later version's."""
    if connection.execute(_VERSION_TABLE).fetchone() == (None,):
        connection.execute(f"SELECT pg_advisory_xact_lock({_CREATING})".encode())
    if connection.execute(_VERSION_TABLE).fetchone() == (None,):
        connection.execute(_CREATE.encode())
        for table in _GUARDED:
            connection.execute(_GUARD.format(table=table).encode())
    row = connection.execute(f"SELECT number FROM {SCHEMA}.version".encode()).fetchone()
    if row is None or row[0] > VERSION:
        version = "no version" if row is None else f"version {row[0]}"
        raise OperatorError(
            f"PostgreSQL: the tables of editions are of {version}, this one knows {VERSION}: "
            "install the version of the service that made them, or a newer one"
        )


class Datasets:
    """The partitions of the tables, one for each dataset, created when they are first written to."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection
        self._known: dict[str, int] = dict(
            connection.execute(f"SELECT name, id FROM {SCHEMA}.dataset".encode()).fetchall()
        )
        self.created: set[int] = set()
        """Those of the transaction under way."""

    def number(self, name: str) -> int:
        if name not in self._known:
            self._known[name] = self._create(name)
        return self._known[name]

    def _create(self, name: str) -> int:
        run = self._connection.execute
        run(f"SELECT pg_advisory_xact_lock({_CREATING})".encode())
        row = run(f"SELECT id FROM {SCHEMA}.dataset WHERE name = %s".encode(), (name,)).fetchone()
        if row is not None:
            return int(row[0])
        insert = (
            f"INSERT INTO {SCHEMA}.dataset SELECT coalesce(max(id), 0) + 1, %s FROM {SCHEMA}.dataset "
            "RETURNING id"
        )
        ((number,),) = run(insert.encode(), (name,)).fetchall()
        for parent in ("block", "directory"):
            table = f"{parent}_{number}"
            run(_PARTITION.format(table=table, parent=parent, dataset=number).encode())
            run(_GUARD.format(table=table).encode())
        blocks = f"{SCHEMA}.block_{number}"
        run(_TOAST.format(table=blocks).encode())
        if name == FILES:
            run(_PLAIN.format(table=blocks).encode())
        elif run(_HAS_LZ4).fetchone() == (True,):
            run(_LZ4.format(table=blocks).encode())
        self.created.add(number)
        return int(number)


# A key without blocks, or none in the stretch asked for, is one row of nulls.
_READ_BLOCKS: Final = """
    SELECT d.first, d.blocks, d.digest, b.idx, b.rows, b.digest FROM {schema}.directory_{dataset} AS d
    LEFT JOIN {schema}.block_{dataset} AS b ON b.part = d.part
      AND b.number >= d.first + $4::bigint AND b.number < d.first + least($5::bigint, d.blocks)
    WHERE d.part = $1::bigint AND d.kind = $2 AND d.key = $3 ORDER BY b.number
"""
_READ_PIECES: Final = """
    SELECT substr(b.rows, p.start + 1, p.size)
    FROM unnest($1::bigint[], $2::int[], $3::int[], $4::int[]) WITH ORDINALITY
      AS p (part, number, start, size, n)
    JOIN {schema}.block_{dataset} AS b ON b.part = p.part AND b.number = p.number ORDER BY p.n
"""
_COMPARE_BLOCKS: Final = f"""
    SELECT count(*) FILTER (WHERE b.digest = {BLOCK_DIGEST})
    FROM unnest($1::bigint[], $2::int[]) AS p (part, number)
    JOIN {{schema}}.block_{{dataset}} AS b ON b.part = p.part AND b.number = p.number
"""
# Where it is known which blocks a key has; and of files.
_READ_NUMBERED: Final = """
    SELECT idx, rows, digest FROM {schema}.block_{dataset}
    WHERE part = $1::bigint AND number >= $2::int AND number < $3::int ORDER BY number
"""
_READ_DIGESTS: Final = """
    SELECT d.key, (
        SELECT sha256(coalesce(string_agg(b.digest, ''::bytea ORDER BY b.number), ''::bytea))
        FROM {schema}.block_{dataset} AS b
        WHERE b.part = d.part AND b.number >= d.first AND b.number < d.first + d.blocks)
    FROM (SELECT * FROM {schema}.directory_{dataset} WHERE part = $1::bigint AND kind = $2 AND key >= $3
          ORDER BY key LIMIT $4::bigint) AS d ORDER BY d.key
"""
_TEXTS: Final = {
    "blocks": _READ_BLOCKS,
    "pieces": _READ_PIECES,
    "compare": _COMPARE_BLOCKS,
    "numbered": _READ_NUMBERED,
    "digests": _READ_DIGESTS,
}
PRESENT: Final = Statement(b"present", f"SELECT id FROM {SCHEMA}.part WHERE id = $1::bigint".encode())


@cache
def statement(name: str, dataset: int) -> Statement:
    """It names the partition: choosing one at each question would cost more than the question."""
    text = _TEXTS[name].format(schema=SCHEMA, dataset=dataset)
    return Statement(f"{name}:{dataset}".encode(), text.encode())
