"""Rows prepared to be written: read back, cut into blocks, and as columns."""

from collections.abc import Callable, Mapping, Sequence

import msgspec

from sankofa.edition.format.arrow_columns import COLUMNS_FROM, encode_columns
from sankofa.edition.format.row_blocks import Entry, pack
from sankofa.edition.write.checks import R, RowCheck


class PreparedRows(msgspec.Struct, frozen=True, array_like=True):
    """The rows of one key."""

    count: int
    blocks: list[tuple[bytes, bytes]]
    columns: list[bytes]
    """Of all rows, some at a time, with the days on which each is seen; see `format.arrow_columns`."""

    @property
    def kept_columns(self) -> list[bytes]:
        """The columns that an edition keeps beside the rows."""
        return self.columns if self.count >= COLUMNS_FROM else []


NO_ROWS = PreparedRows(0, [], [])


def prepare(
    kind: str,
    shape: type[R],
    key: str,
    entries: Sequence[Entry],
    also: Mapping[str, Callable[[R], str]] | None = None,
) -> PreparedRows:
    """Rows in served order, made ready; as columns too where more is said in columns (`also`)."""
    check = RowCheck(kind, shape)
    rows = [check(key, entry) for entry in entries]
    columns = [] if also is None else list(encode_columns(shape, rows, entries, also))
    return PreparedRows(len(entries), list(pack(entries)), columns)
