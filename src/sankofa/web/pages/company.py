"""A company: its statements on any day, metrics, identifiers, tenders, and everything known of it."""

from collections import defaultdict
from datetime import date
from typing import Any, Final

import msgspec

from sankofa.derive.metrics.contract import metrics
from sankofa.model.line_items import LINE_ITEMS, STATEMENT_KINDS
from sankofa.web import data
from sankofa.web.bars import heat_map
from sankofa.web.charts import Chart
from sankofa.web.data import arrange, is_money, scaled
from sankofa.web.view import View, page
from sankofa.web.visit import Row, Visit

CADENCES: Final = ("year", "quarter", "half")
_PERIOD_TYPES: Final = {
    ("income", "year"): ("FY",),
    ("income", "half"): ("H1", "H2"),
    ("income", "quarter"): ("Q1", "Q2", "Q3", "Q4"),
    ("balance", "year"): ("FY",),
    ("balance", "half"): ("H1", "FY"),
    ("balance", "quarter"): ("Q1", "H1", "9M", "FY"),
    ("cash", "year"): ("FY",),
    ("cash", "half"): ("H1", "FY"),
    ("cash", "quarter"): ("Q1", "H1", "9M", "FY"),
}
_MOST_STOPS: Final = 12
_TELLING: Final = ("revenue", "profit", "assets", "equity")


@page("/company/{service_id}", "as_of", "kind", "period")
async def company(visit: Visit) -> View:
    """The page of one company. The part `statements` is all that a move of the day changes."""
    service_id = visit.parameters["service_id"]
    as_of = visit.day()
    context = await _statements(visit, service_id, as_of)
    context.update(await _metrics(visit, service_id, as_of))
    if visit.given("part") == "statements":
        return View("company.html", "", context, (), ("statements",))
    asked = await visit.ask("get_entity", service_id=service_id, shown=False)
    entity, successor = asked.first, asked.members["successor"]
    if successor:
        successor = (await visit.ask("get_entity", service_id=successor, shown=False)).first
    name = entity["legal_name"] or service_id
    crosswalk = await visit.ask("get_crosswalk", shown=False, drawn=True, service_id=service_id)
    parties = await visit.ask("get_resolved_parties", shown=False, drawn=True, service_id=service_id)
    known, known_truncated = await _known(visit, service_id)
    stops = sorted({row.available_at for row in known})
    charts = (_heat(visit, known, as_of),) if known else ()
    context.update(
        entity=entity,
        successor=successor,
        predecessors=asked.members["predecessors"],
        name=name,
        identifiers=crosswalk.rows,
        withheld=crosswalk.members["withheld_id_types"],
        parties=parties.rows,
        first=stops[0] if stops else as_of,
        stops=stops[-_MOST_STOPS:],
        known_truncated=known_truncated,
    )
    return View("company.html", name, context, charts, ("statements",))


class _Known(msgspec.Struct, gc=False):
    """The period and the day of publication of a vintage."""

    period_end: date
    available_at: date
    vintage: int


async def _known(visit: Visit, service_id: str) -> tuple[list[_Known], bool]:
    """Every vintage of every figure; where the tier shows a part, those of a few line items, to see far."""
    if not visit.call.grant.sample:
        return await visit.ask_fields("get_fundamentals", _Known, service_id=service_id, vintages="all")
    rows: list[_Known] = []
    truncated = False
    for item in _TELLING:
        some, more = await visit.ask_fields(
            "get_fundamentals", _Known, service_id=service_id, vintages="all", line_items=[item]
        )
        rows += some
        truncated = truncated or more
    return rows, truncated


async def _statements(visit: Visit, service_id: str, as_of: date) -> dict[str, Any]:
    kind = visit.chosen("kind", STATEMENT_KINDS)
    cadence = visit.chosen("period", CADENCES)
    types = _PERIOD_TYPES[kind, cadence]
    rows, truncated = await data.statement(visit, service_id, as_of.isoformat(), types, kind)
    table = arrange(rows, LINE_ITEMS, cadence, truncated=truncated)
    return {
        "service_id": service_id.upper(),
        "as_of": as_of,
        "kind": kind,
        "cadence": cadence,
        "kinds": STATEMENT_KINDS,
        "cadences": CADENCES,
        "table": table,
        "truncated": truncated,
        "scaled": scaled,
        "is_money": is_money,
        "figure_address": _figure_address,
    }


async def _metrics(visit: Visit, service_id: str, as_of: date) -> dict[str, Any]:
    """The metrics on a day: on a past one from what was known then, whatever was restated since."""
    is_past = as_of < visit.today
    asked = {"service_id": service_id, "as_of": as_of.isoformat(), "basis": "as_known" if is_past else ""}
    known = await visit.ask("get_metrics", shown=True, drawn=False, **asked)
    omitted = {name: count for name, count in known.members["omitted"].items() if count}
    return {"metrics": _with_definitions(known.rows), "omitted": omitted, "is_past": is_past}


def _figure_address(visit: Visit, row: Row, as_of: date) -> str:
    """The page of a figure's vintages."""
    return visit.address(
        f"/company/{row['service_id']}/figure",
        line_item=row["line_item"],
        period_end=row["period_end"],
        period_start=row["period_start"],
        concept=row["concept"],
        unit=row["unit"],
        as_of=as_of.isoformat(),
    )


def _with_definitions(rows: list[Row]) -> list[dict[str, Any]]:
    known = {metric.slug: metric for metric in metrics()}
    return [
        {**row, "summary": known[row["metric"]].summary, "formula": known[row["metric"]].explanation}
        for row in rows
    ]


def _heat(visit: Visit, rows: list[_Known], as_of: date) -> Chart:
    """Periods against days of publication: everything known of this issuer."""
    counts: dict[tuple[date, date], list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        cell = counts[row.period_end, row.available_at]
        cell[0] += 1
        cell[1] += row.vintage > 1
    cells = {key: (count, restated) for key, (count, restated) in counts.items()}
    latest = sorted({period for period, _ in cells}, reverse=True)[:60]
    cells = {key: value for key, value in cells.items() if key[0] >= latest[-1]}
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
        as_of,
        words,
    )


@page("/companies", "country", "exchange", "q", "cursor", "as_of")
async def companies(visit: Visit) -> View:
    """The universe as knowable on a day, or what a search finds."""
    if visit.given("q"):
        address = visit.address("/search", q=visit.given("q"), country=visit.given("country"))
        return View("", "", {}, redirect=address)
    asked = visit.passed_on("country", "exchange", "as_of", "cursor")
    result = await visit.ask("list_issuers", **asked)
    of_countries = await data.countries(visit, shown=False)
    known = (country for country, units in of_countries.items() if "issuers" in units)
    context = {
        "rows": result.rows,
        "next_cursor": result.next_cursor,
        "truncated": result.truncated,
        "as_of": visit.day(),
        "countries": sorted(known, key=visit.language.country),
    }
    return View("companies.html", visit.language.text("Companies"), context)
