"""Rows that were compressed in an edition, as they were: those read last, up to so many bytes."""

from collections import OrderedDict
from typing import Final

BLOCK_CACHE_BYTES: Final = 128 << 20
"""In one worker; the rows of some quarter of a million figures."""


class BlockCache:
    """In the order in which they were read last: the first are dropped where there is no room.

    To put one last at each read costs a hundredth of what it costs to decompress one that was dropped early.
    """

    def __init__(self, most_bytes: int = BLOCK_CACHE_BYTES) -> None:
        self._most = most_bytes
        self._rows: OrderedDict[int, bytes] = OrderedDict()
        self.size = 0
        """Bytes that are kept."""

    def get(self, key: int) -> bytes | None:
        try:
            self._rows.move_to_end(key)
        except KeyError:
            return None
        return self._rows.get(key)

    def put(self, key: int, rows: bytes) -> None:
        if len(rows) > self._most or key in self._rows:
            return
        self._rows[key] = rows
        self.size += len(rows)
        while self.size > self._most:
            self.size -= len(self._rows.popitem(last=False)[1])
