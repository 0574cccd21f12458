"""Datasets of an edition: their declaration, rows and counts.

A builder yields the rows of one key after another. At its end it returns an `Outcome`: the input of later
datasets, and entries of the manifest. A dataset names the kinds it needs and gets their results, so the order
of the build follows from the declarations.
"""

import importlib
import pkgutil
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from functools import cache
from itertools import starmap
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

import sankofa.edition.write.datasets
from sankofa.edition.format.columns import COLUMNS_FROM, encode_columns
from sankofa.edition.format.row_blocks import Entry, pack
from sankofa.edition.write.checks import R, RowCheck
from sankofa.engines.block_file import StoredBlock, stored_block
from sankofa.ledger.reader import CaptureInfo
from sankofa.model.days import FOREVER
from sankofa.model.provenance import MACRO
from sankofa.model.rows import Row

NEVER: Final = 0
"""In place of a day: there is none."""


class TallyKey(NamedTuple):
    sku: str
    country: str
    """Alpha-2 code; empty for none."""
    source_id: str
    unit: str
    """One of `UNITS_OF_COUNT`."""


class Counted(msgspec.Struct, array_like=True):
    """A count of things, their rows, their first and last day, and the newest publication."""

    count: int = 0
    rows: int = 0
    first: int = FOREVER
    last: int = NEVER
    published: int = NEVER
    """Newest evidenced day of publication."""
    days: dict[int, "Counted"] = {}
    """Counts of what became known on each evidenced day."""

    def add(self, count: int, rows: int, first: int, last: int, published: int) -> None:
        self.count += count
        self.rows += rows
        if first < self.first:  # called a million times: `min` and `max` take twice as long
            self.first = first
        if last > self.last:
            self.last = last
        if published > self.published:
            self.published = published

    def merge(self, other: "Counted") -> None:
        self.add(other.count, other.rows, other.first, other.last, other.published)
        if other.days:
            self.become_known(other.days)

    def become_known(self, days: Mapping[int, "Counted"]) -> None:
        for day, other in days.items():
            self.on(day).merge(other)

    def on(self, day: int) -> "Counted":
        """The counts that become known on a day, to be added to."""
        if (own := self.days.get(day)) is None:
            own = self.days[day] = Counted()
        return own


TallyRow = tuple[TallyKey, Counted]
"""A key and its counts, as the memo of a build stores them."""


class CoverageTally:
    def __init__(self, rows: Iterable[TallyRow] = ()) -> None:
        self._counted: defaultdict[TallyKey, Counted] = defaultdict(Counted)
        self.update(rows)

    def __getitem__(self, key: TallyKey) -> Counted:
        return self._counted[key]

    def rows(self) -> list[TallyRow]:
        """In the order in which coverage is served."""
        return [(key, self._counted[key]) for key in sorted(self._counted)]

    def add_once(
        self,
        unit: str,
        country: str,
        counted: Mapping[int, Counted],
        captures: Mapping[int, CaptureInfo],
        *,
        known_only: bool = False,
    ) -> None:
        """Count one macro series or indicator of a country, once for each source. `counted` is by capture.

        `known_only`: only its days are added, because it is counted already.
        """
        by_source: defaultdict[str, Counted] = defaultdict(Counted)
        for capture_id, own in counted.items():
            by_source[captures[capture_id].source_id].merge(own)
        for source_id, own in by_source.items():
            own.count = 0 if known_only else 1
            if own.days:
                own.days[min(own.days)].count = 1
            self[TallyKey(MACRO, country, source_id, unit)].merge(own)

    def update(self, rows: Iterable[TallyRow]) -> None:
        for key, counted in rows:
            self._counted[key].merge(counted)


def provenance(capture: CaptureInfo, location: str, document: str = "") -> dict[str, Any]:
    """The provenance fields of a row from one location of a captured file."""
    return {
        "source_ref": capture.ref(location, document),
        "license_class": capture.license_class,
        "observed_at": capture.observed_at,
    }


class PreparedRows(msgspec.Struct, frozen=True, array_like=True):
    """The rows of one key, read back, cut into blocks, and as columns."""

    count: int
    blocks: list[StoredBlock]
    columns: list[bytes]
    """Columns of all rows in batches, with the days on which each is visible (`format.columns`)."""

    @property
    def stored_columns(self) -> list[bytes]:
        """The columns that an edition stores beside the rows."""
        return self.columns if self.count >= COLUMNS_FROM else []


def prepare(
    kind: str,
    shape: type[R],
    key: str,
    entries: Sequence[Entry],
    also: Mapping[str, Callable[[R], str]] | None = None,
    pack: "Pack" = pack,
) -> PreparedRows:
    """Prepare rows in served order; with `also` as columns too, with these extra columns."""
    rows = row_check(kind, shape).all(key, entries)
    columns = [] if also is None else list(encode_columns(shape, rows, entries, also))
    return packed(entries, pack, columns)


def packed(entries: Sequence[Entry], pack: "Pack", columns: Sequence[bytes] = ()) -> PreparedRows:
    """Prepare rows that were read back."""
    return PreparedRows(len(entries), list(starmap(stored_block, pack(entries))), list(columns))


def blocks_of(blocks: Iterable[tuple[bytes, bytes]]) -> PreparedRows:
    """Prepare an index whose blocks are not packed rows: each has an index of its own, or none."""
    stored = list(starmap(stored_block, blocks))
    return PreparedRows(len(stored), stored, [])


def pages_of(pages: Iterable[bytes]) -> PreparedRows:
    """Prepare pages that are each a block without an index."""
    return blocks_of((b"", page) for page in pages)


@cache
def row_check(kind: str, shape: type[R]) -> RowCheck[R]:
    return RowCheck(kind, shape)


class Input(StrEnum):
    MACRO = "macro"
    """Annual tables and dated series."""
    ANNUAL = "annual"
    """Annual tables alone."""
    SERIES = "series"
    """Dated series alone."""
    TENDERS = "tenders"
    """Releases and their parties; `NAMES` identifies the parties."""
    NAMES = "names"
    """The names and identifiers of organisations, and which records describe each."""
    CLAIMS = "claims"
    """The same, and the source of each identifier."""
    ISSUERS = "issuers"
    """The organisations with figures, and the first day of each."""
    RECORDS = "records"
    """Everything in the ledger except macro values: all inputs of organisations."""
    DESCRIPTIONS = "descriptions"
    """Everything known about organisations but their figures."""
    ORGANISATIONS = "organisations"
    """Everything known about organisations: the input of datasets stored by organisation."""


class KeyRows(NamedTuple):
    """The rows of one key, and other keys that lead to them."""

    key: str
    rows: Iterable[Entry] | PreparedRows
    aliases: tuple[str, ...] = ()


class Outcome(NamedTuple):
    """The result of a builder, after its last row."""

    result: Any = None
    """Passed to the datasets that need this one."""
    manifest_extras: Mapping[str, object] = MappingProxyType({})
    sources: Set[str] | None = None
    """The sources of the rows, if `source_ref` names only one of several."""
    tally: CoverageTally | None = None
    """Counts by source, for coverage."""


Building = Generator[KeyRows, None, Outcome]
"""A builder that returns an outcome."""
Build = Callable[..., Iterator[KeyRows]]
"""Takes the build context, and what the datasets that it needs returned."""
B = TypeVar("B", bound=Build)
Pack = Callable[[Iterable[Entry]], Iterator[tuple[bytes, bytes]]]


_DATASETS: dict[str, "Dataset"] = {}


@dataclass(slots=True)
class Dataset:
    """A kind of rows in the edition; a decorator of its builder."""

    kind: str
    row: type[Row] | None
    """None if the entries are an index and not rows."""
    pack: Pack = pack
    """Cuts the rows of a key into blocks, in a way that the reader must match."""
    _: KW_ONLY
    needs: tuple[str, ...] = ()
    """Kinds that are built before it."""
    tallies: tuple[str, ...] = ()
    """Kinds whose tally is passed to it, after the kinds it needs."""
    reads: tuple[Input, ...] | None = None
    """Its inputs, besides the kinds it needs. None: it is built each time, or uses everything known about
    organisations."""
    addressed: bool = False
    """Whether the datasets that need it get the address of the first block of each organisation."""
    partitioned: bool = False
    """Whether its keys come in order, and it may be split into parts between them."""
    of_organisations: bool = False
    """Whether it is a partitioned index of organisations. Any change touches it, so its parts are small and
    grow with the edition (`write.reuse`)."""
    by_organisation: bool = False
    """Whether its keys are service ids, and the builder takes the context and some organisations. All such
    datasets share one part per partition."""
    build: Build = field(init=False)

    def __call__(self, build: B) -> B:
        """Declare the function below as the builder of this kind of rows."""
        if self.kind in _DATASETS:
            raise TypeError(f"dataset {self.kind}: declared twice")
        self.build = build
        _DATASETS[self.kind] = self
        return build


dataset = Dataset


@cache
def load_declarations() -> None:
    """Import every module of the datasets package; each declares its datasets and tables."""
    for module in pkgutil.iter_modules(sankofa.edition.write.datasets.__path__):
        importlib.import_module(f"{sankofa.edition.write.datasets.__name__}.{module.name}")


@cache
def datasets() -> tuple[Dataset, ...]:
    """Every dataset, in the order of the build: those of macro values last, whose columns are derived
    meanwhile."""
    load_declarations()
    ordered = in_order(_DATASETS.values())
    last: set[str] = set()
    for one in ordered:
        if reads_macro(one) or not last.isdisjoint((*one.needs, *one.tallies)):
            last.add(one.kind)
    return tuple(sorted(ordered, key=lambda one: one.kind in last))


def reads_macro(one: Dataset) -> bool:
    return not {Input.MACRO, Input.ANNUAL, Input.SERIES}.isdisjoint(one.reads or ())


def in_order(declared: Iterable[Dataset]) -> tuple[Dataset, ...]:
    """In the order of declaration, but each dataset after the ones it needs.

    Raises TypeError for an unknown kind, or if datasets need each other.
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
