"""A buyer or a supplier of public tenders: what was spent each year, with whom, and on what."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple

from sankofa.model.errors import NotFound
from sankofa.web import data
from sankofa.web.charts import Chart, bar_chart
from sankofa.web.pages.tenders import listed
from sankofa.web.view import View, page
from sankofa.web.visit import Row, Visit

_PAGES_READ: Final = 4
_RELEASES_AT_ONCE: Final = 500
_MOST_PROCESSES: Final = 200
_MOST_PARTNERS: Final = 20
_MOST_LISTED: Final = 25
_OTHER: Final = {"buyer": "supplier", "supplier": "buyer"}


class Spend(NamedTuple):
    """The value of one award: its year, its currency, and the other side of it."""

    year: str
    currency: str
    amount: Decimal
    partner: str | None
    """None if it may not be named."""


@page("/buyer/{country}/{name*}")
async def buyer(visit: Visit) -> View:
    """The tenders of a buyer, by service_id or by its name as published."""
    return await _party(visit, "buyer")


@page("/supplier/{country}/{name*}")
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
        "rows": [listed(visit, row) for row in processes[:_MOST_LISTED]],
        "count": len(processes),
        "more": more,
        "indicator_rows": await data.indicator_rows(visit, country=country, **{role: name}),
    }
    return View("party.html", str(context["name"]), context, (_by_year(visit, years),))


async def _latest(visit: Visit, role: str, country: str, name: str) -> tuple[list[Row], bool]:
    """The latest release of each process that names the party, newest first, and whether there are more."""
    asked: dict[str, Any] = {"country": country, role: name, "limit": visit.most_rows(_RELEASES_AT_ONCE)}
    releases, more = await visit.ask_pages("search_tenders", _PAGES_READ, **asked)
    processes: dict[str, Row] = {}
    for row in releases:
        processes.setdefault(row["ocid"], row)
    visit.cuts.clear()  # more than the first answer is read, and the page says where that ends
    for ocid in list(processes)[:_MOST_PROCESSES]:
        asked = {"country": country, "ocid": ocid, "limit": visit.most_rows(1)}
        own = await visit.ask("search_tenders", shown=False, drawn=False, **asked)
        processes[ocid] = own.first
    return list(processes.values()), more


async def _identity(
    visit: Visit, role: str, country: str, name: str, processes: Sequence[Row]
) -> tuple[str | None, set[str]]:
    """The service_id of the party, and the names that it has in tenders, in lower case."""
    if role == "buyer":
        return next((row["buyer_service_id"] for row in processes if row["buyer_service_id"]), None), set()
    if not (name.startswith("DC") and len(name) == 26):
        return None, {name.casefold()}
    seen = await visit.ask(
        "get_resolved_parties", shown=False, drawn=False, service_id=name, country=country, role=role
    )
    return name, {row["name"].casefold() for row in seen.rows}


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
    """For each currency the other side of the awards, largest first, and how concentrated the spend is.

    Concentration is the Herfindahl-Hirschman index of those named: the sum of their squared shares, 1 where
    one has all; None if nobody is named. Those not named may be many, so they are not one of them.
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
    """The currency with most years as bars; every figure in its table."""
    currencies = sorted({currency for _, currency in years})
    shown = max(currencies, key=lambda one: sum(c == one for _, c in years), default="")
    bars = [(year, amount) for (year, currency), amount in sorted(years.items()) if currency == shown]
    title = visit.language.text("Value of awards by year, %(currency)s", currency=shown)
    table = [(year, currency, amount) for (year, currency), amount in sorted(years.items())]
    return bar_chart("spend", title, bars, visit.language.short, (("year", "currency", "amount"), table))
