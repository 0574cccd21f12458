"""A set of 64-bit digests that takes some 7 bytes for each: a set of Python's takes 100.

There is one digest for nearly every figure of an edition, so this is what says how many figures a build can
have in its memory.
"""

from typing import Final

DIGEST_BYTES: Final = 8
_STORED: Final = 6
"""Bytes of a digest that are stored: its first two say where."""


class DigestSet:
    """Digests by their first two bytes, those that share them one behind another."""

    def __init__(self) -> None:
        self._stored: list[bytearray | None] = [None] * 65_536
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add_all(self, digests: bytes) -> list[bool]:
        """Of each of many, 8 bytes each, whether it was not there yet."""
        stored = self._stored
        new: list[bool] = []
        for at in range(0, len(digests), DIGEST_BYTES):
            rest = digests[at + DIGEST_BYTES - _STORED : at + DIGEST_BYTES]
            number = digests[at] << 8 | digests[at + 1]
            if (bucket := stored[number]) is None:
                stored[number] = bytearray(rest)
                new.append(True)
                continue
            position = bucket.find(rest)
            while position > 0 and position % _STORED:  # the end of one and the beginning of the next
                position = bucket.find(rest, position + 1)
            if position < 0:
                bucket += rest
            new.append(position < 0)
        self._count += sum(new)
        return new
