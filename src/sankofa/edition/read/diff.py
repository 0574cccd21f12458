"""Counts the changes between two editions per dataset, for the command line."""

from collections import Counter
from typing import Any, Final

import msgspec

from sankofa.edition.format.keys import panel_kind, party_key
from sankofa.edition.read.changes import (
    ADDED,
    CHANGED,
    FEEDS,
    Change,
    ChangePosition,
    Feed,
    Load,
    RowSlices,
    changed_keys,
    stored,
    whole,
)
from sankofa.edition.read.edition import Edition
from sankofa.model.rows import is_widest, panel_key

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
        return [row_slice for one in edition.segments(kind) for row_slice in await stored(edition, kind, one)]

    return load


def _stored(kind: str) -> Load:
    async def load(edition: Edition, key: str, part: int) -> RowSlices:
        return await stored(edition, kind, key)

    return load


_DERIVED: Final = (
    Feed("metrics", "metrics", ("metric",), whole("metrics"), by_organisation=True),
    Feed("quality-metrics", "quality", ("measure",), whole("quality")),
)


def _restated(change: Change) -> bool:
    """Whether a later vintage replaced a figure."""
    if change.row is None:
        return False
    try:
        vintage = _vintage.decode(change.row).vintage
    except msgspec.DecodeError:
        return False
    if change.change == CHANGED and change.before is not None:
        return vintage > _vintage.decode(change.before).vintage
    return change.change == ADDED and vintage > 1
