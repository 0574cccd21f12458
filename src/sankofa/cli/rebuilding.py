"""`sankofa editions rebuild`: builds an edition of the past from the ledger and compares it with the log."""

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

from sankofa.cli.edition_log import rows_of
from sankofa.cli.ledger import open_ledger
from sankofa.edition.format.keys import ledger_position
from sankofa.edition.read.changes import FEEDS
from sankofa.edition.read.edition_manager import open_edition
from sankofa.edition.read.row_trees import RowTree, decode_row_trees, row_tree
from sankofa.edition.write.publish import publish
from sankofa.engines.datastore import Datastore
from sankofa.engines.edition_log import LoggedEdition, row_trees_path
from sankofa.model.errors import OperatorError
from sankofa.replication.stores import open_fresh_store, open_store
from sankofa.settings import Settings
from sankofa.sources.registry import load_sources

_FOLDER = ".rebuilding-"


class Rebuilt(NamedTuple):
    """An edition that was built again, and how it compares with its entry in the log."""

    edition: str
    rows: dict[str, int]
    """The number of rows of each dataset."""
    different: dict[str, int]
    """The number of rows that the log has of each dataset that differs."""
    withdrawals: int
    persons: int
    """The withdrawals and the people recognised since then; the rebuilt edition leaves both out."""

    @property
    def unexplained(self) -> list[str]:
        """Datasets that differ, though nothing was left out that could be the reason."""
        excused = self.withdrawals or self.persons
        return [name for name, count in self.different.items() if not excused or self.rows[name] > count]


def rebuild(settings: Settings, moment: datetime) -> Rebuilt:
    """Build the edition that was the newest at an instant. Raises OperatorError if there was none."""
    with closing(open_fresh_store(settings)) as store:
        entries = [one for one in store.log.tree().decoded() if isinstance(one, LoggedEdition)]
        then = [one for one in entries if datetime.fromisoformat(one.published_at) <= moment]
        if not then:
            raise OperatorError("the log has no edition that was published by then")
        entry = then[-1]
        secret = _secret(settings, store, entry.edition)
    position = ledger_position(entry.edition)
    with _folder(settings.home) as folder, open_ledger(settings, create=False) as ledger:
        withdrawals = sum(one.number > position for one in ledger.withdrawals())
        ((persons,),) = ledger.rows(f"SELECT count(*) FROM withheld WHERE capture_id > {position}")  # noqa: S608 - a number
        ledger.go_back_to(position)
        own = replace(settings, home=folder, datastore="sqlite:", editions="", trusted_keys="")
        with closing(open_store(own)) as built:
            manifest = publish(
                built,
                ledger,
                0,
                sources=load_sources(settings.home),
                despite_floors=True,
                match_threshold=settings.match_threshold / 100,
            )
            trees = asyncio.run(_trees(built, manifest["edition"], secret))
    different = {name: one["count"] for name, one in entry.rows.items() if rows_of(trees[name]) != one}
    rows = {name: trees[name].count for name in entry.rows}
    return Rebuilt(entry.edition, rows, different, withdrawals, persons)


def _secret(settings: Settings, store: Datastore, edition: str) -> bytes:
    """The key of its salts: that of the edition where it is kept, else that of HOME."""
    path = row_trees_path(store.edition_folder(edition))
    trees = decode_row_trees(path.read_bytes()) if path.exists() else {}
    kept = next((tree.secret for tree in trees.values()), b"")
    if not (secret := kept or settings.row_secret()):
        raise OperatorError("row-secret in HOME: missing; put it back from a backup")
    return secret


async def _trees(store: Datastore, name: str, secret: bytes) -> dict[str, RowTree]:
    with closing(open_edition(store, name)) as edition:
        return {feed.dataset: await row_tree(edition, feed, secret) for feed in FEEDS}


@contextmanager
def _folder(home: Path) -> Iterator[Path]:
    """A folder in HOME that nobody else reads; those of commands that were killed are removed."""
    for leftover in home.glob(f"{_FOLDER}*"):
        shutil.rmtree(leftover, ignore_errors=True)
    folder = Path(mkdtemp(prefix=_FOLDER, dir=home))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
