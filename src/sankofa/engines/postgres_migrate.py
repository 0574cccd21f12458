"""Moves editions that an older version of this service wrote to PostgreSQL, each to a schema of its own, to
the tables that editions share now.

The schema stays until the publication after: a server of the older version goes on reading it until it is
replaced.
"""

from typing import Any, Final

from sankofa.engines.manifest import open_manifest, seal_manifest
from sankofa.engines.postgres_check import OLD_PREFIX, SUM_BLOCKS, SUM_KEYS
from sankofa.engines.postgres_edition import add_edition, add_part
from sankofa.engines.postgres_parts import (
    BLOCK_DIGEST,
    FILES,
    INSERTING,
    KEY_DIGEST,
    SCHEMA,
    Datasets,
    StoredPart,
    Sum,
    create_tables,
    parts_by_content,
)
from sankofa.engines.postgres_server import operator_errors, psycopg

_PART_BITS: Final = 32
"""There the upper bits of the id of a block were the number of its part."""
_OLD_SHORT: Final = "('x' || left(encode(sha256({row}), 'hex'), 15))::bit(60)::bigint"
_OLD_ROWS: Final = {
    "directory": "convert_to(concat_ws(chr(31), kind, key, first, blocks), 'UTF8')",
    "block": "int8send(id) || int4send(octet_length(idx)) || idx || rows",
    "file": "int4send(part) || convert_to(name, 'UTF8') || bytes",
}
_OLD_SCHEMAS: Final = f"""
    SELECT substr(n.nspname, {len(OLD_PREFIX) + 1}),
           EXISTS (SELECT FROM {SCHEMA}.edition WHERE id = substr(n.nspname, {len(OLD_PREFIX) + 1}))
    FROM pg_namespace AS n JOIN pg_class AS c ON c.relnamespace = n.oid AND c.relname = 'manifest'
    WHERE starts_with(n.nspname, '{OLD_PREFIX}') ORDER BY 1
"""
_ADD_BLOCKS: Final = f"""
    INSERT INTO {SCHEMA}.block_{{dataset}} (part, number, dataset, digest, idx, rows)
    SELECT {{part}}, id - {{base}}, {{dataset}}, {BLOCK_DIGEST}, idx, rows
    FROM {{old}}.block WHERE id >= {{base}} AND id < {{end}} ORDER BY id
"""
_ADD_KEYS: Final = f"""
    INSERT INTO {SCHEMA}.directory_{{dataset}} (part, first, blocks, dataset, digest, kind, key)
    SELECT {{part}}, first, blocks, {{dataset}}, {KEY_DIGEST}, kind, key
    FROM (SELECT kind, key, (first - {{base}})::int AS first, blocks::int AS blocks
          FROM {{old}}.directory WHERE first >= {{base}} AND first < {{end}}) AS d
"""
_ADD_PIECES: Final = f"""
    INSERT INTO {SCHEMA}.block_{{dataset}} (part, number, dataset, digest, idx, rows)
    SELECT {{part}}, part, {{dataset}}, {BLOCK_DIGEST}, idx, rows
    FROM (SELECT part, ''::bytea AS idx, bytes AS rows FROM {{old}}.file WHERE name = %s) AS f
"""
_FIRST_KIND: Final = (
    "SELECT kind FROM {old}.directory WHERE first >= {base} AND first < {end} ORDER BY first LIMIT 1"
)


def migrate_editions(connection: psycopg.Connection[Any]) -> None:
    """Each edition in a transaction of its own. One that is damaged stays where it is, refused by name."""
    with operator_errors():
        with connection.transaction():
            create_tables(connection)
        for edition, moved in connection.execute(_OLD_SCHEMAS.encode()).fetchall():
            if moved:
                drop_old_edition(connection, edition)
                continue
            with connection.transaction():
                _move(connection, edition)


def drop_old_edition(connection: psycopg.Connection[Any], edition: str) -> None:
    """Where one is being read at this very moment it is left for the next time."""
    try:
        with connection.transaction():
            connection.execute(b"SET LOCAL lock_timeout = '500ms'")
            connection.execute(f"DROP SCHEMA IF EXISTS {_old_schema(edition)} CASCADE".encode())
            if connection.execute(b"SELECT to_regclass('sankofa_shelf.seal')").fetchone() != (None,):
                connection.execute(b"DELETE FROM sankofa_shelf.seal WHERE edition = %s", (edition,))
    except psycopg.errors.LockNotAvailable:
        return


def _old_schema(edition: str) -> str:
    return f'"{OLD_PREFIX}{edition}"'


def _move(connection: psycopg.Connection[Any], edition: str) -> None:
    if (manifest := _whole_manifest(connection, edition)) is None:
        return
    connection.execute(INSERTING.encode())
    datasets = Datasets(connection)
    known = _known_parts(connection)
    stored = []
    old = _old_schema(edition)
    for number, part in enumerate(manifest["parts"]):
        names = {"old": old, "base": number << _PART_BITS, "end": (number + 1) << _PART_BITS}
        if part["content"] not in known:
            kind = connection.execute(_FIRST_KIND.format(**names).encode()).fetchone()
            dataset = datasets.number(kind[0] if kind else "")
            added = [
                text.format(**names, part="{part}", dataset=dataset) for text in (_ADD_BLOCKS, _ADD_KEYS)
            ]
            known[part["content"]] = _added(connection, part["content"], dataset, added)
        stored.append(known[part["content"]])
    for file in manifest.get("files", ()):
        if file["sha256"] not in known:
            dataset = datasets.number(FILES)
            added = [_ADD_PIECES.format(old=old, part="{part}", dataset=dataset)]
            known[file["sha256"]] = _added(connection, file["sha256"], dataset, added, (file["name"],))
        stored.append(known[file["sha256"]])
    manifest.pop("tables")
    content, seal = seal_manifest({**manifest, "stored": [part.as_dict() for part in stored]})
    add_edition(connection, edition, content, seal, stored)


def _whole_manifest(connection: psycopg.Connection[Any], edition: str) -> dict[str, Any] | None:
    """None where it is not what was published."""
    old = _old_schema(edition)
    try:
        with connection.transaction():
            rows = connection.execute(f"SELECT json FROM {old}.manifest".encode()).fetchall()
            seals = connection.execute(
                b"SELECT sha256 FROM sankofa_shelf.seal WHERE edition = %s", (edition,)
            )
            manifest = open_manifest(rows[0][0].encode(), seals.fetchall()[0][0], edition)
            for table, row in _OLD_ROWS.items():
                total = f"SELECT count(*), coalesce(sum({_OLD_SHORT.format(row=row)}), 0) FROM {old}.{table}"
                ((rows_found, digest),) = connection.execute(total.encode()).fetchall()
                if {"rows": rows_found, "digest": str(digest)} != manifest["tables"][table]:
                    return None
    except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn, ValueError, LookupError):
        return None
    return manifest if "parts" in manifest else None


def _known_parts(connection: psycopg.Connection[Any]) -> dict[str, StoredPart]:
    """Of those moved before, by their content; what two of them share is stored once."""
    known: dict[str, StoredPart] = {}
    rows = connection.execute(f"SELECT id, manifest, seal FROM {SCHEMA}.edition".encode()).fetchall()
    for edition, text, seal in rows:
        known.update(parts_by_content(open_manifest(text.encode(), seal, edition)))
    return known


def _added(
    connection: psycopg.Connection[Any],
    content: str,
    dataset: int,
    statements: list[str],
    values: tuple[str, ...] = (),
) -> StoredPart:
    ((part,),) = connection.execute(f"SELECT nextval('{SCHEMA}.part_number')".encode()).fetchall()
    for statement in statements:
        connection.execute(statement.format(part=part).encode(), values or None)
    add_part(connection, part, dataset, content)
    sums = []
    for text in (SUM_BLOCKS, SUM_KEYS):
        ((rows, digest, _),) = connection.execute(text.format(dataset=dataset, part=part).encode()).fetchall()
        sums.append(Sum(rows, int(digest)))
    return StoredPart(part, dataset, *sums)
