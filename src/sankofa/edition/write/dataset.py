"""What a dataset of an edition is, and how one is declared.

A builder yields the rows of one key after another. What a dataset built after it needs to know, and what the
manifest is to say, it returns when it is done (`Outcome`). A dataset names the kinds it needs and is given
what they returned; so the order in which they are built follows from the declarations, not from the names.
"""

import importlib
import pkgutil
from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

import sankofa.edition.write.datasets
from sankofa.edition.format.row_blocks import Entry, pack
from sankofa.edition.write.prepared_rows import PreparedRows
from sankofa.edition.write.row_ranges import RowRanges
from sankofa.edition.write.tally import CoverageTally
from sankofa.model.rows import Row

T = TypeVar("T")


class KeyRows(NamedTuple):
    """The rows of one key, and the other keys that lead to them."""

    key: str
    entries: Iterable[Entry]
    aliases: tuple[str, ...] = ()
    inputs: object = None
    """All that the rows are made of, where that is cheaper to tell than to make them: `entries` are not asked
    for where it is what it was of all keys of a part."""


class KeyIndex(Iterator[KeyRows]):
    """A builder that tells what a range of its keys is made of without looking at each: of a change to one
    organisation, an index of all of them makes the rows of those ranges that lead to it."""

    @abstractmethod
    def split(self, firsts: Sequence[str]) -> list[str]:
        """Cut all keys into ranges, each from one of these keys on up to the next; the first has those before
        it, too. Of each range a digest of what its rows are made of."""

    @abstractmethod
    def key_rows(self, number: int) -> Iterator[KeyRows]:
        """The keys of a range, in their order."""

    @cached_property
    def _every_key(self) -> Iterator[KeyRows]:
        self.split([""])
        return self.key_rows(0)

    def __next__(self) -> KeyRows:
        return next(self._every_key)


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
    reads: tuple[str, ...] | None = None
    """All that it is made of (`build.inputs`), besides what it needs; None where that cannot be told, and it
    is built anew each time."""
    ranged: bool = False
    """Whether a dataset that needs it leads to its rows."""
    partitioned: bool = False
    """Whether its keys come in their order, and it is cut into several parts between them."""
    of_organisations: bool = False
    """Of one that is: whether it is an index of organisations. Some of it changes with any of them, so its
    parts are small, and grow with what there is of all organisations (`build.part_writer`)."""
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
    reads: tuple[str, ...] | None = None,
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
