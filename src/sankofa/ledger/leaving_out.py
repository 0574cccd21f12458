"""A session of the ledger in which some sources are not there: every SELECT passes over their rows.

Tables that name the source of a row are cut by it, the others by the capture. Parties are stored once,
whichever source names them, and persons stay withheld whoever proved them to be persons: neither is cut.

See contract: PROV-6.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import compress
from typing import Any, Final

from sankofa.engines.datastore import LedgerRows, Row

_BY_SOURCE: Final = frozenset({"annual", "capture", "entity_record", "fact", "link", "series"})
_BY_CAPTURE: Final = frozenset({"fact_subject", "indicator", "release"})
_TABLE: Final = re.compile(r"\b(FROM|JOIN) (\w+)(?: AS (\w+))?")


class LeavingOut:
    """See `engines.datastore.LedgerRows`."""

    def __init__(self, session: LedgerRows, source_ids: Collection[str]) -> None:
        self._session = session
        quoted = ", ".join("'" + source_id.replace("'", "''") + "'" for source_id in sorted(source_ids))
        self._source = f"source_id NOT IN ({quoted})"
        self._capture = f"capture_id IN (SELECT capture_id FROM capture WHERE {self._source})"  # noqa: S608 - quoted
        self._captures = {number for (number,) in self.query("SELECT capture_id FROM capture")}

    def query(self, sql: str, parameters: Sequence[object] = ()) -> Iterator[Row]:
        return self._session.query(_TABLE.sub(self._cut, sql), parameters)

    def columns(self, table: str, names: Sequence[str], key: str) -> list[list[Any]]:
        columns = self._session.columns(table, names, key)
        wanted = [number in self._captures for number in columns[names.index("capture_id")]]
        return columns if all(wanted) else [list(compress(column, wanted)) for column in columns]

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
        return f"{word} (SELECT * FROM {table} WHERE {condition}) AS {alias or table}"  # noqa: S608 - quoted
