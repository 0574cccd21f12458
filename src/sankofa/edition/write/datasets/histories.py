"""Histories of issuers, put together from their metrics and statements as these are stored."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from sankofa.derive.metrics.contract import slugs
from sankofa.edition.format.issuer_pages import HISTORIES, CellOrigin, CellStep, IssuerHistory
from sankofa.edition.format.keys import STATEMENTS
from sankofa.edition.format.row_blocks import Entry, entries_of
from sankofa.edition.format.visibility import AS_KNOWN
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import KeyRows, PreparedRows, dataset
from sankofa.edition.write.datasets.issuers import ISSUER_STEPS, read_issuer_steps
from sankofa.edition.write.metric_rows import METRICS, Standings
from sankofa.ledger.entities import Entity
from sankofa.model.days import FOREVER, ordinal
from sankofa.model.provenance import LICENSE_CLASSES
from sankofa.model.rows import State, wire

_read_metrics = msgspec.msgpack.Decoder(tuple[PreparedRows, Standings]).decode
_read_statements = msgspec.msgpack.Decoder(list[PreparedRows]).decode
_write = msgspec.msgpack.Encoder().encode
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
    for entity in some:
        if steps := context.issuers.part(ISSUER_STEPS, entity.service_id):
            own = read_issuer_steps(steps)
            origins = _Origins()
            origins.add(own.source_ref, LICENSE_CLASSES[own.steps[0].license_class], own.observed_at, "")
            columns: dict[str, list[CellStep]] = {}
            if part := context.issuers.part(METRICS, entity.service_id):
                columns |= _metrics(*_read_metrics(part), origins)
            if part := context.issuers.part(STATEMENTS, entity.service_id):
                columns |= _line_items(_read_statements(part)[1], origins)
            history = IssuerHistory(
                own.steps[0].day,
                _names(entity),
                list(origins.numbers),
                {name: msgspec.Raw(_write(steps)) for name, steps in columns.items()},
            )
            yield KeyRows(entity.service_id, [Entry(_write(history))], entity.aliases)


class _Origins:
    """Numbers the origins of an issuer's figures."""

    def __init__(self) -> None:
        self.numbers: dict[CellOrigin, int] = {}

    def add(self, *origin: str) -> int:
        source_ref, license_class, observed_at, unit = origin
        return self.numbers.setdefault((source_ref, license_class, observed_at, unit), len(self.numbers))


def _names(entity: Entity) -> bytes:
    names = {"service_id": entity.service_id, "legal_name": entity.legal_name, "country": entity.country}
    return wire.encode(names)[1:-1]


def _metrics(rows: PreparedRows, standings: Standings, origins: _Origins) -> dict[str, list[CellStep]]:
    by_number: defaultdict[int, list[CellStep]] = defaultdict(list)
    for entry in _entries(rows):
        if entry.modes & AS_KNOWN:
            value = _read_value(entry.row)
            origin = origins.add(value.source_ref, value.license_class, value.observed_at, "")
            text = bytes(value.value).decode()
            by_number[entry.tag].append((entry.first, ordinal(value.period_end), origin, text))
    for one in standings.stretches(known=True):
        if one.state != State.STANDS:
            by_number[one.number].append((one.first, 0, one.state, ""))
    return {slugs()[number]: sorted(steps) for number, steps in by_number.items()}


def _line_items(rows: PreparedRows, origins: _Origins) -> dict[str, list[CellStep]]:
    by_item: defaultdict[str, list[_Span]] = defaultdict(list)
    for entry in _entries(rows):
        figure = _read_figure(entry.row)
        origin = origins.add(figure.source_ref, figure.license_class, figure.observed_at, figure.unit or "")
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
    return (entry for block in rows.blocks for entry in entries_of(block))
