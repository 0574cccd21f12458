"""Rows that were compressed in an edition, as they were: those read last, up to so many bytes."""

from typing import Final

BLOCK_CACHE_BYTES: Final = 128 << 20
"""In one worker; the rows of some quarter of a million figures."""


class BlockCache:
    """Two halves: what is read goes into the newer, and the older is dropped when the newer is full.

    So a read is a look into one dictionary, seldom two; a list in order of use would be changed by each.
    """

    def __init__(self, most_bytes: int = BLOCK_CACHE_BYTES) -> None:
        self._most = most_bytes // 2
        self._newer: dict[int, bytes] = {}
        self._older: dict[int, bytes] = {}
        self._newer_bytes = self._older_bytes = 0

    @property
    def size(self) -> int:
        """Bytes that are kept."""
        return self._newer_bytes + self._older_bytes

    def get(self, key: int) -> bytes | None:
        if (rows := self._newer.get(key)) is not None:
            return rows
        if (rows := self._older.pop(key, None)) is not None:
            self._older_bytes -= len(rows)
            self.put(key, rows)
        return rows

    def put(self, key: int, rows: bytes) -> None:
        if len(rows) > self._most:
            return
        if self._newer_bytes + len(rows) > self._most:
            self._older, self._older_bytes = self._newer, self._newer_bytes
            self._newer, self._newer_bytes = {}, 0
        self._newer[key] = rows
        self._newer_bytes += len(rows)
