"""Cross rates: what one currency was worth in another, derived from published rates, as known on a day."""

from datetime import date
from decimal import Decimal
from itertools import groupby
from typing import Final

from sankofa.web.charts import Line, line_chart
from sankofa.web.view import View, page
from sankofa.web.visit import Visit

_MOST_VALUES: Final = 500
_MOST_ROWS: Final = 60


@page("/macro/cross-rates", "base", "quote", "as_of")
async def cross_rates(visit: Visit) -> View:
    """A pair of currencies, through each third; a form if none is named."""
    base, quote = visit.given("base").strip().upper(), visit.given("quote").strip().upper()
    title = visit.language.text("Cross rates")
    as_of = visit.day()
    context = {"base": base, "quote": quote, "as_of": as_of, "rows": []}
    if not base or not quote:
        return View("cross_rates.html", title, context)
    limit = visit.most_rows(_MOST_VALUES)
    result = await visit.ask("get_cross_rates", base=base, quote=quote, as_of=as_of.isoformat(), limit=limit)
    context["rows"] = result.rows[:_MOST_ROWS]
    lines = [
        Line(
            via,
            "old" if number else "main",
            [(date.fromisoformat(row["date"]), Decimal(row["value"])) for row in rows][::-1],
        )
        for number, (via, rows) in enumerate(groupby(result.rows, key=lambda row: row["via"]))
    ]
    columns = ("date", "via", "value", "base_rate", "quote_rate", "available_at")
    table = [
        (row["date"], row["via"], row["value"], *(one["value"] for one in row["inputs"]), row["available_at"])
        for row in result.rows
    ]
    described = visit.language.text("%(quote)s for one %(base)s, derived", quote=quote, base=base)
    chart = line_chart("rates", described, lines, visit.language.short, (columns, table), as_of, quote)
    return View("cross_rates.html", f"{base} / {quote}", context, (chart,))
