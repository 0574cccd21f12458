"""Commands that print and change nothing: sources, settings, openapi and show."""

import asyncio
import json
import sys
from datetime import date, datetime
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from sankofa import settings
from sankofa.cli.audit import operator_call
from sankofa.cli.output import as_json, print_json, print_table
from sankofa.cli.process import now
from sankofa.model.errors import OperatorError, Problem
from sankofa.model.line_items import LINE_ITEMS, STATEMENT_KINDS
from sankofa.operations.answers import envelope
from sankofa.operations.asking import decode_answer
from sankofa.operations.contract import operations
from sankofa.rest.openapi import describe
from sankofa.sources.registry import load_sources
from sankofa.web.data import StatementTable, arrange, is_money, scaled
from sankofa.web.languages import language


@click.command("sources")
@as_json
def list_sources(as_json: bool) -> None:
    """What is registered."""
    sources = load_sources(settings.load().home).values()
    if as_json:
        print_json(list(sources))
        return
    lines = []
    for source in sources:
        licence = source.license_class
        if not source.commercial_redistribution:
            licence += "  REFUSED: no commercial redistribution"
        lines.append((source.id, source.adapter, source.sku or "-", licence))
    print_table(("source", "adapter", "dataset", "licence"), lines)


@click.command("settings")
def show_settings() -> None:
    """Each setting with its value, where that came from and what it means; secrets masked."""
    for variable, value, origin, explanation in settings.explain():
        click.echo(f"{variable}={value}  ({origin})\n    {explanation}")


@click.command("openapi")
def print_description() -> None:
    """Print the OpenAPI description, as served at /openapi.json."""
    click.echo(json.dumps(describe(settings.load()), indent=2, ensure_ascii=False))


_WORDS = {1: "", 1_000: ", in thousands", 1_000_000: ", in millions"}


@click.command("show")
@click.argument("company")
@click.option(
    "--as-of", type=click.DateTime(["%Y-%m-%d"]), help="Day of the statement as known then; default: today."
)
@click.option("--kind", type=click.Choice(STATEMENT_KINDS), default="income", show_default=True)
@click.option("--period-type", default="FY", show_default=True, help="FY, H1, Q3, ...")
@as_json
def show(company: str, as_of: datetime | None, kind: str, period_type: str, as_json: bool) -> None:
    """Print a statement of COMPANY, by service_id, name, ticker or LEI, as it was known on a day."""
    today = now().date()
    day = as_of.date() if as_of else today
    try:
        name, rows = asyncio.run(_statement(company, day, today, kind, period_type))
    except Problem as problem:
        raise OperatorError(problem.detail) from problem
    if as_json:
        print_json(rows)
        return
    _print(name, day, arrange(rows, LINE_ITEMS, "year"))


async def _statement(
    company: str, day: date, today: date, kind: str, period_type: str
) -> tuple[str, list[dict[str, Any]]]:
    """The name of the company, and the rows of its statement."""
    with operator_call() as call:
        by_name = {operation.name: operation for operation in operations()}

        async def ask(name: str, **parameters: str) -> list[dict[str, Any]]:
            operation = by_name[name]
            answer = await operation.perform(call, **operation.read_tool(parameters, today))
            rows: list[dict[str, Any]] = decode_answer(envelope(answer, call.edition, operation))["data"]
            return rows

        matches = await ask("search_entities", query=company)
        if not matches:
            raise OperatorError(f"no company {company!r} is known in edition {call.edition.id}")
        best = matches[0]
        rows = await ask(
            "get_statement",
            service_id=best["service_id"],
            as_of=day.isoformat(),
            kind=kind,
            period_type=period_type,
        )
        return best["legal_name"] or best["service_id"], rows


def _print(name: str, day: date, table: StatementTable) -> None:
    """A table with headings; colour and lines only on a terminal."""
    english = language("en")
    title = f"{name}, as known on {day}"
    if not table.lines:
        click.echo(f"{title}: nothing")
        return
    unit = (table.currency or "") + _WORDS[table.scale]
    headings = ["line item", *(f"{kind} {end}" for end, kind in table.periods)]
    lines = []
    for item, cells in table.lines:
        line = [item.replace("_", " ")]
        for row in cells:
            figure = "" if row is None else english.figure(scaled(row, table.scale))
            if row is not None and not is_money(row) and row["unit"]:
                figure += f" {row['unit']}"
            line.append(figure + (" restated" if row is not None and row["restated"] else ""))
        lines.append(line)
    if not sys.stdout.isatty():
        _print_plain(f"{title} ({unit})", headings, lines)
        return
    shown = Table(title=title, caption=unit, title_justify="left", caption_justify="left")
    for number, heading in enumerate(headings):
        shown.add_column(heading, justify="left" if number == 0 else "right")
    for line in lines:
        shown.add_row(*(cell.replace(" restated", " [yellow]restated[/]") for cell in line))
    Console().print(shown)


def _print_plain(title: str, headings: list[str], lines: list[list[str]]) -> None:
    widths = [max(len(line[n]) for line in [headings, *lines]) for n in range(len(headings))]
    click.echo(title)
    for line in [headings, *lines]:
        cells = [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        click.echo("  ".join([line[0].ljust(widths[0]), *cells]).rstrip())
