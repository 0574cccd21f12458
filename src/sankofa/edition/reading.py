"""The read side of a published edition."""

from collections.abc import Callable
from dataclasses import dataclass

from sankofa.edition.blocks import ANY_TAG, Block, select, select_where
from sankofa.edition.build import FORMAT
from sankofa.engines.datastore import Datastore, EditionReader
from sankofa.model.errors import EditionError
from sankofa.model.knowable import Mode

_ROWS_IN_A_BLOCK = 64
_EVERY_BLOCK = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Selection:
    """Rows as they go on the wire, joined by commas; and whether more matched."""

    rows: bytes
    count: int
    truncated: bool


class Edition:
    """An immutable snapshot: the same question always has the same answer."""

    def __init__(self, edition_id: str, reader: EditionReader) -> None:
        self.id = edition_id
        self.manifest = reader.manifest
        self._reader = reader

    async def holds(self, kind: str, key: str) -> bool:
        return await self._reader.blocks(kind, key, 0, 0) is not None

    async def raw(self, kind: str, key: str) -> bytes | None:
        """The bytes under a key of an index of ours; None where there is no such key."""
        blocks = await self._reader.blocks(kind, key, 0, 1)
        return None if blocks is None else blocks[0][1]

    async def select(
        self,
        kind: str,
        key: str,
        *,
        day: int,
        modes: int = int(Mode.LATEST),
        tag: int = ANY_TAG,
        limit: int | None = None,
        where: Callable[[bytes], bool] | None = None,
    ) -> Selection | None:
        """The rows under a key that are seen on a day, in their order; None where there is no such key."""

        def take(block: Block, room: int) -> tuple[list[bytes], int]:
            if where is None:
                return select(block, day, modes, tag, room)
            return select_where(block, day, modes, tag, room, where)

        most = _EVERY_BLOCK if limit is None else 1 + limit // _ROWS_IN_A_BLOCK
        room = _EVERY_BLOCK if limit is None else limit
        runs: list[bytes] = []
        count = skip = 0
        while True:
            blocks = await self._reader.blocks(kind, key, skip, most)
            if blocks is None:
                return None
            for block in blocks:
                if room == count:  # full: only whether anything more matched is still open
                    if take(block, 1)[1]:
                        return Selection(b",".join(runs), count, truncated=True)
                    continue
                found, taken = take(block, room - count + 1)
                if count + taken > room:
                    found, taken = take(block, room - count)
                    return Selection(b",".join(runs + found), room, truncated=True)
                runs += found
                count += taken
            if len(blocks) < most:
                return Selection(runs[0] if len(runs) == 1 else b",".join(runs), count, truncated=False)
            skip += most
            most *= 4

    def close(self) -> None:
        self._reader.close()


def open_edition(store: Datastore, edition_id: str) -> Edition:
    """Raises EditionError when it is corrupt, incomplete, gone, or of another layout."""
    reader = store.open(edition_id)
    if reader.manifest.get("format") != FORMAT:
        reader.close()
        raise EditionError(f"edition {edition_id}: of another layout: publish again")
    return Edition(edition_id, reader)


def open_newest_usable(store: Datastore) -> tuple[Edition | None, list[str]]:
    """The current edition, or the newest before it that is whole; and what was wrong with the others."""
    shelf = store.shelf()
    complaints: list[str] = []
    candidates = [shelf.current] if shelf.current else []
    candidates += [name for name in shelf.editions if shelf.current is None or name < shelf.current]
    for name in candidates:
        try:
            return open_edition(store, name), complaints
        except EditionError as failure:
            complaints.append(str(failure))
    return None, complaints
