"""Pages of a list: where one begins, and the cursor of the next (contract: PAR-5, PAR-6).

A walk stays on the edition and the day it began with. What a cursor says besides is `following` of the rows
it was given with: a place in that edition, which only whoever reads those rows understands.
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import date
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final, TypedDict

import msgspec
from msgspec.structs import replace

from sankofa.access.cursors import Cursors, Position
from sankofa.edition.read.edition import Edition, Selection
from sankofa.model.errors import InvalidParameter, NotFound
from sankofa.model.rows import Row
from sankofa.operations.contract import Answer, Call, Operation

Filter = str | int | date | tuple[str, ...] | None
_UNSET: Final = msgspec.UNSET


class ListPage(msgspec.Struct, frozen=True):
    """One page of a walk through the rows that some filters admit."""

    call: Call
    edition: Edition
    day: date
    """The day that the walk asks about."""
    filters: tuple[Filter, ...]
    as_of: date | None
    """The day as it was asked for."""
    start: tuple[int | str, ...] = ()
    """`following` of the page before; empty on the first."""
    open_to_sample: bool = False

    @property
    def rows_passed(self) -> int:
        """Of a list whose place is a number: how much of it the pages before had."""
        return int(self.start[0]) if self.start else 0

    async def after(self, cursor: str) -> "ListPage":
        """The page that a cursor leads to.

        Raises InvalidParameter for one that is altered, of other filters, or of an edition no longer kept.
        """
        position = self.call.cursors.read(cursor, filters_digest(self.filters))
        edition = await self.call.edition_for_cursor(position.edition)
        day, *start = position.after
        walked_day = date.fromordinal(int(day))
        if self.as_of not in (None, walked_day):
            raise InvalidParameter("cursor", f"of a walk as of {walked_day}")
        return replace(self, edition=edition, day=walked_day, start=tuple(start))

    def next_cursor(self, following: tuple[int | str, ...] | None) -> str | None:
        """The cursor of the page after; None on the last, and for a key that may not use one."""
        if following is None or (self.call.grant.sample and not self.open_to_sample):
            return None
        return _issued(self.call.cursors, self.edition.id, self.filters, self.day, following)

    def answer(
        self,
        selection: Selection,
        *,
        as_of: date | msgspec.UnsetType | None = _UNSET,
        members: dict[str, object] | None = None,
        shape: type[Row] | None = None,
        dataset: str | None = None,
        more_columns: tuple[str, ...] = (),
    ) -> Answer:
        """The page as an answer, with the cursor of the next."""
        all_members = {} if members is None else members
        all_members["next_cursor"] = self.next_cursor(selection.following)
        return Answer(selection, as_of, all_members, self.edition.id, shape, dataset, more_columns)


@lru_cache(maxsize=4096)
def _issued(
    cursors: Cursors,
    edition_id: str,
    filters: tuple[Filter, ...],
    day: date,
    following: tuple[int | str, ...],
) -> str:
    """The cursor behind some rows. The same pages are asked for again and again, and have the same one."""
    return cursors.issue(Position(edition_id, filters_digest(filters), (day.toordinal(), *following)))


def first_page(
    call: Call, *filters: Filter, as_of: date | None = None, open_to_sample: bool = False
) -> ListPage:
    """The beginning of a list. `filters` name the list and all that narrows it."""
    day = call.today if as_of is None else as_of
    return ListPage(call, call.edition, day, filters, as_of, (), open_to_sample)


async def refuse_bad_cursor(operation: Operation, call: Call, arguments: Mapping[str, Any]) -> None:
    """Raises InvalidParameter for a cursor that is none, whatever edition it is asked of (contract: KEY-7).

    `call` opens no edition. The operation reads its cursor before anything else, as only it knows the filters
    that one is bound to.
    """
    with suppress(NotFound):
        await operation.perform(call, **arguments)


class BlockAndRow(TypedDict):
    """The arguments with which `Edition.select` goes on."""

    skip: int
    passed: int


def block_and_row(start: tuple[int | str, ...]) -> BlockAndRow:
    """Where `Edition.select` goes on after the rows that had this `following`."""
    block, passed = start or (0, 0)
    return BlockAndRow(skip=int(block), passed=int(passed))


@lru_cache(maxsize=4096)
def filters_digest(filters: tuple[Filter, ...]) -> str:
    """Stands for the filters in a cursor, however long they are."""
    plain = [one.isoformat() if isinstance(one, date) else one for one in filters]
    return blake2b(msgspec.msgpack.encode(plain), digest_size=9).hexdigest()
