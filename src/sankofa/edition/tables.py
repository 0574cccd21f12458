"""What is published in bulk: tables, each a Parquet file (several where large), and how one is declared.

A table takes the very rows that a dataset serves as these are built, or makes rows of its own of the ledger
where they are in the files only (contract: EXP-4); or both.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import sankofa.edition.bulk
from sankofa.edition.blocks import Entry
from sankofa.edition.world import World
from sankofa.model.rows import Row

if TYPE_CHECKING:
    import pyarrow

MIN_TIER: Final = "starter"

Take = Callable[[World, str, Entry, Any], Iterable[object]]
"""What a table has of one row of a dataset: given its key, entry and the row; or of another table's row."""
TakeColumns = Callable[[World, "pyarrow.Table"], "pyarrow.Table"]
"""The same of the columns of many rows, where a dataset has them ready: without a row being made."""
Make = Callable[[World], Iterator[object]]


@dataclass(frozen=True, slots=True)
class Table:
    """A table. Its rows have the fields of `row`."""

    name: str
    row: type[Row]
    sku: str | None
    summary: str
    takes_from: str = ""
    """A kind of dataset, or the name of a table."""
    take: Take = lambda world, key, entry, row: (row,)
    take_columns: TakeColumns = lambda world, told: told
    make: Make = lambda world: iter(())
    """Rows made after every dataset is built."""
    sorted_by: tuple[str, ...] = ()
    """Columns, the first first; descending where there is a minus before the name."""
    signal_key: str | None = None
    open: bool = False
    """Whether its file needs no key: then it has no row of a class that does (`KEYED_CLASSES`)."""
    methodology: str = ""


_TABLES: dict[str, Table] = {}


def table(declared: Table) -> Table:
    """Declare a table."""
    _TABLES[declared.name] = declared
    return declared


@cache
def tables() -> tuple[Table, ...]:
    """Every table by name: each module of the bulk package declares its own."""
    for module in pkgutil.iter_modules(sankofa.edition.bulk.__path__):
        importlib.import_module(f"sankofa.edition.bulk.{module.name}")
    return tuple(_TABLES[name] for name in sorted(_TABLES))
