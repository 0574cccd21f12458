"""Pages of a list: their first row, and the cursor of the next page (contract: PAR-5, PAR-6).

A cursor holds the sort key of the last row served. All pages use the first page's edition and day. If that
edition is no longer kept, they go on in the current one after the same key.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from sankofa.access.records import IN_LOCKED_VIEWS, Position
from sankofa.edition.format.columns import TableColumn
from sankofa.edition.format.row_blocks import RowOrder, SortKey
from sankofa.edition.format.visibility import ANY_TAG
from sankofa.edition.read.day_view import DayView
from sankofa.edition.read.edition import Edition, Selection
from sankofa.edition.read.seek import find
from sankofa.model.errors import InvalidParameter, NotFound
from sankofa.model.rows import Row
from sankofa.model.vintages import Mode
from sankofa.operations.contract import Answer, Call, Operation

Filter = str | int | date | tuple[str, ...] | None
Start = tuple[int | str, ...]
"""Where a list continues in one edition (`Selection.following`)."""
_UNSET: Final = msgspec.UNSET
_STARTS_KEPT: Final = 4_096


class ListPage(msgspec.Struct, frozen=True):
    """One page of the rows that match some filters."""

    call: Call
    edition: Edition
    day: date
    """The `as_of` of all pages."""
    filters: tuple[Filter, ...]
    as_of: date | None
    """The day as the client gave it."""
    key: SortKey = ()
    """The sort key of the last row of the page before; empty on the first page."""
    previous_edition: str = ""
    """The edition of the page before; empty on the first page."""
    open_to_sample: bool = False
    dated: bool = False
    """Whether organisations have their names and identifiers of the day."""

    async def after(self, cursor: str) -> "ListPage":
        """The page that a cursor points to.

        Raises InvalidParameter for an altered cursor or one for other filters.
        """
        lock = self.call.lock
        cursors = self.call.cursors if lock is None else IN_LOCKED_VIEWS
        position = cursors.read(cursor, filters_digest(self.filters))
        edition = self.edition if lock is not None else await self.call.edition_for_cursor(position.edition)
        day, *key = position.after
        cursor_day = date.fromordinal(int(day))
        if lock is not None and cursor_day > lock:
            raise InvalidParameter("cursor", f"for pages as of {cursor_day}, and this view ends on {lock}")
        if self.as_of not in (None, cursor_day):
            raise InvalidParameter("cursor", f"for pages as of {cursor_day}")
        if self.dated:
            edition = view_on(self.call, edition, cursor_day)
        return replace(
            self, edition=edition, day=cursor_day, key=tuple(key), previous_edition=position.edition
        )

    async def start(self, locate: Callable[[Edition, SortKey], Awaitable[Start]]) -> Start:
        """Where the page begins in its edition; empty for the beginning.

        The worker that served the previous page remembers it; other workers look up the sort key.
        """
        if not self.key:
            return ()
        starts = self.edition.cache("starts", _STARTS_KEPT)
        name = self.filters, self.day, self.key
        if (start := starts.get(name)) is None:
            start = await locate(self.edition, self.key)
            starts.put(name, start)
        return start

    async def position(self, locate: Callable[[Edition, SortKey], Awaitable[int]]) -> int:
        """The number of the page's first row, if the list numbers its rows."""

        async def start(edition: Edition, key: SortKey) -> Start:
            return (await locate(edition, key),)

        (first,) = await self.start(start) or (0,)
        return int(first)

    async def select(
        self,
        kind: str,
        key: str,
        order: RowOrder,
        limit: int | None,
        *,
        modes: int = int(Mode.LATEST),
        tag: int = ANY_TAG,
        where: Callable[[bytes], bool] | None = None,
    ) -> Selection | None:
        """The rows of the page, if the list is the rows under one key; None if the key does not exist."""
        options: dict[str, Any] = {"day": self.day.toordinal(), "modes": modes, "tag": tag, "where": where}
        if self.key:
            start = await self.start(
                lambda edition, row: find(edition, kind, key, order.behind(row), **options)
            )
            skip, passed = start or (0, 0)
            options |= {"skip": int(skip), "passed": int(passed)}
        return await self.edition.select(kind, key, limit=limit, **options)

    def answer(
        self,
        selection: Selection,
        key: RowOrder | SortKey,
        *,
        as_of: date | msgspec.UnsetType | None = _UNSET,
        members: dict[str, object] | None = None,
        shape: type[Row] | None = None,
        dataset: str | None = None,
        more_columns: tuple[str, ...] = (),
        columns: Sequence[TableColumn] | None = None,
    ) -> Answer:
        """The page as an answer, with the cursor for the next page.

        `key` is the sort key of the last row, or the order that gives it. There is no cursor on the last page
        or for an API key that may not use it.
        """
        cursor, following, call = None, selection.following, self.call
        if following is not None and (self.open_to_sample or not call.grant.sample):
            if isinstance(key, RowOrder):
                key = key.key_of(selection.last_row)
            self.edition.cache("starts", _STARTS_KEPT).put((self.filters, self.day, key), following)
            # Pages of a locked view go on in the current edition: an edition's id would reveal later days.
            edition_id = self.edition.id if call.lock is None else ""
            position = Position(edition_id, filters_digest(self.filters), (self.day.toordinal(), *key))
            cursor = (call.cursors if call.lock is None else IN_LOCKED_VIEWS).issue(position)
        members = {**(members or {}), "next_cursor": cursor}
        return Answer(
            selection, as_of, members, self.edition.id, shape, dataset, more_columns, columns=columns
        )


async def first_page(
    call: Call,
    *filters: Filter,
    cursor: str | None,
    as_of: date | None = None,
    open_to_sample: bool = False,
    dated: bool = False,
) -> ListPage:
    """The first page of a list, or the page that a cursor points to.

    `filters` name the list and all that narrows it. Raises InvalidParameter as `ListPage.after` does.
    """
    day = as_of or call.today
    edition = view_on(call, call.edition, day) if dated else call.edition
    page = ListPage(call, edition, day, filters, as_of, open_to_sample=open_to_sample, dated=dated)
    return page if cursor is None else await page.after(cursor)


def view_on(call: Call, edition: Edition, day: date) -> Edition:
    return edition if day >= call.today else DayView(edition, day, locked=call.lock is not None)


async def refuse_bad_cursor(operation: Operation, call: Call, arguments: Mapping[str, Any]) -> None:
    """Raises InvalidParameter for a malformed cursor, whatever the edition (contract: KEY-7).

    `call` opens no edition. Operations read their cursor first: only they know the filters that bind it.
    """
    with suppress(NotFound):
        await operation.perform(call, **arguments)


@lru_cache(maxsize=4096)
def filters_digest(filters: tuple[Filter, ...]) -> str:
    """A short digest of the filters for the cursor."""
    plain = [one.isoformat() if isinstance(one, date) else one for one in filters]
    return blake2b(msgspec.msgpack.encode(plain), digest_size=9).hexdigest()
