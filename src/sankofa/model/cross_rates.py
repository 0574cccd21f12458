"""Cross rates: what one currency is worth in another, from two published rates that share a third."""

from datetime import date
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from sankofa.model.rows import Figure, Row

DERIVED: Final = "derived"
METHODOLOGY: Final = "cross-rates-v1"
_Day = date  # where a row has a field of that name


class CrossRateInput(msgspec.Struct, frozen=True):
    """A published rate that a cross rate is computed from."""

    series: Annotated[str, Meta(description="Series key, as `/v1/macro` serves it.")]
    value: Annotated[Figure, Meta(description="As published, every digit.")]
    unit: Annotated[str | None, Meta(description="Unit as the source writes it.")]
    available_at: Annotated[_Day, Meta(description="The day this vintage became public.")]
    vintage: Annotated[int, Meta(description="Which vintage of the value it is.", ge=1)]
    source_ref: Annotated[str, Meta(description="Source reference: document plus location.")]
    license_class: Annotated[str, Meta(description="Licence class its source is held under.")]
    observed_at: Annotated[
        str, Meta(description="When Sankofa captured it.", extra_json_schema={"format": "date-time"})
    ]


class CrossRateRow(Row, frozen=True, kw_only=True):
    """A rate that nobody published: computed from two that were.

    `source_ref` is that of the first input, `license_class` the stricter, `observed_at` the later.
    """

    base: Annotated[str, Meta(description="ISO 4217 code: one unit of it is priced.")]
    quote: Annotated[str, Meta(description="ISO 4217 code: the price is in units of it.")]
    via: Annotated[str, Meta(description="ISO 4217 code of the currency that both inputs are rates of.")]
    date: Annotated[_Day, Meta(description="The day that both inputs are of.")]
    value: Annotated[
        Figure,
        Meta(description="Quote units for one base unit, every digit: 10 significant, rounded half-even."),
    ]
    unit: Annotated[str, Meta(description="In words: `KES per NGN`.")]
    available_at: Annotated[_Day, Meta(description="The day on which the later of the inputs became public.")]
    method: Annotated[
        str, Meta(description="Never published, always derived.", extra_json_schema={"enum": [DERIVED]})
    ]
    methodology_ref: Annotated[
        str,
        Meta(
            description="Names the formula; see `/methodology/` and this name.",
            extra_json_schema={"enum": [METHODOLOGY]},
        ),
    ]
    inputs: Annotated[
        list[CrossRateInput],
        Meta(description="The rate of the base currency, then that of the quote currency."),
    ]
