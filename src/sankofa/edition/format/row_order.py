"""The order of the rows of a list, told by their fields: what a cursor keeps of the last row served.

The rows of an edition are stored in this order. A sort key read from one edition therefore leads to the same
place in another, whether the row itself is still there or not.
"""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import msgspec

from sankofa.edition.format.keys import ID_TYPES
from sankofa.edition.format.row_blocks import Run

SortKey = tuple[int | str, ...]
"""The values of the sort fields of a row; an unknown value is an empty text."""

LONGEST_TEXT: Final = 200
"""Characters of a text that a sort key keeps: a cursor is part of an address."""
_TAILS: Final = (4_096, 65_536)


class RowOrder:
    """Rows by some of their fields. A field behind `-` sorts in descending order.

    `a.b` is the member `b` of the object `a`; `a|b` is `b` where `a` is null. `ranks` gives the place of a
    value that does not sort as it is written; a number with digits behind the point has the rank `Decimal`.
    """

    def __init__(self, *fields: str, ranks: Mapping[str, Callable[[Any], Any]] | None = None) -> None:
        names = [field.lstrip("-") for field in fields]
        self._descending = tuple(field.startswith("-") for field in fields)
        self._ranks = tuple((ranks or {}).get(name) for name in names)
        self._paths = tuple(tuple(one.split(".") for one in name.split("|")) for name in names)
        members = dict.fromkeys(path[0] for paths in self._paths for path in paths)
        exact = {name for name, rank in zip(names, self._ranks, strict=True) if rank is Decimal}
        types = [
            (name, msgspec.Raw if name in exact else dict[str, str | None] | str | int | None, None)
            for name in members
        ]
        self._decode = msgspec.json.Decoder(msgspec.defstruct("SortFields", types)).decode
        self._names = tuple(paths[0][0] for paths in self._paths)

    def key_of(self, row: Run) -> SortKey:
        """The sort key of an encoded row."""
        fields = self._decode(row)
        values = [getattr(fields, name) for name in self._names]
        return tuple(
            [
                value
                if type(value) is int or (type(value) is str and len(value) <= LONGEST_TEXT)
                else _first(fields, paths)
                for value, paths in zip(values, self._paths, strict=True)
            ]
        )

    def is_behind(self, key: Sequence[int | str], other: Sequence[int | str]) -> bool:
        """Whether a row of this key comes behind a row of the other."""
        for value, than, descending, rank in zip(key, other, self._descending, self._ranks, strict=True):
            a: Any = value if rank is None else rank(value)
            b: Any = than if rank is None else rank(than)
            if a != b:
                return bool(a < b if descending else a > b)
        return False

    def behind(self, key: Sequence[int | str]) -> Callable[[Run], bool]:
        """A test for encoded rows: whether one comes behind a key."""
        return lambda row: self.is_behind(self.key_of(row), key)


def _first(fields: Any, paths: tuple[list[str], ...]) -> int | str:
    for name, *member in paths:
        value = getattr(fields, name)
        if member and value is not None:
            value = value.get(member[0])
        if isinstance(value, msgspec.Raw):
            return bytes(value).decode()
        if value is not None:
            return value[:LONGEST_TEXT] if isinstance(value, str) else int(value)
    return ""


def last_row(run: Run) -> bytes:
    """The last of the encoded rows of a run. All begin with the same member, and nothing inside them does."""
    beginning = bytes(run[:64])
    mark = b"," + beginning[: beginning.index(b":") + 1]
    for size in _TAILS:
        if size < len(run) and (at := (tail := bytes(run[-size:])).rfind(mark)) >= 0:
            return tail[at + 1 :]
    whole = bytes(run)
    return whole[whole.rfind(mark) + 1 :]


CROSSWALK_ORDER: Final = RowOrder("id_type", "scheme", "id_value", ranks={"id_type": ID_TYPES.index})
FUNDAMENTALS_ORDER: Final = RowOrder(
    "-period_end", "period_type", "line_item", "vintage", "concept|line_item", "unit", "period_start"
)
