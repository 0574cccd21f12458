"""Writes the tables of an edition as Parquet, while its datasets are built: memory stays flat.

Rows wait in small batches; a row group is encoded and compressed by a thread of its own, which leaves the
interpreter to the build meanwhile. The same rows give the same bytes: nothing in a file tells when or where
it was written, or for which edition. So one whose rows did not change is the same file in the next edition.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from sankofa.edition.format.arrow_columns import in_force
from sankofa.edition.write.build_record import SegmentRecord, TableRecord
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.old_tables import OldTables
from sankofa.edition.write.table_writer import TableWriter
from sankofa.edition.write.tables import Table, tables
from sankofa.model.errors import CheckFailed

_ROWS_OF_COLUMNS: Final = 32_768
ROWS_IN_A_FILE: Final = 10_000_000


class ParquetFiles:
    """The files of an edition being built."""

    def __init__(
        self,
        folder: Path,
        context: BuildContext,
        rows_in_a_file: int = ROWS_IN_A_FILE,
        taken: Mapping[str, TableRecord] = MappingProxyType({}),
        before: OldTables | None = None,
    ) -> None:
        """`taken` are the tables whose files are those of an edition before; of `before` rows are taken."""
        self._context = context
        self._taken = taken
        self._before = before or OldTables({})
        self._encoder = ThreadPoolExecutor(1, "parquet")
        self._rows = {table.name: table.rows(context) for table in tables()}
        self._derived_from: dict[str, Set[str]] = {}
        self._open = {
            table.name: TableWriter(
                folder,
                table,
                self._encoder,
                rows_in_a_file,
                partial(self._owed, table),
                context.withdrawn_rows.refuse_columns,
            )
            for table in tables()
            if table.name not in taken
        }
        self._columns: defaultdict[str, _Waiting] = defaultdict(_Waiting)
        self._taking: defaultdict[str, list[TableWriter]] = defaultdict(list)
        for writer in self._open.values():
            if writer.table.takes_from:
                self._taking[writer.table.takes_from].append(writer)

    def takes(self, kind: str) -> bool:
        return kind in self._taking

    def offer(self, kind: str, key: str, row: object) -> None:
        """A row of a dataset or of a table, to every table that takes from it."""
        for writer in self._taking[kind]:
            self._add(writer, key, self._rows[writer.table.name].take(key, row))

    def offer_columns(self, kind: str, columns: Iterable[bytes], rows: int) -> None:
        """The columns of a key's rows (`format.arrow_columns`), to every table that takes from them."""
        waiting = self._columns[kind]
        waiting.columns += columns
        waiting.rows += rows
        if waiting.rows >= _ROWS_OF_COLUMNS:
            self._offer_waiting(kind)

    def _offer_waiting(self, kind: str) -> None:
        self._offer_table(kind, in_force(self._columns.pop(kind).columns))

    def _offer_table(self, name: str, columns: pa.Table) -> None:
        for writer in self._taking.get(name, ()):
            taken = self._rows[writer.table.name].take_columns(columns)
            writer.add_columns(taken)
            self._offer_table(writer.table.name, taken)

    def take_segment(self, kind: str, inputs: str) -> bool:
        """Take the rows that are made of these inputs as the edition before has them; whether all tables that
        take from the dataset could. Else they have to be offered."""
        writers = self._taking.get(kind, ())
        known = [self._before.segment(writer.table.name, inputs, writer.schema) for writer in writers]
        if not known or None in known:
            return False
        for writer, segment in zip(writers, known, strict=True):
            if segment is not None:
                writer.add_known(segment.rows, segment.left_out)
                self._offer_table(writer.table.name, segment.rows)
        return True

    def end_segment(self, kind: str, inputs: str) -> None:
        """All rows of a dataset that are made of these inputs were offered, or taken."""
        if kind in self._columns:
            self._offer_waiting(kind)
        for writer in self._taking.get(kind, ()):
            writer.end_segment(inputs)

    def segments(self, name: str) -> list[SegmentRecord]:
        """How the rows of a table follow each other, by what they are made of."""
        return self._taken[name].segments if name in self._taken else self._open[name].segments

    def name_sources(self, kind: str, sources: Set[str]) -> None:
        """The sources that the rows of a dataset are derived from, where each row names but one."""
        self._derived_from[kind] = sources

    def make(self, name: str) -> None:
        """The rows that a table makes itself."""
        if (writer := self._open.get(name)) is not None:
            self._add(writer, "", self._rows[name].make())

    def _add(self, writer: "TableWriter", key: str, rows: Iterable[object]) -> None:
        name = writer.table.name
        further = name in self._taking
        for row in rows:
            writer.add(row)
            if further:
                self.offer(name, key, row)

    def finish(self) -> dict[str, list[dict[str, Any]]]:
        """Write what waits and close every file; by table, what the manifest says of each."""
        for kind in list(self._columns):
            self._offer_waiting(kind)
        for writer in self._open.values():
            writer.flush()
        self._encoder.shutdown()
        return {
            table.name: self._taken[table.name].files
            if table.name in self._taken
            else self._open[table.name].finish()
            for table in tables()
        }

    def _owed(self, table: Table, named: Set[str]) -> str:
        """Whom the rows of a file are owed to: every source they are from, and no other."""
        derived = self._derived_from.get(table.takes_from)
        if derived is not None and not table.derived:
            raise CheckFailed(f"{table.name}: made of {table.takes_from}, and not declared as derived")
        named = named | self._rows[table.name].input_sources
        return "; ".join(self._context.owed(named if derived is None else derived))

    def abandon(self) -> None:
        """What was written goes with the folder."""
        self._encoder.shutdown(cancel_futures=True)
        for writer in self._open.values():
            writer.abandon()


class _Waiting:
    """Columns of a few rows each: handled together, they cost a tenth."""

    def __init__(self) -> None:
        self.columns: list[bytes] = []
        self.rows = 0
