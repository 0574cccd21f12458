"""Changes between two editions, key by key in one order, so a page costs only its own rows.

Both editions are read in the order of their keys. Keys with the same digest in both are skipped. For other
keys the rows are compared by the fields that identify them. Only current rows count: every vintage of a
reported fact, the latest of a macro value, current mappings.

`diff` counts the changes of each dataset, for the command line.
"""

import asyncio
from bisect import bisect_left
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from functools import cache, partial
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec

from sankofa.edition.format.keys import (
    MACRO_ANNUAL,
    MACRO_SERIES,
    TENDERS_PER_BLOCK,
    key_list,
    panel_kind,
    party_key,
)
from sankofa.edition.format.macro import DayRange
from sankofa.edition.format.row_blocks import CROSSWALK_ORDER, FUNDAMENTALS_ORDER, RowOrder, RowSlice
from sankofa.edition.format.visibility import DayRows
from sankofa.edition.read.edition import Edition
from sankofa.edition.read.macro import read_one_series
from sankofa.edition.read.yield_points import in_thread_if_large
from sankofa.model.days import FOREVER
from sankofa.model.rows import decoder_of, is_widest, panel_key

ADDED: Final = "added"
CHANGED: Final = "changed"
REMOVED: Final = "removed"

_AT_LAST: Final = FOREVER - 1
_EVERY_MODE: Final = 7
_KEYS_AT_ONCE: Final = 512
_KEY_DONE: Final = -1
_COST_OF_A_UNIT: Final = 50
_LOOK_AHEAD: Final = 50
_BYTES_PER_COST: Final = 1000
RELEASE_ORDER: Final = RowOrder(
    "-release_date", "ocid", "release_id", ranks={"release_date": lambda instant: instant.rstrip("Z")}
)


class ChangePosition(NamedTuple):
    """A position among the changes: dataset, key, part of the key, and the last row."""

    dataset: str
    key: str = ""
    part: int = _KEY_DONE
    """The day, for tenders; `_KEY_DONE` after the key."""
    behind: "tuple[int | str, ...]" = ()
    """1 for removed rows, else 0; then the sort key of the last row. Empty at first."""


class Change(NamedTuple):
    dataset: str
    change: str
    key: tuple[str, ...]
    row: msgspec.Raw | None
    """None if it was removed: withheld content is not repeated."""
    before: msgspec.Raw | None


RowSlices = Sequence[RowSlice]
"""Row slices, each of one block, to be joined by commas."""
Load = Callable[[Edition, str, int], Awaitable[RowSlices]]
Window = Callable[[ChangePosition], tuple[tuple[int | str, ...], int]]
"""For a part, the row after which changes are wanted, and how many."""


class Feed(NamedTuple):
    dataset: str
    kind: str
    identity: tuple[str, ...] | None
    """The fields that identify the rows of a key in every edition; None if only the whole row identifies
    it."""
    load: Load
    order: RowOrder = RowOrder()
    """The order of the rows of a part, for pages of changes."""
    by_organisation: bool = False
    """Keyed by service_id. Ids of merged organisations lead to the same rows, and are skipped."""
    aliases: str = ""
    """Prefix of keys that lead to the rows of another key."""


async def _tenders(edition: Edition, key: str, part: int) -> RowSlices:
    first, end = DayRows(await edition.numbers("tender_day", key, keep=True)).rows_of(part)
    return await edition.rows("tender", key, TENDERS_PER_BLOCK, first, end)


def _whole(kind: str) -> Load:
    """All current rows of a key."""

    async def load(edition: Edition, key: str, part: int) -> RowSlices:
        selection = await edition.select(kind, key, day=_AT_LAST, modes=_EVERY_MODE)
        return () if selection is None else selection.slices

    return load


def _column(kind: str) -> Load:
    async def load(edition: Edition, key: str, part: int) -> RowSlices:
        selection = await read_one_series(edition, kind, key, DayRange(_AT_LAST), FOREVER)
        return () if selection is None else selection.slices

    return load


def _stored(kind: str) -> Load:
    """All stored rows of a key, including replaced ones."""

    async def load(edition: Edition, key: str, part: int) -> RowSlices:
        return [rows for _, rows in await edition.blocks(kind, key, 0, FOREVER)]

    return load


FEEDS: Final = (
    Feed(
        "crosswalk",
        "crosswalk",
        ("id_type", "scheme", "id_value"),
        _whole("crosswalk"),
        CROSSWALK_ORDER,
        by_organisation=True,
    ),
    Feed("entities", "entity", (), _whole("entity"), RowOrder("service_id"), by_organisation=True),
    Feed(
        "fundamentals",
        "fundamentals",
        ("record_ref",),
        _whole("fundamentals"),
        FUNDAMENTALS_ORDER,
        by_organisation=True,
    ),
    Feed("macro-annual", MACRO_ANNUAL, ("year",), _column(MACRO_ANNUAL), RowOrder("-year")),
    Feed(
        "macro-series",
        MACRO_SERIES,
        ("date",),
        _column(MACRO_SERIES),
        RowOrder("-date"),
        aliases=key_list(""),
    ),
    Feed("tenders", "tender", ("ocid", "release_id", "release_date"), _tenders, RELEASE_ORDER),
)
"""In the order of the pages."""


async def page(
    before: Edition | None,
    after: Edition,
    start: ChangePosition | None,
    most: int,
    *,
    dataset: str | None,
    effort: int,
) -> tuple[list[Change], ChangePosition | None]:
    """The next changes, and the position after them; None if there are no more.

    A page with few changes ends after `effort`, just before the next change, so the next page is not empty.
    It stops looking for that change after `_LOOK_AHEAD` times the effort.
    """
    listed: list[Change] = []
    spent = 0
    following: ChangePosition | None = None
    for feed in FEEDS:
        if dataset not in (None, feed.dataset) or (start is not None and feed.dataset < start.dataset):
            continue
        begin = start if start is not None and start.dataset == feed.dataset else ChangePosition(feed.dataset)
        window = partial(_window, begin, listed, most)
        async for position, changes, cost in changed_keys(feed, before, after, begin, window):
            if following is not None and (changes or spent >= _LOOK_AHEAD * effort):
                return listed, following
            room = most - len(listed)
            listed += changes[:room]
            if len(changes) > room:
                return listed, position._replace(behind=_behind(feed, listed[-1]) if room else ())
            spent += cost
            if spent >= effort:
                following = (
                    position if position.part == _KEY_DONE else position._replace(part=position.part - 1)
                )
    return listed, None


def _behind(feed: Feed, change: Change) -> tuple[int | str, ...]:
    """The row after which a part continues."""
    if change.row is None:
        return 1, *feed.order.key_of(change.before or b"")
    return 0, *feed.order.key_of(change.row)


def _window(
    begin: ChangePosition, listed: list[Change], most: int, position: ChangePosition
) -> tuple[tuple[int | str, ...], int]:
    """The changes of a part that a page still needs: those after the previous pages, and one more than fits.

    An issuer may have far more changes than a page; computing them all would block the event loop.
    """
    return begin.behind if position[:3] == begin[:3] else (), most - len(listed) + 1


def _all_changes(_: ChangePosition) -> tuple[tuple[int | str, ...], int]:
    return (), FOREVER


async def changed_keys(
    feed: Feed, before: Edition | None, after: Edition, start: ChangePosition, window: Window = _all_changes
) -> AsyncIterator[tuple[ChangePosition, list[Change], int]]:
    """Every part of every key from a position on: its changes in the window, and the cost of reading it."""
    if start.part != _KEY_DONE:
        async for step in _of_key(feed, before, after, start.key, start.part, window):
            yield step
    async for key, same, number in _keys(feed.kind, before, after, start.key):
        if same or (feed.aliases and key.startswith(feed.aliases)):
            yield ChangePosition(feed.dataset, key), [], number
        else:
            async for step in _of_key(feed, before, after, key, FOREVER, window):
                yield step


async def _of_key(
    feed: Feed, before: Edition | None, after: Edition, key: str, begin: int, window: Window
) -> AsyncIterator[tuple[ChangePosition, list[Change], int]]:
    for part in await _parts(feed, before, after, key):
        if part > begin:
            continue
        old = () if before is None else await feed.load(before, key, part)
        new = await feed.load(after, key, part)
        size = sum(map(len, old)) + sum(map(len, new))
        cost = _COST_OF_A_UNIT + size // _BYTES_PER_COST
        position = ChangePosition(feed.dataset, key, part)
        changes = await in_thread_if_large(size, _compared, feed, key, old, new, *window(position))
        yield position, changes, cost
        await asyncio.sleep(0)


async def _parts(feed: Feed, before: Edition | None, after: Edition, key: str) -> list[int]:
    """The days with tenders, newest first: a country has too many to compare at once."""
    if feed.kind != "tender":
        return [0]
    days: set[int] = set()
    for edition in (before, after):
        if edition is not None:
            days.update(DayRows(await edition.numbers("tender_day", key, keep=True)).days())
    return sorted(days, reverse=True)


async def _keys(
    kind: str, before: Edition | None, after: Edition, behind: str
) -> AsyncIterator[tuple[str, bool, int]]:
    """Every key of either edition in order, and whether both have the same blocks under it.

    Consecutive equal keys give one result: the last key and their number.
    """
    while True:
        old = {} if before is None else dict(await before.digests(kind, behind, _KEYS_AT_ONCE))
        new = dict(await after.digests(kind, behind, _KEYS_AT_ONCE))
        # Beyond the end of one list, a key of the other may still be in both editions.
        ends = [next(reversed(keys)) for keys in (old, new) if len(keys) == _KEYS_AT_ONCE]
        if new and old == new and all(new.values()):
            yield next(reversed(new)), True, len(new)
        else:
            for key in sorted(old.keys() | new.keys()):
                if ends and key > min(ends):
                    break
                digest = new.get(key)
                yield key, bool(digest) and digest == old.get(key), 1
        if not ends:
            return
        behind = min(ends)
        await asyncio.sleep(0)  # other requests wait


def _compared(
    feed: Feed,
    key: str,
    before: RowSlices,
    after: RowSlices,
    behind: tuple[int | str, ...] = (),
    most: int = FOREVER,
) -> list[Change]:
    """The first changes of a part after a position: added and changed rows in order, then removed ones."""
    if _same(before, after):
        return []
    service_id = key if feed.by_organisation else None
    old = identified(before, feed.identity, service_id)
    new = identified(after, feed.identity, service_id)
    starts = _starts(feed.order, old, new, behind)
    return list(islice(_differences(feed.dataset, key, old, new, *starts), most))


def _starts(
    order: RowOrder, old: "RowsByName", new: "RowsByName", behind: tuple[int | str, ...]
) -> tuple[int, int]:
    """The numbers of the first old and the first new row after a position."""
    if not behind:
        return 0, 0
    is_removed, *sort_key = behind
    is_behind = order.behind(sort_key)
    first = bisect_left(list((old if is_removed else new).values()), True, key=is_behind)
    return (first, len(new)) if is_removed else (0, first)


def _same(before: RowSlices, after: RowSlices) -> bool:
    """Views are copied first: Python compares them item by item, fifty times slower."""
    return [*map(len, before)] == [*map(len, after)] and all(
        bytes(one) == bytes(other) for one, other in zip(before, after, strict=True)
    )


def _differences(
    dataset: str, key: str, old: "RowsByName", new: "RowsByName", first_old: int = 0, first_new: int = 0
) -> Iterator[Change]:
    for name, row in islice(new.items(), first_new, None):
        was = old.get(name)
        if was is None:
            yield Change(dataset, ADDED, (key, *name), row, None)
        elif was != row:
            yield Change(dataset, CHANGED, (key, *name), row, was)
    for name, was in islice(old.items(), first_old, None):
        if name not in new:
            yield Change(dataset, REMOVED, (key, *name), None, was)


RowsByName = dict[tuple[str, ...], msgspec.Raw]
"""Rows by the values of their identifying fields."""


def identified(slices: RowSlices, identity: tuple[str, ...] | None, service_id: str | None) -> RowsByName:
    """Rows by the values of their identifying fields, in order; none if they belong to another organisation.

    Slices are decoded one at a time, because one call on megabytes would hold the interpreter.
    """
    lists = [b"".join((b"[", row_slice, b"]")) for row_slice in slices]
    if identity is None:
        try:
            return {(bytes(row).decode(),): row for one in lists for row in _each_row.decode(one)}
        except msgspec.DecodeError:  # not a list of rows: compared as one
            return {(): msgspec.Raw(b",".join(slices))}
    names = _names_of(identity)
    rows = (
        (fields, row)
        for one in lists
        for fields, row in zip(names.decode(one), _each_row.decode(one), strict=True)
    )
    rows_by_name: RowsByName = {}
    for fields, row in rows:
        if not rows_by_name and service_id is not None and fields.service_id != service_id:
            return {}
        name = tuple("" if (value := getattr(fields, f)) is None else str(value) for f in identity)
        again = 1
        while name in rows_by_name:  # two rows with the same identity: numbered
            again += 1
            name = (*name[: len(identity)], str(again))
        rows_by_name[name] = row
    return rows_by_name


_each_row = msgspec.json.Decoder(list[msgspec.Raw])


@cache
def _names_of(identity: tuple[str, ...]) -> msgspec.json.Decoder[list[Any]]:
    fields = [(name, str | int | None) for name in identity]
    return decoder_of([*fields, ("service_id", str | None, None)])


RESTATED: Final = "restated"
COUNTED: Final = (ADDED, CHANGED, "removed", RESTATED)
_INDEXES: Final = ("identifier",)
"""Kinds that hold the rows of another kind by another key."""
_FIRST_KEY: Final = {"tender_party": party_key()}
"""Kinds with all rows under one key, and some repeated under other keys."""
_PANELS: Final = panel_kind("")
"""Prefix of kinds that hold each row under its widest key, and again under narrower ones."""


class _Vintage(msgspec.Struct):
    vintage: int = 0


_vintage = msgspec.json.Decoder(_Vintage)


class Difference(msgspec.Struct):
    added: int = 0
    changed: int = 0
    removed: int = 0
    """Rows now withheld or no longer served."""
    restated: int = 0
    """Added or changed figures that are a later vintage."""
    examples: list[dict[str, Any]] = []
    """Keys of some changes: (change, key)."""


async def diff(before: Edition, after: Edition, examples: int) -> dict[str, Difference]:
    """The datasets that differ, with some keys; rows without an identity are only counted."""
    differences: dict[str, Difference] = {}
    for feed in _feeds(before, after):
        counts: Counter[str] = Counter()
        listed: list[dict[str, Any]] = []
        only = panel_key() if _is_list(feed.kind, before, after) else _FIRST_KEY.get(feed.kind)
        panel = feed.kind.startswith(_PANELS)
        first = panel_key() if panel else only  # otherwise the empty key would be skipped
        start = ChangePosition(feed.dataset) if first is None else ChangePosition(feed.dataset, first, 0)
        async for position, changes, _ in changed_keys(feed, before, after, start):
            if only is not None and position.key != only:
                break
            if panel and not is_widest(position.key):
                continue
            for change in changes:
                counts[change.change] += 1
                restated = _restated(change)
                counts[RESTATED] += restated
                if feed.identity is not None and len(listed) < examples:
                    name = RESTATED if restated else change.change
                    listed.append({"change": name, "key": list(change.key)})
        if counts:
            differences[feed.dataset] = Difference(
                **{name: counts[name] for name in COUNTED}, examples=listed
            )
    return differences


def _feeds(before: Edition, after: Edition) -> list[Feed]:
    """The feeds, and every other kind of rows, compared by their whole content."""
    known = {feed.kind: feed for feed in (*FEEDS, *_DERIVED)}
    kinds = sorted({*before.manifest["rows"], *after.manifest["rows"]}.difference(_INDEXES))
    return [
        known.get(kind)
        or Feed(kind, kind, None, _listed(kind) if _is_list(kind, before, after) else _stored(kind))
        for kind in kinds
    ]


def _is_list(kind: str, *editions: Edition) -> bool:
    """Whether it is a single list stored with the organisations."""
    return kind.startswith(_PANELS) and any(any(edition.segments(kind)) for edition in editions)


def _listed(kind: str) -> Load:
    """A whole list at once: its keys say nothing about its rows."""

    async def load(edition: Edition, key: str, part: int) -> RowSlices:
        own = _stored(kind)
        return [row_slice for one in edition.segments(kind) for row_slice in await own(edition, one, part)]

    return load


_DERIVED: Final = (
    Feed("metrics", "metrics", ("metric",), _whole("metrics"), by_organisation=True),
    Feed("quality-metrics", "quality", ("measure",), _whole("quality")),
)


def _restated(change: Change) -> bool:
    if change.row is None:
        return False
    try:
        vintage = _vintage.decode(change.row).vintage
    except msgspec.DecodeError:
        return False
    if change.change == CHANGED and change.before is not None:
        return vintage > _vintage.decode(change.before).vintage
    return change.change == ADDED and vintage > 1
