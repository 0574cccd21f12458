"""Data that several pages show: search hits, issuers, statements, series, parties, sources and coverage."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from decimal import Decimal
from typing import Final

import msgspec

from sankofa.model.countries import alpha3_of
from sankofa.model.errors import InvalidParameter, NotFound
from sankofa.web.visit import Row, Visit

_TENDERS_SHOWN: Final = 10
_SUPPLIERS_SHOWN: Final = 3
COUNTED: Final = {
    "Organisations": ("entity",),
    "Reported figures": ("fundamentals",),
    "Macro values": ("macro-series", "macro-annual"),
    "Tender releases": ("tender",),
}
"""Datasets whose rows the home page and the page of editions count together."""


async def search_tenders(visit: Visit, words: str, country: str) -> list[Row]:
    """Processes whose text, or name of buyer or supplier, has the words, each with its newest release."""
    releases: list[Row] = []
    for code in [country] if country else await tender_countries(visit):
        releases += (await visit.ask("search_tenders", country=code, query=words)).rows
        releases += (await visit.ask("search_tenders", country=code, buyer_query=words)).rows
        for row in (await visit.ask("search_tenders", country=code, supplier_query=words)).rows:
            named = (
                one for award in row["release"].get("awards") or () for one in award.get("suppliers") or ()
            )
            names = dict.fromkeys(one["name"] for one in named if one.get("name"))
            releases.append({**row, "suppliers": [*names][:_SUPPLIERS_SHOWN]})
    releases.sort(key=lambda row: str(row["release_date"]), reverse=True)
    newest = {(row["country"], row["ocid"]): row for row in reversed(releases)}
    return list(reversed(newest.values()))[:_TENDERS_SHOWN]


async def statement(
    visit: Visit, service_id: str, as_of: str, period_types: Sequence[str], kind: str
) -> tuple[list[Row], bool]:
    """One figure per line item and period, and whether the tier withholds some."""
    answers = [
        await visit.ask("get_statement", service_id=service_id, as_of=as_of, period_type=one, kind=kind)
        for one in period_types
    ]
    return [row for answer in answers for row in answer.rows], any(one.truncated for one in answers)


async def full_years(
    visit: Visit, service_id: str, line_item: str, as_of: date, *, shown: bool = False
) -> list[Row]:
    """The figures of a line item by year as in a statement on a day, oldest first."""
    arguments = {"period_type": "FY", "line_items": [line_item], "as_of": as_of.isoformat()}
    result = await visit.ask("get_statement", shown=shown, drawn=True, service_id=service_id, **arguments)
    return [row for row in result.rows if row["value_reported"] is not None][::-1]


def figure_address(visit: Visit, row: Row, as_of: date | None = None) -> str:
    """The page of the vintages of a figure; on a past day, as seen from there."""
    figure = {name: row[name] for name in ("line_item", "period_end", "period_start", "concept", "unit")}
    if as_of is not None and as_of < visit.today:
        figure["as_of"] = as_of.isoformat()
    return visit.address(f"/company/{row['service_id']}/figure", **figure)


async def has_figures(visit: Visit, service_id: str) -> bool:
    """Whether an organisation reports figures; others are register records."""
    result = await visit.ask("get_fundamentals", shown=False, service_id=service_id, limit="1")
    return bool(result.rows)


async def cited_sources(visit: Visit) -> list[Row]:
    """The sources of the rows on the page, with their publishers, licences and attributions."""
    known = {row["source_id"]: row for row in (await visit.ask("get_sources", shown=False)).rows}
    unknown = dict.fromkeys(("title", "publisher", "url", "licence", "licence_url", "attribution"))
    return [known.get(name, {**unknown, "source_id": name}) for name in sorted(visit.cited)]


async def dataset(visit: Visit, name: str, description: str, dates: Sequence[str] = ()) -> Row:
    """The page as a schema.org Dataset, with its description, sources and licence."""
    sources = await cited_sources(visit)
    described = {
        "@context": "https://schema.org/",
        "@type": "Dataset",
        "name": name,
        "description": description,
        "url": visit.base_url + visit.address(),
        "license": [source["licence_url"] or source["licence"] for source in sources],
        "creditText": "; ".join(str(source["attribution"] or source["source_id"]) for source in sources),
        "isBasedOn": [source["url"] for source in sources if source["url"]],
        "creator": [
            {"@type": "Organization", "name": source["publisher"] or source["source_id"]}
            for source in sources
        ],
        "includedInDataCatalog": {"@type": "DataCatalog", "name": "Sankofa", "url": visit.base_url},
        "temporalCoverage": f"{min(dates)}/{max(dates)}" if dates else None,
        "distribution": [
            {
                "@type": "DataDownload",
                "encodingFormat": "application/json",
                "contentUrl": visit.base_url + one.address,
            }
            for one in visit.calls[:1]
        ],
    }
    return {name: value for name, value in described.items() if value not in (None, [], [None])}


async def countries(visit: Visit, *, shown: bool = True) -> dict[str, dict[str, int]]:
    """Coverage of each country: the count of each unit."""
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    for row in await coverage(visit, shown=shown):
        if row["country"]:
            units = counts[row["country"]]
            units[row["unit_of_count"]] = units.get(row["unit_of_count"], 0) + row["count"]
    return counts


async def issuer_countries(visit: Visit) -> list[str]:
    """The countries of companies with figures, by their names."""
    known = await countries(visit, shown=False)
    return sorted((code for code, units in known.items() if "issuers" in units), key=visit.language.country)


async def tender_countries(visit: Visit) -> list[str]:
    """The countries with tenders, the newest release first."""
    rows = (await visit.ask("get_coverage", shown=False, sku="AF-TENDER")).rows
    newest: dict[str, tuple[str, int]] = {}
    for row in rows:
        if code := row["country"]:
            day, count = newest.get(code, ("", 0))
            newest[code] = max(day, row["last_date"] or ""), count + row["count"]
    return sorted(newest, key=lambda code: newest[code], reverse=True)


async def series_entry(visit: Visit, series: str) -> Row:
    """The catalogue entry of a series, or of the indicator whose tables it comes from; None without one."""
    family, _, rest = series.partition(":")
    code, _, country = rest.partition(":")
    arguments = {"q": code, "country": country} if country else {"q": family}
    result = await visit.ask("list_series", shown=False, drawn=False, **arguments)
    return next((row for row in result.rows if row["series"] in (series, code)), {})


async def releases_of_indicator(visit: Visit, indicator: str, country: str) -> Row | None:
    """The series made of an indicator's tables, and its number of release days."""
    series = f"WDI:{indicator}:{alpha3_of().get(country, country)}"
    try:
        result = await visit.ask("get_series_vintages", shown=False, series=series)
    except NotFound:
        return None
    return {"series": series, "vintages": len(result.rows)} if result.rows else None


async def releases(visit: Visit, series: str) -> list[date]:
    """The release days of a series, oldest first."""
    result = await visit.ask("get_series_vintages", series=series, limit=visit.most_rows(1000))
    return sorted({date.fromisoformat(row["release_date"]) for row in result.rows})


async def coverage(visit: Visit, country: str = "", *, shown: bool = True) -> list[Row]:
    return (await visit.ask("get_coverage", shown=shown, country=country)).rows


async def annual_values(visit: Visit, country: str, indicator: str, *, shown: bool) -> list[Row]:
    """The values of an annual indicator of a country, oldest year first."""
    arguments = {"country": country, "indicator": indicator, "limit": visit.most_rows(200)}
    result = await visit.ask("get_macro", shown=shown, drawn=True, **arguments)
    return [row for row in result.rows if row["value"] is not None][::-1]


_MOST_RESOLVED: Final = 24
"""Maximum number of parties with a link. The rest are plain names, because a page counts as one request."""
_MOST_CANDIDATES: Final = 3
_MOST_SEEN: Final = 200
_MOST_LISTS: Final = 32
"""Most lists of parties that one page reads. If names resemble many organisations, the last get no link."""


class NamedParty(msgspec.Struct, frozen=True):
    """An organisation named in a release, with its role in the process."""

    name: str
    roles: Sequence[str]
    identifier: str
    service_id: str | None
    evidence: str
    """The evidence that it is an organisation; empty if not looked up."""


async def indicator_rows(visit: Visit, **parameters: str) -> list[Row]:
    """The red flags of a process or party; with `indicator` in the address, of these indicators."""
    parameters |= visit.passed_on("indicator")
    return (await visit.ask("get_flags", shown="ocid" in parameters, drawn=True, **parameters)).rows


async def named_parties(visit: Visit, releases: Sequence[Row]) -> list[NamedParty]:
    """The parties of a process that may be named, in the order of the releases.

    Releases never contain withheld parties.
    """
    roles: dict[tuple[str, str, str], dict[str, None]] = {}
    for release in releases:
        for party in release.get("parties") or []:
            if name := party.get("name"):
                own = party.get("identifier") or {}
                key = name, str(own.get("scheme") or ""), str(own.get("id") or "")
                roles.setdefault(key, {}).update(dict.fromkeys(party.get("roles") or []))
    parties = []
    lists = iter(range(_MOST_LISTS))
    for number, ((name, scheme, own_id), kinds) in enumerate(roles.items()):
        row = await _resolved(visit, name, own_id, lists) if number < _MOST_RESOLVED else None
        identifier = " ".join(filter(None, (scheme, own_id)))
        evidence = row["org_evidence"] if row else ""
        parties.append(
            NamedParty(name, list(kinds), identifier, row["service_id"] if row else None, evidence)
        )
    return parties


async def _resolved(visit: Visit, name: str, own_id: str, lists: Iterator[int]) -> Row | None:
    """The row of `/v1/tender-parties` that resolves exactly this party, by name and identifier.

    The list cannot be searched by name, so the search gives candidates and the list confirms one. A name that
    is only similar gives no row. Each list read uses up one of `lists`.
    """
    for words in filter(None, (own_id, name)):
        for service_id, _ in zip(await _candidates(visit, words), lists, strict=False):
            result = await visit.ask(
                "get_resolved_parties", shown=False, service_id=service_id, limit=visit.most_rows(_MOST_SEEN)
            )
            for row in result.rows:
                if row["name"] == name and (row["identifier"] or {}).get("id", "") == own_id:
                    return row
    return None


async def _candidates(visit: Visit, words: str) -> list[str]:
    try:
        result = await visit.ask("search", shown=False, q=words, type="organisation")
    except InvalidParameter:  # too long for a search, or with characters not allowed in one
        return []
    return [row["id"] for row in result.rows[:_MOST_CANDIDATES]]


_SCALES: Final = (1_000_000, 1_000)
_MOST_PERIODS: Final = {"year": 6, "half": 6, "quarter": 8}
_PER_SHARE: Final = ("eps_basic", "eps_diluted", "headline_eps")


class StatementTable(msgspec.Struct, frozen=True):
    """The figures of one statement, one per line item and period."""

    periods: list[tuple[str, str]]
    """(period_end, period_type), the newest first."""
    lines: list[tuple[str, list[Row | None]]]
    currency: str | None
    scale: int
    """Money is shown divided by this; no figure loses a digit."""
    figures: int
    restated: int


def arrange(
    rows: Sequence[Row], order: Sequence[str], cadence: str, *, truncated: bool = False
) -> StatementTable:
    """Put the rows of an answer into a table, with the most frequent currency in its heading.

    The oldest period of a `truncated` answer is left out if less than half of it arrived.
    """
    cells = {(row["line_item"], (row["period_end"], row["period_type"])): row for row in rows}
    currencies = Counter(row["currency_reported"] for row in rows if row["currency_reported"])
    currency = currencies.most_common(1)[0][0] if currencies else None
    periods = sorted({period for _, period in cells}, reverse=True)[: _MOST_PERIODS[cadence]]
    counts = Counter(period for _, period in cells)
    if truncated and len(periods) > 1 and 2 * counts[periods[-1]] < counts[periods[0]]:
        periods.pop()
    lines = [(item, [cells.get((item, period)) for period in periods]) for item in order]
    lines = [(item, line) for item, line in lines if any(line)]
    shown = [row for _, line in lines for row in line if row]
    return StatementTable(
        periods, lines, currency, _scale(shown), len(shown), sum(bool(row["restated"]) for row in shown)
    )


def _is_money(row: Row) -> bool:
    return row["currency_reported"] is not None and row["line_item"] not in _PER_SHARE


def unit_beside(row: Row, table: StatementTable) -> str:
    """The unit to write beside a figure; empty if it is the currency in the heading of the table."""
    return "" if _is_money(row) and row["currency_reported"] == table.currency else row["unit"] or ""


def _scale(rows: Iterable[Row]) -> int:
    """The largest scale that keeps every digit."""
    values = [row["value_reported"] for row in rows if _is_money(row) and row["value_reported"] is not None]
    for scale in _SCALES:
        if values and all(value % scale == 0 for value in values):
            return scale
    return 1


def reading_scale(table: StatementTable) -> int:
    """Millions or thousands, depending on the largest figure of a table."""
    shown = (row for _, line in table.lines for row in line if row and _is_money(row))
    largest = max((abs(row["value_reported"] or 0) for row in shown), default=0)
    return next((scale for scale in _SCALES if largest >= 100 * scale), 1)


def for_reading(row: Row, scale: int) -> Decimal | None:
    """The figure of a row as shown in its table, before rounding."""
    value = row["value_reported"]
    return None if value is None else Decimal(value) / (scale if _is_money(row) else 1)
