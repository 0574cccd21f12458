"""Public tenders, newest first; one process with its releases; and buyers and suppliers, with spending
by year, counterparty and category."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple

from sankofa.model.errors import NotFound
from sankofa.model.ocds.fields import moment
from sankofa.web import data
from sankofa.web.charts import Chart, bar_chart
from sankofa.web.data import named_parties
from sankofa.web.view import View, page
from sankofa.web.visit import Row, Visit

_PAGES_READ: Final = 4
_RELEASES_AT_ONCE: Final = 200
_MOST_CHANGES: Final = 40
_LONGEST_HEADING: Final = 140
_LONGEST_BELOW: Final = 220
_WORDS: Final = re.compile(r"(?<![^\W\d_])[^\W\d_]{3,}+\s++[^\W\d_]{2}")
"""Two words in a row: a title without them is a reference number."""
_FILTERS: Final = (
    "from", "to", "supplier", "category", "status", "method", "min_value", "closing_from", "closing_to",
)  # fmt: skip
_ENDED: Final = ("cancelled", "unsuccessful", "withdrawn")
_WEEK: Final = 7
_MOST_CLOSING: Final = 8
_MOST_LISTED: Final = 50
_SORTS: Final = ("published", "closing", "value")
_SORTED_AT_ONCE: Final = 500
_PAGES_SORTED: Final = 2
_SORTED_ON_A_PAGE: Final = 25
_COMPARED: Final = (
    "title", "status", "category", "procurement_method", "value_amount", "value_currency", "buyer_name",
    "award_count", "withheld_parties",
)  # fmt: skip


class FieldChange(NamedTuple):
    path: str
    before: object
    after: object


@page("/tenders", "country", "q", "buyer", *_FILTERS, "cursor", "limit", "sort", "page")
async def tenders(visit: Visit) -> View:
    """One page of releases, newest first, or of processes in another order; and what closes this week."""
    countries = await data.tender_countries(visit)
    country = visit.given("country", countries[0] if countries else "ZA")
    arguments: dict[str, Any] = {
        "country": country,
        "query": visit.given("q"),
        "buyer_query": visit.given("buyer"),
    }
    arguments |= visit.passed_on(*_FILTERS)
    sort = visit.chosen("sort", _SORTS)
    narrowed = any(visit.given(name) for name in ("q", "buyer", "cursor", "page", *_FILTERS))
    context: dict[str, Any] = {"next_cursor": None, "next_page": None, "cut": False}
    if sort == _SORTS[0]:
        result = await visit.ask(
            "search_tenders", shown=True, **arguments, cursor=visit.given("cursor"), limit=visit.limit()
        )
        rows, context["next_cursor"] = result.rows, result.next_cursor
    else:
        rows, context["cut"] = await _sorted(visit, arguments, sort)
        number = visit.page_number(_PAGES_SORTED * _SORTED_AT_ONCE)
        first = number * _SORTED_ON_A_PAGE
        if len(rows) > first + _SORTED_ON_A_PAGE:
            context["next_page"] = number + 2
        rows = rows[first : first + _SORTED_ON_A_PAGE]
    context |= {
        "sort": sort,
        "rows": [listed(visit, row) for row in rows],
        "closing": [] if narrowed or sort == "closing" else await _closing(visit, country),
        "country": country.upper(),
        "countries": countries,
        "withheld": sum(row["withheld_parties"] for row in rows),
    }
    return View("tenders.html", visit.language.text("Tenders"), context)


async def _sorted(visit: Visit, arguments: Mapping[str, Any], sort: str) -> tuple[list[Row], bool]:
    """The processes that match, each by its newest matching release, in an order; and whether there are more.

    By closing date: open processes, soonest first, then closed ones, latest first. Missing values come last.
    """
    today = visit.today.isoformat()
    rows: list[Row] = []
    if sort == "closing":  # in a long list, open processes may be far behind the newest releases
        open_ones = {**arguments, "closing_from": max(today, str(arguments["closing_from"]))}
        rows, _ = await _newest_matching(visit, open_ones, shown=False)
    matching, cut = await _newest_matching(visit, arguments, shown=True)
    processes = {row["ocid"]: row for row in reversed([*rows, *matching])}

    def sort_key(row: Row) -> tuple[Any, ...]:
        if sort == "value":
            return row["value_amount"] is None, -(row["value_amount"] or 0), row["ocid"]
        closing = row["closing_date"] or ""
        is_open = closing[:10] >= today
        day = date.fromisoformat(closing[:10]).toordinal() if closing else 0
        return not is_open, day if is_open else -day, row["ocid"]

    return sorted(processes.values(), key=sort_key), cut


async def _newest_matching(
    visit: Visit, arguments: Mapping[str, Any], *, shown: bool
) -> tuple[list[Row], bool]:
    """The newest matching releases, as many as a page sorts, and whether there are more."""
    arguments = {**arguments, "detail": "compact", "limit": visit.most_rows(_SORTED_AT_ONCE)}
    rows, more = await visit.ask_pages("search_tenders", _PAGES_SORTED, shown=shown, **arguments)
    visit.cuts.clear()  # more than the first answer is read, and the page says where that ends
    return rows, more


async def _closing(visit: Visit, country: str) -> list[dict[str, Any]]:
    """The processes that close within a week by their newest release, soonest first."""
    week = visit.today + timedelta(days=_WEEK)
    result = await visit.ask(
        "search_tenders",
        shown=False,
        country=country,
        closing_from=visit.today.isoformat(),
        closing_to=week.isoformat(),
        detail="compact",
    )
    rows = {row["ocid"]: row for row in reversed(result.rows)}
    soon = sorted(rows.values(), key=lambda row: (row["closing_date"], row["ocid"]))
    newest = [
        await _newest(visit, row["country"], row["ocid"], detail="compact", limit="1")
        for row in soon[:_MOST_CLOSING]  # a later release may have moved the closing day
    ]
    shown = [listed(visit, row) for row in newest if (row["closing_date"] or "")[:10] <= week.isoformat()]
    return [row for row in shown if row["state"].word == "open"]


async def _newest(visit: Visit, country: str, ocid: str, **options: Any) -> Row:
    """The newest release of a process."""
    return (await visit.ask("search_tenders", shown=False, country=country, ocid=ocid, **options)).first


def listed(visit: Visit, row: Row) -> dict[str, Any]:
    """A release for a list. If the title is a reference number, the description comes first, or the buyer if
    there is no description."""
    title, description = row["title"] or row["ocid"], _description(row)
    heading, below = title, description
    if not _WORDS.search(title):
        if description:
            heading, below = description, title
        elif row["buyer_name"]:
            heading = f"{row['buyer_name']}: {title}"
    return {
        **row,
        "address": visit.address(f"/tender/{row['country']}/{row['ocid']}"),
        "state": process_state(row["status"], row["closing_date"], bool(row["award_count"]), visit.today),
        "heading": _short(heading, _LONGEST_HEADING),
        "below": _short(below, _LONGEST_BELOW) if below and below != heading else "",
    }


def _description(row: Row) -> str:
    tender = (row.get("release") or {}).get("tender") or {}
    return " ".join(str(tender.get("description") or row.get("description") or "").split())


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most].rsplit(" ", 1)[0] + "\N{HORIZONTAL ELLIPSIS}"


class ProcessState(NamedTuple):
    word: str
    """`open`, `closed`, `awarded`, or the status as published."""
    closing: str | None = None
    days_left: int | None = None


def process_state(status: str | None, closing: str | None, awarded: bool, day: date) -> ProcessState:
    """Portals leave tenders `active` long after they close, so the closing day decides."""
    if status in _ENDED:
        return ProcessState(status, closing)
    if awarded:
        return ProcessState("awarded", closing)
    if not closing:
        return ProcessState(status or "")
    left = (date.fromisoformat(closing[:10]) - day).days
    return ProcessState("closed", closing) if left < 0 else ProcessState("open", closing, left)


@page("/tender/{country}/{ocid*}", "as_of", "indicator")
async def tender(visit: Visit) -> View:
    """One process as it stood on a day: the compiled release, and the changes of each release."""
    ocid, country = visit.parameters["ocid"], visit.parameters["country"]
    day = visit.day()
    as_of = visit.given("as_of")
    result = await visit.ask("get_contract", ocid=ocid, as_of=as_of)
    arguments: dict[str, Any] = {"country": country, "ocid": ocid, "to": as_of}
    arguments["limit"] = visit.most_rows(_RELEASES_AT_ONCE)
    releases, more = await visit.ask_pages("search_tenders", _PAGES_READ, **arguments)
    if not releases and not as_of:
        raise NotFound("No release of this process was found.")
    releases.sort(key=lambda row: (row["release_date"], row["release_id"]))
    steps = [
        {"row": row, "changes": _changes(before, row) if before else []}
        for before, row in zip([None, *releases], releases, strict=False)
    ]
    context: dict[str, Any] = {"ocid": ocid, "country": country.upper(), "as_of": day, "steps": steps[::-1]}
    if not releases or not result.rows:
        context |= {"latest": None, "heading": ocid, "description": "", "of_title": ""}
        return View("tender.html", ocid, context)
    latest, contract = releases[-1], result.first
    shown = listed(visit, latest)
    context |= {
        "latest": latest,
        "parties": await named_parties(visit, [row["release"] for row in releases]),
        "withheld": max(row["withheld_parties"] for row in releases),
        "more": more,
        "heading": shown["heading"],
        "description": _description(latest),
        "of_title": latest["title"],
        "changes": contract["changes"],
        "indicator_rows": await data.indicator_rows(visit, ocid=ocid, country=country, as_of=as_of),
        **_details(contract["release"], day),
    }
    return View("tender.html", shown["heading"], context)


def _details(release: Row, day: date) -> dict[str, Any]:
    """The parts of a compiled release that the page shows."""
    tender = release.get("tender") or {}
    awards, contracts = release.get("awards") or [], release.get("contracts") or []
    names = {str(party.get("id")): party.get("name") for party in release.get("parties") or []}
    period = tender.get("tenderPeriod") or {}
    closing = moment(str(period.get("endDate") or ""))
    owners = (release.get("planning") or {}, tender, *awards, *contracts)
    return {
        "tender": tender,
        "opening": moment(str(period.get("startDate") or "")),
        "closing": closing,
        "state": process_state(tender.get("status"), closing, bool(awards), day),
        "documents": [
            _dated(document, "datePublished")
            for owner in owners
            for document in owner.get("documents") or []
            if str(document.get("url") or "").lower().startswith(("https://", "http://"))
        ][:_MOST_LISTED],
        "lots": (tender.get("lots") or [])[:_MOST_LISTED],
        "items": (tender.get("items") or [])[:_MOST_LISTED],
        "bids": [
            {**bid, "who": _names(bid.get("tenderers"), names)}
            for bid in ((release.get("bids") or {}).get("details") or [])[:_MOST_LISTED]
        ],
        "awards": [
            {**_dated(award, "date"), "who": _names(award.get("suppliers"), names)}
            for award in awards[:_MOST_LISTED]
        ],
        "contracts": [_dated(contract, "dateSigned") for contract in contracts[:_MOST_LISTED]],
    }


def _dated(part: Row, field: str) -> Row:
    """A part of a release whose date can be written."""
    return {**part, field: moment(str(part.get(field) or ""))}


def _names(organisations: list[Row] | None, names: Mapping[str, str | None]) -> list[str]:
    """The referenced names that may be served."""
    served = (one.get("name") or names.get(str(one.get("id"))) for one in organisations or [])
    return list(dict.fromkeys(name for name in served if name))


def _changes(before: Row, after: Row) -> list[FieldChange]:
    changes = [
        FieldChange(name, before[name], after[name]) for name in _COMPARED if before[name] != after[name]
    ]
    old, new = dict(_leaves(before["release"], "")), dict(_leaves(after["release"], ""))
    for path in sorted(old.keys() | new.keys()):
        if path.split(".")[0] not in ("id", "date", "tag") and old.get(path) != new.get(path):
            changes.append(FieldChange(path, old.get(path), new.get(path)))
    return changes[:_MOST_CHANGES]


def _leaves(value: object, path: str) -> Iterator[tuple[str, object]]:
    """The values in a document, each under its path."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for number, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{number}]")
    else:
        yield path, value


_ROLES: Final = ("buyer", "supplier", "tenderer", "procuringEntity")


@page("/parties", "country", "role", "cursor", "limit")
async def parties(visit: Visit) -> View:
    """Most releases first. Only organisations are listed."""
    arguments = visit.passed_on("country", "role", "cursor") | {"limit": visit.limit()}
    result = await visit.ask("get_resolved_parties", **arguments)
    context = {
        "rows": result.rows,
        "countries": await data.tender_countries(visit),
        "roles": _ROLES,
        "next_cursor": result.next_cursor,
    }
    return View("parties.html", visit.language.text("Buyers and suppliers"), context)


_PARTY_PAGES: Final = 4
_PARTY_RELEASES: Final = 500
_MOST_PROCESSES: Final = 200
_MOST_PARTNERS: Final = 20
_PROCESSES_SHOWN: Final = 25
_OTHER: Final = {"buyer": "supplier", "supplier": "buyer"}


class Spend(NamedTuple):
    """The value of one award, with its year, currency and counterparty."""

    year: str
    currency: str
    amount: Decimal
    partner: str | None
    """None if it may not be named."""


@page("/buyer/{country}/{name*}", "indicator")
async def buyer(visit: Visit) -> View:
    """The tenders of a buyer, by service_id or by its name as published."""
    return await _party(visit, "buyer")


@page("/supplier/{country}/{name*}", "indicator")
async def supplier(visit: Visit) -> View:
    """The awards of a supplier, by service_id or by its name as published."""
    return await _party(visit, "supplier")


async def _party(visit: Visit, role: str) -> View:
    country, name = visit.parameters["country"].upper(), visit.parameters["name"]
    processes, more = await _latest(visit, role, country, name)
    if not processes:
        raise NotFound(f"No tender names this {role}.")
    service_id, names = await _identity(visit, role, country, name, processes)
    awards = [award for row in processes for award in spends(row, role, names)]
    years: defaultdict[tuple[str, str], Decimal] = defaultdict(Decimal)
    for award in awards:
        years[award.year, award.currency] += award.amount
    context = {
        "role": role,
        "other": _OTHER[role],
        "name": name if name != service_id else (_published(processes[0], role, names) or name),
        "country": country,
        "service_id": service_id,
        "years": sorted(years.items(), reverse=True),
        "partners": _partners(awards),
        "rows": [listed(visit, row) for row in processes[:_PROCESSES_SHOWN]],
        "count": len(processes),
        "more": more,
        "indicator_rows": await data.indicator_rows(visit, country=country, **{role: name}),
    }
    return View("party.html", str(context["name"]), context, (_by_year(visit, years),))


async def _latest(visit: Visit, role: str, country: str, name: str) -> tuple[list[Row], bool]:
    """The latest release of each process that names the party, newest first, and whether there are more."""
    arguments: dict[str, Any] = {"country": country, role: name, "limit": visit.most_rows(_PARTY_RELEASES)}
    releases, more = await visit.ask_pages("search_tenders", _PARTY_PAGES, **arguments)
    processes: dict[str, Row] = {}
    for row in releases:
        processes.setdefault(row["ocid"], row)
    visit.cuts.clear()  # more than the first answer is read, and the page says where that ends
    for ocid in list(processes)[:_MOST_PROCESSES]:
        processes[ocid] = await _newest(visit, country, ocid, limit=visit.most_rows(1))
    return list(processes.values()), more


async def _identity(
    visit: Visit, role: str, country: str, name: str, processes: Sequence[Row]
) -> tuple[str | None, set[str]]:
    """The service_id of the party, and the names that it has in tenders, in lower case."""
    if role == "buyer":
        return next((row["buyer_service_id"] for row in processes if row["buyer_service_id"]), None), set()
    if not (name.startswith("DC") and len(name) == 26):
        return None, {name.casefold()}
    resolved = await visit.ask(
        "get_resolved_parties", shown=False, drawn=False, service_id=name, country=country, role=role
    )
    return name, {row["name"].casefold() for row in resolved.rows}


def spends(row: Row, role: str, names: set[str]) -> Iterator[Spend]:
    """The awards of a release that have a value; for a supplier its own."""
    for award in row["release"].get("awards") or []:
        suppliers = [party.get("name") for party in award.get("suppliers") or []]
        value = award.get("value") or {}
        amount, currency = value.get("amount"), value.get("currency")
        if amount is None or not currency:
            continue
        year = str(award.get("date") or row["release_date"])[:4]
        if role == "supplier":
            if any(one and one.casefold() in names for one in suppliers):
                yield Spend(year, currency, Decimal(amount), row["buyer_name"])
            continue
        for one in suppliers[:1] or [None]:
            yield Spend(year, currency, Decimal(amount), one)


def _published(row: Row, role: str, names: set[str]) -> str | None:
    if role == "buyer":
        return row["buyer_name"]  # type: ignore[no-any-return]
    suppliers = (
        party for award in row["release"].get("awards") or [] for party in award.get("suppliers") or []
    )
    return next((p["name"] for p in suppliers if p.get("name") and p["name"].casefold() in names), None)


def _partners(awards: Sequence[Spend]) -> list[dict[str, Any]]:
    """For each currency the counterparties, largest first, and the concentration of spending.

    Concentration is the Herfindahl-Hirschman index of the named counterparties: the sum of their squared
    shares, 1 if one has everything; None if nobody is named. Unnamed ones may be many, so they are left out.
    """
    by_currency: defaultdict[str, defaultdict[str, list[Decimal]]] = defaultdict(lambda: defaultdict(list))
    for award in awards:
        by_currency[award.currency][award.partner or ""].append(award.amount)
    tables = []
    for currency, partners in sorted(by_currency.items()):
        sums = {name: sum(amounts, Decimal()) for name, amounts in partners.items()}
        whole = sum(sums.values(), Decimal())
        shares = {name: amount / whole if whole else Decimal() for name, amount in sums.items()}
        largest = sorted(sums, key=lambda name: (-sums[name], name))[:_MOST_PARTNERS]
        rows = [(name, len(partners[name]), sums[name], shares[name]) for name in largest]
        attributed = whole - sums.get("", Decimal())
        named = (amount / attributed for name, amount in sums.items() if name and attributed)
        tables.append(
            {
                "currency": currency,
                "rows": rows,
                "hhi": sum((share * share for share in named), Decimal()) or None,
                "unnamed": shares.get(""),
                "more": len(sums) - len(rows),
            }
        )
    return tables


def _by_year(visit: Visit, years: dict[tuple[str, str], Decimal]) -> Chart:
    """Bars for the currency with most years; the table has every figure."""
    currencies = sorted({currency for _, currency in years})
    shown = max(currencies, key=lambda one: sum(c == one for _, c in years), default="")
    bars = [(year, amount) for (year, currency), amount in sorted(years.items()) if currency == shown]
    title = visit.language.text("Value of awards by year, %(currency)s", currency=shown)
    table = [(year, currency, amount) for (year, currency), amount in sorted(years.items())]
    return bar_chart("spend", title, bars, visit.language.short, (("year", "currency", "amount"), table))
