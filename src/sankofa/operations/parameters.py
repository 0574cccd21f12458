"""The parameters of the operations: type, kind, and what the documentation says of each."""

from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Literal

from sankofa.derive.metrics.contract import slugs
from sankofa.derive.signals.contract import LONGEST_FILTER
from sankofa.model.catalogue_rows import FOLLOWED, SEARCH_TYPES
from sankofa.model.identifiers import EDITION_PATTERN, ENTITY_ID_PATTERN, SERVICE_ID_PATTERN
from sankofa.model.line_items import LINE_ITEMS, STATEMENT_KINDS
from sankofa.model.observations import (
    ASKED_SERIES_PATTERN,
    FREQUENCIES,
    INDICATOR_PATTERN,
    LONGEST_CODE,
    LONGEST_TYPE,
    SERIES_TYPE_PATTERN,
)
from sankofa.model.periods import PERIOD_TYPES
from sankofa.model.provenance import SKUS
from sankofa.operations.parameter_types import (
    Choice,
    Choices,
    Country,
    Currency,
    Day,
    DayOrYear,
    Instant,
    Number,
    Text,
    Whole,
    Words,
)

TOOL_ONLY = "tool only"
"""Marks a parameter that the MCP tool takes and the endpoint does not."""
ALL_BY_DEFAULT = "all by default"
"""Marks a `limit` that is no limit where it is omitted."""

Vintages = Literal["latest", "as_reported", "all"]
Basis = Literal["current", "as_known"]


def _printable(longest: int, example: str) -> Text:
    """Text of any characters but controls."""
    return Text(rf"^[^\x00-\x1f\x7f]{{1,{longest}}}$", example, longest)


ServiceIdParameter = Annotated[
    str,
    Text(SERVICE_ID_PATTERN, "DC46AF1B1AAA424B58D1368176"),  # of the bundled sample world
    "Organisation identifier issued by Sankofa.",
]
AsOfParameter = Annotated[
    date | None,
    Day(past=True),
    "Returns what was knowable on that day; today (UTC) where omitted. A day in the future is a 400.",
]
PeriodTypeParameter = Annotated[str | None, Choice(PERIOD_TYPES), "Reporting cadence."]
VintagesParameter = Annotated[
    Vintages,
    Choice(("latest", "as_reported", "all")),
    "`latest`: the latest vintage knowable by as_of; `as_reported`: the value as first filed; "
    "`all`: every restatement.",
]
EditionParameter = Annotated[
    str | None,
    Text(EDITION_PATTERN),  # an example would be an edition that nobody keeps
    "Edition that answers, as `edition` of an earlier answer names it; the current one by default. A removed "
    "or withdrawn edition gives 410, an unknown one 404. The header field `X-Edition` does the same.",
]
KnownByParameter = Annotated[
    datetime | None,
    Instant(),
    "Returns what this service had published by that instant: the newest kept edition of that time answers, "
    "and the envelope repeats it. No rows if nothing was published yet. Not beside `edition`.",
]
FormatParameter = Annotated[
    str | None,
    Choice(("json", "csv", "arrow", "xlsx"), "json"),
    "Format of the answer; takes precedence over `Accept`.",
]
SinceParameter = Annotated[str | None, Text(EDITION_PATTERN), "Edition of your copy; omit it for everything."]
ChangedDatasetParameter = Annotated[
    str | None, Choice(FOLLOWED, "fundamentals"), "Dataset to list changes of; all by default."
]
LimitParameter = Annotated[int | None, Whole(), "Maximum number of rows."]
MOST_MATCHES = 20
MatchLimitParameter = Annotated[int | None, Whole(10, MOST_MATCHES), "Maximum number of matches."]
LimitOrAllParameter = Annotated[
    int | None, Whole(), "Maximum number of rows; all by default on a paid tier.", ALL_BY_DEFAULT
]
LineItemsParameter = Annotated[
    tuple[str, ...] | None,
    Words(r"^[a-z0-9_]{1,120}$", "revenue", longest=120),
    "Line items to return; an item that the issuer does not report has no rows.",
]
FundamentalsOrderParameter = Annotated[
    Literal["period", "statement"] | None,
    Choice(("period", "statement")),
    "`period`: newest first, then by period_type, line_item, vintage; `statement`: core line items first.",
]
IdTypeParameter = Annotated[
    str,
    Choice(("lei", "ticker", "registry", "aggregator", "isin", "figi")),
    "Kind of the outside identifier.",
]
IdValueParameter = Annotated[
    str,
    Text(r"^[^\x00-\x1f\x7f]{1,64}$", "999900SAMPLEZA000189"),  # of the bundled sample world
    "The outside identifier; a ticker is written EXCHANGE:TICKER.",
]
CountryParameter = Annotated[str | None, Country(), "ISO 3166-1 alpha-2 code, in any case."]
_METRIC = "Slug of the metrics-v1 set; each is explained at `/methodology/metrics-v1/` and its slug."
RequiredMetricParameter = Annotated[str, Choice(slugs(), "revenue_growth"), _METRIC]
MetricParameter = Annotated[
    str | None, Choice(slugs(), "revenue_growth"), _METRIC + " Omit for every metric."
]
BasisParameter = Annotated[
    Basis | None,
    Choice(("current", "as_known"), "as_known"),
    "`current` (default): today's figures; values whose inputs were restated or completed after `as_of` are "
    "left out. `as_known`: the figures known on `as_of`; no later event leaves anything out.",
]
MaxAgeParameter = Annotated[
    int | None,
    Whole(18, 1200),
    "Leaves out values whose `period_end` is more than this many months before `as_of`.",
]
OrderParameter = Annotated[
    Literal["asc", "desc"], Choice(("asc", "desc"), "desc"), "Order by value: ascending or descending."
]
QueryParameter = Annotated[
    str, _printable(200, "Kgalagadi Retail"), "A name, a ticker (JSE:NPN or NPN) or another identifier."
]
SearchParameter = Annotated[
    str, _printable(200, "Kgalagadi Retail"), "Words of a name, complete or not, or an identifier."
]
SearchTypeParameter = Annotated[str | None, Choice(SEARCH_TYPES), "Type of the results."]
SeriesQueryParameter = Annotated[
    str | None, _printable(200, "CPI"), "Words that the key or name must have, complete or not."
]
PanelMetricsParameter = Annotated[
    tuple[str, ...] | None,
    Choices(slugs(), ("net_margin", "return_on_equity")),
    "Metrics: slugs of the metrics-v1 set.",
]
PanelLineItemsParameter = Annotated[
    tuple[str, ...] | None,
    Choices(LINE_ITEMS, ("revenue",)),
    "Line items: the figure of the latest full year known that day, as `/v1/statements` shows it.",
]
PanelSeriesParameter = Annotated[
    tuple[str, ...] | None,
    Words(ASKED_SERIES_PATTERN, "CPI.ZA", LONGEST_CODE, 20),
    "Series: the latest observation known that day. Keys in any case, as `/v1/series` lists them.",
]
PanelIssuersParameter = Annotated[
    tuple[str, ...] | None,
    Words(SERVICE_ID_PATTERN, "DC46AF1B1AAA424B58D1368176", 64),
    "Organisation identifiers; every issuer known that day where omitted.",
]
EveryParameter = Annotated[
    Literal["week", "month", "quarter", "year", "change"],
    Choice(("week", "month", "quarter", "year", "change"), "month"),
    "Days of the rows: the last one of each week (a Sunday), month, quarter or year. `change`: for each "
    "issuer `from`, and every day on which one of its columns changes; not with `series`.",
]
PanelFromParameter = Annotated[date, Day(past=True, example="2024-01-01"), "First day of the panel."]
PanelToParameter = Annotated[
    date | None, Day(past=True, example="2024-12-31"), "Last day of the panel; today (UTC) where omitted."
]
SeriesKeyParameter = Annotated[
    str,
    Text(ASKED_SERIES_PATTERN, "CPI.ZA", LONGEST_CODE),
    "Series key, in any case, as `/v1/series` lists it.",
]
StatementKindParameter = Annotated[
    str | None, Choice(STATEMENT_KINDS), "Only this statement: income, balance sheet or cash flow."
]
ShapeParameter = Annotated[
    Literal["long", "wide"],
    Choice(("long", "wide"), "long"),
    "`long`: one row per figure; `wide`: one row per line item, one column per period.",
]
ExchangeParameter = Annotated[
    str | None,
    Text(r"^[A-Za-z0-9._-]{1,40}$", "JSE", longest=40),
    "Name or market identifier code of an exchange, in any case: JSE or XJSE.",
]
TenderCountryParameter = Annotated[str, Country(), "ISO 3166-1 alpha-2 code, in any case."]
ReleasedFromParameter = Annotated[date | None, Day(example="2026-01-01"), "Earliest release date (UTC day)."]
CursorParameter = Annotated[
    str | None,
    Text(r"^[A-Za-z0-9_-]{1,3600}$", longest=3600),  # an example would be a cursor that leads nowhere
    "`next_cursor` of the previous page, verbatim.",
]
TenderQueryParameter = Annotated[
    str | None, _printable(200, "bridge repair"), "Words that title and description must have, all of them."
]
OcidParameter = Annotated[
    str | None,
    _printable(200, "ocds-999sza-00134"),
    "Only the releases of this contracting process, as published. Name its `country` too.",
]
ReleasedToParameter = Annotated[date | None, Day(example="2026-12-31"), "Latest release date (UTC day)."]
ClosingFromParameter = Annotated[
    date | None, Day(example="2026-01-01"), "First day (UTC) on which the tender closes."
]
ClosingToParameter = Annotated[
    date | None, Day(example="2026-12-31"), "Last day (UTC) on which the tender closes."
]
BuyerParameter = Annotated[
    str | None,
    _printable(400, "Groot Sample District Municipality"),
    "Buyer: a service_id, or the whole name as published, in any case.",
]
BuyerQueryParameter = Annotated[
    str | None,
    _printable(200, "district municipality"),
    "Words that the name of the buyer must have, all of them.",
]
SupplierParameter = Annotated[
    str | None,
    _printable(400, "Duineveld Sample Civils (Pty) Ltd"),
    "Supplier of an award: a service_id, or the whole name as published, in any case.",
]
TenderCategoryParameter = Annotated[
    str | None, _printable(400, "Services: Civil"), "Category as published by the source portal, in any case."
]
StatusParameter = Annotated[
    str | None, _printable(100, "complete"), "Status of the tender as published, in any case."
]
MethodParameter = Annotated[
    str | None, _printable(100, "open"), "Procurement method as published, in any case."
]
MinValueParameter = Annotated[
    Decimal | None, Number(1000000), "Smallest `value_amount`, in whatever currency the row has."
]
ContractParameter = Annotated[
    str, _printable(400, "ocds-999sza-00134"), "Open Contracting process identifier, as published."
]
ContractDayParameter = Annotated[
    date | None,
    Day(past=True, example="2026-03-01"),
    "Compiles the releases up to that day; today (UTC) where omitted. A day in the future is a 400.",
]
DetailParameter = Annotated[
    Literal["compact", "full"],
    Choice(("compact", "full"), "full"),
    "`full`: rows with `release`, the whole OCDS release; `compact`: without it.",
]
TendersOfParameter = Annotated[str | None, Country(), "ISO 3166-1 alpha-2 code, in any case."]
RoleParameter = Annotated[
    str | None, Text(r"^[A-Za-z]{1,64}$", "supplier"), "Role, such as buyer or supplier."
]
OptionalServiceIdParameter = Annotated[
    str | None,
    Text(SERVICE_ID_PATTERN, "DC46AF1B1AAA424B58D1368176"),
    "Only parties resolved to this organisation.",
]
ClaimSubjectParameter = Annotated[
    str,
    _printable(200, "DC46AF1B1AAA424B58D1368176"),
    "A service_id, EXCHANGE:TICKER, LEI, exact name or series key.",
]
ClaimMeasureParameter = Annotated[
    str | None,
    Text(r"^[a-z0-9_]{0,120}$", "revenue", longest=120),
    "A line item or metric; omitted or empty for a series.",
]
ClaimPeriodParameter = Annotated[
    str, Text(r"^[0-9.-]{4,22}$", "2023", longest=22), "A year, a date, or START..END."
]
ClaimValueParameter = Annotated[
    str, _printable(60, "43.6bn"), "The value as people write it: 2.9bn, 291.9 million, 12%."
]
ClaimUnitParameter = Annotated[
    str | None,
    _printable(60, "ZAR"),
    "Unit or currency, such as ZAR or USD/shares; a claim in another unit than the figure's is unknown.",
]
RestatedServiceIdParameter = Annotated[
    str | None, Text(SERVICE_ID_PATTERN, "DC46AF1B1AAA424B58D1368176"), "Only this organisation."
]
RestatedSinceParameter = Annotated[
    date | None, Day(example="2020-01-01"), "First day on which the new figure became public."
]
RestatedUntilParameter = Annotated[
    date | None,
    Day(example="2024-12-31"),
    "Last day on which the new figure became public; today (UTC) where omitted.",
]
LineItemParameter = Annotated[
    str | None, Text(r"^[a-z0-9_]{1,120}$", "profit", longest=120), "Only this line item."
]
MatrixLineItemParameter = Annotated[
    str, Text(r"^[a-z0-9_]{1,120}$", "revenue", longest=120), "Line item, e.g. revenue."
]
ReleaseParameter = Annotated[
    str,
    Text(r"^(all|first|latest|[1-9][0-9]{0,3})$", "first"),
    "`all`: a column for each release day; `first`, `latest`, or a number: that release of each date alone.",
]
MinChangeParameter = Annotated[
    Decimal | None,
    Number(),
    "Smallest |change|, as a ratio: 0.05 is 5%. Rows whose change is null are then left out.",
]
MacroCountryParameter = Annotated[
    str | None, Country(alpha3=True), "ISO 3166-1 alpha-2 or alpha-3 code, in any case."
]
IndicatorParameter = Annotated[
    str | None,
    Text(INDICATOR_PATTERN, "NY.GDP.MKTP.CD", LONGEST_CODE),
    "Annual mode: indicator code, in any case.",
]
SeriesParameter = Annotated[
    str | None,
    Text(ASKED_SERIES_PATTERN, "CPI.ZA", LONGEST_CODE),
    "Series mode: series key, in any case; FX.<base>.<quote> is quote units for one base unit, "
    "WDI:<indicator>:<alpha-3> an annual indicator by the days it was captured on.",
]
SeriesTypeParameter = Annotated[
    str | None, Text(SERIES_TYPE_PATTERN, "cpi", LONGEST_TYPE), "Series mode: family, e.g. fx or cpi."
]
FrequencyParameter = Annotated[
    str | None, Choice(FREQUENCIES, "monthly"), "Series mode: how often it is observed."
]
SeriesAsOfParameter = Annotated[
    date | None,
    Day(past=True),
    "Asks for series mode: the latest vintages known on that day; today (UTC) where only `series` does. "
    "A day in the future is a 400.",
]
FromParameter = Annotated[
    date | int | None,
    DayOrYear("2024-01-01"),
    "The earliest: a date in series mode, a date or a year in annual mode.",
]
ToParameter = Annotated[
    date | int | None,
    DayOrYear("2024-12-31"),
    "The latest: a date in series mode, a date or a year in annual mode.",
]
BaseCurrencyParameter = Annotated[
    str, Currency("GBP"), "Currency that is priced: ISO 4217 code, in any case."
]
QuoteCurrencyParameter = Annotated[str, Currency("ZAR"), "Currency of the price: ISO 4217 code, in any case."]
ViaParameter = Annotated[
    str | None, Currency("EUR"), "Only through this third currency: ISO 4217 code, in any case."
]
FromDayParameter = Annotated[date | None, Day(example="2024-01-01"), "The earliest date."]
ToDayParameter = Annotated[date | None, Day(example="2024-12-31"), "The latest date."]
SignalKeyParameter = Annotated[
    str,
    Text("^[a-z0-9-]+$", "macro-momentum"),
    "Key of the panel, as `/v1/export` lists it.",
]
CategoryParameter = Annotated[
    str | None,
    Text(rf"^[^\x00-\x1f\x7f]{{1,{LONGEST_FILTER}}}$", "Services: Civil", LONGEST_FILTER),
    "Category as published by the source portal.",
]
FromMonthParameter = Annotated[
    date | None, Day(example="2023-01-01"), "First month, given by one of its days."
]
ToMonthParameter = Annotated[date | None, Day(example="2024-12-31"), "Last month, given by one of its days."]
SkuParameter = Annotated[
    str, Text(r"^[A-Za-z0-9-]+$", "AF-FUND"), "The dataset, in any case: AF-FUND, AF-TENDER or AF-MACRO."
]
OptionalSkuParameter = Annotated[str | None, Choice(SKUS, "AF-FUND"), "Only this dataset."]
EntityIdParameter = Annotated[
    str | None,
    Text(ENTITY_ID_PATTERN, "DC46AF1B1AAA424B58D1368176"),
    "An organisation's service_id, or the alpha-3 code of a country for its AF-MACRO facts.",
]
SharedCountryParameter = Annotated[
    str | None,
    Text("^[A-Za-z]{3}$", "ZAF", longest=3),
    "ISO 3166-1 alpha-3 code, in any case; needs `dataset`.",
]
DatasetParameter = Annotated[
    str | None,
    Choice(SKUS, "AF-FUND"),
    "SKU. With `country`: AF-TENDER or AF-MACRO. With an organisation: AF-FUND (default) or AF-TENDER.",
]
MeasureParameter = Annotated[
    str | None,
    Text(r"^[A-Za-z0-9][A-Za-z0-9._-]*$", "revenue", longest=256),
    "One measure only, in any case: a line item, an indicator code, a series key, award_value, tender_value.",
]
