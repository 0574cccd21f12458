"""Cross rates: where their inputs stand, so that they are computed when asked for; all of them in bulk.

Forty currencies against the dollar are sixteen hundred pairs: kept as rows, they would be most of an edition.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import date
from decimal import Decimal
from itertools import combinations, product
from typing import Annotated, Final, NamedTuple

from msgspec import structs

from sankofa.derive.cross_rates import AFRICAN_CURRENCIES, FAMILY, FREQUENCY, cross_rate, cross_rate_row
from sankofa.derive.series import Series, SeriesReport, series_reports
from sankofa.edition.format.keys import MACRO_SERIES
from sankofa.edition.format.rate_legs import RATE_LEGS, RateLeg, encode_legs
from sankofa.edition.format.row_blocks import Entry
from sankofa.edition.write import inputs
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import Built, KeyRows, dataset
from sankofa.edition.write.datasets.macro_series import SeriesIndex
from sankofa.edition.write.tables import Table, TableRows, table
from sankofa.model.catalogue_rows import CrossRateInput, CrossRateRow
from sankofa.model.days import FOREVER, ordinal
from sankofa.model.facts import MACRO
from sankofa.model.observations import currency_pair
from sankofa.model.rows import doc
from sankofa.model.vintages import vintages

CROSS_RATES_TABLE: Final = "af-macro-cross-rates"


def rate_legs(keys: Iterable[str]) -> dict[str, list[RateLeg]]:
    """By currency, the series that say what it is worth in another; one for each other, by its code."""
    legs: defaultdict[str, dict[str, RateLeg]] = defaultdict(dict)
    for key in sorted(keys, key=lambda key: key.split("|")):
        series, family, frequency, _ = key.split("|")
        pair = currency_pair(series)
        if (family, frequency) != (FAMILY, FREQUENCY) or pair is None:
            continue
        base, quote = pair
        known = legs[quote].get(base)
        if known is None or known.inverted:
            legs[quote][base] = RateLeg(base, key, inverted=False)
        legs[base].setdefault(quote, RateLeg(quote, key, inverted=True))
    return {currency: [own[via] for via in sorted(own)] for currency, own in sorted(legs.items())}


@dataset(RATE_LEGS, None, needs=(MACRO_SERIES,), reads=())
def legs(context: BuildContext, series: Built[SeriesIndex]) -> Iterator[KeyRows]:
    """By currency."""
    for currency, own in rate_legs(summary.key for summary in series.result.summaries).items():
        yield KeyRows(currency, [Entry(encode_legs(own))])


class CrossRateVintageRow(CrossRateRow, frozen=True, kw_only=True):
    """A cross rate while both of its inputs stood."""

    superseded_at: Annotated[
        date | None, doc("Day on which another vintage of an input became public; null for the latest.")
    ]


class _Standing(NamedTuple):
    """A vintage of an input, and the days [first, until) on which it stands."""

    first: int
    until: int
    value: Decimal
    row: CrossRateInput


_Leg = tuple[bool, dict[str, list[_Standing]]]
"""Whether it is inverted, and by day what stood."""


class _EveryPair(TableRows):
    """The pairs with an African currency, each once: the one that comes first by its code is the base."""

    def make(self) -> Iterator[CrossRateVintageRow]:
        reported = {
            "|".join(identity): (identity, reports)
            for identity, reports in series_reports(self.context.ledger, (FREQUENCY,))
            if identity.series_type == FAMILY
        }
        by_currency = rate_legs(reported)
        values = {key: self._values(*series) for key, series in reported.items()}
        reported.clear()
        for base, quote in combinations(sorted(by_currency), 2):
            if AFRICAN_CURRENCIES.isdisjoint((base, quote)):
                continue
            quoted = {leg.via: leg for leg in by_currency[quote]}
            for leg in by_currency[base]:
                if (other := quoted.get(leg.via)) is not None:
                    both = ((leg.inverted, values[leg.key]), (other.inverted, values[other.key]))
                    yield from _pair((base, quote, leg.via), *both)

    def _values(self, identity: Series, reports: dict[str, list[SeriesReport]]) -> dict[str, list[_Standing]]:
        """By day, newest first."""
        return {
            day: standing
            for day in sorted(reports, reverse=True)
            if (standing := list(self._standing(identity.series, day, reports[day])))
        }

    def _standing(self, series: str, day: str, reports: list[SeriesReport]) -> Iterator[_Standing]:
        for vintage in vintages(reports, ordinal(day)):
            report = vintage.report
            value = Decimal(report.figure) if report.figure else Decimal(0)
            until = FOREVER if vintage.successor is None else vintage.successor.available
            if value <= 0 or until <= vintage.known_from:
                continue
            capture = self.context.captures[report.capture_id]
            row = CrossRateInput(
                series=series,
                value=value,
                unit=report.unit or None,
                available_at=date.fromordinal(report.available),
                vintage=vintage.number,
                source_ref=capture.ref(report.location or f"{series} {day}", report.document),
                license_class=capture.license_class,
                observed_at=capture.observed_at,
            )
            self.input_sources.add(capture.source_id)
            yield _Standing(vintage.known_from, until, value, row)


def _pair(pair: tuple[str, str, str], base: _Leg, quote: _Leg) -> Iterator[CrossRateVintageRow]:
    (base_inverted, of_base), (quote_inverted, of_quote) = base, quote
    for day, standing in of_base.items():
        for one, other in product(standing, of_quote.get(day, ())):
            until = min(one.until, other.until)
            if max(one.first, other.first) >= until:
                continue
            value = cross_rate(
                one.value, other.value, base_inverted=base_inverted, quote_inverted=quote_inverted
            )
            row = cross_rate_row(pair, date.fromisoformat(day), (one.row, other.row), value)
            superseded = None if until == FOREVER else date.fromordinal(until)
            yield CrossRateVintageRow(**structs.asdict(row), superseded_at=superseded)


table(
    Table(
        CROSS_RATES_TABLE,
        CrossRateVintageRow,
        MACRO,
        "Daily rates between two currencies, one of them African, that nobody published: derived from two "
        "that were, every vintage. `/v1/cross-rates` has any pair, in either direction.",
        rows=_EveryPair,
        reads=(inputs.MACRO,),
        sorted_by=("base", "quote", "via"),
    )
)
