"""A session of the ledger in which something is not there: every SELECT passes over its rows.

Left out are whole sources that may not be redistributed, and generations of sources that something was
withdrawn from (`ledger.generations`). The generation that stands is read under the id of its source, and what
was captured again under the number of the capture that it stands for.

Tables that name the source of a row are cut by it, the others by the capture. Parties are stored once,
whichever source names them, and persons stay withheld whoever proved them to be persons: neither is cut.

See contract: PROV-6, ING-9.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import compress
from typing import Any, Final, NamedTuple

from sankofa.engines.datastore import LedgerRows, Row
from sankofa.ledger.generations import Generations, columns_of

_BY_SOURCE: Final = frozenset(
    {"annual", "capture", "entity_record", "fact", "link", "series", "unchanged_file"}
)
_BY_CAPTURE: Final = frozenset({"fact_subject", "indicator", "release", "series_info"})
_TABLE: Final = re.compile(r"\b(FROM|JOIN) (\w+)(?: AS (\w+))?")
_PER_CAPTURE: Final = 1 << 32
"""A release's number is that of its capture times this, and its place in the file (`ledger.tenders`)."""


class CaptureFilter(NamedTuple):
    """The rows of some captures. The ledger only grows: with every capture that there is now, these are the
    rows there are now, whatever is appended later."""

    captures: frozenset[int]
    stands_for: Mapping[int, int]
    """The captures that are read under another number."""

    def passed(self, names: Sequence[str], columns: list[list[Any]]) -> list[list[Any]]:
        """Columns as `LedgerRows.columns` has them."""
        at = names.index("capture_id")
        wanted = [number in self.captures for number in columns[at]]
        if not all(wanted):
            columns = [list(compress(column, wanted)) for column in columns]
        if self.stands_for:
            columns[at] = [self.stands_for.get(number, number) for number in columns[at]]
        return columns


class LeavingOut:
    """See `engines.datastore.LedgerRows`."""

    def __init__(
        self, session: LedgerRows, source_ids: Collection[str], generations: Generations | None = None
    ) -> None:
        self._session = session
        generations = generations or Generations(session)
        hidden = [*generations.withdrawn, *(generations.stored_id(source_id) for source_id in source_ids)]
        self._source = f"source_id NOT IN ({_quoted(hidden)})" if hidden else "1 = 1"
        self._capture = f"capture_id IN (SELECT capture_id FROM capture WHERE {self._source})"  # noqa: S608 - quoted
        shown = session.query(f"SELECT capture_id FROM capture WHERE {self._source}")  # noqa: S608 - quoted
        self.capture_filter = CaptureFilter(frozenset(n for (n,) in shown), generations.stands_for)
        self._renames = generations.current_names

    def query(self, sql: str, parameters: Sequence[object] = ()) -> Iterator[Row]:
        return self._session.query(_TABLE.sub(self._cut, sql), parameters)

    def columns(self, table: str, names: Sequence[str], key: str) -> list[list[Any]]:
        return self.capture_filter.passed(names, self._session.columns(table, names, key))

    def snapshot(self) -> AbstractContextManager[None]:
        return self._session.snapshot()

    def close(self) -> None:
        self._session.close()

    def _cut(self, named: re.Match[str]) -> str:
        """A table that a SELECT names, without what is left out."""
        word, table, alias = named.groups()
        if table in _BY_SOURCE:
            condition = self._source
        elif table in _BY_CAPTURE:
            condition = self._capture
        else:
            return named[0]
        if not self._renames:
            return f"{word} (SELECT * FROM {table} WHERE {condition}) AS {alias or table}"  # noqa: S608 - quoted
        columns = ", ".join(self._read(column) for column in columns_of(table))
        # The condition is about the columns as they are stored, so it has a SELECT of its own.
        return (
            f"{word} (SELECT {columns} FROM (SELECT * FROM {table} WHERE {condition}) AS t "  # noqa: S608 - quoted
            f"LEFT JOIN recapture AS m ON m.capture_id = t.capture_id) AS {alias or table}"
        )

    def _read(self, column: str) -> str:
        """A column as it would be, had nothing been withdrawn or captured again."""
        if column == "source_id":
            cases = " ".join(f"WHEN {_quoted([s])} THEN {_quoted([i])}" for s, i in self._renames.items())
            return f"CASE t.source_id {cases} ELSE t.source_id END AS source_id"
        if column == "capture_id":
            return "coalesce(m.stands_for, t.capture_id) AS capture_id"
        if column == "number":
            return (
                f"CASE WHEN m.stands_for IS NULL THEN t.number "
                f"ELSE m.stands_for * {_PER_CAPTURE} + t.number % {_PER_CAPTURE} END AS number"
            )
        return f"t.{column} AS {column}"


def _quoted(names: Collection[str]) -> str:
    return ", ".join("'" + name.replace("'", "''") + "'" for name in sorted(names))
