"""Generations of a source: how files are withdrawn from a ledger in which nothing is ever deleted.

The rows of a file depend on earlier files: a table is stored as its changes, and a repeated row is stored
once. So hiding a file's rows is not enough. Instead the source starts a new generation, and every other file
is read again into it. The old generation stays in the ledger, unread. A generation is stored under the id of
its source followed by its number.

`FilteredSession` hides withdrawn generations and sources that may not be redistributed.
Rows captured again appear under their first capture number. Parties and persons are never hidden.

See docs/decisions/licences-and-withdrawals.md. See contract: PROV-6, ING-9.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

import msgspec

from sankofa.engines.ledger_store import LedgerRows, Row

GENERATION_MARK: Final = "#"
"""Separates a source's id from the generation: in no id, and sorted before every character of one."""


class WithdrawnFile(msgspec.Struct, frozen=True, array_like=True):
    capture_id: int
    file_name: str
    content_sha256: str
    observed_at: str = ""
    """Empty in tombstones of older versions."""


class Withdrawal(NamedTuple):
    """A tombstone: which captures of a source are skipped, and why."""

    number: int
    """Its own, in the order of the captures."""
    source_id: str
    generation: int
    """The generation that the source started with this tombstone."""
    observed_at: str
    capture: int
    """The capture that was named, else 0."""
    file_name: str
    """The file that was named, else empty."""
    everywhere: bool
    """Whether editions with the withdrawn rows are withdrawn too."""
    reason: str
    files: tuple[WithdrawnFile, ...]


class Generations:
    """The valid generation of each source."""

    def __init__(self, session: LedgerRows) -> None:
        self.current: dict[str, int] = {}
        """The generation of each source that started another."""
        self.withdrawn: list[str] = []
        """The skipped generations, by stored id."""
        for source_id, generation in session.query(
            "SELECT source_id, generation FROM withdrawal ORDER BY capture_id"
        ):
            self.withdrawn.append(stored_id(source_id, generation - 1))
            self.current[source_id] = generation
        self.stands_for: dict[int, int] = {}
        """By capture, the capture that it replaces."""
        if self.current:
            self.stands_for = dict(session.query("SELECT capture_id, stands_for FROM recapture"))

    def generation(self, source_id: str) -> int:
        return self.current.get(source_id, 1)

    def stored_id(self, source_id: str) -> str:
        return stored_id(source_id, self.generation(source_id))


def stored_id(source_id: str, generation: int) -> str:
    return source_id if generation == 1 else f"{source_id}{GENERATION_MARK}{generation}"


def source_of(stored: str) -> str:
    return stored.partition(GENERATION_MARK)[0]


@cache
def columns_of(table: str) -> tuple[str, ...]:
    """The columns of a table of the ledger, in order."""
    schema = files("sankofa.ledger").joinpath("schema.sql").read_text()
    (body,) = re.findall(rf"CREATE TABLE IF NOT EXISTS {table} \((.*?)\n\)", schema, re.DOTALL)
    return tuple(re.findall(r"^    ([a-z_0-9]+) ", body, re.MULTILINE))


_BY_SOURCE: Final = frozenset(
    {"acceptance", "annual", "capture", "entity_record", "fact", "link", "series", "spell", "unchanged_file"}
)
_BY_CAPTURE: Final = frozenset({"indicator", "release", "series_info"})
_DATED: Final = _BY_SOURCE | _BY_CAPTURE | {"party", "seal", "withheld_party"}
_TABLE: Final = re.compile(r"\b(FROM|JOIN) (\w+)(?: AS (\w+))?")
PER_CAPTURE: Final = 1 << 32
"""A release's number is its capture's number times this, plus its position in the file (`ledger.tenders`)."""


class CaptureFilter(NamedTuple):
    """The rows of some captures. With all captures of today this is the ledger of today, because the ledger
    only grows."""

    captures: frozenset[int]
    stands_for: Mapping[int, int]
    """The captures that are read under another number."""

    def passed(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Rows that begin with their capture."""
        for number, *rest in rows:
            if number in self.captures:
                yield self.stands_for.get(number, number), *rest


class _CutSession(ABC):
    """A ledger session that leaves out rows; see `engines.ledger_store.LedgerRows`."""

    def __init__(self, session: LedgerRows) -> None:
        self._session = session

    def query(self, sql: str, parameters: Sequence[object] = ()) -> Iterator[Row]:
        return self._session.query(_TABLE.sub(self._cut, sql), parameters)

    def snapshot(self) -> AbstractContextManager[None]:
        return self._session.snapshot()

    def close(self) -> None:
        self._session.close()

    @abstractmethod
    def _cut(self, named: re.Match[str]) -> str:
        """A table that a SELECT names, without the hidden rows."""


class PastSession(_CutSession):
    """A ledger session as of a capture: its SELECTs omit later rows, except those of files captured again in
    place of earlier ones. Persons and withdrawals are always the current ones."""

    def __init__(self, session: LedgerRows, last_capture: int) -> None:
        super().__init__(session)
        again = f"SELECT capture_id FROM recapture WHERE stands_for <= {last_capture}"  # noqa: S608 - a number
        self._condition = f"capture_id <= {last_capture} OR capture_id IN ({again})"

    def _cut(self, named: re.Match[str]) -> str:
        word, table, alias = named.groups()
        if table not in _DATED:
            return named[0]
        return f"{word} (SELECT * FROM {table} WHERE {self._condition}) AS {alias or table}"  # noqa: S608 - a number


class FilteredSession(_CutSession):
    """A ledger session whose SELECTs omit hidden rows."""

    def __init__(self, session: LedgerRows, source_ids: Collection[str]) -> None:
        super().__init__(session)
        generations = Generations(session)
        hidden = [*generations.withdrawn, *(generations.stored_id(source_id) for source_id in source_ids)]
        self._source = f"source_id NOT IN ({_quoted(hidden)})" if hidden else "1 = 1"
        self._capture = f"capture_id IN (SELECT capture_id FROM capture WHERE {self._source})"  # noqa: S608 - quoted
        visible = session.query(f"SELECT capture_id FROM capture WHERE {self._source}")  # noqa: S608 - quoted
        self.capture_filter = CaptureFilter(frozenset(n for (n,) in visible), generations.stands_for)
        self._renames = {generations.stored_id(source_id): source_id for source_id in generations.current}

    def _cut(self, named: re.Match[str]) -> str:
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
        # The condition is about stored columns, so it needs its own SELECT.
        return (
            f"{word} (SELECT {columns} FROM (SELECT * FROM {table} WHERE {condition}) AS t "  # noqa: S608 - quoted
            f"LEFT JOIN recapture AS m ON m.capture_id = t.capture_id) AS {alias or table}"
        )

    def _read(self, column: str) -> str:
        """The value of a column if nothing had been withdrawn or captured again."""
        if column == "source_id":
            cases = " ".join(f"WHEN {_quoted([s])} THEN {_quoted([i])}" for s, i in self._renames.items())
            return f"CASE t.source_id {cases} ELSE t.source_id END AS source_id"
        if column == "capture_id":
            return "coalesce(m.stands_for, t.capture_id) AS capture_id"
        if column == "number":
            return (
                f"CASE WHEN m.stands_for IS NULL THEN t.number "
                f"ELSE m.stands_for * {PER_CAPTURE} + t.number % {PER_CAPTURE} END AS number"
            )
        return f"t.{column} AS {column}"


def _quoted(names: Collection[str]) -> str:
    return ", ".join("'" + name.replace("'", "''") + "'" for name in sorted(names))
