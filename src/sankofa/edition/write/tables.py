"""Tables published in bulk, each a Parquet file (several if large), and how one is declared.

A table takes the rows of a dataset as they are built, makes rows from the ledger that only the files have
(contract: EXP-4), or both. The modules of `write.datasets` declare their tables beside the datasets.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Final, ParamSpec

import msgspec

from sankofa.edition.format.columns import field_types
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import Input, load_declarations
from sankofa.model.rows import Row

if TYPE_CHECKING:
    import pyarrow

P = ParamSpec("P")
MIN_TIER: Final = "starter"
ROWS_OF_COLUMNS: Final = 32_768
"""Rows that are handled together as columns."""


class TableRows:
    """The rows of a table in one build. This class takes the rows of its dataset as they are."""

    def __init__(self, context: BuildContext) -> None:
        self.context = context

    def take(self, key: str, row: Any) -> Iterable[object]:
        """The rows of the table for one row of its dataset or table."""
        return (row,)

    def take_columns(self, columns: "pyarrow.Table") -> "pyarrow.Table":
        """The same for many rows as columns."""
        return columns

    def make(self) -> Iterable[object]:
        """Rows that are made after every dataset."""
        return ()

    def make_columns(self) -> "Iterable[pyarrow.Table]":
        """The same for many rows as flat columns."""
        return ()


class FlatRows:
    """Rows of a table as flat columns (`format.columns`), gathered key by key.

    A struct for each of a million rows would cost four times as much.
    """

    def __init__(self, row: type[Row]) -> None:
        self._types = {field.name: field.type for field in field_types(row)}
        self._added: PackedColumns = []
        self._count = 0

    def add(self, count: int, **columns: Any) -> None:
        """Add rows of one key: for each field a list of values, or the one value of all rows."""
        self._count += count
        self._added.append((count, columns))

    def read(self, parts: Iterable[bytes]) -> "Iterator[pyarrow.Table]":
        """The rows of many keys in batches, from what `packed_columns` gave for each."""
        for part in parts:
            for count, columns in _read_columns(part):
                self.add(count, **columns)
            yield from self.batch(ROWS_OF_COLUMNS)
        yield from self.batch()

    def batch(self, at_least: int = 0) -> "Iterator[pyarrow.Table]":
        """The rows so far, and begin anew; nothing where they are fewer than that, or none."""
        import pyarrow

        if self._count >= max(at_least, 1):
            whole = {int: pyarrow.int64(), float: pyarrow.float64()}
            types = {name: whole.get(of, pyarrow.string()) for name, of in self._types.items()}
            numbers = array("i", chain.from_iterable(repeat(n, one[0]) for n, one in enumerate(self._added)))
            keys = pyarrow.Array.from_buffers(
                pyarrow.int32(), self._count, [None, pyarrow.py_buffer(numbers)]
            )
            yield pyarrow.table({name: self._array(name, of, keys) for name, of in types.items()})
            self._added = []
            self._count = 0

    def _array(self, name: str, of: "pyarrow.DataType", keys: "pyarrow.Array") -> "pyarrow.Array":
        """A column of the added rows. `keys` has the number of the key of each."""
        import pyarrow

        values = [columns[name] for _, columns in self._added]
        if not any(isinstance(value, list) for value in values):  # each once, and not for each row
            return pyarrow.array(values, of).take(keys)
        lists = (
            value if isinstance(value, list) else repeat(value, count)
            for value, (count, _) in zip(values, self._added, strict=True)
        )
        return pyarrow.array(list(chain.from_iterable(lists)), of)


class MacroRows(TableRows):
    """Rows that are made as flat columns with each macro column (`write.derived_parts`)."""

    def __init__(self, kind: str, row: type[Row], names: str, context: BuildContext) -> None:
        """`names` is the list of `MacroParts` that has the columns in order."""
        super().__init__(context)
        self._kind, self._row, self._names = kind, row, names

    def make_columns(self) -> "Iterator[pyarrow.Table]":
        macro = self.context.macro
        return FlatRows(self._row).read(macro.parts(self._kind, getattr(macro, self._names)))


PackedColumns = list[tuple[int, dict[str, Any]]]
"""Rows of a table for `FlatRows.add`, key by key."""
packed_columns = msgspec.msgpack.Encoder().encode
_read_columns = msgspec.msgpack.Decoder(PackedColumns).decode


@dataclass(frozen=True, slots=True)
class Table:
    """A table. Its rows have the fields of `row`."""

    name: str
    row: type[Row]
    sku: str | None
    summary: str
    takes_from: str = ""
    """A kind of dataset, or the name of a table."""
    rows: Callable[[BuildContext], TableRows] = TableRows
    sorted_by: tuple[str, ...] = ()
    """Sort columns; a minus before the name means descending."""
    signal_key: str | None = None
    open: bool = False
    """Whether its file needs no key; it then has no row of `KEYED_CLASSES`."""
    methodology: str = ""
    derived: bool = False
    """Whether its dataset returns the sources of its rows (`Outcome.sources`)."""
    reads: tuple[Input, ...] | None = None
    """Its inputs, if it takes from nothing (see `write.dataset.Dataset`)."""


_TABLES: dict[str, Table] = {}


def _declaring(make: Callable[P, Table]) -> Callable[P, Table]:
    def declare(*args: P.args, **kwargs: P.kwargs) -> Table:
        declared = make(*args, **kwargs)
        return _TABLES.setdefault(declared.name, declared)

    return declare


table = _declaring(Table)
"""Declares a table."""


@cache
def tables() -> tuple[Table, ...]:
    """Every table by name."""
    load_declarations()
    return tuple(_TABLES[name] for name in sorted(_TABLES))
