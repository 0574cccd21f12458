"""Cross rates: what one currency is worth in another, from two published rates that share a third."""

from datetime import date
from typing import Annotated, Final

import msgspec

from sankofa.model.field_docs import doc, instant, one_of
from sankofa.model.rows import Figure, Row

DERIVED: Final = "derived"
METHODOLOGY: Final = "cross-rates-v1"
_Day = date  # where a row has a field of that name


class CrossRateInput(msgspec.Struct, frozen=True):
    """A published rate that a cross rate is computed from."""

    series: Annotated[str, doc("Series key, as `/v1/macro` serves it.")]
    value: Annotated[Figure, doc("Value as published, with every digit.")]
    unit: Annotated[str | None, doc("Unit as the source writes it.")]
    available_at: Annotated[_Day, doc("Day on which this vintage became public.")]
    vintage: Annotated[int, doc("Number of this vintage.", ge=1)]
    source_ref: Annotated[str, doc("Source reference: `<source id>:<document>#<location>`.")]
    license_class: Annotated[str, doc("Licence class of the source.")]
    observed_at: Annotated[str, instant("When Sankofa captured it.")]


class CrossRateRow(Row, frozen=True, kw_only=True):
    """A rate that nobody published: computed from two that were.

    `source_ref` is that of the first input, `license_class` the stricter, `observed_at` the later.
    """

    base: Annotated[str, doc("Currency that is priced, ISO 4217.")]
    quote: Annotated[str, doc("Currency of the price, ISO 4217.")]
    via: Annotated[str, doc("Currency that both inputs are rates of, ISO 4217.")]
    date: Annotated[_Day, doc("Date of both inputs.")]
    value: Annotated[
        Figure, doc("Quote units for one base unit, every digit, rounded half-even to 10 significant digits.")
    ]
    unit: Annotated[str, doc("Unit in words, e.g. `KES per NGN`.")]
    available_at: Annotated[_Day, doc("Day on which the later input became public.")]
    method: Annotated[str, one_of((DERIVED,), "Never published, always derived.")]
    methodology_ref: Annotated[
        str, one_of((METHODOLOGY,), "Names the formula; see `/methodology/` and this name.")
    ]
    inputs: Annotated[
        list[CrossRateInput], doc("Rate of the base currency, then rate of the quote currency.")
    ]
