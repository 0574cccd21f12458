"""Random damage that can be had again: every run prints its seed, TEST_SEED repeats it, TEST_FLIPS does more."""

import os
import random
from pathlib import Path

FEW = 6


def chance() -> random.Random:
    """A source of chance whose seed is printed, which pytest shows where a test fails."""
    seed = int(os.environ.get("TEST_SEED", random.SystemRandom().randrange(1 << 32)))
    print(f"TEST_SEED={seed}")  # noqa: T201
    return random.Random(seed)


def flips(few: int = FEW) -> int:
    """How many to try."""
    return int(os.environ.get("TEST_FLIPS", few))


def flip_a_bit(path: Path, picked: random.Random) -> str:
    """Turn one bit of a file around; says which."""
    content = bytearray(path.read_bytes())
    at, bit = picked.randrange(len(content)), picked.randrange(8)
    content[at] ^= 1 << bit
    path.write_bytes(content)
    return f"bit {bit} of byte {at} of {path.name}"
