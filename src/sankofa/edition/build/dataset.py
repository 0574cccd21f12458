"""What a dataset of an edition is, and how one is declared."""

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import NamedTuple, TypeVar

import sankofa.edition.build.datasets
from sankofa.edition.build.context import BuildContext
from sankofa.edition.build.prepared_rows import PreparedRows
from sankofa.edition.format.row_blocks import Entry, pack
from sankofa.model.rows import Row


class KeyRows(NamedTuple):
    """The rows of one key, and the other keys that lead to them."""

    key: str
    entries: Iterable[Entry]
    aliases: tuple[str, ...] = ()


class PreparedKeyRows(NamedTuple):
    """The same, where the rows were made ready before."""

    key: str
    rows: PreparedRows
    aliases: tuple[str, ...] = ()


Build = Callable[[BuildContext], Iterator[KeyRows] | Iterator[PreparedKeyRows]]
B = TypeVar("B", bound=Build)
Pack = Callable[[Iterable[Entry]], Iterator[tuple[bytes, bytes]]]


class Dataset(NamedTuple):
    """A kind of rows in the edition."""

    kind: str
    row: type[Row] | None
    """None where the entries are not rows but an index of ours."""
    build: Build
    pack: Pack
    """How the rows of a key are cut into blocks, which whoever reads them must know."""
    placed: bool
    """Whether a dataset built later leads to its rows."""


_DATASETS: dict[str, Dataset] = {}


def dataset(kind: str, row: type[Row] | None, pack: Pack = pack, *, placed: bool = False) -> Callable[[B], B]:
    """Declare the function below as the builder of this kind of rows."""

    def declare(build: B) -> B:
        _DATASETS[kind] = Dataset(kind, row, build, pack, placed)
        return build

    return declare


@cache
def datasets() -> tuple[Dataset, ...]:
    """Every dataset, in a stable order: each module of the datasets package declares its own."""
    for module in pkgutil.iter_modules(sankofa.edition.build.datasets.__path__):
        importlib.import_module(f"sankofa.edition.build.datasets.{module.name}")
    return tuple(_DATASETS[kind] for kind in sorted(_DATASETS))
