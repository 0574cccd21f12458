"""A company: its statements on any day, metrics, identifiers, tenders and everything known of it; one figure
with its vintages; and the list of figures that replaced earlier ones.
"""

from collections import Counter
from datetime import date
from decimal import Decimal
from statistics import median
from typing import Any, Final

import msgspec

from sankofa.derive.metrics.contract import metrics
from sankofa.model.errors import InvalidParameter, NotFound
from sankofa.model.line_items import LINE_ITEMS, STATEMENT_KINDS, line_item
from sankofa.web import data
from sankofa.web.charts import Chart, KnownValue, heat_map, small_line, step_chart
from sankofa.web.data import StatementTable, arrange, for_reading, reading_scale, unit_beside
from sankofa.web.languages import label
from sankofa.web.view import View, page
from sankofa.web.visit import Row, Visit

_PERIOD_TYPES: Final = {"year": ("FY",), "quarter": ("Q1", "H1", "9M", "FY"), "half": ("H1", "FY")}
_OF_INCOME: Final = {"year": ("FY",), "quarter": ("Q1", "Q2", "Q3", "Q4"), "half": ("H1", "H2")}
_MOST_STOPS: Final = 12
_MOST_PERIODS: Final = 20
_TELLING: Final = ("revenue", "profit", "assets", "equity")


_FACTS: Final = ("revenue", "profit", "operating_cash_flow", "total_debt", "equity")
_RANKED: Final = ("revenue_growth", "net_margin", "operating_margin", "return_on_equity", "debt_to_equity")
_MOST_BESIDE: Final = 3
_RESTATEMENTS_SHOWN: Final = "8"


@page("/company/{service_id}", "as_of", "kind", "period", "beside")
async def company(visit: Visit) -> View:
    """The page of one company. The part `statements` is everything except the day control."""
    service_id = visit.parameters["service_id"]
    as_of = visit.day()
    context = await _statements(visit, service_id, as_of)
    context.update(await _metrics(visit, service_id, as_of))
    answer = await visit.ask("get_entity", service_id=service_id, as_of=as_of.isoformat(), shown=False)
    day_of_record = as_of.isoformat()
    if not answer.rows:  # unknown on that day
        answer, day_of_record = await visit.ask("get_entity", service_id=service_id, shown=False), ""
    entity, successor = answer.first, answer.members["successor"]
    context["facts"], facts = await _facts(visit, service_id, as_of)
    context["ranks"] = await _ranks(visit, entity, context["metrics"], as_of)
    context["country"] = entity["country"]
    restated = await visit.ask(
        "get_restatements",
        shown=False,
        service_id=service_id,
        until=as_of.isoformat(),
        limit=_RESTATEMENTS_SHOWN,
    )
    context["restatements"] = restated.rows
    facts.append(_statement_table(visit, context["table"]))
    if successor:
        successor = (await visit.ask("get_entity", service_id=successor, shown=False)).first
    name = entity["legal_name"] or service_id
    crosswalk = await visit.ask(
        "get_crosswalk", shown=False, drawn=True, service_id=service_id, as_of=day_of_record
    )
    parties = await visit.ask("get_resolved_parties", shown=False, drawn=True, service_id=service_id)
    known = await _publications(visit, service_id)
    stops = sorted({row.available_at for row in known})
    then = [row for row in known if row.available_at <= as_of]
    charts = (*facts, *([_heat(visit, then)] if then else ()))
    context.update(
        entity=entity,
        successor=successor,
        predecessors=answer.members["predecessors"],
        name=name,
        identifiers=crosswalk.rows,
        withheld=crosswalk.members["withheld_id_types"],
        parties=parties.rows,
        first=stops[0] if stops else as_of,
        stops=stops[-_MOST_STOPS:],
        is_on_record=bool(day_of_record),
        is_bare=not known and not await data.has_figures(visit, service_id),
    )
    described = visit.language.text("Every figure as it was published, when it was published, and by whom.")
    dates = [end for end, _ in context["table"].periods]
    context["dataset"] = await data.dataset(visit, name, described, dates)
    return View("company.html", name, context, charts, ("statements",))


class _Publication(msgspec.Struct, gc=False):
    """The period and the day of publication of a vintage."""

    period_end: date
    available_at: date
    vintage: int


async def _publications(visit: Visit, service_id: str) -> list[_Publication]:
    """Every vintage of every figure; if the tier truncates the answer, only some line items, to go further
    back.
    """
    rows: list[_Publication] = []
    for items in [[item] for item in _TELLING] if visit.call.grant.sample else [[]]:
        arguments: dict[str, Any] = {"service_id": service_id, "vintages": "all", "line_items": items}
        rows += await visit.ask_fields("get_fundamentals", _Publication, **arguments)
    return rows


async def _statements(visit: Visit, service_id: str, as_of: date) -> dict[str, Any]:
    kind = visit.chosen("kind", STATEMENT_KINDS)
    cadence = visit.chosen("period", tuple(_PERIOD_TYPES))
    types = (_OF_INCOME if kind == "income" else _PERIOD_TYPES)[cadence]
    rows, truncated = await data.statement(visit, service_id, as_of.isoformat(), types, kind)
    table = arrange(rows, LINE_ITEMS, cadence, truncated=truncated)
    other: list[Row] = []
    beside = visit.day("beside") if visit.given("beside") else None
    if beside is not None:
        other, _ = await data.statement(visit, service_id, beside.isoformat(), types, kind)
    return {
        "beside": beside,
        "compared": _side_by_side(table, arrange(other, LINE_ITEMS, cadence)) if beside else None,
        "scale": reading_scale(table),
        "service_id": service_id.upper(),
        "as_of": as_of,
        "kind": kind,
        "cadence": cadence,
        "table": table,
        "truncated": truncated,
        "for_reading": for_reading,
        "unit_beside": unit_beside,
        "figure_address": data.figure_address,
    }


def _side_by_side(table: StatementTable, other: StatementTable) -> dict[str, Any]:
    """The newest periods of two tables, each with its figures on both days."""
    periods = sorted({*table.periods, *other.periods}, reverse=True)[:_MOST_BESIDE]
    then, beside = (
        {item: dict(zip(one.periods, line, strict=True)) for item, line in one.lines}
        for one in (table, other)
    )
    lines = []
    for item in LINE_ITEMS:
        own, others = then.get(item, {}), beside.get(item, {})
        pairs = [(own.get(period), others.get(period)) for period in periods]
        if any(first or second for first, second in pairs):
            lines.append((item, pairs))
    return {"periods": periods, "lines": lines}


def _statement_table(visit: Visit, table: StatementTable) -> Chart:
    """The statement with every digit, for download."""
    columns = ("line_item", "period_type", "period_end", "value_reported", "unit", "available_at", "vintage",
               "restated", "source_ref", "license_class", "observed_at")  # fmt: skip
    rows = [tuple(row[name] for name in columns) for _, line in table.lines for row in line if row]
    return Chart("statement", visit.language.text("Statement"), 0, 0, "", columns, rows)


async def _facts(visit: Visit, service_id: str, as_of: date) -> tuple[list[dict[str, Any]], list[Chart]]:
    """Key figures of the latest year known that day, each with its years as a small chart."""
    facts, charts = [], []
    for item in _FACTS:
        rows = await data.full_years(visit, service_id, item, as_of)
        same = [row for row in rows if row["unit"] == rows[-1]["unit"]]
        if not same:
            continue
        points = {int(row["period_end"][:4]): Decimal(row["value_reported"]) for row in same}
        name = label(visit.language, item)
        chart = small_line(f"fact-{item}", name, sorted(points.items()), visit.language.brief)
        before, now = points.get(int(same[-1]["period_end"][:4]) - 1), Decimal(same[-1]["value_reported"])
        # Between a profit and a loss a percentage is meaningless.
        change = now / before - 1 if before and before > 0 and now >= 0 else None
        charts.append(chart)
        tone = "" if not change or item == "total_debt" else "up" if change > 0 else "down"
        facts.append({"row": same[-1], "name": name, "chart": chart, "change": change, "tone": tone})
    return facts, charts


async def _ranks(visit: Visit, entity: Row, known: list[dict[str, Any]], as_of: date) -> list[dict[str, Any]]:
    """Some metrics compared with the country's other companies: rank, number of companies, median."""
    ranks = []
    own = {row["metric"]: row for row in known}
    for metric in _RANKED:
        if metric not in own or not entity["country"]:
            continue
        basis = "as_known" if as_of < visit.today else ""
        peers = await visit.ask(
            "get_screen",
            shown=False,
            metric=metric,
            country=entity["country"],
            as_of=as_of.isoformat(),
            basis=basis,
        )
        rank = next((row["rank"] for row in peers.rows if row["service_id"] == entity["service_id"]), None)
        values = [row["value"] for row in peers.rows if row["value"] is not None]
        whole = {"of": len(values), "median": median(values)} if values and not peers.truncated else {}
        ranks.append({**own[metric], "rank": rank, "of": None, "median": None, **whole})
    return ranks


async def _metrics(visit: Visit, service_id: str, as_of: date) -> dict[str, Any]:
    """The metrics on a day. For a past day they are computed from the figures known then."""
    is_past = as_of < visit.today
    basis = "as_known" if is_past else ""
    known = await visit.ask("get_metrics", service_id=service_id, as_of=as_of.isoformat(), basis=basis)
    omitted = {name: count for name, count in known.members["omitted"].items() if count}
    definitions = {metric.slug: metric for metric in metrics()}
    rows = [
        {
            **row,
            "summary": definitions[row["metric"]].summary,
            "formula": definitions[row["metric"]].explanation,
            "inputs": [{**figure, "line_item": _served_as(figure)} for figure in row["inputs"]],
        }
        for row in known.rows
    ]
    return {"metrics": rows, "omitted": omitted, "is_past": is_past}


def _served_as(figure: Row) -> str:
    """The line item under which `/v1/fundamentals` serves a figure.

    A statement or metric may use it as another line item: borrowings as total debt.
    """
    return line_item(figure["concept"]) if figure["concept"] else figure["line_item"]


def _heat(visit: Visit, rows: list[_Publication]) -> Chart:
    """A heat map of everything known of this issuer: periods against days of publication."""
    latest = sorted({row.period_end for row in rows}, reverse=True)[:_MOST_PERIODS]
    rows = [row for row in rows if row.period_end >= latest[-1]]
    figures = Counter((row.period_end, row.available_at) for row in rows)
    restated = Counter((row.period_end, row.available_at) for row in rows if row.vintage > 1)
    cells = {key: (count, restated[key]) for key, count in figures.items()}
    text = visit.language.text

    def words(period: date, day: date, count: int, restated: int) -> str:
        return text(
            "Period to %(period)s, public on %(day)s: %(count)s figures, %(restated)s of them restated",
            period=period.isoformat(),
            day=day.isoformat(),
            count=count,
            restated=restated,
        )

    table = [
        (period.isoformat(), day.isoformat(), count, restated)
        for (period, day), (count, restated) in sorted(cells.items(), reverse=True)
    ]
    return heat_map(
        "known",
        text("Figures by period and day of publication"),
        cells,
        (("period_end", "public_on", "figures", "restated"), table),
        words,
    )


@page("/companies", "country", "exchange", "q", "cursor", "as_of")
async def companies(visit: Visit) -> View:
    """The issuers known on a day, or the results of a search."""
    if visit.given("q"):
        address = visit.address("/search", q=visit.given("q"), country=visit.given("country"))
        return View("", "", {}, redirect=address)
    arguments = visit.passed_on("country", "exchange", "as_of", "cursor")
    result = await visit.ask("list_issuers", **arguments)
    context = {
        "rows": result.rows,
        "next_cursor": result.next_cursor,
        "as_of": visit.day(),
        "countries": await data.issuer_countries(visit),
    }
    return View("companies.html", visit.language.text("Companies"), context)


_IDENTITY: Final = ("period_end", "period_start", "concept", "unit")


@page("/company/{service_id}/figure", "line_item", "period_end", "period_start", "concept", "unit", "as_of")
async def figure(visit: Visit) -> View:
    """The vintages of one figure as steps. The part `figure` opens on top of a company's page."""
    service_id = visit.parameters["service_id"]
    item = _served_as({name: visit.given(name) for name in ("concept", "line_item")})
    if not item:
        raise InvalidParameter("line_item", "required")
    as_of = visit.day()
    every = (await visit.ask("get_fundamentals", service_id=service_id, vintages="all", line_items=item)).rows
    newest = await _chosen(visit, service_id, item, every)
    rows = [row for row in every if all(row[name] == newest[name] for name in _IDENTITY)]
    rows.sort(key=lambda row: row["vintage"])
    rows = rows or [newest]  # the tier withholds the others
    entity = (await visit.ask("get_entity", service_id=service_id, shown=False)).first
    name = entity["legal_name"] or service_id
    known = [row for row in rows if row["available_at"] <= as_of.isoformat()]
    title = f"{label(visit.language, item)} {newest['period_end']}"
    chart = _vintage_chart(visit, rows, as_of)
    context = {
        "name": name,
        "service_id": service_id,
        "line_item": item,
        "rows": rows,
        "newest": newest,
        "as_of": as_of,
        "then": known[-1] if known else None,
    }
    return View("figure.html", f"{title} · {name}", context, (chart,) if chart else (), ("figure",))


async def _chosen(visit: Visit, service_id: str, item: str, every: list[Row]) -> Row:
    """The figure in the address, for the latest period known that day. Raises NotFound.

    If none was known that day, the figure that became known first. No later filing changes either choice.
    """
    chosen = {name: visit.given(name) for name in _IDENTITY if visit.given(name)}

    def is_requested(row: Row) -> bool:
        return all(row[name] == text for name, text in chosen.items())

    day = visit.day().isoformat()
    known = await visit.ask(
        "get_fundamentals", shown=False, service_id=service_id, line_items=item, as_of=day
    )
    if rows := [row for row in known.rows if is_requested(row)]:
        return max(rows, key=lambda row: (row["period_end"], row["available_at"]))
    if rows := [row for row in every if is_requested(row)]:
        return min(rows, key=lambda row: (row["available_at"], row["period_end"], row["vintage"]))
    raise NotFound("No such figure is known of this company.")


def _vintage_chart(visit: Visit, rows: list[Row], as_of: date) -> Chart | None:
    """The vintages of one figure as steps; None if every one was withdrawn."""
    language = visit.language
    steps = [
        KnownValue(
            date.fromisoformat(row["available_at"]),
            Decimal(row["value_reported"]),
            f"{row['available_at']}: {language.figure(row['value_reported'])}",
        )
        for row in rows
        if row["value_reported"] is not None
    ]
    if not steps:
        return None
    provenance = ("source_ref", "license_class", "observed_at")
    columns = ("vintage", "available_at", "value_reported", "unit", *provenance)
    table = [tuple(row[name] for name in columns) for row in rows]
    title = language.text("The figure from the day it became known")
    return step_chart("vintages", title, steps, visit.today, language.short, (columns, table), as_of)


_MOST_SHOWN = 60
_FILTERS = ("country", "service_id", "line_item", "since", "until", "min_change")


@page("/restatements", *_FILTERS, "cursor")
async def restatements(visit: Visit) -> View:
    """A list of restatements, filtered by country, company, line item, days and size."""
    arguments = visit.passed_on(*_FILTERS, "cursor")
    result = await visit.ask("get_restatements", **arguments, limit=visit.most_rows(_MOST_SHOWN))
    context = {
        "rows": result.rows,
        "next_cursor": result.next_cursor,
        "countries": await data.issuer_countries(visit),
        "feed": visit.address("/feeds/restatements.atom", **{name: arguments[name] for name in _FILTERS}),
    }
    return View("restatements.html", visit.language.text("Restatements"), context)
