"""Cross rates: which series each currency needs, and all pairs in bulk.

Cross rates are computed on request, so an edition only says which series they need. Forty currencies against
the dollar are sixteen hundred pairs: stored as rows, they would be most of an edition.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import date
from decimal import Decimal
from functools import partial
from itertools import combinations, product
from typing import Annotated, Final, NamedTuple

from sankofa.derive.cross_rates import AFRICAN_CURRENCIES, FAMILY, FREQUENCY, cross_rate, cross_rate_row
from sankofa.derive.series import SeriesReport, SeriesVintages, series_of
from sankofa.edition.format.keys import MACRO_SERIES
from sankofa.edition.format.macro import RATE_INPUTS, RateInput, encode_rate_inputs
from sankofa.edition.format.row_blocks import Entry
from sankofa.edition.write.context import BuildContext
from sankofa.edition.write.dataset import Built, Input, KeyRows, dataset, provenance
from sankofa.edition.write.datasets.macro_series import SeriesIndex
from sankofa.edition.write.tables import TableRows, table
from sankofa.model.catalogue_rows import CrossRateInput, CrossRateRow
from sankofa.model.days import FOREVER
from sankofa.model.facts import MACRO
from sankofa.model.observations import currency_pair
from sankofa.model.rows import doc
from sankofa.model.vintages import Vintage, in_force

CROSS_RATES_TABLE: Final = "af-macro-cross-rates"


def rate_inputs(keys: Iterable[str]) -> dict[str, list[RateInput]]:
    """By currency, its rates against others, one for each, by code."""
    rates: defaultdict[str, dict[str, RateInput]] = defaultdict(dict)
    for key in sorted(keys, key=lambda key: key.split("|")):
        series, family, frequency, _ = key.split("|")
        pair = currency_pair(series)
        if (family, frequency) != (FAMILY, FREQUENCY) or pair is None:
            continue
        base, quote = pair
        known = rates[quote].get(base)
        if known is None or known.inverted:
            rates[quote][base] = RateInput(base, key, inverted=False)
        rates[base].setdefault(quote, RateInput(quote, key, inverted=True))
    return {currency: [own[via] for via in sorted(own)] for currency, own in sorted(rates.items())}


@dataset(RATE_INPUTS, None, needs=(MACRO_SERIES,), reads=())
def rate_input_lists(context: BuildContext, series: Built[SeriesIndex]) -> Iterator[KeyRows]:
    """By currency."""
    for currency, own in rate_inputs(summary.key for summary in series.result.summaries).items():
        yield KeyRows(currency, [Entry(encode_rate_inputs(own))])


class CrossRateVintageRow(CrossRateRow, frozen=True, kw_only=True):
    """A cross rate while both of its inputs were valid."""

    superseded_at: Annotated[
        date | None, doc("Day on which another vintage of an input became public; null for the latest.")
    ]


class _Standing(NamedTuple):
    """A vintage of an input, and the days [first, until) on which it is valid."""

    first: int
    until: int
    value: Decimal
    row: CrossRateInput


_RateValues = tuple[bool, dict[str, list[_Standing]]]
"""Whether it is inverted, and the valid vintages by day."""


class _EveryPair(TableRows):
    """All pairs with an African currency, once each; the first by code is the base."""

    def make(self) -> Iterator[CrossRateVintageRow]:
        reported = {
            "|".join(one.identity): one
            for one in series_of(self.context.ledger, self.context.captures, (FREQUENCY,))
            if one.identity.series_type == FAMILY
        }
        by_currency = rate_inputs(reported)
        values = {key: self._values(series) for key, series in reported.items()}
        reported.clear()
        for base, quote in combinations(sorted(by_currency), 2):
            if AFRICAN_CURRENCIES.isdisjoint((base, quote)):
                continue
            quoted = {rate.via: rate for rate in by_currency[quote]}
            for rate in by_currency[base]:
                if (other := quoted.get(rate.via)) is not None:
                    both = ((rate.inverted, values[rate.key]), (other.inverted, values[other.key]))
                    yield from _pair((base, quote, rate.via), *both)

    def _values(self, series: SeriesVintages) -> dict[str, list[_Standing]]:
        """By day, newest first."""
        standing = ((day, list(self._standing(series, day, known))) for day, _, known in series.days)
        return {day: some for day, some in standing if some}

    def _standing(
        self, series: SeriesVintages, day: str, known: list[Vintage[SeriesReport]]
    ) -> Iterator[_Standing]:
        for vintage in known:
            report = vintage.report
            value = Decimal(report.figure) if report.figure else Decimal(0)
            seen = in_force(vintage)
            if value <= 0 or seen is None:
                continue
            capture, key = self.context.captures[report.capture_id], series.identity.series
            row = CrossRateInput(
                series=key,
                value=value,
                unit=report.unit or None,
                available_at=date.fromordinal(report.available),
                vintage=vintage.number,
                **provenance(capture, report.location or f"{key} {day}", report.document),
            )
            self.input_sources.add(capture.source_id)
            yield _Standing(*seen, value, row)


def _pair(pair: tuple[str, str, str], base: _RateValues, quote: _RateValues) -> Iterator[CrossRateVintageRow]:
    (base_inverted, of_base), (quote_inverted, of_quote) = base, quote
    for day, standing in of_base.items():
        for one, other in product(standing, of_quote.get(day, ())):
            until = min(one.until, other.until)
            if max(one.first, other.first) >= until:
                continue
            value = cross_rate(
                one.value, other.value, base_inverted=base_inverted, quote_inverted=quote_inverted
            )
            superseded = None if until == FOREVER else date.fromordinal(until)
            shape = partial(CrossRateVintageRow, superseded_at=superseded)
            yield cross_rate_row(pair, date.fromisoformat(day), (one.row, other.row), value, shape)


table(
    CROSS_RATES_TABLE,
    CrossRateVintageRow,
    MACRO,
    "Daily rates between two currencies, one of them African, that nobody published: derived from two "
    "that were, every vintage. `/v1/cross-rates` has any pair, in either direction.",
    rows=_EveryPair,
    reads=(Input.RATES,),
    sorted_by=("base", "quote", "via"),
)
