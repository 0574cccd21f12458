"""What is published in bulk: tables, each a Parquet file (several where large), and how one is declared.

A table takes the very rows that a dataset serves as these are built, or makes rows of its own of the ledger
where they are in the files only (contract: EXP-4); or both. The modules of `write.datasets` declare their
tables beside the datasets.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import Input, load_declarations
from sankofa.model.rows import Row

if TYPE_CHECKING:
    import pyarrow

MIN_TIER: Final = "starter"


class TableRows:
    """Where the rows of a table come from; one for each build. As it stands: the very rows of its dataset."""

    def __init__(self, context: BuildContext) -> None:
        self.context = context
        self.input_sources: set[str] = set()
        """The sources that no `source_ref` of a row names, of further inputs; all before the first row."""

    def take(self, key: str, row: Any) -> Iterable[object]:
        """What the table has of one row of the dataset, or of another table's row."""
        return (row,)

    def take_columns(self, columns: "pyarrow.Table") -> "pyarrow.Table":
        """The same of many rows, where a dataset has their columns ready: without a row being made."""
        return columns

    def make(self) -> Iterable[object]:
        """Rows made after every dataset is built."""
        return ()


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
    """Columns, the first first; descending where there is a minus before the name."""
    signal_key: str | None = None
    open: bool = False
    """Whether its file needs no key: then it has no row of a class that does (`KEYED_CLASSES`)."""
    methodology: str = ""
    derived: bool = False
    """Whether its dataset names what the rows are derived from, at its end (`Outcome.sources`)."""
    reads: tuple[Input, ...] | None = None
    """What its rows are made of where it takes from nothing; see `write.dataset.Dataset`."""


_TABLES: dict[str, Table] = {}


def table(declared: Table) -> Table:
    """Declare a table."""
    _TABLES[declared.name] = declared
    return declared


@cache
def tables() -> tuple[Table, ...]:
    """Every table by name."""
    load_declarations()
    return tuple(_TABLES[name] for name in sorted(_TABLES))
