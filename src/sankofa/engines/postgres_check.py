"""Compares the parts of an edition in PostgreSQL with what was published: the server hashes, we compare."""

import time
from collections.abc import Sequence
from typing import Any, Final, Protocol

from sankofa.engines.manifest import open_manifest
from sankofa.engines.postgres_parts import (
    BLOCK_DIGEST,
    BLOCK_SUM,
    KEY_DIGEST,
    KEY_SUM,
    SCHEMA,
    PartStates,
    StoredPart,
    Sum,
)
from sankofa.engines.postgres_server import Refused
from sankofa.model.errors import EditionError, StoreUnavailable

_QUICK_SECONDS, _SLOW_SECONDS = 0.1, 0.4
_FIRST_STEP: Final = 16
_KEYS_A_BLOCK: Final = 64
"""Keys that take about as long to compare as one block."""
OLD_PREFIX: Final = "sankofa_e_"
"""Before parts were shared each edition was a schema of its own, which begins with this."""

SUM_BLOCKS: Final = f"""
    SELECT count(*), {BLOCK_SUM}, coalesce(bool_and(digest = {BLOCK_DIGEST}), true)
    FROM {SCHEMA}.block_{{dataset}} WHERE part = {{part}}
"""
SUM_KEYS: Final = f"""
    SELECT count(*), {KEY_SUM}, coalesce(bool_and(digest = {KEY_DIGEST}), true)
    FROM {SCHEMA}.directory_{{dataset}} WHERE part = {{part}}
"""
_SOME_KEYS: Final = f"""
    WITH found AS (SELECT * FROM {SCHEMA}.directory_{{dataset}}
                  WHERE part = {{part}} AND (kind, key) > ($1, $2) ORDER BY kind, key LIMIT {{most}}),
         last AS (SELECT kind, key FROM found ORDER BY kind DESC, key DESC LIMIT 1)
    SELECT count(*), {KEY_SUM}, coalesce(bool_and(digest = {KEY_DIGEST}), true),
           (SELECT kind FROM last), (SELECT key FROM last) FROM found
"""


class Ask(Protocol):
    """`engines.postgres_link.Enquiry.rows`."""

    def __call__(self, text: str, *values: str) -> list[list[str | None]]: ...


class PartsCheck:
    """Compares parts, a stretch at a time: each question must be answered in seconds. Begins again when it is
    through."""

    def __init__(self, ask: Ask, edition: str, parts: Sequence[StoredPart], states: PartStates) -> None:
        self._ask = ask
        self._edition = edition
        self._parts = parts
        self._states = states
        self._number = 0
        self._step = _FIRST_STEP
        self._rows_asked = 0
        """By the last question, in blocks."""
        self._begin()

    def _begin(self) -> None:
        self._next = 0
        self._total = Sum(0, 0)
        self._last: tuple[str, str] | None = None
        """While the keys of a part are compared, the last of them."""

    def check(self, seconds: float, *, again: bool = False) -> bool:
        """Go on for so long; whether every part was compared. Those that this process has compared before are
        left out, unless `again`. Raises EditionError or StoreUnavailable."""
        deadline = time.monotonic() + seconds
        states = [self._states.state(part) for part in self._parts]
        damage = next((state.damage for state in states if state.damage), None)
        if damage and not again:
            raise EditionError(f"edition {self._edition}: {damage}")
        for number, state in enumerate(states):
            if not state.damage and (state.taken_over if again else state.complete):
                state.taken_over = False
                continue
            self._number = number
            self._begin()
            while time.monotonic() < deadline:
                if not self.step():
                    break
            else:
                return False
        self._number = 0
        return True

    def step(self, most_blocks: int = 1 << 31) -> bool:
        """One stretch more; False once the part that it is at was compared. The next follows."""
        part = self._parts[self._number]
        try:
            if self._compare_some(part, min(self._step, most_blocks)):
                return True
        except Refused as refused:
            raise edition_error(self._edition, refused) from None
        self._states.complete(part)
        self._number = (self._number + 1) % len(self._parts)
        self._begin()
        return False

    def _compare_some(self, part: StoredPart, most: int) -> bool:
        """Whether there is more of it to compare."""
        began = time.monotonic()
        more = self._some_keys(part, most) if self._last is not None else self._some_blocks(part, most)
        took = time.monotonic() - began
        if took < _QUICK_SECONDS and self._rows_asked >= most:  # a small part says nothing of a large one
            self._step = most * 2
        elif took > _SLOW_SECONDS:
            self._step = max(1, most // 2)
        return more

    def _some_blocks(self, part: StoredPart, most: int) -> bool:
        end = self._next + most
        stretch = f" AND number >= {self._next}" if self._next else ""
        if end <= part.blocks.rows:
            stretch += f" AND number < {end}"  # the last stretch has no end: there may be a row too many
        text = SUM_BLOCKS.format(dataset=part.dataset, part=part.id) + stretch
        answer = self._ask(text)[0]
        self._rows_asked = int(answer[0] or 0)
        self._add(part, "block", answer)
        self._next = end
        if end <= part.blocks.rows:
            return True
        self._compare(part, "block", part.blocks)
        self._begin()
        self._last = ("", "")
        return True

    def _some_keys(self, part: StoredPart, most: int) -> bool:
        most *= _KEYS_A_BLOCK
        text = _SOME_KEYS.format(dataset=part.dataset, part=part.id, most=most)
        (*answer, kind, key) = self._ask(text, *(self._last or ("", "")))[0]
        self._rows_asked = int(answer[0] or 0) // _KEYS_A_BLOCK
        self._add(part, "directory", answer)
        if int(answer[0] or 0) == most:
            self._last = (str(kind), str(key))
            return True
        self._compare(part, "directory", part.keys)
        return False

    def _add(self, part: StoredPart, table: str, answer: Sequence[Any]) -> None:
        rows, digest, whole = answer
        self._total = Sum(self._total.rows + int(rows), self._total.digest + int(digest))
        if whole != "t":
            raise self._damaged(part, f"corrupt: {table} is not what was published in part {part.id}")

    def _compare(self, part: StoredPart, table: str, sealed: Sum) -> None:
        if self._total.rows != sealed.rows:
            rows = f"{self._total.rows} of {sealed.rows} rows in {table}"
            raise self._damaged(part, f"incomplete: {rows} of part {part.id}")
        if self._total != sealed:
            raise self._damaged(part, f"corrupt: {table} is not what was published in part {part.id}")

    def _damaged(self, part: StoredPart, damage: str) -> EditionError:
        """A part that is no longer there at all was removed with its edition, and is not damaged."""
        self._begin()
        if not self._ask(f"SELECT 1 FROM {SCHEMA}.part WHERE id = {part.id}"):
            return EditionError(f"edition {self._edition}: there is no such edition")
        self._states.report(part, damage)
        return EditionError(f"edition {self._edition}: {damage}")


def read_manifest(ask: Ask, edition: str) -> tuple[dict[str, Any], str]:
    """The manifest, if it is the one that was sealed, and its seal. Raises EditionError, StoreUnavailable."""
    try:
        rows = ask(f"SELECT manifest, seal FROM {SCHEMA}.edition WHERE id = $1", edition)
    except Refused as refused:
        if refused.sqlstate not in ("42P01", "3F000"):
            raise edition_error(edition, refused) from None
        rows = []  # of an older version of this service
    if not rows:
        raise EditionError(f"edition {edition}: {_why_missing(ask, edition)}")
    text, seal = rows[0]
    try:
        manifest = open_manifest(str(text).encode(), str(seal), edition)
        if "stored" not in manifest:
            raise EditionError(f"edition {edition}: incomplete: its manifest does not say where it is stored")
    except ValueError as failure:
        raise EditionError(f"edition {edition}: corrupt: {failure}") from failure
    return manifest, str(seal)


def _why_missing(ask: Ask, edition: str) -> str:
    try:
        old = ask("SELECT 1 FROM pg_namespace WHERE nspname = $1", f"{OLD_PREFIX}{edition}")
    except Refused as refused:
        raise StoreUnavailable("datastore", str(refused)) from None
    if old:
        return "stored by an older version; `sankofa publish` moves it to the tables of this one"
    return "there is no such edition"


def edition_error(edition: str, refused: Refused) -> Exception:
    if refused.sqlstate in ("42P01", "42703", "3F000"):  # no such table, column or schema
        return EditionError(f"edition {edition}: incomplete: {refused.message}")
    if refused.sqlstate.startswith("XX"):
        return EditionError(f"edition {edition}: corrupt: {refused.message}")
    return StoreUnavailable("datastore", str(refused))
