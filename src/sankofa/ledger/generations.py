"""Generations of a source: how something is withdrawn from a ledger in which nothing is ever deleted.

What a file adds depends on what its source had said before: a table is kept as what it changed, and a row
that was there already is not kept twice. So a file cannot be taken back by passing over its rows alone.
Instead the source begins a new generation, into which everything else of it is taken again; the generation
before stays in the ledger and is read no more. A generation is stored under the id of the source with its
number behind it.

See docs/decisions/licences-and-withdrawals.md.
"""

import re
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

import msgspec

from sankofa.engines.datastore import LedgerRows

GENERATION_MARK: Final = "#"
"""Between the id of a source and the generation: in no id, and sorted before whatever is in one."""
_WITHDRAWALS: Final = (
    "SELECT capture_id, source_id, generation, observed_at, capture, file_name, everywhere, reason, "
    "withdrawn FROM withdrawal ORDER BY capture_id"
)


class WithdrawnFile(msgspec.Struct, frozen=True, array_like=True):
    """One file that was withdrawn."""

    capture_id: int
    file_name: str
    content_sha256: str
    observed_at: str = ""
    """Empty in tombstones of older versions."""


class Withdrawal(NamedTuple):
    """A tombstone: what of a source is to be passed over, and why."""

    number: int
    """Its own, in the order of the captures."""
    source_id: str
    generation: int
    """The generation that the source began with it."""
    observed_at: str
    capture: int
    """The one capture that was named, else 0."""
    file_name: str
    """The file that was named, else empty."""
    everywhere: bool
    """Whether editions that hold it are withdrawn too."""
    reason: str
    files: tuple[WithdrawnFile, ...]


_files = msgspec.json.Decoder(tuple[WithdrawnFile, ...]).decode


def withdrawals(session: LedgerRows) -> list[Withdrawal]:
    """Every tombstone, oldest first."""
    return [
        Withdrawal(number, source_id, generation, at, capture, file, bool(everywhere), reason, _files(files))
        for number, source_id, generation, at, capture, file, everywhere, reason, files in session.query(
            _WITHDRAWALS
        )
    ]


class Generations:
    """Which generation of each source stands."""

    def __init__(self, session: LedgerRows) -> None:
        self._current: dict[str, int] = {}
        self.withdrawn: list[str] = []
        """The generations that are passed over, as they are stored."""
        for source_id, generation in session.query(
            "SELECT source_id, generation FROM withdrawal ORDER BY capture_id"
        ):
            self.withdrawn.append(stored_id(source_id, generation - 1))
            self._current[source_id] = generation
        self.stands_for: dict[int, int] = {}
        """By capture, the one that it stands for."""
        if self._current:
            self.stands_for = dict(session.query("SELECT capture_id, stands_for FROM recapture"))

    def __bool__(self) -> bool:
        return bool(self._current)

    def generation(self, source_id: str) -> int:
        return self._current.get(source_id, 1)

    def stored_id(self, source_id: str) -> str:
        """Under which the generation that stands is stored."""
        return stored_id(source_id, self.generation(source_id))

    @property
    def current_names(self) -> dict[str, str]:
        """By stored id, the source: of those that began another generation."""
        return {stored_id(source_id, number): source_id for source_id, number in self._current.items()}


def stored_id(source_id: str, generation: int) -> str:
    return source_id if generation == 1 else f"{source_id}{GENERATION_MARK}{generation}"


def source_of(stored: str) -> str:
    """The source that a stored id is of."""
    return stored.partition(GENERATION_MARK)[0]


@cache
def columns_of(table: str) -> tuple[str, ...]:
    """The columns of a table of the ledger, in order."""
    schema = files("sankofa.ledger").joinpath("schema.sql").read_text()
    (body,) = re.findall(rf"CREATE TABLE IF NOT EXISTS {table} \((.*?)\n\)", schema, re.DOTALL)
    return tuple(re.findall(r"^    ([a-z_0-9]+) ", body, re.MULTILINE))
