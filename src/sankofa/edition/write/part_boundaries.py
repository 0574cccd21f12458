"""Where parts begin: it follows from each key alone and how much there is under it, not from what is before.

So a change moves no boundary but its own, and the parts without one come out as they were.
"""

from hashlib import blake2b


def begins_part(key: str, size: int, average: int) -> bool:
    """Whether a part begins with a key of so many bytes, if parts are to have so many on average.

    Rounded up to a power of two, the size seldom tells otherwise after a small change.
    """
    weight = 1 << (size - 1).bit_length()
    chance = int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "little")
    return chance * average < weight << 64
