"""Filings as the SEC ships them, read as plainly as can be: nothing of the adapters is used."""

import calendar
import json
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from tests.world.reference import Told

NVIDIA, LPA, AMAZON = 1045810, 1997711, 1018724
CAPTURED = date(2026, 1, 1)  # every row here is dated, so this never counts
COMPANYFACTS = ("sec-companyfacts", "companyfacts")
STATEMENTS = ("sec-financial-statements", "sec-fsds")
Fact = tuple[str, str, date | None, date]


class Filing(NamedTuple):
    """What one raw row says, and of whom."""

    number: int
    told: Told


def companyfacts(folder: Path) -> Iterator[Filing | None]:
    """Every row of the raw JSON; None where it is not to be read."""
    for path in sorted(folder.glob("*.json")):
        whole = json.loads(path.read_text(), parse_float=Decimal)
        for taxonomy, concepts in whole["facts"].items():
            for name, concept in concepts.items():
                for unit, rows in concept["units"].items():
                    wanted = taxonomy in ("us-gaap", "ifrs-full", "srt") or (
                        taxonomy == "dei" and unit == "shares"
                    )
                    for row in rows:
                        yield (
                            _companyfact(int(whole["cik"]), f"{taxonomy}:{name}", unit, row)
                            if wanted
                            else None
                        )


def _companyfact(number: int, concept: str, unit: str, row: dict[str, Any]) -> Filing | None:
    if row["val"] is None:
        return None
    start = date.fromisoformat(row["start"]) if row.get("start") else None
    filed = date.fromisoformat(row["filed"])
    value = Decimal(row["val"])
    return Filing(
        number,
        Told(concept, unit, start, date.fromisoformat(row["end"]), row["accn"], value, filed, CAPTURED),
    )


def statements(folder: Path) -> Iterator[Filing | None]:
    """Every row of the raw num.txt, by the rounded dates given; None where it is not to be read."""
    for path in sorted(folder.glob("*.zip")):
        with zipfile.ZipFile(path) as archive:
            filings = {row["adsh"]: row for row in _table(archive, "sub.txt")}
            for row in _table(archive, "num.txt"):
                concept = _concept(row)
                plain = not (row["coreg"] or row.get("segments")) and row["value"] != ""
                if not plain or concept is None:
                    yield None
                    continue
                filing = filings[row["adsh"]]
                end = _day(row["ddate"])
                start, value = _start(end, int(row["qtrs"])), Decimal(row["value"])
                filed = _day(filing["filed"])
                told = Told(concept, row["uom"], start, end, row["adsh"], value, filed, CAPTURED)
                yield Filing(int(filing["cik"]), told)


def _table(archive: zipfile.ZipFile, name: str) -> Iterator[dict[str, str]]:
    with archive.open(name) as stream:
        lines = iter(stream.read().decode("utf-8", "replace").split("\n"))
    header = next(lines).rstrip("\r").split("\t")
    for line in lines:
        if line:
            yield dict(zip(header, line.rstrip("\r").split("\t"), strict=True))


def _concept(row: dict[str, str]) -> str | None:
    taxonomy = row["version"].partition("/")[0]
    if row["version"] == row["adsh"] or re.fullmatch(r"\d{10}-\d\d-\d{6}", row["version"]):
        return f"custom:{row['tag']}"
    if taxonomy == "dei" and row["uom"] == "shares":
        return f"dei:{row['tag']}"
    known = {"us-gaap": "us-gaap", "srt": "srt", "ifrs": "ifrs-full", "ifrs-full": "ifrs-full"}.get(taxonomy)
    return f"{known}:{row['tag']}" if known else None


def _day(compact: str) -> date:
    return date(int(compact[:4]), int(compact[4:6]), int(compact[6:8]))


def _start(end: date, quarters: int) -> date | None:
    """The day after the last day of the month so many quarters before."""
    if not quarters:
        return None
    months = end.year * 12 + end.month - 1 - 3 * quarters
    year, month = divmod(months, 12)
    last = date(year, month + 1, calendar.monthrange(year, month + 1)[1])
    return last + timedelta(days=1)


def once(real: Sequence[Filing], rounded: Sequence[Filing]) -> Iterator[Filing]:
    """What both sources say of one filing, with its real dates; what only one says, as it says it."""
    yield from real
    ends = defaultdict(list)
    for filing in real:
        ends[_figure_of(filing)].append(filing.told.end)
    for filing in rounded:
        if not any(abs((end - filing.told.end).days) <= 16 for end in ends[_figure_of(filing)]):
            yield filing


def _figure_of(filing: Filing) -> tuple[object, ...]:
    told = filing.told
    quarters = 0 if told.start is None else round(((told.end - told.start).days + 1) / 91.3125)
    unit = told.unit.removesuffix("/shares")  # which the data sets leave out
    return filing.number, told.document, told.concept, unit, told.value, quarters


def restated(told: dict[int, list[Told]]) -> set[tuple[int, Fact]]:
    """The facts of which more than one figure was ever reported."""
    figures: defaultdict[tuple[int, Fact], set[Decimal | None]] = defaultdict(set)
    for number, reports in told.items():
        for report in reports:
            figures[number, (report.concept, report.unit, report.start, report.end)].add(report.value)
    return {fact for fact, values in figures.items() if len(values) > 1}


def distinct(reports: Sequence[Filing]) -> int:
    """How many rows say something of their own: the same figure in the same document counts once."""
    return len({(f.number, f.told) for f in reports})
