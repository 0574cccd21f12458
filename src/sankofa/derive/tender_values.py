"""Vintages of published amounts: of tenders, and of the awards an organisation won; and the contracting
processes of a country, each with its releases.

A release that does not repeat an amount takes nothing back. The same amount again adds nothing, another one
is the next vintage, from the day of its release on (`model.vintages`). An amount of zero is no amount.
"""

import os
import tempfile
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import NamedTuple

import msgspec

from sankofa.derive.tenders import Award, Tender, Tenders, awards
from sankofa.ledger.reader import CaptureInfo, ReleaseRow
from sankofa.model.days import FOREVER, ordinal
from sankofa.model.figures import exact
from sankofa.model.ocds.red_flags import ProcessReleases, ReleaseFacts, day_states
from sankofa.model.vintages import Vintage, vintages


class ReportedAmount(NamedTuple):
    """The value of a tender in one release, by the number of the release in its country's order."""

    value: str
    available: int
    order: tuple[int, int]
    number: int


class TenderValues:
    """Which releases of a country began a vintage of their tender's value; arrays with one item a release."""

    def __init__(self, tenders: Iterable[Tender]) -> None:
        self.numbers = array("i")
        """The vintage that the release began; 0 if its value was not new."""
        self.untils = array("i")
        """The day that vintage was replaced."""
        days, moments = array("i"), array("i")
        amounts: list[str] = []  # as many as there are values
        numbers = array("i")
        by_process: defaultdict[tuple[str, str], array[int]] = defaultdict(lambda: array("i"))
        moment, last = 0, ""
        for number, tender in enumerate(tenders):
            self.numbers.append(0)
            self.untils.append(FOREVER)
            row, summary = tender.row, tender.summary
            if row.release_date != last:
                moment, last = moment + 1, row.release_date
            if amount := amount_of(summary.value_amount):
                by_process[row.ocid, summary.value_currency or ""].append(len(amounts))
                amounts.append(amount)
                numbers.append(number)
                days.append(ordinal(row.release_date[:10]))
                moments.append(moment)
        for reported in by_process.values():
            # The newest release has the lowest moment; of one instant, the higher id is the later.
            self._set_vintages(
                vintages(
                    [ReportedAmount(amounts[n], days[n], (-moments[n], n), numbers[n]) for n in reported],
                    0,
                )
            )

    def _set_vintages(self, history: list[Vintage[ReportedAmount]]) -> None:
        for vintage in history:
            number = vintage.report.number
            self.numbers[number] = vintage.number
            if vintage.successor is not None:
                self.untils[number] = vintage.successor.available


class ReportedAward(NamedTuple):
    """An award to one organisation in one release; see `model.vintages.Reported`."""

    value: str | None
    """None if the release says that it is no award (any more)."""
    available: int
    order: tuple[object, ...]
    award_id: str
    currency: str | None
    day: str
    supplier: str
    """The winner as published."""
    row: ReleaseRow
    """Without its body."""


def awards_won(tenders: Tenders) -> dict[str, list[Vintage[ReportedAward]]]:
    """By service_id the vintages of every award it won, the newest release first, then by ocid and award."""
    reports: defaultdict[str, defaultdict[tuple[str, ...], list[ReportedAward]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for country in tenders.countries:
        for tender in tenders.of(country):
            for position, award in enumerate(awards(tender)):
                for service_id, report in _won(tender, position, award):
                    reports[service_id][tender.row.ocid, award.award_id, award.currency or ""].append(report)
    return {service_id: _newest_first(reports[service_id]) for service_id in sorted(reports)}


def _won(tender: Tender, position: int, award: Award) -> Iterator[tuple[str, ReportedAward]]:
    amount = amount_of(award.amount)
    if amount is None:
        return
    row = tender.row._replace(body="", summary="", parties="")
    released = row.release_date[:10]
    reported: set[str] = set()
    for supplier in award.suppliers:
        service_id = supplier.match.service_id
        if service_id and service_id not in reported:
            reported.add(service_id)
            yield service_id, ReportedAward(
                amount if award.is_valid else None, ordinal(released),
                (_instant(row), row.release_id, position),
                award.award_id, award.currency, _day(award, released), supplier.name, row,
            )  # fmt: skip


def _day(award: Award, released: str) -> str:
    """The day of the award; the day of release where the award is dated in the future."""
    return award.day if award.day and award.day <= released else released


def _newest_first(reports: dict[tuple[str, ...], list[ReportedAward]]) -> list[Vintage[ReportedAward]]:
    awards_won = [vintage for identity in sorted(reports) for vintage in vintages(reports[identity], 0)]
    awards_won.sort(key=lambda vintage: _instant(vintage.report.row), reverse=True)
    return awards_won


def _instant(row: ReleaseRow) -> str:
    """An instant as text that sorts by time. Without the Z, a whole second sorts before its fractions."""
    return row.release_date.rstrip("Z")


def amount_of(amount: Decimal | None) -> str | None:
    """An amount in canonical form, so that equal amounts are equal text; None if there is none."""
    return None if not amount else exact(format(amount, "f"))


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ReleaseFacts).decode


def processes(
    tenders: Tenders, country: str, captures: Mapping[int, CaptureInfo]
) -> Iterator[ProcessReleases]:
    """In the order of their ocids. Releases wait in a temporary file, so that memory stays flat."""
    with tempfile.TemporaryFile(buffering=0) as file:
        places: defaultdict[str, list[tuple[str, str, int, int]]] = defaultdict(list)
        end = 0
        for tender in tenders.of(country):
            row = tender.row
            capture = captures[row.capture_id]
            released, own = row.release_date, tender.flag_facts
            release = ReleaseFacts(
                ordinal(released[:10]), released, capture.ref(row.location), capture.license_class,
                capture.observed_at, msgspec.Raw(own.facts), own.service_ids,
            )  # fmt: skip
            written = _encode(release)
            file.write(written)
            # Without the Z, which would put a whole second after its fractions.
            places[row.ocid].append((released[:-1], row.release_id, end, len(written)))
            end += len(written)
        for ocid in sorted(places):
            listed = sorted(places[ocid])
            releases = [_decode(os.pread(file.fileno(), size, start)) for _, _, start, size in listed]
            yield ProcessReleases(ocid, day_states(releases))
