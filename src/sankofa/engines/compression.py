"""zstd (in the standard library from Python 3.14 on), and the largest size that a packed file may have."""

import sys
from typing import Final

from sankofa.model.limits import limit

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["UNPACKED_TIMES", "most_unpacked", "zstd"]

UNPACKED_TIMES: Final = limit(
    "unpacked size of an archive or backup over 256 MiB", 200, "times its size", "the file is refused"
)
"""Real files are packed to a tenth, zip bombs to a thousandth."""
_ANY_UNPACKED: Final = 256 << 20


def most_unpacked(size: int) -> int:
    """The bytes that a packed file of this size may unpack to; 256 MiB however small it is."""
    return max(_ANY_UNPACKED, UNPACKED_TIMES * size)
