"""A small desk: it ingests files into a real ledger and publishes editions, at times that the test sets."""

import csv
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from sankofa.edition.read.edition import Edition
from sankofa.edition.read.edition_manager import open_edition
from sankofa.edition.write.publish import publish
from sankofa.engines.datastore import open_datastore
from sankofa.ledger.ingest import Summary, ingest
from sankofa.ledger.store import SCHEMA, Ledger
from sankofa.model.vintages import Mode
from sankofa.settings import Settings
from sankofa.sources.registry import load_sources
from tests.patience import wait
from tests.world.reference import MODES, FiledFigure

COLUMNS = (
    *("entity", "line_item", "value", "currency", "period_start", "period_end", "available_at"),
    *("document", "location", "confidence"),
)
_MODES = {"latest": Mode.LATEST, "as_reported": Mode.AS_REPORTED, "all": Mode.ALL}
Answer = tuple[dict[str, Any], ...]


class Desk:
    """A data folder and a clock."""

    def __init__(self, home: Path, today: date = date(2024, 1, 1)) -> None:
        self.home = home
        self.inbox = home.parent / f"{home.name}-inbox"
        self.inbox.mkdir(parents=True)
        self.settings = Settings(home=home)
        self.now = datetime.combine(today, time(12), UTC)
        self.store = open_datastore("sqlite:", home, SCHEMA)

    def set_day(self, day: date) -> None:
        self.now = datetime.combine(day, time(12), UTC)

    def ledger(self) -> Ledger:
        return Ledger(self.store, self.settings.gate_key(), lambda: self.now)

    def take(self, source: str, *paths: Path) -> Summary:
        ledger = self.ledger()
        try:
            source_ = load_sources(self.home)[source]
            return ingest(
                ledger, source_, paths, rejects_folder=self.home / "rejects", clock=lambda: self.now
            )
        finally:
            ledger.close()

    def filings(self, name: str, rows: Iterable[Sequence[str]], columns: Sequence[str] = COLUMNS) -> Summary:
        """Write a file of the filings-csv template, and ingest it."""
        path = self.inbox / name
        with path.open("w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(columns)
            writer.writerows(rows)
        return self.take("filings", path)

    def publish(self, keep: int = 5) -> Edition:
        ledger = self.ledger()
        try:
            manifest = publish(
                self.store, ledger, keep, sources=load_sources(self.home), issuer_cache=self.home / "derived"
            )
        finally:
            ledger.close()
        return open_edition(self.store, manifest["edition"])


def ask(
    edition: Edition, service_id: str, days: Iterable[date], modes: Iterable[str] = MODES
) -> dict[tuple[date, str], Answer]:
    """The edition's rows of an issuer on each day in each mode, with exact figures."""

    async def every() -> dict[tuple[date, str], Answer]:
        answers = {}
        for day in days:
            for mode in modes:
                selection = await edition.select(
                    "fundamentals", service_id, day=day.toordinal(), modes=int(_MODES[mode])
                )
                assert selection is not None
                rows = json.loads(b"[" + selection.rows + b"]", parse_int=Decimal, parse_float=Decimal)
                assert (len(rows), selection.truncated) == (selection.count, False)
                answers[day, mode] = tuple(rows)
        return answers

    return wait(every())


def as_row(entity: str, filed: FiledFigure, location: str = "") -> list[str]:
    """A report as a row of the template."""
    return [
        entity,
        filed.concept,
        "" if filed.value is None else str(filed.value),
        filed.unit,
        filed.start.isoformat() if filed.start else "",
        filed.end.isoformat(),
        filed.available.isoformat() if filed.available else "",
        filed.document,
        location,
        "" if filed.confidence is None else str(filed.confidence),
    ]


def around(days: Iterable[date]) -> list[date]:
    """Each day, the one before and the one after."""
    return sorted({day + timedelta(days=step) for day in days for step in (-1, 0, 1)})
