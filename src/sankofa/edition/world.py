"""What a dataset is built from, and how one is declared."""

import importlib
import pkgutil
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

import sankofa.edition.datasets
from sankofa.derive.quality import Quality, measure
from sankofa.derive.tenders import Tenders
from sankofa.edition.blocks import Entry, pack
from sankofa.edition.issuers import Issuers
from sankofa.edition.metric_rows import METRICS, Standings, coverage
from sankofa.edition.ready import Ready
from sankofa.edition.sheets import Screening
from sankofa.engines.datastore import Place
from sankofa.ledger.book import CaptureInfo, Ledger
from sankofa.ledger.entities import Entity, Resolution, resolve
from sankofa.model.days import ordinal
from sankofa.model.errors import CheckFailed
from sankofa.model.rows import Row
from sankofa.sources.registry import Source

_standings = msgspec.msgpack.Decoder(tuple[msgspec.Raw, Standings]).decode


class World:
    """Everything known at build time, read once.

    `kept` is the folder of what was made before (`edition.kept`); None where nothing is to be kept.
    """

    def __init__(
        self,
        ledger: Ledger,
        sources: Mapping[str, Source] | None = None,
        *,
        despite_floors: bool = False,
        kept: Path | None = None,
    ) -> None:
        self.ledger = ledger
        self._sources = sources or {}
        self._despite_floors = despite_floors
        self._kept = kept
        self.remarks: dict[str, object] = {}
        """What a dataset has to tell its readers; kept in the edition's manifest."""
        self.places: dict[str, Places] = {}
        """Of the datasets built before that are placed: where each row stands, in the order they came."""
        self.columns: defaultdict[str, list[Any]] = defaultdict(list)
        """The columns of each kind, in their order, for the lists that lead to them (`edition.columns`)."""

    @cached_property
    def captures(self) -> dict[int, CaptureInfo]:
        return self.ledger.captures()

    @cached_property
    def resolution(self) -> Resolution:
        return resolve(self.ledger, self.captures)

    @cached_property
    def tenders(self) -> Tenders:
        return Tenders(self.ledger, self.entities)

    @cached_property
    def quality(self) -> list[Quality]:
        """Raises CheckFailed where a source falls short of a hard floor, unless that is overridden."""
        day = self.clock[:10]
        found = measure(
            self.ledger, self.captures, self.entities, self.tenders, self._sources, day, self._coverage(day)
        )
        if found.shortfalls and not self._despite_floors:
            raise CheckFailed("; ".join(found.shortfalls))
        if found.shortfalls:
            self.remarks["despite_floors"] = found.shortfalls
        return found.rows

    def _coverage(self, day: str) -> dict[str, Decimal]:
        """Of every metric, from what was derived of each issuer."""
        made = (self.issuers.part(METRICS, entity.service_id) for entity in self.entities)
        return coverage((_standings(part)[1] for part in made if part), ordinal(day)) if day else {}

    def attribution(self, sku: str | None) -> str:
        """To whom the data of a dataset (of any, where none is named) is owed, as their licences ask."""
        captured = {capture.source_id for capture in self.captures.values()}
        named = [self._sources[name] for name in sorted(captured & self._sources.keys())]
        owed = [
            f"{one.attribution or one.publisher or one.id}" + (f" ({one.licence})" if one.licence else "")
            for one in named
            if sku is None or one.sku in (sku, None)
        ]
        return "; ".join(dict.fromkeys(owed))

    @cached_property
    def issuers(self) -> Issuers:
        """What is made of each issuer by itself."""
        path = self._kept and self._kept / "issuers"
        return Issuers(self.ledger, self.captures, self.entities, path)

    @cached_property
    def screening(self) -> Screening:
        """Filled as the metrics are built, for the sheets built after them."""
        return Screening()

    @property
    def entities(self) -> list[Entity]:
        return self.resolution.entities

    @cached_property
    def clock(self) -> str:
        """The instant of the last capture: an edition is as old as its ledger, whoever builds it when."""
        return max((capture.observed_at for capture in self.captures.values()), default="")


class Places:
    """The place of each row of a dataset, by number."""

    def __init__(self) -> None:
        self._blocks, self._starts, self._ends = array("I"), array("I"), array("I")

    def add(self, block: int, ends: Sequence[int]) -> None:
        """The rows of a block, by where each ends."""
        self._blocks.extend([block] * len(ends))
        self._starts.extend([0, *(end + 1 for end in ends[:-1])])
        self._ends.extend(ends)

    def __getitem__(self, number: int) -> Place:
        return self._blocks[number], self._starts[number], self._ends[number]


class Shelved(NamedTuple):
    """The rows of one key, and the other keys that lead to them."""

    key: str
    entries: Iterable[Entry]
    aliases: tuple[str, ...] = ()


class ReadyShelved(NamedTuple):
    """The same, where the rows were made ready before."""

    key: str
    rows: Ready
    aliases: tuple[str, ...] = ()


Build = Callable[[World], Iterator[Shelved] | Iterator[ReadyShelved]]
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
    for module in pkgutil.iter_modules(sankofa.edition.datasets.__path__):
        importlib.import_module(f"sankofa.edition.datasets.{module.name}")
    return tuple(_DATASETS[kind] for kind in sorted(_DATASETS))
