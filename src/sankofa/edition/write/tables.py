"""Tables published in bulk, each a Parquet file (several if large), and their declaration.

A table takes the rows of a dataset as they are built, adds rows from the ledger that only the files have
(contract: EXP-4), or both. The modules of `write.datasets` declare their tables beside the datasets.

The shared shape of facts: one form for the facts of every dataset, with their entity and provenance.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final, ParamSpec

import msgspec

from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import Input, load_declarations
from sankofa.ledger.entities import Entity
from sankofa.model.countries import alpha3_of, country_name
from sankofa.model.provenance import FactEntity, SharedFact
from sankofa.model.rows import Row, doc

if TYPE_CHECKING:
    import pyarrow

    from sankofa.edition.write.parquet_file import RowGroup, RowGroupEncoder


P = ParamSpec("P")
MIN_TIER: Final = "starter"
ROWS_OF_COLUMNS: Final = 32_768
"""Rows that are handled together as columns."""


class TableRows:
    """The rows of a table in one build. This class uses the rows of its dataset unchanged."""

    def __init__(self, context: BuildContext) -> None:
        self.context = context

    def take(self, key: str, row: Any) -> Iterable[msgspec.Struct]:
        """The rows of the table for one row of its dataset or table."""
        return (row,)

    def take_columns(self, columns: "pyarrow.Table") -> "pyarrow.Table":
        """The same for many rows as columns."""
        return columns

    def make(self) -> Iterable[msgspec.Struct]:
        """Rows that are made after every dataset."""
        return ()

    def make_groups(self) -> "Iterable[RowGroup]":
        """The same for many rows, encoded."""
        return ()


_write = msgspec.msgpack.Encoder().encode


class MacroRows(TableRows):
    """Rows that are encoded with each group of macro columns (`write.derived_parts`)."""

    def __init__(self, name: str, context: BuildContext) -> None:
        super().__init__(context)
        self._name = name

    def make_groups(self) -> "Iterator[RowGroup]":
        withdrawn = self.context.withdrawn_rows
        for part in self.context.macro.parts(self._name):
            group = self._group(part)
            if withdrawn and group.rows:
                withdrawn.refuse_columns(self._name, self._encoder.decode(group))
            yield group

    def _group(self, part: bytes) -> "RowGroup":
        from sankofa.edition.write.parquet_file import RowGroup

        return msgspec.msgpack.decode(part, type=RowGroup)

    @property
    def _encoder(self) -> "RowGroupEncoder":
        from sankofa.edition.write.parquet_file import row_group_encoder

        return row_group_encoder(_TABLES[self._name])


def encoded_rows(
    name: str, rows: Sequence[msgspec.Struct], also: Mapping[str, Sequence[object]] = MappingProxyType({})
) -> bytes:
    """Rows as a row group of a table, for `MacroRows`; empty if there are none. `also` adds fields."""
    from sankofa.edition.write.parquet_file import row_group_encoder

    encoder = row_group_encoder(_TABLES[name])
    return _write(encoder.encode(encoder.columns.table(rows, also))) if rows else b""


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
    """Whether its file needs no key; it then has no rows of `KEYED_CLASSES`."""
    methodology: str = ""
    derived: bool = False
    """Whether its dataset returns the sources of its rows (`Outcome.sources`)."""
    reads: tuple[Input, ...] | None = None
    """Its inputs, if it takes rows from no dataset (see `write.dataset.Dataset`)."""


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
    load_declarations()
    return tuple(_TABLES[name] for name in sorted(_TABLES))


DIGEST_BYTES: Final = 8
_STORED: Final = 6
"""Stored bytes of a digest; the first two select the bucket."""


class DigestSet:
    """A set of 64-bit digests in about 7 bytes each, where a Python set takes 100.

    There is one digest for nearly every figure, so this set limits the figures of a build.
    """

    def __init__(self) -> None:
        self._stored: list[bytearray | None] = [None] * 65_536
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add_all(self, digests: bytes) -> list[bool]:
        """Add many digests of 8 bytes; returns for each whether it is new."""
        stored = self._stored
        new: list[bool] = []
        for at in range(0, len(digests), DIGEST_BYTES):
            rest = digests[at + DIGEST_BYTES - _STORED : at + DIGEST_BYTES]
            number = digests[at] << 8 | digests[at + 1]
            if (bucket := stored[number]) is None:
                stored[number] = bytearray(rest)
                new.append(True)
                continue
            position = bucket.find(rest)
            while position > 0 and position % _STORED:  # a match across two digests
                position = bucket.find(rest, position + 1)
            if position < 0:
                bucket += rest
            new.append(position < 0)
        self._count += sum(new)
        return new


_DIGITS: Final = 2 * DIGEST_BYTES
"""Digits of a provenance_id that identify it."""


def organisation_entity(entity: Entity) -> FactEntity:
    return FactEntity(entity.service_id, entity.legal_name, alpha3_of().get(entity.country or ""))


@cache
def country_entity(alpha2: str) -> FactEntity:
    code = alpha3_of()[alpha2]
    return FactEntity(code, country_name(alpha2), code)


class SharedProvenance(Row, frozen=True, kw_only=True):
    """Provenance of facts, each once."""

    provenance_id: Annotated[str, doc("Identifier of the provenance, as on the facts.")]
    extraction_confidence: Annotated[
        float | None, doc("Confidence of the extraction, 0 to 1; null for structured data.")
    ]
    method: Annotated[
        str, doc("How the value was obtained: extracted from a document, or published as data.")
    ]


class _Once(TableRows):
    """Each provenance once, even if many facts have it."""

    def __init__(self, context: BuildContext) -> None:
        super().__init__(context)
        self._digests = DigestSet()

    def take(self, key: str, row: SharedFact) -> Iterable[msgspec.Struct]:
        (new,) = self._digests.add_all(bytes.fromhex(row.provenance_id[:_DIGITS]))
        return (row,) if new else ()

    def take_columns(self, columns: "pyarrow.Table") -> "pyarrow.Table":
        import pyarrow

        rows = columns.select(list(SharedProvenance.__struct_fields__))
        new = self._digests.add_all(_digests(rows.column("provenance_id")))
        return rows if all(new) else rows.filter(pyarrow.array(new, pyarrow.bool_()))


class _MacroOnce(MacroRows):
    """The same for the facts of macro columns: each is once in a group, and may be in another again."""

    def __init__(self, name: str, context: BuildContext) -> None:
        super().__init__(name, context)
        self._digests = DigestSet()

    def _group(self, part: bytes) -> "RowGroup":
        import pyarrow

        digests, encoded = msgspec.msgpack.decode(part, type=tuple[bytes, bytes])
        group, new = super()._group(encoded), self._digests.add_all(digests)
        if all(new):
            return group
        return self._encoder.encode(self._encoder.decode(group).filter(pyarrow.array(new, pyarrow.bool_())))


def encoded_provenance(name: str, facts: Iterable[SharedFact]) -> bytes:
    """The provenance of a group of macro facts, for `_MacroOnce`: their digests, and the row group."""
    first: dict[str, SharedFact] = {}
    for one in facts:
        first.setdefault(one.provenance_id[:_DIGITS], one)
    rows = encoded_rows(provenance_name(name), list(first.values()))
    return _write((bytes.fromhex("".join(first)), rows)) if rows else b""


def provenance_name(facts: str) -> str:
    return facts.removesuffix("fact") + "provenance"


def _digests(provenance_ids: "pyarrow.ChunkedArray") -> bytes:
    """The first digits of many provenance ids, as consecutive bytes."""
    from pyarrow import compute

    digests = []
    for chunk in compute.utf8_slice_codeunits(provenance_ids, 0, _DIGITS).chunks:
        offsets, digits = chunk.buffers()[1:]
        first, end = (memoryview(offsets).cast("i")[chunk.offset + at] for at in (0, len(chunk)))
        digests.append(bytes.fromhex(memoryview(digits)[first:end].tobytes().decode()))
    return b"".join(digests)


def provenance_table(facts: str, sku: str, reads: tuple[Input, ...] | None = None) -> None:
    """Declare the table with the provenance of the facts of a table; with `reads`, of macro facts."""
    name = provenance_name(facts)
    table(
        name,
        SharedProvenance,
        sku,
        f"The provenance of the facts of {facts}, each once.",
        takes_from="" if reads else facts,
        rows=partial(_MacroOnce, name) if reads else _Once,
        reads=reads,
    )
