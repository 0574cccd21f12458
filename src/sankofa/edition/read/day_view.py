"""An edition as of one day, without anything that became public later (contract: LOCK-2).

Figures, series and releases are dated row by row, and every reader passes a day. Organisations, the series
catalogue and the search indexes are not dated: this view leaves out unknown entries, and gives organisations
the names and identifiers that they had.
"""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from datetime import date
from typing import Any, Final, cast

import msgspec

from sankofa.edition.format.columns import RowFilter
from sankofa.edition.format.keys import (
    ENTITIES,
    FACTS,
    FREE,
    FULL_YEARS,
    KNOWN,
    MACRO_ITEMS,
    MACRO_SPANS,
    PAID,
    SERIES_KNOWN,
    STATEMENTS,
    STATES,
    TENDER_KNOWN,
    SearchIndex,
)
from sankofa.edition.format.row_blocks import Entry, pack
from sankofa.edition.format.visibility import ANY_TAG
from sankofa.edition.read.edition import Edition, Selection
from sankofa.edition.read.row_forms import RowForm, Sources
from sankofa.engines.block_file import Block, BoundedCache
from sankofa.engines.edition_reader import ALIASES
from sankofa.model.days import FOREVER, iso_day
from sankofa.model.vintages import Mode

ID_LENGTH: Final = 26
_DAYS_KEPT: Final = 16
"""Days whose search results are cached."""
_ENTITIES_KEPT: Final = 1_024
_UNREAD: Final = object()
_NEVER: Final = (FOREVER, False)
_ROWS_IN_A_BLOCK: Final = 64
_ISSUED: Final = re.compile(r"DC[0-9A-F]{24}\Z")
_CROSSWALK: Final = "crosswalk"
_IDENTIFIER: Final = "identifier"
_BY_ORGANISATION: Final = frozenset(("fundamentals", "metrics", "omitted", STATEMENTS, FULL_YEARS, FACTS))
"""Kinds whose keys are organisations."""
_FILTERED: Final = (ENTITIES, _CROSSWALK, _IDENTIFIER)
_LISTED_ON_ROWS: Final = ("lei", "ticker")
"""Kinds of identifiers that the row of an organisation lists."""
_raws: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode: Final = msgspec.json.Encoder().encode


class FieldSource(msgspec.Struct, array_like=True):
    source_ref: str
    license_class: str
    observed_at: str | None


FieldEvidence = dict[str, FieldSource]
"""Where the fields of a row are from that are not from the record whose provenance it has."""


class NamesAndIdentifiers(msgspec.Struct):
    legal_name: str | None
    other_names: list[str]
    country: str | None
    lei: str | None
    listings: list[dict[str, str]]

    def holds(self, id_type: str, id_value: str) -> bool:
        """Whether an identifier was its own; always true for kinds that the row does not list."""
        if id_type == "lei":
            return id_value == self.lei
        if id_type == "ticker":
            return any(f"{one['exchange']}:{one['ticker']}" == id_value for one in self.listings)
        return True


_states: Final = msgspec.msgpack.Decoder(list[tuple[int, bytes, FieldEvidence]]).decode
organisation: Final = msgspec.json.Decoder(NamesAndIdentifiers).decode


class _Identified(msgspec.Struct):
    service_id: str
    id_type: str
    id_value: str


_identified: Final = msgspec.json.Decoder(_Identified).decode


class KnownDays(msgspec.Struct, frozen=True):
    """The first day of each organisation, by its number in the search index."""

    ids: bytes
    days: "array[int]"
    dated: frozenset[int]
    """Numbers of organisations whose row ever changed."""
    renamed: frozenset[int]
    """Those of them whose names, country, LEI or listings changed."""
    renamed_ids: frozenset[bytes]

    def number(self, service_id: str) -> int | None:
        encoded = service_id.encode()
        at = bisect_left(
            range(len(self.days)), encoded, key=lambda n: self.ids[n * ID_LENGTH : (n + 1) * ID_LENGTH]
        )
        return at if self.ids[at * ID_LENGTH : (at + 1) * ID_LENGTH] == encoded else None


class DayView(Edition):
    def __init__(self, edition: Edition, day: date, *, locked: bool = True) -> None:
        """`locked` is False for a question about a day that its caller may leave."""
        # The edition itself, even if the view is made from a view: it closes once nothing refers to it.
        whole = edition.whole if isinstance(edition, DayView) else edition
        self.whole: Edition = whole
        self.day = day.toordinal()
        self.id = f"{edition.id}@{iso_day(self.day)}" if locked else edition.id
        self.lock = day if locked else edition.lock
        self.manifest = whole.manifest
        self._stored = whole._stored
        self.bare = whole.bare
        self._reader = self.bare if locked else edition._reader
        self._cached_numbers = whole._cached_numbers
        self._cached_blocks = whole._cached_blocks
        self._cached_keys = whole._cached_keys
        self._segments = whole._segments
        self.parts = whole.parts
        self.caches = {}
        self.first_days = whole.first_days if self.lock is None else whole.first_days_if_locked
        self.first_days_if_locked = whole.first_days_if_locked
        self.files = whole.files
        self.terms_of_sources = whole.terms_of_sources
        self._notices = whole._notices

    def cache(self, name: str, most: int) -> BoundedCache[Any, Any]:
        """The cache of this day with this name; see `Edition.cache`."""
        if not self.caches:
            by_day = self.whole.cache("days", _DAYS_KEPT)
            day = self.day, self.lock is None
            if (caches := by_day.get(day)) is None:
                by_day.put(day, caches := {})
            self.caches = caches
        return super().cache(name, most)

    async def known_days(self) -> KnownDays:
        """Read once for an edition, and once for all its locked views.

        Locked views leave out organisations that only tenders name: a later release or register may show that
        the number belongs to none, or to another.
        """
        name = (KNOWN, "", int(self.lock is not None))
        known: KnownDays | None = self.parts.get(name)
        if known is None:
            days = array("i", await super().numbers(KNOWN, "days"))
            ids = bytes(await super().raw(KNOWN, "ids") or b"")
            dated = frozenset(await super().numbers(KNOWN, "dated"))
            renamed = frozenset(await super().numbers(KNOWN, "renamed"))
            own = frozenset(ids[n * ID_LENGTH : (n + 1) * ID_LENGTH] for n in renamed)
            known = KnownDays(ids, days, dated, renamed, own)
            named = bytes(await super().raw(TENDER_KNOWN, "ids") or b"").decode()
            for at, day in enumerate(await super().numbers(TENDER_KNOWN, "days")):
                number = known.number(named[at * ID_LENGTH : (at + 1) * ID_LENGTH])
                if number is not None:
                    days[number] = min(days[number], day)
            for number in await super().numbers(KNOWN, "from_tenders") if self.lock is not None else ():
                days[number] = FOREVER
            self.parts.put(name, known)
        return known

    async def record_days(self, index: SearchIndex) -> "array[int]":
        """The first day of each record of a search index, by number."""
        if index is not MACRO_ITEMS:
            return (await self.known_days()).days
        name = (SERIES_KNOWN, "", 0)
        days: array[int] | None = self.parts.get(name)
        if days is None:
            entries = await super().numbers(SERIES_KNOWN, "")
            spans = await super().numbers(MACRO_SPANS, "")
            days = array("i", (min(entries[spans[n] : spans[n + 1]]) for n in range(0, len(spans), 2)))
            self.parts.put(name, days)
        return days

    async def record_count(self, index: SearchIndex) -> int:
        """Number of records of a search index that are known."""
        counts = self.cache("record counts", 2)
        if (count := counts.get(index.records)) is None:
            count = sum(1 for day in await self.record_days(index) if day <= self.day)
            counts.put(index.records, count)
        return int(count)

    async def names(self, number: int, country: str | None = None) -> list[str]:
        """The names of an organisation, the legal name first; none if it was in another country."""
        known = await self.known_days()
        row = await self.entity(known.ids[number * ID_LENGTH : (number + 1) * ID_LENGTH].decode())
        if row is None:
            return []
        own = organisation(row)
        if country is not None and own.country != country:
            return []
        return [name for name in (own.legal_name, *own.other_names) if name]

    async def entity(self, service_id: str) -> bytes | None:
        """The row of an organisation on this day; None if it was not known."""
        known = self.first_days.get(service_id) or await self._first_day(service_id)
        if known is not None:
            first, changes = known
            if self.day < first:
                return None
            if not changes:
                row = await super().raw(ENTITIES, service_id)
                return None if row is None else bytes(row)
        rows = self.cache("entities", _ENTITIES_KEPT)
        if (state := rows.get(service_id, _UNREAD)) is _UNREAD:
            states = await self.entity_states(service_id)
            state = states[-1][1] if states else None
            rows.put(service_id, state)
        return cast("bytes | None", state)

    async def knows(self, service_id: str) -> bool:
        """Whether the organisation was known. Like `entity`, but does not return its row."""
        first = self.first_days.get(service_id) or await self._first_day(service_id)
        return first[0] <= self.day if first else await self.entity(service_id) is not None

    async def _first_day(self, service_id: str) -> tuple[int, bool] | None:
        """The first day of an organisation, and whether its row ever changed; None if there is none under
        this id."""
        known = await self.known_days()
        if (number := known.number(service_id)) is None:
            return None
        first = known.days[number], number in known.dated
        self.first_days.put(service_id, first)
        return first

    async def entity_states(self, service_id: str) -> list[tuple[int, bytes, FieldEvidence]]:
        """The rows of an organisation up to this day, each with its first day; none if it is unknown."""
        known = await self.known_days()
        number = known.number(service_id)
        if number is None and (survivor := await super().raw(ALIASES, service_id)) is not None:
            service_id = bytes(survivor).decode()
            number = known.number(service_id)
        if number is None or known.days[number] > self.day:
            return []
        first = known.days[number]
        if number in known.dated and (stored := await super().raw(STATES, service_id)) is not None:
            states = _states(stored)
            at = max(bisect_right(states, self.day, key=lambda state: state[0]), 1)
            shown = {max(state[0], first): state[1:] for state in states[:at]}  # the last of each day
            return [(day, *state) for day, state in shown.items()]
        blocks = await self._reader.blocks(ENTITIES, service_id, 0, 1)
        return [(first, bytes(blocks[0][1]), {})] if blocks else []

    async def _filtered(self, kind: str, key: str, selection: Selection) -> list[bytes]:
        """The rows that were known, of a kind that does not date them."""
        if kind == ENTITIES:
            row = await self.entity(key)
            return [] if row is None else [row]
        rows = []
        for text in _raws(b"[%b]" % selection.rows):
            one = _identified(text)
            first = self.first_days.get(one.service_id) or await self._first_day(one.service_id)
            if first is not None and not first[1] and one.id_type not in _LISTED_ON_ROWS:
                rows += [bytes(text)] if first[0] <= self.day else []
                continue
            row = await self.entity(one.service_id)
            if row is None or not (own := organisation(row)).holds(one.id_type, one.id_value):
                continue
            fields = _fields(text)
            if "legal_name" in fields:
                fields["legal_name"] = msgspec.Raw(_encode(own.legal_name))
            rows.append(_encode(fields))
        return rows

    async def select(self, kind: str, key: str, **asked: Any) -> Selection | None:
        """Like `Edition.select`, with organisations and identifiers as known on the day."""
        if kind in _FILTERED:
            return await self._select_filtered(kind, key, **asked)
        is_owned = kind in _BY_ORGANISATION and self.first_days.get(key, _NEVER)[0] > self.day
        if is_owned and _ISSUED.match(key) and not await self.knows(key):
            return None
        return await super().select(kind, key, **asked)

    def evidence(self, selection: Selection) -> tuple[Sources | None, Collection[bytes] | None]:
        if selection.origin is None:
            return selection.sources, selection.organisations
        kind, key = selection.origin
        first = self.first_days.get(key) if kind in _BY_ORGANISATION else None
        changed = None if first is None else (key.encode(),) if first[1] else ()
        return self.bare.source(kind, key), changed

    async def _select_filtered(
        self,
        kind: str,
        key: str,
        *,
        day: int,
        modes: int = int(Mode.LATEST),
        tag: int = ANY_TAG,
        limit: int | None = None,
        skip: int = 0,
        passed: int = 0,
        **_: object,
    ) -> Selection | None:
        whole = await super().select(kind, key, day=day, modes=modes, tag=tag)
        if whole is None or (kind == _CROSSWALK and await self.entity(key) is None):
            return None
        rows = await self._filtered(kind, key, whole)
        if kind == ENTITIES and not rows:
            return None
        begin = skip * _ROWS_IN_A_BLOCK + passed
        last = len(rows) if limit is None else begin + limit
        more = last < len(rows)
        shown = rows[begin:last]
        return Selection(shown, len(shown), truncated=more, following=(0, last) if more else None)

    async def blocks(
        self, kind: str, key: str, skip: int, most: int, form: RowForm | None = None
    ) -> Sequence[Block]:
        if kind not in _FILTERED:
            return await super().blocks(kind, key, skip, most, form)
        selection = await self.select(kind, key, day=self.day, modes=FREE | PAID)
        if selection is None or not selection.count:
            return ()
        if kind == ENTITIES:
            return ((b"", selection.rows),)[skip : skip + most]
        entries = (Entry(bytes(row), modes=FREE | PAID) for row in selection.slices)
        return tuple(pack(entries, _ROWS_IN_A_BLOCK))[skip : skip + most]

    async def columns(self, row_filter: RowFilter) -> Sequence[bytes | memoryview]:
        """None in a locked view, because they are about the capture."""
        return () if self.lock is not None else await super().columns(row_filter)

    async def raw(self, kind: str, key: str) -> bytes | memoryview | None:
        return await self.entity(key) if kind == ENTITIES else await super().raw(kind, key)

    async def holds(self, kind: str, key: str) -> bool:
        if kind == ENTITIES:
            return await self.entity(key) is not None
        return await super().holds(kind, key)


async def is_stranger(edition: Edition, text: str) -> bool:
    """Whether a text is the id of an organisation unknown on the day of a view."""
    service_id = text.upper()
    if not isinstance(edition, DayView) or not _ISSUED.match(service_id):
        return False
    return not await edition.knows(service_id)
