"""Merkle trees as RFC 9162 hashes them: roots, and the hashes that prove something about one."""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Final

HASH_BYTES: Final = 32
EMPTY_ROOT: Final = sha256(b"").digest()


def leaf_hash(content: bytes) -> bytes:
    return sha256(b"\x00" + content).digest()


def level_above(level: Sequence[bytes]) -> list[bytes]:
    """The hashes of a level's pairs. One without a partner goes up as it is."""
    pairs = iter(level)
    above = [sha256(b"\x01" + left + right).digest() for left, right in zip(pairs, pairs, strict=False)]
    if len(level) % 2:
        above.append(level[-1])
    return above


def levels_above(level: Sequence[bytes]) -> list[Sequence[bytes]]:
    """A level and all above it, up to the one with the root alone."""
    levels = [level]
    while len(levels[-1]) > 1:
        levels.append(level_above(levels[-1]))
    return levels


def root_of(level: Sequence[bytes]) -> bytes:
    """The root over leaf hashes, or over the hashes of any level."""
    return levels_above(level)[-1][0] if level else EMPTY_ROOT


def inclusion_path(levels: Iterable[Sequence[bytes]], index: int) -> list[bytes]:
    """The hashes that lead from a node of the first of these levels to the root, the lowest first."""
    path = []
    for level in levels:
        if (index ^ 1) < len(level):
            path.append(level[index ^ 1])
        index //= 2
    return path


def consistency_path(leaves: Sequence[bytes], size: int) -> list[bytes]:
    """The hashes that prove that the first `size` leaves are those of an older tree (RFC 9162, 2.1.4.1)."""
    if not 0 < size < len(leaves):
        return []
    path: list[bytes] = []
    start, end, is_older_root = 0, len(leaves), True
    while size != end:
        split = start + (1 << (end - start - 1).bit_length() - 1)
        if size <= split:
            path.append(root_of(leaves[split:end]))
            end = split
        else:
            path.append(root_of(leaves[start:split]))
            start, is_older_root = split, False
    if not is_older_root:
        path.append(root_of(leaves[start:end]))
    return path[::-1]
