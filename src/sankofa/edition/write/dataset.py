"""Datasets of an edition: how one is declared, and the rows and counts it gives.

A builder yields the rows of one key after another. It returns an `Outcome` at its end: what later datasets
need, and what the manifest says. A dataset names the kinds it needs and is given what they returned, so the
order of the build follows from the declarations.
"""

import importlib
import pkgutil
from array import array
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence, Set
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

import sankofa.edition.write.datasets
from sankofa.edition.format.columns import COLUMNS_FROM, encode_columns
from sankofa.edition.format.row_blocks import Entry, pack
from sankofa.edition.write.checks import R, RowCheck
from sankofa.engines.datastore import ByteRange
from sankofa.ledger.reader import CaptureInfo
from sankofa.model.days import FOREVER
from sankofa.model.facts import MACRO
from sankofa.model.rows import Row


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


NEVER: Final = 0
"""In the place of a day: there is none."""


class TallyKey(NamedTuple):
    """What is counted together."""

    sku: str
    country: str
    """Alpha-2; empty where of none."""
    source_id: str
    unit: str
    """One of `UNITS_OF_COUNT`."""


class Counted:
    """What was counted: things, the rows they have, their first and last day, and when any was published."""

    __slots__ = ("count", "first", "last", "published", "rows")

    def __init__(self) -> None:
        self.count = 0
        self.rows = 0
        self.first = FOREVER
        self.last = NEVER
        self.published = NEVER
        """The newest evidenced day of publication."""

    def add(self, count: int, rows: int, first: int, last: int, published: int) -> None:
        self.count += count
        self.rows += rows
        self.first = min(self.first, first)
        self.last = max(self.last, last)
        self.published = max(self.published, published)

    def merge(self, other: "Counted") -> None:
        self.add(other.count, other.rows, other.first, other.last, other.published)


TallyRow = tuple[str, str, str, str, int, int, int, int, int]
"""A key and its counts, as the memo of a build stores them."""


class CoverageTally:
    """Counts by key."""

    def __init__(self) -> None:
        self._counted: defaultdict[TallyKey, Counted] = defaultdict(Counted)

    def __getitem__(self, key: TallyKey) -> Counted:
        return self._counted[key]

    def items(self) -> Iterator[tuple[TallyKey, Counted]]:
        """In the order in which coverage is served."""
        return ((key, self._counted[key]) for key in sorted(self._counted))

    def as_rows(self) -> list[TallyRow]:
        return [(*key, one.count, one.rows, one.first, one.last, one.published) for key, one in self.items()]

    @classmethod
    def from_rows(cls, rows: Iterable[TallyRow]) -> "CoverageTally":
        tally = cls()
        for sku, country, source_id, unit, *counts in rows:
            tally[TallyKey(sku, country, source_id, unit)].add(*counts)
        return tally

    def add_once(
        self, unit: str, country: str, counted: Mapping[int, Counted], captures: Mapping[int, CaptureInfo]
    ) -> None:
        """Count one macro series or indicator of a country, once for each source. `counted` is by capture."""
        by_source: defaultdict[str, Counted] = defaultdict(Counted)
        for capture_id, own in counted.items():
            by_source[captures[capture_id].source_id].merge(own)
        for source_id, own in by_source.items():
            own.count = 1
            self[TallyKey(MACRO, country, source_id, unit)].merge(own)

    def update(self, other: "CoverageTally") -> None:
        for key, counted in other.items():
            self._counted[key].merge(counted)


def provenance(capture: CaptureInfo, location: str, document: str = "") -> dict[str, Any]:
    """The provenance fields of a row from one location of a captured file."""
    return {
        "source_ref": capture.ref(location, document),
        "license_class": capture.license_class,
        "observed_at": capture.observed_at,
    }


class PreparedRows(msgspec.Struct, frozen=True, array_like=True):
    """The rows of one key."""

    count: int
    blocks: list[tuple[bytes, bytes]]
    columns: list[bytes]
    """Of all rows, some at a time, with the days on which each is seen; see `format.columns`."""

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


T = TypeVar("T")


class Input(StrEnum):
    """What a dataset can be made of."""

    MACRO = "macro"
    """Annual tables and dated series."""
    TENDERS = "tenders"
    """Releases and their parties; `NAMES` says who the parties are."""
    NAMES = "names"
    """The names and identifiers of organisations, and which records describe each."""
    CLAIMS = "claims"
    """The same, and the source of each identifier."""
    ISSUERS = "issuers"
    """Which organisations have facts; not which facts."""


class KeyRows(NamedTuple):
    """The rows of one key, and the other keys that lead to them."""

    key: str
    entries: Iterable[Entry]
    aliases: tuple[str, ...] = ()


class PreparedKeyRows(NamedTuple):
    """The same, where the rows were prepared before."""

    key: str
    rows: PreparedRows
    aliases: tuple[str, ...] = ()


class Outcome(NamedTuple):
    """What a builder returns once every row of it is written."""

    result: Any = None
    """For the datasets that need this one."""
    manifest_extras: Mapping[str, object] = MappingProxyType({})
    sources: Set[str] | None = None
    """The sources of its rows, where `source_ref` names only one of several."""
    tally: CoverageTally | None = None
    """How much there is of each source, for coverage."""


Building = Generator[KeyRows, None, Outcome]
"""A builder at work that has something to return."""


class Built(NamedTuple, Generic[T]):
    """A dataset that was built, as those that need it see it."""

    result: T
    ranges: RowRanges
    """Where its rows stand, in the order they came; empty unless the dataset is declared as `ranged`."""


Build = Callable[..., Iterator[KeyRows] | Iterator[PreparedKeyRows]]
"""Takes the build context, and of each kind that is needed what was built."""
B = TypeVar("B", bound=Build)
Pack = Callable[[Iterable[Entry]], Iterator[tuple[bytes, bytes]]]


class Dataset(NamedTuple):
    """A kind of rows in the edition."""

    kind: str
    row: type[Row] | None
    """None where the entries are not rows but an index of ours."""
    build: Build
    pack: Pack = pack
    """How the rows of a key are cut into blocks, which whoever reads them must know."""
    needs: tuple[str, ...] = ()
    """The kinds that are built before it."""
    tallies: tuple[str, ...] = ()
    """The kinds whose tally it is given, after what it needs."""
    reads: tuple[Input, ...] | None = None
    """All that it is made of (`write.inputs`), besides what it needs; None where that cannot be told, and it
    is built anew each time."""
    ranged: bool = False
    """Whether a dataset that needs it leads to its rows."""
    partitioned: bool = False
    """Whether its keys come in their order, and it is cut into several parts between them."""
    of_organisations: bool = False
    """Of one that is: whether it is an index of organisations. Some of it changes with any of them, so its
    parts are small, and grow with what there is of all organisations (`write.part_writer`)."""
    by_organisation: bool = False
    """Whether its keys are service ids, and it is built of some organisations at a time: the builder takes
    the context and these. What all such datasets have of an organisation is kept together."""


_DATASETS: dict[str, Dataset] = {}


def dataset(
    kind: str,
    row: type[Row] | None,
    pack: Pack = pack,
    *,
    needs: tuple[str, ...] = (),
    tallies: tuple[str, ...] = (),
    reads: tuple[Input, ...] | None = None,
    ranged: bool = False,
    partitioned: bool = False,
    of_organisations: bool = False,
    by_organisation: bool = False,
) -> Callable[[B], B]:
    """Declare the function below as the builder of this kind of rows."""

    def declare(build: B) -> B:
        if kind in _DATASETS:
            raise TypeError(f"dataset {kind}: declared twice")
        _DATASETS[kind] = Dataset(
            kind,
            row,
            build,
            pack,
            needs,
            tallies,
            reads,
            ranged,
            partitioned,
            of_organisations,
            by_organisation,
        )
        return build

    return declare


@cache
def load_declarations() -> None:
    """Import every module of the datasets package: each declares its own datasets and tables."""
    for module in pkgutil.iter_modules(sankofa.edition.write.datasets.__path__):
        importlib.import_module(f"{sankofa.edition.write.datasets.__name__}.{module.name}")


@cache
def datasets() -> tuple[Dataset, ...]:
    """Every dataset, in the order in which they are built."""
    load_declarations()
    return in_order(_DATASETS.values())


def in_order(declared: Iterable[Dataset]) -> tuple[Dataset, ...]:
    """As they were declared, but each after those that it needs.

    Raises TypeError where one needs what nobody declares, or where some need each other.
    """
    by_kind = {one.kind: one for one in declared}
    ordered: dict[str, Dataset] = {}

    def add(kind: str, needed_by: tuple[str, ...]) -> None:
        if kind in needed_by:
            raise TypeError(f"datasets need each other: {' -> '.join((*needed_by, kind))}")
        if kind not in by_kind:
            raise TypeError(f"dataset {needed_by[-1]}: needs {kind!r}, which no dataset is")
        if kind not in ordered:
            for need in (*by_kind[kind].needs, *by_kind[kind].tallies):
                add(need, (*needed_by, kind))
            ordered[kind] = by_kind[kind]

    for kind in by_kind:
        add(kind, ())
    return tuple(ordered.values())
