"""Where the rows of a dataset stand, for an index that leads to them."""

from array import array
from collections.abc import Sequence

from sankofa.engines.datastore import ByteRange


class RowRanges:
    """The byte range of each row of a dataset, by its number."""

    def __init__(self) -> None:
        self._blocks, self._starts, self._ends = array("I"), array("I"), array("I")

    def add(self, block: int, ends: Sequence[int]) -> None:
        """The rows of a block, by where each ends."""
        self._blocks.extend([block] * len(ends))
        self._starts.extend([0, *(end + 1 for end in ends[:-1])])
        self._ends.extend(ends)

    def __getitem__(self, number: int) -> ByteRange:
        return self._blocks[number], self._starts[number], self._ends[number]
