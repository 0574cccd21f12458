"""The datastore of a node that follows: files in HOME, which a follower brings."""

from contextlib import suppress
from pathlib import Path
from typing import Final

from sankofa.engines.edition_reader import EditionFolderReader
from sankofa.engines.file_store import FileStore
from sankofa.model.errors import EditionError
from sankofa.replication.state import FollowState, read_state

_DAMAGED: Final = ".damaged-"


class FollowingStore(FileStore):
    """One that is found damaged is marked: the follower brings it again."""

    def __init__(self, home: Path, ledger_schema: str, cache_bytes: int) -> None:
        super().__init__(home, ledger_schema, cache_bytes)
        self._folder = home / "editions"

    def open(self, edition: str, *, check_all: bool = False) -> EditionFolderReader:
        try:
            return super().open(edition, check_all=check_all)
        except EditionError:
            with suppress(OSError):
                (self._folder / f"{_DAMAGED}{edition}").touch()
            raise

    def following(self) -> FollowState:
        return read_state(self._folder)


def damaged_editions(editions: Path) -> list[str]:
    return [path.name.removeprefix(_DAMAGED) for path in editions.glob(f"{_DAMAGED}*")]


def forget_damage(editions: Path, edition: str) -> None:
    (editions / f"{_DAMAGED}{edition}").unlink(missing_ok=True)
