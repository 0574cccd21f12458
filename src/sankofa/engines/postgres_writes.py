"""Whether anything was written to the tables of PostgreSQL since they were last compared with their seals.

The server counts the rows that are inserted, updated and deleted in each table, by whoever does it, and gives
a table that is rewritten or emptied another file. Where all of that is what it was, no statement changed a
row. What a disk forgets is not told: those notice it who serve the edition, and every publication that
builds one.
"""

from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec

from sankofa.engines.postgres_server import psycopg
from sankofa.engines.private_files import make_private_folder, replace_file

_COUNTS: Final = b"""
    SELECT n.nspname, c.relname, c.oid, pg_relation_filenode(c.oid), pg_stat_get_tuples_inserted(c.oid),
           pg_stat_get_tuples_updated(c.oid), pg_stat_get_tuples_deleted(c.oid)
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = ANY (%s) AND c.relkind = 'r' ORDER BY n.nspname, c.relname
"""
# Counting begins again at zero after a crash, or where somebody says so.
_COUNTED_SINCE: Final = b"""
    SELECT oid, pg_stat_get_db_stat_reset_time(oid)::text FROM pg_database WHERE datname = current_database()
"""
_FLUSH: Final = b"SELECT pg_stat_force_next_flush()"
_CAN_FLUSH: Final = 15_00_00


def written_state(connection: psycopg.Connection[Any], schemas: Sequence[str]) -> str:
    """A digest of how often the tables of these schemas were written to."""
    rows = [*connection.execute(_COUNTED_SINCE), *connection.execute(_COUNTS, (list(schemas),))]
    return sha256("\n".join(map(repr, rows)).encode()).hexdigest()


def count_at_commit(connection: psycopg.Connection[Any]) -> None:
    """Have the server count what the transaction under way wrote when it commits, not seconds later. Before
    version 15 it cannot be asked to: the next publication then compares everything."""
    if connection.info.server_version >= _CAN_FLUSH:
        connection.execute(_FLUSH)


class ComparedEdition(msgspec.Struct, frozen=True):
    """The edition that was compared last, and what was written to the tables by then: while that is the same,
    its parts can be taken over as they are."""

    edition: str
    written: str


def read_compared_edition(path: Path) -> ComparedEdition | None:
    """None where it is not known."""
    with suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(path.read_bytes(), type=ComparedEdition)
    return None


def write_compared_edition(path: Path, compared: ComparedEdition) -> None:
    """Without it the next build only takes longer."""
    with suppress(OSError):
        make_private_folder(path.parent)
        replace_file(path, msgspec.json.encode(compared))
