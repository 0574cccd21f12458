"""The command `audit`: finds the figures of a table that were not public on the day they were used."""

import asyncio
import re
import sys
from collections.abc import Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from sankofa.cli.describing import operator_call
from sankofa.cli.output import as_json, print_json
from sankofa.model.claims import read_period
from sankofa.model.errors import Absence, InvalidParameter, OperatorError, Problem
from sankofa.operations.contract import Call
from sankofa.operations.locked import ask, decode_answer
from sankofa.sources.base import InputFile
from sankofa.sources.tables import best_sheet, peek, read_table, words

_NEEDED: Final = ("subject", "period", "value", "date")
_COLUMNS: Final = (*_NEEDED, "measure", "unit")
_DAYS: Final = ("date", "period")
_FINDINGS: Final = ("look-ahead", "unreadable", "restated", "contradicted", "not found", "supported")
"""In the order of the listing."""
_Row = dict[str, str]


class _Audited(NamedTuple):
    """One row of the table and its finding."""

    line: int
    finding: str
    days_early: int
    row: _Row
    check: dict[str, Any]

    @property
    def rank(self) -> tuple[int, int, int]:
        return _FINDINGS.index(self.finding), -self.days_early, self.line


@click.command("audit")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@as_json
def audit(file: Path, as_json: bool) -> None:
    """Check a table of figures for look-ahead: FILE is a CSV or Excel file with a row for each figure.

    Its columns are subject, period, value and date (the day on which the figure was used), and optionally
    measure and unit. In a CSV file commas, semicolons or tabs separate the cells. If the other values of the
    table have decimal commas (46,2), then 46,222 has one too, else it is 46 thousand. A row that cannot be
    read is listed with the reason. Exit 1 if a figure was used before it was public, else 2 if a row cannot
    be read.
    """
    table = InputFile(file)
    lines = list(_read(table))
    marks = {_decimal_mark(row["value"]) for _, row in lines if isinstance(row, dict)} - {""}
    if not marks and not table.is_xlsx and any(b";" in peek(stream) for _, stream in table.documents()):
        marks = {".", ","}
    rows = [(line, _plain(row, marks)) for line, row in lines]
    audited = sorted(asyncio.run(_audit(rows)), key=lambda one: one.rank)
    if as_json:
        print_json([{"line": a.line, "finding": a.finding, **a.row, "figure": a.check} for a in audited])
    else:
        _print_audit(audited)
    findings = {one.finding for one in audited}
    sys.exit(1 if "look-ahead" in findings else 2 if "unreadable" in findings else 0)


def _read(file: InputFile) -> Iterator[tuple[int, _Row | ValueError]]:
    """Each row with its line; if it cannot be read, the reason. Raises OperatorError without a table."""
    if file.is_xlsx:
        sheet = best_sheet(file, lambda cells: len({*map(str.lower, cells)} & {*_NEEDED}))
        yield from _rows(file.name, sheet.header, sheet.rows)
        return
    for name, stream in file.documents():
        table = read_table(file.name, stream, (("subject",),))
        yield from _rows(name, table.header if table else [], table.rows if table else ())


def _rows(
    name: str, header: list[str], rows: Iterable[tuple[int, list[str] | ValueError]]
) -> Iterator[tuple[int, _Row | ValueError]]:
    """Raises OperatorError if a column is missing."""
    columns = [cell.strip().lower() for cell in header]
    if missing := [column for column in _NEEDED if column not in columns]:
        raise OperatorError(
            f"{name}: no column {', '.join(missing)}; required: {', '.join(_NEEDED)}; optional: measure, unit"
        )
    for line, cells in rows:
        if isinstance(cells, list) and any(cells[len(columns) :]):
            reason = f"{len(cells)} cells under {len(columns)} headings: quote a value that has a separator"
            yield line, ValueError(reason)
        elif isinstance(cells, ValueError):
            yield line, cells
        elif any(cells):
            row = dict(zip(columns, (words(cell).strip() for cell in cells), strict=False))
            yield line, {column: row.get(column, "") for column in _COLUMNS if column in columns}


_NUMBER: Final = re.compile(r"[0-9][0-9.,]*(?:[eE][+-]?[0-9]+)?")
_ONE_SEPARATOR: Final = re.compile(r"[1-9][0-9]{0,2}[.,][0-9]{3}")
_POINTED_DAY: Final = re.compile(r"([0-9]{2})\.([0-9]{2})\.([0-9]{4})")
_INSTANT: Final = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ][0-9:.]+(?:Z|[+-][0-9:]+)?")


def _plain(cells: _Row | ValueError, marks: set[str]) -> _Row | ValueError:
    """A row with days as YYYY-MM-DD and a decimal point, by the decimal signs that its table shows."""
    if isinstance(cells, ValueError):
        return cells
    days = (_INSTANT.sub(r"\1", _POINTED_DAY.sub(r"\3-\2-\1", cells[name])) for name in _DAYS)
    row = cells | dict(zip(_DAYS, days, strict=True))
    number = _NUMBER.search(cells["value"])
    if number is None or not _ONE_SEPARATOR.fullmatch(number[0]) or not marks:
        return row
    if len(marks) > 1:
        return ValueError(f"value: {number[0]} may be thousands or a decimal: leave the separator out")
    text = number[0].replace("." if "," in marks else ",", "").replace(",", ".")
    return row | {"value": cells["value"].replace(number[0], text)}


def _decimal_mark(value: str) -> str:
    """The decimal sign of a value; empty if it shows none."""
    number = _NUMBER.search(value)
    text = number[0].rstrip(".,") if number else ""
    signs = [sign for sign in text if sign in ".,"]
    if not signs or _ONE_SEPARATOR.fullmatch(text):
        return ""
    if len(signs) == 1 or signs[-1] != signs[0]:
        return signs[-1]
    return "," if signs[0] == "." else "."


async def _audit(rows: list[tuple[int, _Row | ValueError]]) -> list[_Audited]:
    audited = []
    with operator_call() as call:
        for line, row in rows:
            if isinstance(row, ValueError):
                audited.append(_unreadable(line, dict.fromkeys(_NEEDED, ""), str(row)))
                continue
            try:
                audited.append(await _judged(call, line, row))
            except Problem as problem:
                audited.append(_unreadable(line, row, problem.detail))
    return audited


def _unreadable(line: int, row: _Row, detail: str) -> _Audited:
    return _Audited(line, "unreadable", 0, row, {"available_at": None, "detail": detail})


async def _judged(call: Call, line: int, row: _Row) -> _Audited:
    """Raises Problem if the row is not a valid claim."""
    used = _day(row["date"])
    if used > call.today:
        raise InvalidParameter("date", "a day in the future")
    then = await _check(call, row, used)
    finding = {"supported": "supported", "supported_then": "restated"}.get(then["verdict"])
    if finding is None:
        today = await _check(call, row, call.today)
        if today["verdict"] in ("supported", "supported_then"):
            early = (date.fromisoformat(today["available_at"]) - used).days
            if early > 0:
                return _Audited(line, "look-ahead", early, row, today)
        finding = "contradicted" if then["verdict"] == "contradicted" else "not found"
    return _Audited(line, finding, 0, row, then)


def _day(text: str) -> date:
    try:
        when = read_period(text)
    except ValueError:
        when = None
    if when is None or when.end is None or when.start is not None:
        raise InvalidParameter("date", f"{text!r} is not a date (YYYY-MM-DD)")
    return when.end


async def _check(call: Call, row: _Row, day: date) -> dict[str, Any]:
    names = ("subject", "measure", "period", "value", "unit")
    claim = {name: row[name] for name in names if row.get(name)} | {"as_of": day.isoformat()}
    answer = await ask(call, "check_claim", claim)
    (checked,) = (one for some in answer.selection.lists() for one in decode_answer(some))
    why = answer.members["unknown"]
    return {**checked, "detail": why.detail if isinstance(why, Absence) else None}


def _print_audit(audited: list[_Audited]) -> None:
    for one in audited:
        row, check = one.row, one.check
        claimed = (row["subject"], row.get("measure"), row["period"], row["value"], row.get("unit"))
        text = f"{one.finding:<13}line {one.line}: {' '.join(filter(None, claimed))}"
        text += f", used on {row['date']}" if row["date"] else ""
        if one.finding == "look-ahead":
            days = "1 day" if one.days_early == 1 else f"{one.days_early} days"
            text += f", public on {check['available_at']} ({days} later)"
        elif check["detail"]:
            text += f": {check['detail']}"
        elif one.finding == "restated":
            text += f", restated on {check['restated_at']}"
        elif one.finding == "contradicted":
            text += f", reported as {check['value']} {check['unit'] or ''}".rstrip()
        click.echo(text + (f"; {check['source_ref']}" if check["available_at"] else ""))
    counts = {name: sum(one.finding == name for one in audited) for name in _FINDINGS}
    click.echo(", ".join(f"{count} {name}" for name, count in counts.items() if count) or "no rows")
