"""The parameters of the operations: type, kind and description."""

from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Literal

from sankofa.derive.metrics.contract import slugs
from sankofa.derive.signals.contract import LONGEST_FILTER
from sankofa.model.catalogue_rows import FOLLOWED, SEARCH_TYPES
from sankofa.model.identifiers import EDITION_PATTERN, ENTITY_ID_PATTERN, SERVICE_ID_PATTERN
from sankofa.model.line_items import LINE_ITEMS, LONGEST_LINE_ITEM, STATEMENT_KINDS
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
from sankofa.operations import parameter_types as kinds

ALL_BY_DEFAULT = "all by default"
"""Marks a `limit` that means everything if omitted."""

Basis = Literal["current", "as_known"]


def plain_text(longest: int, example: str) -> kinds.Text:
    """Text without control characters."""
    return kinds.Text(rf"^[^\x00-\x1f\x7f]{{1,{longest}}}$", example, longest)


_SERVICE_ID = kinds.Text(SERVICE_ID_PATTERN, "DC46AF1B1AAA424B58D1368176")  # of the bundled sample world
_LINE_ITEM = r"^[a-z0-9_]+$"
_SERIES = kinds.Text(ASKED_SERIES_PATTERN, "CPI.ZA", LONGEST_CODE)
ServiceId = Annotated[str, _SERVICE_ID, "Organisation identifier issued by Sankofa."]
AsOf = Annotated[
    date | None,
    kinds.Day(past=True),
    "Returns what was knowable on that day; default: today (UTC). A day in the future is a 400.",
]
PeriodType = Annotated[str | None, kinds.Choice(PERIOD_TYPES), "Reporting cadence."]
Vintages = Annotated[
    Literal["latest", "as_reported", "all"],
    kinds.Choice(("latest", "as_reported", "all")),
    "`latest`: the latest vintage knowable by as_of; `as_reported`: the value as first filed; "
    "`all`: every restatement.",
]
Edition = Annotated[
    str | None,
    kinds.Text(EDITION_PATTERN),  # any example would name a removed edition
    "Edition to answer from: the `edition` of an earlier answer; the current one by default. A removed "
    "or withdrawn edition gives 410, an unknown one 404. The header field `X-Edition` does the same.",
]
KnownBy = Annotated[
    datetime | None,
    kinds.Instant(),
    "Returns what this service had published by that instant, from the newest edition kept from that "
    "time. The envelope repeats the instant. No rows if nothing was published yet. Not with `edition`.",
]
Format = Annotated[
    str | None,
    kinds.Choice(("json", "csv", "arrow", "xlsx"), "json"),
    "Format of the answer; takes precedence over `Accept`.",
]
Since = Annotated[str | None, kinds.Text(EDITION_PATTERN), "Edition of your copy; omit it to get everything."]
ChangedDataset = Annotated[
    str | None, kinds.Choice(FOLLOWED, "fundamentals"), "Dataset to list changes of; all by default."
]
Limit = Annotated[int | None, kinds.Whole(), "Maximum number of rows."]
MOST_MATCHES = 20
MatchLimit = Annotated[int | None, kinds.Whole(10, MOST_MATCHES), "Maximum number of matches."]
LimitOrAll = Annotated[
    int | None, kinds.Whole(), "Maximum number of rows; all by default on a paid tier.", ALL_BY_DEFAULT
]
LineItems = Annotated[
    tuple[str, ...] | None,
    kinds.Words(_LINE_ITEM, "revenue", longest=LONGEST_LINE_ITEM),
    "Line items to return; an item that the issuer does not report has no rows.",
]
FundamentalsOrder = Annotated[
    Literal["period", "statement"] | None,
    kinds.Choice(("period", "statement")),
    "`period`: newest first, then by period_type, line_item, vintage; `statement`: core line items first.",
]
IdType = Annotated[
    str,
    kinds.Choice(("lei", "ticker", "registry", "aggregator", "isin", "figi")),
    "Kind of the outside identifier.",
]
IdValue = Annotated[
    str,
    plain_text(64, "999900SAMPLEZA000189"),  # of the bundled sample world
    "The outside identifier; a ticker is written EXCHANGE:TICKER.",
]
Country = Annotated[str | None, kinds.Country(), "ISO 3166-1 alpha-2 code, in any case."]
_METRIC = "Slug of the metrics-v1 set; `/methodology/metrics-v1/<slug>` explains each."
RequiredMetric = Annotated[str, kinds.Choice(slugs(), "revenue_growth"), _METRIC]
Metric = Annotated[str | None, kinds.Choice(slugs(), "revenue_growth"), _METRIC + " Omit for every metric."]
ChosenBasis = Annotated[
    Basis | None,
    kinds.Choice(("current", "as_known"), "as_known"),
    "`current` (default): today's figures, without values whose inputs were restated or completed after "
    "`as_of`. `as_known`: the figures known on `as_of`; no later event leaves anything out.",
]
MaxAge = Annotated[
    int | None,
    kinds.Whole(18, 1200),
    "Leaves out values whose `period_end` is more than this many months before `as_of`.",
]
Order = Annotated[
    Literal["asc", "desc"], kinds.Choice(("asc", "desc"), "desc"), "Order by value: ascending or descending."
]
Query = Annotated[
    str, plain_text(200, "Kgalagadi Retail"), "A name, a ticker (JSE:NPN or NPN) or another identifier."
]
Search = Annotated[
    str, plain_text(200, "Kgalagadi Retail"), "Words of a name, complete or not, or an identifier."
]
SearchType = Annotated[str | None, kinds.Choice(SEARCH_TYPES), "Type of the results."]
SeriesQuery = Annotated[
    str | None, plain_text(200, "CPI"), "Words that the key or name must have, complete or not."
]
PanelMetrics = Annotated[
    tuple[str, ...] | None,
    kinds.Choices(slugs(), ("net_margin", "return_on_equity")),
    "Metrics: slugs of the metrics-v1 set.",
]
PanelLineItems = Annotated[
    tuple[str, ...] | None,
    kinds.Choices(LINE_ITEMS, ("revenue",)),
    "Line items: the figure of the latest full year known that day, as `/v1/statements` shows it.",
]
PanelSeries = Annotated[
    tuple[str, ...] | None,
    kinds.Words(ASKED_SERIES_PATTERN, "CPI.ZA", LONGEST_CODE, 20),
    "Series keys from `/v1/series`, in any case: the latest observation known that day.",
]
PanelIssuers = Annotated[
    tuple[str, ...] | None,
    kinds.Words(SERVICE_ID_PATTERN, "DC46AF1B1AAA424B58D1368176", 64),
    "Organisation identifiers; default: every issuer known that day.",
]
Every = Annotated[
    Literal["week", "month", "quarter", "year", "change"],
    kinds.Choice(("week", "month", "quarter", "year", "change"), "month"),
    "Days of the rows: the last day of each week (Sunday), month, quarter or year. `change`: for each "
    "issuer the `from` day, and every day on which one of its columns changes; not with `series`.",
]
PanelFrom = Annotated[date, kinds.Day(past=True, example="2024-01-01"), "First day of the panel."]
PanelTo = Annotated[
    date | None,
    kinds.Day(past=True, example="2024-12-31"),
    "Last day of the panel; default: today (UTC).",
]
SeriesKey = Annotated[str, _SERIES, "Series key, in any case, as `/v1/series` lists it."]
StatementKind = Annotated[
    str | None, kinds.Choice(STATEMENT_KINDS), "Only this statement: income, balance sheet or cash flow."
]
Shape = Annotated[
    Literal["long", "wide"],
    kinds.Choice(("long", "wide"), "long"),
    "`long`: one row per figure; `wide`: one row per line item, one column per period.",
]
Exchange = Annotated[
    str | None,
    kinds.Text(r"^[A-Za-z0-9._-]{1,40}$", "JSE", longest=40),
    "Name or market identifier code of an exchange, in any case: JSE or XJSE.",
]
TenderCountry = Annotated[str, kinds.Country(), "ISO 3166-1 alpha-2 code, in any case."]
ReleasedFrom = Annotated[date | None, kinds.Day(example="2026-01-01"), "Earliest release date (UTC day)."]
Cursor = Annotated[
    str | None,
    kinds.Text(r"^[A-Za-z0-9_-]{1,3600}$", longest=3600),  # any example would be an invalid cursor
    "`next_cursor` of the previous page, verbatim.",
]
TenderQuery = Annotated[
    str | None,
    plain_text(200, "bridge repair"),
    "Words to find in title and description; every word must occur.",
]
Ocid = Annotated[
    str | None,
    plain_text(200, "ocds-999sza-00134"),
    "Only the releases of this contracting process, as published. Give its `country` too.",
]
ReleasedTo = Annotated[date | None, kinds.Day(example="2026-12-31"), "Latest release date (UTC day)."]
ClosingFrom = Annotated[
    date | None, kinds.Day(example="2026-01-01"), "First day (UTC) on which the tender closes."
]
ClosingTo = Annotated[
    date | None, kinds.Day(example="2026-12-31"), "Last day (UTC) on which the tender closes."
]
Buyer = Annotated[
    str | None,
    plain_text(400, "Groot Sample District Municipality"),
    "Buyer: a service_id, or the whole name as published, in any case.",
]
BuyerQuery = Annotated[
    str | None,
    plain_text(200, "district municipality"),
    "Words to find in the name of the buyer; every word must occur.",
]
SupplierQuery = Annotated[
    str | None,
    plain_text(200, "sample civils"),
    "Words to find in the names of the suppliers of its awards; every word must occur.",
]
Supplier = Annotated[
    str | None,
    plain_text(400, "Duineveld Sample Civils (Pty) Ltd"),
    "Supplier of an award: a service_id, or the whole name as published, in any case.",
]
TenderCategory = Annotated[
    str | None,
    plain_text(400, "Services: Civil"),
    "Category as published by the source portal, in any case.",
]
Status = Annotated[str | None, plain_text(100, "complete"), "Status of the tender as published, in any case."]
Method = Annotated[str | None, plain_text(100, "open"), "Procurement method as published, in any case."]
MinValue = Annotated[
    Decimal | None, kinds.Number(1000000), "Smallest `value_amount`, in the currency of the row."
]
Contract = Annotated[
    str, plain_text(400, "ocds-999sza-00134"), "Open Contracting process identifier, as published."
]
ContractDay = Annotated[
    date | None,
    kinds.Day(past=True, example="2026-03-01"),
    "Compiles the releases up to that day; default: today (UTC). A day in the future is a 400.",
]
Detail = Annotated[
    Literal["compact", "full"],
    kinds.Choice(("compact", "full"), "full"),
    "`full`: rows with `release`, the whole OCDS release; `compact`: without it.",
]
Role = Annotated[str | None, kinds.Text(r"^[A-Za-z]{1,64}$", "supplier"), "Role, such as buyer or supplier."]
OptionalServiceId = Annotated[str | None, _SERVICE_ID, "Only parties resolved to this organisation."]
ClaimSubject = Annotated[
    str,
    plain_text(200, "DC46AF1B1AAA424B58D1368176"),
    "A service_id, EXCHANGE:TICKER, LEI, exact name or series key.",
]
ClaimMeasure = Annotated[
    str | None,
    kinds.Text(r"^[A-Za-z0-9_ -]*$", "revenue", longest=LONGEST_LINE_ITEM),
    "A line item or metric; `net_loss`, `operating_loss` and `loss_before_tax` are negative profits. Omitted "
    "or empty for a series.",
]
ClaimPeriod = Annotated[
    str,
    kinds.Text(r"^[A-Za-z0-9 .,/-]{4,40}$", "2023", longest=40),
    "A year (2023, FY2023, 2023/24), `Q3 2023`, `H1 2023`, `9M 2023`, a month, a date, or START..END.",
]
ClaimValue = Annotated[
    str, plain_text(60, "43.6bn"), "The value as people write it: 2.9bn, 291.9 million, 12%."
]
ClaimUnit = Annotated[
    str | None,
    plain_text(60, "ZAR"),
    "Unit or currency, such as ZAR or USD/shares. If the figure has another unit, the claim is unknown.",
]
RestatedServiceId = Annotated[str | None, _SERVICE_ID, "Only this organisation."]
RestatedSince = Annotated[
    date | None, kinds.Day(example="2020-01-01"), "First day on which the new figure became public."
]
RestatedUntil = Annotated[
    date | None,
    kinds.Day(example="2024-12-31"),
    "Last day on which the new figure became public; default: today (UTC).",
]
LineItem = Annotated[
    str | None, kinds.Text(_LINE_ITEM, "profit", longest=LONGEST_LINE_ITEM), "Only this line item."
]
MatrixLineItem = Annotated[
    str, kinds.Text(_LINE_ITEM, "revenue", longest=LONGEST_LINE_ITEM), "Line item, e.g. revenue."
]
Release = Annotated[
    str,
    kinds.Text(r"^(all|revisions|first|latest|[1-9][0-9]{0,3})$", "first"),
    "`all`: a column for each release day. `revisions`: only values that replaced others. `first`, `latest` "
    "or a number: only that release of each date.",
]
MinChange = Annotated[
    Decimal | None,
    kinds.Number(),
    "Smallest |change|, as a ratio: 0.05 is 5%. Leaves out rows whose change is null.",
]
MacroCountry = Annotated[
    str | None, kinds.Country(alpha3=True), "ISO 3166-1 alpha-2 or alpha-3 code, in any case."
]
Indicator = Annotated[
    str | None,
    kinds.Text(INDICATOR_PATTERN, "NY.GDP.MKTP.CD", LONGEST_CODE),
    "Annual mode: indicator code, in any case.",
]
Series = Annotated[
    str | None,
    _SERIES,
    "Series mode: series key, in any case. FX.<base>.<quote> is quote units for one base unit. "
    "WDI:<indicator>:<alpha-3> is an annual indicator, dated by its captures.",
]
SeriesType = Annotated[
    str | None, kinds.Text(SERIES_TYPE_PATTERN, "cpi", LONGEST_TYPE), "Series mode: family, e.g. fx or cpi."
]
Frequency = Annotated[
    str | None, kinds.Choice(FREQUENCIES, "monthly"), "Series mode: how often it is observed."
]
SeriesAsOf = Annotated[
    date | None,
    kinds.Day(past=True),
    "Selects series mode: the latest vintages known on that day. With `series` alone the day is today "
    "(UTC). A day in the future is a 400.",
]
From = Annotated[
    date | int | None,
    kinds.DayOrYear("2024-01-01"),
    "Earliest date; in annual mode also a year.",
]
To = Annotated[
    date | int | None,
    kinds.DayOrYear("2024-12-31"),
    "Latest date; in annual mode also a year.",
]
BaseCurrency = Annotated[str, kinds.Currency("GBP"), "Currency that is priced: ISO 4217 code, in any case."]
QuoteCurrency = Annotated[str, kinds.Currency("ZAR"), "Currency of the price: ISO 4217 code, in any case."]
Via = Annotated[
    str | None, kinds.Currency("EUR"), "Only rates through this third currency: ISO 4217 code, in any case."
]
FromDay = Annotated[date | None, kinds.Day(example="2024-01-01"), "The earliest date."]
ToDay = Annotated[date | None, kinds.Day(example="2024-12-31"), "The latest date."]
SignalKey = Annotated[
    str, kinds.Text("^[a-z0-9-]+$", "macro-momentum"), "Key of the panel, as `/v1/export` lists it."
]
Category = Annotated[
    str | None,
    plain_text(LONGEST_FILTER, "Services: Civil"),
    "Category as published by the source portal.",
]
FromMonth = Annotated[date | None, kinds.Day(example="2023-01-01"), "First month, given by one of its days."]
ToMonth = Annotated[date | None, kinds.Day(example="2024-12-31"), "Last month, given by one of its days."]
Sku = Annotated[
    str,
    kinds.Text(r"^[A-Za-z0-9-]+$", "AF-FUND"),
    "The dataset, in any case: AF-FUND, AF-TENDER or AF-MACRO.",
]
OptionalSku = Annotated[str | None, kinds.Choice(SKUS, "AF-FUND"), "Only this dataset."]
EntityId = Annotated[
    str | None,
    kinds.Text(ENTITY_ID_PATTERN, "DC46AF1B1AAA424B58D1368176"),
    "An organisation's service_id, or the alpha-3 code of a country for its AF-MACRO facts.",
]
SharedCountry = Annotated[
    str | None,
    kinds.Text("^[A-Za-z]{3}$", "ZAF", longest=3),
    "ISO 3166-1 alpha-3 code, in any case; needs `dataset`.",
]
Dataset = Annotated[
    str | None,
    kinds.Choice(SKUS, "AF-FUND"),
    "SKU. With `country`: AF-TENDER or AF-MACRO. With an organisation: AF-FUND (default) or AF-TENDER.",
]
Measure = Annotated[
    str | None,
    kinds.Text(r"^[A-Za-z0-9][A-Za-z0-9._-]*$", "revenue", longest=LONGEST_LINE_ITEM),
    "One measure only, in any case: a line item, an indicator code, a series key, award_value, tender_value.",
]
