"""Issuers with public figures on a day: their number of figures, the first and the last day.

Order: by country (unknown last), then service_id. An issuer is listed from the day on which its first
figure was known.

Histories of issuers, put together from their metrics and statements as these are stored.
"""

from array import array
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from sankofa.derive.issuers import Issuer
from sankofa.derive.metrics.contract import slugs
from sankofa.edition.format.issuer_pages import (
    HISTORIES,
    ISSUERS_ON_A_PAGE,
    MOVED_ISSUERS,
    CellOrigin,
    CellStep,
    IssuerPage,
    MovedIssuer,
    Step,
    encode_page,
    issuer_history,
)
from sankofa.edition.format.keys import ISSUERS, STATEMENTS, listed_under
from sankofa.edition.format.row_blocks import Entry, entries_of
from sankofa.edition.format.visibility import AS_KNOWN
from sankofa.edition.write.checks import RowCheck
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import (
    Building,
    Input,
    KeyRows,
    Outcome,
    PreparedRows,
    blocks_of,
    dataset,
    pages_of,
)
from sankofa.edition.write.derived_parts import ISSUER_STEPS, IssuerSteps, issuer_part, read_issuer_steps
from sankofa.edition.write.metric_rows import METRICS, ScreenData
from sankofa.edition.write.partition_summaries import country_spells
from sankofa.ledger.entities import Entity
from sankofa.ledger.reports import Report
from sankofa.ledger.spells import DatedLocation, dated_locations
from sankofa.model.catalogue_rows import IssuerRow
from sankofa.model.days import FOREVER, ordinal
from sankofa.model.identifiers import stored_identifier
from sankofa.model.provenance import LICENSE_CLASSES, strictest
from sankofa.model.rows import Listing, State, wire
from sankofa.model.vintages import Vintage, in_force

_write = msgspec.msgpack.Encoder().encode


@issuer_part(ISSUER_STEPS)
def _derived_rows(issuer: Issuer) -> bytes:
    known: defaultdict[int, list[Vintage[Report]]] = defaultdict(list)
    changes: defaultdict[int, int] = defaultdict(int)
    for vintages in issuer.vintages.values():
        for vintage in vintages:
            known[vintage.known_from].append(vintage)
            if days := in_force(vintage):
                first_day, until = days
                changes[first_day] += 1
                if until != FOREVER:
                    changes[until] -= 1
    if not known:
        return b""
    first_day = min(known)
    first = min(known[first_day], key=lambda one: (one.report.available, one.report.order)).report
    return _write(IssuerSteps(list(_steps(known, changes)), first.source_ref, first.capture.observed_at))


def _steps(known: dict[int, list[Vintage[Report]]], changes: dict[int, int]) -> Iterator[Step]:
    count, earliest, latest, license_class = 0, FOREVER, 0, LICENSE_CLASSES[0]
    before: tuple[int, ...] = ()
    for day in sorted({*known, *changes}):
        count += changes.get(day, 0)
        for vintage in known.get(day, ()):
            earliest = min(earliest, vintage.report.available)
            latest = max(latest, vintage.report.available)
            own = vintage.report.capture.license_class
            # The check of the fact's own row refuses an unknown class.
            if own != license_class and own in LICENSE_CLASSES:
                license_class = strictest((license_class, own))
        now = (earliest, latest, count, LICENSE_CLASSES.index(license_class))
        if now != before:
            yield Step(day, *now)
            before = now


class _Listed(NamedTuple):
    """An issuer in the order of the list."""

    service_id: str
    country: str | None
    locations: list[DatedLocation]


@dataset(ISSUERS, None, reads=(Input.ORGANISATIONS,))
def issuers(context: BuildContext) -> Building:
    """Returns the issuers in order, and for each page the first day on which one is known."""
    ordered = sorted(context.entities, key=lambda one: (one.country or "~", one.service_id))
    listed: list[_Listed] = []
    first_days = array("i")

    def pages() -> Iterator[tuple[bytes, bytes]]:
        page: list[tuple[bytes, list[Step]]] = []
        for entity, part in context.issuers.parts(ISSUER_STEPS, ordered):
            own = read_issuer_steps(part)
            listings = _listings(entity)
            page.append((_beginning(entity, own, listings), own.steps))
            listed.append(
                _Listed(entity.service_id, entity.country, dated_locations(entity, context.captures))
            )
            if len(page) == ISSUERS_ON_A_PAGE:
                yield _page(page, first_days)
                page = []
        if page:
            yield _page(page, first_days)

    yield KeyRows("", blocks_of(pages()))
    countries = Counter(entity.country for entity in ordered if entity.country)
    return Outcome((listed, first_days), {"organisations": dict(sorted(countries.items()))})


@dataset(f"{ISSUERS}-list", None, needs=(ISSUERS,), reads=())
def issuer_lists(context: BuildContext, issuers: Any) -> Iterator[KeyRows]:
    """The issuers of a country, of an exchange and of both, as 32-bit integers in order: number, first day,
    day after the last."""
    spells: defaultdict[str, array[int]] = defaultdict(lambda: array("i"))
    for number, one in enumerate(issuers[0]):
        for key, first, until in _spells(one.locations):
            spells[key].extend((number, first, until))
    for key in sorted(spells):
        yield KeyRows(key, [Entry(spells[key].tobytes())])


def _spells(locations: Sequence[DatedLocation]) -> Iterator[tuple[str, int, int]]:
    """The keys that an issuer is listed under, each with its days."""
    since: dict[str, int] = {}
    for location in locations:
        day = ordinal(location.day) if location is not locations[0] else 0  # as shown by its earlier row
        keys = {listed_under(None, exchange) for exchange in location.exchanges}
        if location.country:
            keys |= {listed_under(location.country, exchange) for exchange in (None, *location.exchanges)}
        yield from ((key, since.pop(key), day) for key in [*since] if key not in keys)
        for key in keys:
            since.setdefault(key, day)
    yield from ((key, first, FOREVER) for key, first in since.items())


@dataset(MOVED_ISSUERS, None, needs=(ISSUERS,), reads=())
def moved_issuers(context: BuildContext, issuers: Any) -> Iterator[KeyRows]:
    """Earlier positions of issuers in the list, while they were in another country."""
    listed: list[_Listed] = issuers[0]
    today = [(one.country or "~", one.service_id) for one in listed]
    moved = [
        MovedIssuer(number, first, until, bisect_right(today, key), key)
        for number, one in enumerate(listed)
        for country, first, until in country_spells(one.locations)
        if (key := (country or "~", one.service_id)) != today[number]
    ]
    yield KeyRows("", [Entry(_write(sorted(moved, key=lambda one: (-one.until, one.number, one.first))))])


@dataset(f"{ISSUERS}-days", None, needs=(ISSUERS,), reads=())
def issuer_days(context: BuildContext, issuers: Any) -> Iterator[KeyRows]:
    """The number of issuers, then for each page the first day on which one is known."""
    listed, first_days = issuers
    yield KeyRows("", pages_of([(array("i", (len(listed),)) + first_days).tobytes()]))


def _page(page: list[tuple[bytes, list[Step]]], first_days: "array[int]") -> tuple[bytes, bytes]:
    """A page; each issuer's last row is read back as a check."""
    block = encode_page(page)
    check = RowCheck(ISSUERS, IssuerRow)
    slices = IssuerPage(block).rows_on(block[1], FOREVER, range(len(page)), len(page)).slices
    for beginning, end in zip(slices[::2], slices[1::2], strict=True):
        check("", Entry(b"".join((beginning[1:], end))))
    first_days.append(min(steps[0].day for _, steps in page))
    return block


def _listings(entity: Entity) -> list[Listing]:
    identifiers = [stored_identifier(claim.identifier) for claim in entity.claims]
    return [Listing(i.scheme or "", i.value) for i in identifiers if i.id_type == "ticker"]


def _beginning(entity: Entity, own: IssuerSteps, listings: list[Listing]) -> bytes:
    identifiers = (stored_identifier(claim.identifier) for claim in entity.claims)
    fixed = wire.encode(
        {
            "source_ref": own.source_ref,
            "observed_at": own.observed_at,
            "service_id": entity.service_id,
            "legal_name": entity.legal_name,
            "country": entity.country,
            "lei": next((i.value for i in identifiers if i.id_type == "lei"), None),
            "listings": listings,
        }
    )
    return fixed[:-1] + b","


_read_metrics = msgspec.msgpack.Decoder(tuple[PreparedRows, ScreenData]).decode
_read_statements = msgspec.msgpack.Decoder(list[PreparedRows]).decode
_NOTHING: Final = (0, 0, 0, "")


class _Value(msgspec.Struct):
    """The members of a metric's row that a history has."""

    source_ref: str
    license_class: str
    observed_at: str
    period_end: str
    value: msgspec.Raw


class _Figure(msgspec.Struct):
    """The same of a figure of a statement."""

    source_ref: str
    license_class: str
    observed_at: str
    period_end: str
    value_reported: msgspec.Raw
    line_item: str
    unit: str | None


_read_value = msgspec.json.Decoder(_Value).decode
_read_figure = msgspec.json.Decoder(_Figure).decode


class _Span(NamedTuple):
    """The days [first, until) on which a figure of a full year was known."""

    first: int
    until: int
    end: int
    origin: int
    value: str


@dataset(HISTORIES, None, by_organisation=True)
def histories(context: BuildContext, some: Sequence[Entity]) -> Iterator[KeyRows]:
    for entity, steps in context.issuers.parts(ISSUER_STEPS, some):
        own = read_issuer_steps(steps)
        license_class = LICENSE_CLASSES[own.steps[0].license_class]
        origins: _Origins = {(own.source_ref, license_class, own.observed_at, ""): 0}
        columns: dict[str, list[CellStep]] = {}
        if part := context.issuers.part(METRICS, entity.service_id):
            columns |= _metrics(*_read_metrics(part), origins)
        if part := context.issuers.part(STATEMENTS, entity.service_id):
            columns |= _line_items(_read_statements(part)[1], origins)
        history = issuer_history(own.steps[0].day, _names(entity), origins, columns)
        yield KeyRows(entity.service_id, [Entry(history)], entity.aliases)


_Origins = dict[CellOrigin, int]
"""Numbers of the origins of an issuer's figures."""


def _names(entity: Entity) -> bytes:
    names = {"service_id": entity.service_id, "legal_name": entity.legal_name, "country": entity.country}
    return wire.encode(names)[1:-1]


def _metrics(rows: PreparedRows, screen_data: ScreenData, origins: _Origins) -> dict[str, list[CellStep]]:
    by_number: defaultdict[int, list[CellStep]] = defaultdict(list)
    for entry in _entries(rows):
        if entry.modes & AS_KNOWN:
            value = _read_value(entry.row)
            key = value.source_ref, value.license_class, value.observed_at, ""
            origin = origins.setdefault(key, len(origins))
            text = bytes(value.value).decode()
            by_number[entry.tag].append((entry.first, ordinal(value.period_end), origin, text))
    for one in screen_data.stretches(known=True):
        if one.state != State.STANDS:
            by_number[one.number].append((one.first, 0, one.state, ""))
    return {slugs()[number]: sorted(steps) for number, steps in by_number.items()}


def _line_items(rows: PreparedRows, origins: _Origins) -> dict[str, list[CellStep]]:
    by_item: defaultdict[str, list[_Span]] = defaultdict(list)
    for entry in _entries(rows):
        figure = _read_figure(entry.row)
        key = figure.source_ref, figure.license_class, figure.observed_at, figure.unit or ""
        origin = origins.setdefault(key, len(origins))
        end, text = ordinal(figure.period_end), bytes(figure.value_reported).decode()
        by_item[figure.line_item].append(_Span(entry.first, entry.until, end, origin, text))
    return {item: list(_latest(spans)) for item, spans in by_item.items()}


def _latest(spans: list[_Span]) -> Iterator[CellStep]:
    """From each day on, the figure of the latest year known."""
    before: CellStep = _NOTHING
    for day in sorted({day for span in spans for day in (span.first, span.until)} - {FOREVER}):
        known = [span for span in spans if span.first <= day < span.until]
        latest = max(known, key=lambda span: span.end, default=None)
        now = (day, latest.end, latest.origin, latest.value) if latest else (day, 0, 0, "")
        if now[1:] != before[1:]:
            yield now
            before = now


def _entries(rows: PreparedRows) -> Iterable[Entry]:
    return (entry for block in rows.blocks for entry in entries_of(block.plain))
