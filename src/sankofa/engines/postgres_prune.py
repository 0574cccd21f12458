"""Removes the parts in PostgreSQL that no edition has any more."""

from collections import defaultdict
from typing import Any, Final

from sankofa.engines.postgres_parts import DELETING, SCHEMA
from sankofa.engines.postgres_server import psycopg
from sankofa.engines.postgres_writes import count_at_commit

_UNUSED: Final = f"""
    SELECT p.id FROM {SCHEMA}.part AS p
    WHERE NOT EXISTS (SELECT FROM {SCHEMA}.edition_part AS e WHERE e.part = p.id)
"""


def remove_unused_parts(connection: psycopg.Connection[Any]) -> int:
    """One transaction beside readers and a build; how many parts were removed.

    A build locks what it takes over until its edition refers to it: what is locked is left out. Whether a
    part is unused is looked at once more after it is locked, for a build may have ended in between.
    """
    with connection.transaction():
        connection.execute(DELETING.encode())
        locked = connection.execute(f"{_UNUSED} FOR UPDATE OF p SKIP LOCKED".encode()).fetchall()
        candidates = [part for (part,) in locked]
        delete = (
            f"DELETE FROM {SCHEMA}.part WHERE id IN ({_UNUSED} AND p.id = ANY (%s)) RETURNING id, dataset"
        )
        removed = connection.execute(delete.encode(), (candidates,)).fetchall()
        by_dataset: dict[int, list[int]] = defaultdict(list)
        for part, dataset in removed:
            by_dataset[dataset].append(part)
        for dataset, parts in sorted(by_dataset.items()):
            for table in ("block", "directory"):
                statement = f"DELETE FROM {SCHEMA}.{table}_{dataset} WHERE part = ANY (%s)"
                connection.execute(statement.encode(), (parts,))
        count_at_commit(connection)
    return len(removed)
