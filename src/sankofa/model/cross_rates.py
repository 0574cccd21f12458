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
    value: Annotated[Figure, doc("As published, every digit.")]
    unit: Annotated[str | None, doc("Unit as the source writes it.")]
    available_at: Annotated[_Day, doc("The day this vintage became public.")]
    vintage: Annotated[int, doc("Which vintage of the value it is.", ge=1)]
    source_ref: Annotated[str, doc("Source reference: document plus location.")]
    license_class: Annotated[str, doc("Licence class its source is held under.")]
    observed_at: Annotated[str, instant("When Sankofa captured it.")]


class CrossRateRow(Row, frozen=True, kw_only=True):
    """A rate that nobody published: computed from two that were.

    `source_ref` is that of the first input, `license_class` the stricter, `observed_at` the later.
    """

    base: Annotated[str, doc("ISO 4217 code: one unit of it is priced.")]
    quote: Annotated[str, doc("ISO 4217 code: the price is in units of it.")]
    via: Annotated[str, doc("ISO 4217 code of the currency that both inputs are rates of.")]
    date: Annotated[_Day, doc("The day that both inputs are of.")]
    value: Annotated[
        Figure, doc("Quote units for one base unit, every digit: 10 significant, rounded half-even.")
    ]
    unit: Annotated[str, doc("In words: `KES per NGN`.")]
    available_at: Annotated[_Day, doc("The day on which the later of the inputs became public.")]
    method: Annotated[str, one_of((DERIVED,), "Never published, always derived.")]
    methodology_ref: Annotated[
        str, one_of((METHODOLOGY,), "Names the formula; see `/methodology/` and this name.")
    ]
    inputs: Annotated[
        list[CrossRateInput], doc("The rate of the base currency, then that of the quote currency.")
    ]
