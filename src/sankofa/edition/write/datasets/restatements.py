"""Restatements: each figure that replaced an earlier one, by organisation and in one list by year.

Order: available_at descending, service_id, period_end descending, line_item, concept, unit, period_start,
then vintage. The lists of all organisations and of each country are cut by the year of `available_at`, so a
new filing leaves the parts of earlier years as they are.
"""

import zlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any, Final

import msgspec

from sankofa.derive.issuers import Issuer
from sankofa.derive.rounding import rounded
from sankofa.derive.statements import item_of
from sankofa.edition.format.keys import RESTATEMENT_LISTS, RESTATEMENTS, restatement_list
from sankofa.edition.format.row_blocks import Entry
from sankofa.edition.format.visibility import AS_KNOWN
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import Building, Input, KeyRows, Outcome, dataset
from sankofa.edition.write.datasets.fundamentals import fact_row
from sankofa.edition.write.derived_parts import issuer_part
from sankofa.edition.write.partition_summaries import country_spells
from sankofa.ledger.entities import Entity
from sankofa.ledger.spells import places
from sankofa.model.catalogue_rows import RestatementRow
from sankofa.model.days import FOREVER, ordinal
from sankofa.model.rows import FundamentalsRow, wire

_write = msgspec.msgpack.Encoder().encode
_read = msgspec.msgpack.Decoder(list[tuple[int, bytes]]).decode
"""Days with the rows of each, compressed; or the day from which each row is known, and the row."""
_MODES = Entry(b"").modes
_Seen = tuple[int, int, int]
"""The days [first, until) on which a row is in a list, and the modes that see it."""


@issuer_part(RESTATEMENTS)
def _part(issuer: Issuer) -> bytes:
    """The restatements of each day, newest first, compressed: the build holds those of all issuers."""
    by_day: defaultdict[int, list[tuple[tuple[Any, ...], int, bytes]]] = defaultdict(list)
    for identity, reported in issuer.reports.items():
        if len(reported) == 1:
            continue
        concept, unit, period_end, period_start = identity
        end, item = ordinal(period_end), item_of(identity, issuer.reports)
        for before, after in pairwise(issuer.vintages[identity]):
            row = restatement(
                fact_row(issuer, identity, before, item),
                fact_row(issuer, identity, after, item),
                issuer.entity.legal_name,
            )
            order = (-end, item, concept, unit, period_start, after.number)
            by_day[after.report.available].append((order, after.known_from, wire.encode(row)))
    if not by_day:
        return b""
    return _write([(day, _packed(by_day[day])) for day in sorted(by_day, reverse=True)])


def _packed(rows: list[tuple[tuple[Any, ...], int, bytes]]) -> bytes:
    rows.sort(key=lambda one: one[0])
    return zlib.compress(_write([(first, row) for _, first, row in rows]), 6)


_OF_THE_LATER: Final = tuple(
    name for name in RestatementRow.__struct_fields__ if name in FundamentalsRow.__struct_fields__
)
"""The fields that a restatement has from the figure that replaced another."""


def restatement(before: FundamentalsRow, after: FundamentalsRow, legal_name: str | None) -> RestatementRow:
    """The row of a figure that replaced another."""
    return RestatementRow(
        **{name: getattr(after, name) for name in _OF_THE_LATER},
        legal_name=legal_name,
        value_before=before.value_reported,
        value_after=after.value_reported,
        change=relative_change(before.value_reported, after.value_reported),
        available_before=before.available_at,
    )


def relative_change(before: Decimal | None, after: Decimal | None) -> Decimal | None:
    """(after - before) / |before|; None if the first is 0 or one of them is not there."""
    if after is None or not before:
        return None
    return rounded((Fraction(after) - Fraction(before)) / abs(Fraction(before)))


@dataset(RESTATEMENTS, RestatementRow, by_organisation=True)
def restatements(context: BuildContext, some: Sequence[Entity]) -> Iterator[KeyRows]:
    for entity in some:
        if part := context.issuers.part(RESTATEMENTS, entity.service_id):
            entries = [entry for _, packed in _read(part) for entry in _entries(packed)]
            yield KeyRows(entity.service_id, entries, entity.aliases)


@dataset(RESTATEMENT_LISTS, None, reads=(Input.ORGANISATIONS,), partitioned=True, of_organisations=True)
def restatement_lists(context: BuildContext) -> Building:
    """The same rows in lists by year, of all organisations and of each country.

    A locked view, which asks for AS_KNOWN, has an organisation in the list of its country of that day.
    """
    listed: defaultdict[str, defaultdict[tuple[int, str, bytes], list[_Seen]]]
    listed = defaultdict(lambda: defaultdict(list))
    years: set[int] = set()
    for entity in context.entities:
        if not (part := context.issuers.part(RESTATEMENTS, entity.service_id)):
            continue
        spells = list(country_spells(places(entity, context.captures)))
        lists = [("", (0, FOREVER, _MODES | AS_KNOWN))]
        if len(spells) == 1:
            lists.append((entity.country or "", (0, FOREVER, _MODES | AS_KNOWN)))
        else:
            lists.append((entity.country or "", (0, FOREVER, _MODES)))
            lists += [(country, (first, until, AS_KNOWN)) for country, first, until in spells]
        for day, packed in _read(part):
            year = date.fromordinal(day).year
            years.add(year)
            for country, seen in (one for one in lists if one[0] or one is lists[0]):
                listed[restatement_list(country, year)][-day, entity.service_id, packed].append(seen)
    for key in sorted(listed):
        rows = sorted(listed[key].items())
        yield KeyRows(key, (entry for (*_, packed), seen in rows for entry in _entries(packed, seen)))
    return Outcome(manifest_extras={"restatement_years": sorted(years)})


def _entries(packed: bytes, seen: Sequence[_Seen] = ((0, FOREVER, _MODES),)) -> Iterator[Entry]:
    """The rows in order; one that different modes see on different days comes once for each."""
    for first, row in _read(zlib.decompress(packed)):
        for since, until, modes in seen:
            if first < until:
                yield Entry(row, max(first, since), until, modes)
