"""What a dataset is built from, and how one is declared."""

import importlib
import pkgutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property
from typing import Any, NamedTuple

import sankofa.edition.datasets
from sankofa.edition.blocks import Entry, pack
from sankofa.ledger.book import CaptureInfo, Ledger
from sankofa.ledger.entities import Entity, Resolution, resolve
from sankofa.model.rows import Row


class World:
    """Everything known at build time, read once."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.remarks: dict[str, object] = {}
        """What a dataset has to tell its readers; kept in the edition's manifest."""
        self.columns: defaultdict[str, list[Any]] = defaultdict(list)
        """The columns of each kind, in their order, for the lists that lead to them (`edition.columns`)."""

    @cached_property
    def captures(self) -> dict[int, CaptureInfo]:
        return self.ledger.captures()

    @cached_property
    def resolution(self) -> Resolution:
        return resolve(self.ledger, self.captures)

    @property
    def entities(self) -> list[Entity]:
        return self.resolution.entities

    @cached_property
    def clock(self) -> str:
        """The instant of the last capture: an edition is as old as its ledger, whoever builds it when."""
        return max((capture.observed_at for capture in self.captures.values()), default="")


class Shelved(NamedTuple):
    """The rows of one key, and the other keys that lead to them."""

    key: str
    entries: Iterable[Entry]
    aliases: tuple[str, ...] = ()


Build = Callable[[World], Iterator[Shelved]]
Pack = Callable[[Iterable[Entry]], Iterator[tuple[bytes, bytes]]]


class Dataset(NamedTuple):
    """A kind of rows in the edition."""

    kind: str
    row: type[Row] | None
    """None where the entries are not rows but an index of ours."""
    build: Build
    pack: Pack = pack
    """How the rows of a key are cut into blocks, which whoever reads them must know."""


_DATASETS: dict[str, Dataset] = {}


def dataset(kind: str, row: type[Row] | None, pack: Pack = pack) -> Callable[[Build], Build]:
    """Declare the function below as the builder of this kind of rows."""

    def declare(build: Build) -> Build:
        _DATASETS[kind] = Dataset(kind, row, build, pack)
        return build

    return declare


@cache
def datasets() -> tuple[Dataset, ...]:
    """Every dataset, in a stable order: each module of the datasets package declares its own."""
    for module in pkgutil.iter_modules(sankofa.edition.datasets.__path__):
        importlib.import_module(f"sankofa.edition.datasets.{module.name}")
    return tuple(_DATASETS[kind] for kind in sorted(_DATASETS))
