"""Random damage to a file."""

import random
from pathlib import Path


def flip_a_bit(path: Path, picked: random.Random) -> str:
    """LockName one bit of a file around; says which."""
    content = bytearray(path.read_bytes())
    at, bit = picked.randrange(len(content)), picked.randrange(8)
    content[at] ^= 1 << bit
    path.chmod(0o600)
    path.write_bytes(content)
    return f"bit {bit} of byte {at} of {path.name}"


def cut_short(path: Path, picked: random.Random) -> str:
    """Take away the end of a file; says how much is left."""
    left = picked.randrange(path.stat().st_size)
    path.chmod(0o600)
    path.write_bytes(path.read_bytes()[:left])
    return f"{path.name} cut to {left} bytes"
